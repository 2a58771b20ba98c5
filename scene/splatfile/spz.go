package splatfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"

	"vksplat/internal/fault"
	"vksplat/scene"
)

// spz is Niantic's format (github.com/nianticlabs/spz): every value is quantised, and each attribute stands in a plane
// of its own. Versions 1 to 3 are one gzip stream with a header of 16 bytes; version 4 is a header of 32 bytes, a table
// and a zstd stream for each plane.
var spz = &Format{
	Name:       spzName,
	Extensions: []string{".spz"},
	Detect:     isSPZ,
	Open:       openSPZ,
	Write:      writer("write spz", writeSPZ, spzDefaultVersion, spzZstdVersion),
}

const (
	spzName        = "spz"
	opReadSPZ      = "read spz"
	spzMagic       = "NGSP"
	spzHeaderBytes = 16
	spzZstdVersion = 4  // the first with zstd streams
	spzZstdHeader  = 32 // bytes of its header
	spzAntialiased = 0x1
	spzExtended    = 0x2 // records of other programs follow: see spzExtensionFrame

	// Planes up to spzSmall bytes are read however well they are packed. Beyond it they may be at most spzMaxRatio
	// times as large as the file: deflate cannot do better, and the reference implementation refuses more.
	spzSmall    = 64 << 20
	spzMaxRatio = 1032
	// spzMaxTail bounds the extensions, which follow the last plane of versions 1 to 3. Without their flag nothing may
	// follow.
	spzMaxTail = 64 << 10
	// spzMaxBits is the most fractional bits that a position of 24 bits can have and mean something.
	spzMaxBits = 24
)

// Planes of a file in their order.
const (
	spzPositions = iota
	spzAlphas
	spzColors
	spzScales
	spzRotations
	spzSH
	spzPlanes
)

var spzPlaneNames = [spzPlanes]string{"positions", "alphas", "colors", "scales", "rotations", "spherical harmonics"}

// spzHeader is the header of a file.
type spzHeader struct {
	version int
	n       int
	degree  int // of the file, up to 4; models take 3 of them
	bits    int // of positions after the binary point
	flags   byte
	streams int // of version 4
	table   int64
}

// isSPZ tells SPZ by its magic, which stands at the beginning of the file or of what the gzip stream packs.
func isSPZ(head []byte) bool {
	if bytes.HasPrefix(head, []byte(spzMagic)) {
		return true
	}
	if !isGzip(head) {
		return false
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return false
	}
	var magic [len(spzMagic)]byte
	_, err = io.ReadFull(unpacked, magic[:])
	return err == nil && string(magic[:]) == spzMagic
}

func isGzip(head []byte) bool { return len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b }

// parseSPZHeader reads the first 16 bytes, and the other 16 of version 4.
func parseSPZHeader(b []byte) (h spzHeader, err error) {
	if len(b) < spzHeaderBytes || string(b[:4]) != spzMagic {
		return h, errors.New("it is not an SPZ file")
	}
	version, n := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	h = spzHeader{n: int(n), degree: int(b[12]), bits: int(b[13]), flags: b[14]}
	switch {
	case version < 1 || version > spzZstdVersion:
		return h, &fault.Error{Op: opReadSPZ,
			Err:  fmt.Errorf("its version is %d, 1 to %d are supported", version, spzZstdVersion),
			Hint: "export it again as version 3 or 4"}
	case n > math.MaxInt32:
		return h, fmt.Errorf("the header claims %d splats", n)
	case h.degree > scene.MaxSHDegree+1:
		return h, fmt.Errorf("the header claims spherical harmonics of degree %d", h.degree)
	case h.bits > spzMaxBits:
		return h, fmt.Errorf("the header claims %d fractional bits of positions with 24", h.bits)
	}
	h.version = int(version)
	if version < spzZstdVersion {
		return h, nil
	}
	if len(b) < spzZstdHeader {
		return h, io.ErrUnexpectedEOF
	}
	h.streams, h.table = int(b[15]), int64(binary.LittleEndian.Uint32(b[16:]))
	if h.table < spzZstdHeader {
		return h, fmt.Errorf("the header places the table at byte %d", h.table)
	}
	return h, nil
}

// widths gives the bytes a splat of each plane.
func (h spzHeader) widths() []int {
	widths := []int{9, 1, 3, 3, 4, restNumbers(h.degree)}
	if h.version == 1 {
		widths[spzPositions] = 6
	}
	if h.version < 3 {
		widths[spzRotations] = 3
	}
	return widths
}

// planesBytes is the size of the first planes: where the next one begins.
func (h spzHeader) planesBytes(planes int) (size int64) {
	for _, width := range h.widths()[:planes] {
		size += int64(h.n) * int64(width)
	}
	return size
}

// info is the file's Source.Info.
func (h spzHeader) info() Info {
	info := Info{Format: spzName, N: h.n, Degree: min(h.degree, scene.MaxSHDegree), Packed: true}
	info.Meta.Antialiased = h.flags&spzAntialiased != 0
	if h.degree > scene.MaxSHDegree {
		info.Notes = append(info.Notes,
			fmt.Sprintf("the file holds spherical harmonics of degree %d; those above %d are left out", h.degree,
				scene.MaxSHDegree))
	}
	return info
}

func (h spzHeader) encode() []byte {
	b := make([]byte, 0, spzZstdHeader)
	b = append(b, spzMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.version))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.n))
	b = append(b, byte(h.degree), byte(h.bits), h.flags, byte(h.streams))
	if h.version < spzZstdVersion {
		return b
	}
	b = binary.LittleEndian.AppendUint32(b, spzZstdHeader)
	return append(b, make([]byte, spzZstdHeader-len(b))...)
}
