package splatfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
)

const (
	// spzDefaultVersion is what viewers read that were made before 2026, and those that have not followed since;
	// version 4 is smaller.
	spzDefaultVersion = 3
	// spzBits is the fractional bits of positions that the reference implementation writes: steps of 1/4096 unit, up to
	// 2048 units from the origin.
	spzBits = 12
	// spzMinBits is the least it takes: steps of 1/16, up to 524288.
	spzMinBits = 4
	// spzGzipLevel packs a little better than zlib at its default, and as fast.
	spzGzipLevel = 8
	// spzFineBits is how many bits the largest coordinate of a small scene is given.
	spzFineBits = 14
)

func writeSPZ(path string, model Source, o WriteOptions) ([]string, error) {
	s, err := packSPZFile(path, model, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.planes.close() }() // what it held is written, or has failed
	return s.lost(lostOf(model.Info(), "SPZ", true)), atomicfile.Write(path, s.write)
}

// spzPacked is a file of SPZ that is about to be written.
type spzPacked struct {
	head     spzHeader
	planes   *planes
	farthest float64 // the largest absolute value of a coordinate
	cut      spzCut
}

// packSPZFile fills the planes of a file, which the caller closes.
func packSPZFile(path string, model Source, o WriteOptions) (s spzPacked, err error) {
	info := model.Info()
	s.head = spzHeader{version: spzDefaultVersion, n: info.N, degree: info.Degree}
	if o.Version != 0 {
		s.head.version = o.Version
	}
	if info.N > math.MaxInt32 {
		return s, refusal("write a part of the model", "%d splats are more than the format counts", info.N)
	}
	if info.Meta.Antialiased {
		s.head.flags |= spzAntialiased
	}
	if s.farthest, err = farthestCoordinate(model); err != nil {
		return s, err
	}
	if s.head.bits, err = spzBitsFor(s.farthest); err != nil {
		return s, err
	}
	s.planes = newPlanes(s.head.n, s.head.widths(), planesInMemory, o.FolderFor(path))
	if s.cut, err = packModel(model, s.head.bits, s.planes); err != nil {
		return s, errors.Join(err, s.planes.close())
	}
	return s, nil
}

func (s spzPacked) write(w io.Writer) error { return writePlanes(w, s.head, s.planes) }

// farthestCoordinate is the largest absolute value of a coordinate.
func farthestCoordinate(model Source) (float64, error) {
	farthest := 0.0
	err := eachWritable(model, func(_ int, piece *scene.Splats) error {
		for _, x := range piece.Means {
			farthest = max(farthest, math.Abs(float64(x)))
		}
		return nil
	})
	return farthest, err
}

// spzBitsFor chooses the fractional bits of positions: 12, fewer where a coordinate would not fit 24 bits, more where a
// scene is so small that its steps could be seen.
func spzBitsFor(farthest float64) (int, error) {
	if farthest == 0 {
		return spzBits, nil
	}
	_, above := math.Frexp(farthest) // farthest < 2^above
	bits := min(max(spzBits, spzFineBits-above), spzMaxBits-1)
	// Rounding must not reach 2^23.
	for bits >= spzMinBits && math.Round(math.Ldexp(farthest, bits)) > 1<<23-1 {
		bits--
	}
	if bits < spzMinBits {
		return 0, refusal("move the model nearer to the origin of its coordinates, or leave out far splats",
			"a coordinate of %g does not fit 24 bits", farthest)
	}
	return bits, nil
}

func packModel(model Source, bits int, p *planes) (cut spzCut, err error) {
	err = p.fill(model, spzFrame, func(_ int, piece *scene.Splats, packed [][]byte) error {
		packSPZ(bits, piece, packed, &cut)
		return nil
	})
	return cut, err
}

// writePlanes packs the planes into a file.
func writePlanes(w io.Writer, head spzHeader, p *planes) error {
	if head.version >= spzZstdVersion {
		return writeZstdPlanes(w, head, p)
	}
	z, err := gzip.NewWriterLevel(w, spzGzipLevel)
	if err != nil {
		return err
	}
	if _, err := z.Write(head.encode()); err != nil {
		return err
	}
	if _, err := io.Copy(z, p.all()); err != nil {
		return err
	}
	return z.Close()
}

// writeZstdPlanes packs the streams aside first, because the table of their sizes stands before them.
func writeZstdPlanes(w io.Writer, head spzHeader, p *planes) error {
	if p.file == nil {
		var aside bytes.Buffer
		sizes, err := zstdStreams(&aside, p)
		if err != nil {
			return err
		}
		return assembleZstd(w, head, sizes, &aside)
	}
	aside, err := createTemp(p.dir, 0) // how well they pack is not known
	if err != nil {
		return err
	}
	sizes, err := zstdStreams(aside, p)
	if err == nil {
		err = assembleZstd(w, head, sizes, io.NewSectionReader(aside, 0, math.MaxInt64))
	}
	return errors.Join(err, aside.close())
}

// zstdSize is a row of the table: bytes packed and unpacked.
type zstdSize struct{ packed, full int64 }

// zstdStreams packs every plane that has bytes to a stream of its own.
func zstdStreams(w io.Writer, p *planes) ([]zstdSize, error) {
	// One core: how a stream is cut into blocks must not depend on the machine.
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	var sizes []zstdSize
	for plane := range p.widths {
		full := p.starts[plane+1] - p.starts[plane]
		if full == 0 {
			continue
		}
		count := &countWriter{w: w}
		// Readers that make room before they unpack look for the size in the frame.
		z.ResetContentSize(count, full)
		if _, err := io.Copy(z, p.reader(plane)); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		sizes = append(sizes, zstdSize{count.n, full})
	}
	return sizes, nil
}

func assembleZstd(w io.Writer, head spzHeader, sizes []zstdSize, streams io.Reader) error {
	head.streams = len(sizes)
	begin := head.encode()
	for _, size := range sizes {
		begin = binary.LittleEndian.AppendUint64(begin, uint64(size.packed))
		begin = binary.LittleEndian.AppendUint64(begin, uint64(size.full))
	}
	if _, err := w.Write(begin); err != nil {
		return err
	}
	_, err := io.Copy(w, streams)
	return err
}

type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// lost adds what became of numbers to what was lost.
func (s spzPacked) lost(lost []string) []string {
	cut := s.cut
	if s.head.bits < spzBits {
		lost = append(lost, fmt.Sprintf("Coordinates up to %.6g fit SPZ only in steps of %g", s.farthest,
			math.Ldexp(1, -s.head.bits)))
	}
	lost = lostSome(lost, cut.scales, "splats have scales outside exp(-10) to exp(5.94) units, which SPZ cuts")
	lost = lostSome(lost, cut.colors, "splats have colours outside -0.44 to 1.44, which SPZ cuts")
	return lostSome(lost, cut.sh, "splats have spherical harmonics outside -1 to 1, which SPZ cuts")
}
