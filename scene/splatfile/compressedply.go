package splatfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// Compressed PLY is the format of SuperSplat (https://github.com/playcanvas/supersplat): chunks of 256 splats, each
// with the bounds of its positions, logarithms of scales and colours; of each splat four words of 32 bits, in fractions
// of these bounds; and a byte for each higher coefficient of the spherical harmonics. The last chunk may be shorter.
// The frame is that of INRIA's PLY.
var compressedPLY = &Format{
	Name:       compressedPLYName,
	Extensions: []string{".compressed.ply"},
	Detect: func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("ply")) && bytes.Contains(head, []byte(" packed_position"))
	},
	Open:  openCompressedPLY,
	Write: writer("write compressed ply", writeCompressedPLY),
}

const (
	compressedPLYName = "compressed-ply"
	packedChunk       = 256 // splats
)

// packedBounds are the properties of element chunk: the least and the greatest of each. Older files lack the colours,
// which then go from 0 to 1.
var packedBounds = [18]string{
	"min_x", "min_y", "min_z", "max_x", "max_y", "max_z",
	"min_scale_x", "min_scale_y", "min_scale_z", "max_scale_x", "max_scale_y", "max_scale_z",
	"min_r", "min_g", "min_b", "max_r", "max_g", "max_b",
}

// packedWords are the properties of element vertex: x, y and z in 11, 10 and 11 bits; which of w, x, y, z is largest in
// 2 bits, then the three others in 10 bits; the logarithms of the scales in 11, 10 and 11; red, green, blue and opacity
// in 8 bits each.
var packedWords = [4]string{"packed_position", "packed_rotation", "packed_scale", "packed_color"}

type packed struct {
	file               io.ReaderAt
	chunk, vertex, sh  *ply.Table
	boundsAt           [18]int // in a row of chunk
	wordAt             [4]int  // in a row of vertex
	restAt             []int   // in a row of sh, in the order of scene.Splats.SH behind coefficient 0
	bounds             []bound // of chunks
	degree, chunkCount int
	room               []byte
}

// bound is how far the values of a chunk go.
type bound struct{ low, high [9]float32 }

func openCompressedPLY(path string) (Source, error) {
	return openRows("read compressed ply", path, newPacked)
}

func newPacked(f io.ReaderAt, size int64, info *Info) (load func(first int, into *scene.Splats) error, err error) {
	tables, meta, err := ply.ReadTables(io.NewSectionReader(f, 0, size), size)
	if err != nil {
		return nil, err
	}
	p := &packed{file: f}
	p.assign(tables)
	if err = p.check(); err == nil {
		err = p.readBounds()
	}
	if err != nil {
		return nil, err
	}
	*info = Info{Format: compressedPLYName, Meta: meta, N: int(p.vertex.Rows), Degree: p.degree}
	end := &tables[len(tables)-1]
	info.Notes, err = surplusNotes(packedNotes(tables), size-end.Offset-end.Rows*end.RowBytes, p.vertex.Rows,
		p.vertex.RowBytes)
	return p.load, err
}

func (p *packed) assign(tables []ply.Table) {
	for i := range tables {
		switch t := &tables[i]; t.Name {
		case "chunk":
			p.chunk = t
		case "vertex":
			p.vertex = t
		case "sh":
			p.sh = t
		}
	}
}

// packedNotes lists properties that have no meaning here.
func packedNotes(tables []ply.Table) (notes []string) {
	for i := range tables {
		for _, name := range tables[i].Columns() {
			known := false
			switch tables[i].Name {
			case "chunk":
				known = slices.Contains(packedBounds[:], name)
			case "vertex":
				known = slices.Contains(packedWords[:], name)
			case "sh":
				known = strings.HasPrefix(name, "f_rest_")
			}
			if !known {
				notes = append(notes,
					fmt.Sprintf("property %s of element %s is not read", wording.Printable(name),
						wording.Printable(tables[i].Name)))
			}
		}
	}
	return notes
}

// check finds the properties and compares what the elements hold.
func (p *packed) check() error {
	if p.chunk == nil || p.vertex == nil {
		return errors.New("it has no elements chunk and vertex")
	}
	for i, name := range packedBounds {
		if p.boundsAt[i] = p.chunk.Column("float", name); p.boundsAt[i] < 0 && (i < 12 || p.boundsAt[12] >= 0) {
			return fmt.Errorf("element chunk lacks float %s", name)
		}
	}
	for i, name := range packedWords {
		if p.wordAt[i] = p.vertex.Column("uint", name); p.wordAt[i] < 0 {
			return fmt.Errorf("element vertex lacks uint %s", name)
		}
	}
	if p.vertex.Rows > math.MaxUint32 {
		return fmt.Errorf("it has %d splats, more than %d", p.vertex.Rows, uint32(math.MaxUint32))
	}
	p.chunkCount = int((p.vertex.Rows + packedChunk - 1) / packedChunk)
	if p.chunk.Rows < int64(p.chunkCount) {
		return fmt.Errorf("%d splats in %d chunks of %d", p.vertex.Rows, p.chunk.Rows, packedChunk)
	}
	return p.checkSH()
}

// checkSH finds the degree of the spherical harmonics.
func (p *packed) checkSH() error {
	if p.sh == nil {
		return nil
	}
	if p.sh.Rows != p.vertex.Rows {
		return fmt.Errorf("%d rows of element sh for %d splats", p.sh.Rows, p.vertex.Rows)
	}
	rest := 0
	for p.sh.Column("uchar", "f_rest_"+strconv.Itoa(rest)) >= 0 {
		rest++
	}
	for p.degree < scene.MaxSHDegree && restNumbers(p.degree) < rest {
		p.degree++
	}
	if restNumbers(p.degree) != rest {
		return fmt.Errorf("element sh has %d properties uchar f_rest, not 9, 24 or 45", rest)
	}
	p.restAt = make([]int, rest)
	for j := range p.restAt {
		p.restAt[j] = p.sh.Column("uchar", "f_rest_"+strconv.Itoa(j%3*(rest/3)+j/3))
	}
	return nil
}

// readBounds reads element chunk, whose rows the file was found to hold.
func (p *packed) readBounds() error {
	p.bounds = make([]bound, p.chunkCount)
	for lo := 0; lo < p.chunkCount; lo += packedChunk {
		n := min(packedChunk, p.chunkCount-lo)
		rows, err := readRows(p.file, p.chunk.Offset, int(p.chunk.RowBytes), lo, n, &p.room)
		if err != nil {
			return err
		}
		for i := range n {
			p.bounds[lo+i] = p.bound(rows[i*int(p.chunk.RowBytes):])
		}
	}
	return nil
}

func (p *packed) bound(row []byte) (b bound) {
	for i, at := range p.boundsAt {
		x := float32(i / 3 % 2) // of a colour that the file does not have
		if at >= 0 {
			x = floatAt(row[at:], 0)
		}
		if i/6 == 1 && math.IsInf(float64(x), -1) { // a scale of zero
			x = -ply.InfiniteLog
		}
		if to := i/6*3 + i%3; i/3%2 == 0 {
			b.low[to] = x
		} else {
			b.high[to] = x
		}
	}
	return b
}

func (p *packed) load(first int, into *scene.Splats) error {
	n, row := into.N, int(p.vertex.RowBytes)
	rows, err := readRows(p.file, p.vertex.Offset, row, first, n, &p.room)
	if err != nil {
		return err
	}
	k := 3 * into.K()
	for i := range n {
		var words [4]uint32
		for j, from := range p.wordAt {
			words[j] = binary.LittleEndian.Uint32(rows[row*i+from:])
		}
		unpackSplat(words, &p.bounds[(first+i)/packedChunk], into, i)
	}
	if p.degree == 0 {
		return nil
	}
	row = int(p.sh.RowBytes)
	if rows, err = readRows(p.file, p.sh.Offset, row, first, n, &p.room); err != nil {
		return err
	}
	for i := range n {
		sh := into.SH[k*i+3 : k*(i+1)]
		for j, from := range p.restAt {
			sh[j] = packedSH[rows[row*i+from]]
		}
	}
	return nil
}

// packedSH are the higher coefficients of bytes: -4 to 4 in 256 steps of which the middle counts, the ends aside.
var packedSH = func() (out [256]float32) {
	for b := range out {
		out[b] = float32(b)/32 - 4 + 1.0/64
	}
	out[0], out[255] = -4, 4
	return out
}()

// unpackSplat decodes all but the higher coefficients of splat i.
func unpackSplat(words [4]uint32, b *bound, s *scene.Splats, i int) {
	unpack3(words[0], b.low[:3], b.high[:3], s.Means[3*i:])
	unpack3(words[2], b.low[3:6], b.high[3:6], s.LogScales[3*i:])
	var others [3]float64
	for j := range others {
		others[j] = (float64(words[1]>>(20-10*j)&1023)/1023 - 0.5) * math.Sqrt2
	}
	q := fourOf(int(words[1]>>30), others)
	setQuat(s.Quats[4*i:], q[0], q[1], q[2], q[3])
	for c := range 3 {
		color := between(b.low[6+c], b.high[6+c], float64(words[3]>>(24-8*c)&255)/255)
		s.SH[3*s.K()*i+c] = float32((color - 0.5) / scene.SH0)
	}
	s.LogitOpacities[i] = byteLogits[words[3]&255]
}

// unpack3 decodes a word of 11, 10 and 11 bits.
func unpack3(word uint32, low, high, to []float32) {
	to[0] = float32(between(low[0], high[0], float64(word>>21)/2047))
	to[1] = float32(between(low[1], high[1], float64(word>>11&1023)/1023))
	to[2] = float32(between(low[2], high[2], float64(word&2047)/2047))
}

// between is low at 0 and high at 1, exactly. The conversions keep compilers from fusing products and sums, which some
// processors would and others not.
func between(low, high float32, at float64) float64 {
	return float64(float64(low)*(1-at)) + float64(float64(high)*at)
}
