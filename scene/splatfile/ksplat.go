package splatfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"vksplat/scene"
	"vksplat/shaders/layout"
)

// The format .ksplat of https://github.com/mkkellogg/GaussianSplats3D (SplatBuffer): a header of 4096 bytes, a header
// of 1024 bytes for each section, then the sections. A section has rows of equal length in buckets, which share a part
// of space: the sizes of the buckets that are not full, the centres of all, the splats. Level 0 has float32, level 1
// positions in 16 bits about the bucket's centre and half floats, level 2 also bytes for the higher spherical
// harmonics. The frame is that of INRIA's PLY.
var ksplat = &Format{
	Name:       ksplatName,
	Extensions: []string{".ksplat"},
	Detect: func(head []byte) bool {
		return len(head) >= ksplatHeader && head[0] == 0 && head[1] == 1 && head[20] <= 2 &&
			!slices.ContainsFunc(head[44:ksplatHeader], func(b byte) bool { return b != 0 })
	},
	Open: openKsplat,
}

const (
	ksplatName    = "ksplat"
	ksplatHeader  = 4096
	ksplatSection = 1024
	ksplatDegree  = 2  // the highest that the format has
	ksplatCentre  = 12 // bytes of a bucket's centre
)

// ksplatLevel is where rows of a level of compression have what, in bytes. Positions come first.
type ksplatLevel struct {
	// number: size of those of scale and rotation; rest: of higher coefficients
	number, scale, quat, color, sh, rest int
	steps                                uint32
}

var ksplatLevels = [3]ksplatLevel{
	{4, 12, 24, 40, 44, 4, 1},
	{2, 6, 12, 20, 24, 2, 32767},
	{2, 6, 12, 20, 24, 1, 32767},
}

type ksplatPart struct {
	first, n int // splats
	degree   int
	start    int64 // of the rows in the file
	row      int   // bytes of a row
	// What positions of levels 1 and 2 are made of.
	middle, step float64
	bucket, full int // splats of a full bucket; how many of them there are
	ends         []int
	centres      [][3]float32
}

// ksplatFile is a file whose headers have been read.
type ksplatFile struct {
	file      io.ReaderAt
	size      int64
	level     int
	low, high float64 // of the coefficients in bytes
	parts     []ksplatPart
	room      []byte
}

func openKsplat(path string) (Source, error) {
	return openRows("read ksplat", path, func(f io.ReaderAt, size int64, info *Info) (func(int, *scene.Splats) error,
		error) {
		k := &ksplatFile{file: f, size: size}
		info.Format = ksplatName
		err := k.readHeaders(info)
		for i := range k.parts {
			info.Degree = max(info.Degree, k.parts[i].degree)
		}
		return k.load, err
	})
}

// readHeaders reads all but the splats.
func (k *ksplatFile) readHeaders(info *Info) error {
	var room []byte
	h, err := readRows(k.file, 0, ksplatHeader, 0, 1, &room)
	if err != nil {
		return fmt.Errorf("its header: %w", err)
	}
	if h[0] != 0 || h[1] < 1 {
		return fmt.Errorf("version %d.%d is not supported, only 0.1 is", h[0], h[1])
	}
	sections, n := int64(binary.LittleEndian.Uint32(h[4:])), int64(binary.LittleEndian.Uint32(h[16:]))
	if k.level = int(binary.LittleEndian.Uint16(h[20:])); k.level >= len(ksplatLevels) {
		return fmt.Errorf("level of compression %d is not known", k.level)
	}
	// Zero stands for what the format had before it kept this range.
	if k.low, k.high = float64(floatAt(h, 9)), float64(floatAt(h, 10)); !(math.Abs(k.low) > 0) {
		k.low = -1.5
	}
	if !(math.Abs(k.high) > 0) {
		k.high = 1.5
	}
	at := ksplatHeader + ksplatSection*sections
	if at > k.size {
		return fmt.Errorf("the header claims %d sections, whose headers alone are longer than the file", sections)
	}
	total := int64(0)
	for i := range int(sections) {
		h, err := readRows(k.file, ksplatHeader, ksplatSection, i, 1, &room)
		if err != nil {
			return err
		}
		part := ksplatPart{first: int(total)}
		if at, err = k.readSection(&part, h, at); err != nil {
			return fmt.Errorf("section %d: %w", i, err)
		}
		if part.n > 0 {
			k.parts = append(k.parts, part)
		}
		if total += int64(part.n); total > n {
			break
		}
	}
	if total != n {
		return fmt.Errorf("the header claims %d splats, the sections another number", n)
	}
	row := int64(0)
	if len(k.parts) > 0 {
		row = int64(k.parts[len(k.parts)-1].row)
	}
	info.N = int(n)
	info.Notes, err = surplusNotes(nil, k.size-at, n, row)
	return err
}

// readSection reads a section that begins at a place in the file, and gives the place behind it.
func (k *ksplatFile) readSection(p *ksplatPart, h []byte, at int64) (end int64, err error) {
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint32(h[4*i:])) }
	level := &ksplatLevels[k.level]
	n, room, buckets, partly := word(0), word(1), word(3), word(9)
	storage := int64(binary.LittleEndian.Uint16(h[20:]))
	p.degree = int(binary.LittleEndian.Uint16(h[40:]))
	if p.degree > ksplatDegree {
		return 0, fmt.Errorf("spherical harmonics of degree %d, the format has %d at most", p.degree, ksplatDegree)
	}
	p.row = level.sh + level.rest*restNumbers(p.degree)
	p.start = at + 4*partly + storage*buckets
	// None of these products comes near 2^63.
	if end = p.start + int64(p.row)*room; n > room || end > k.size {
		return 0, fmt.Errorf("%d splats in room for %d of %d bytes and %d buckets from byte %d on, in a file of %d "+
			"bytes", n, room, p.row, buckets, at, k.size)
	}
	p.n = int(n)
	if k.level == 0 || n == 0 {
		return end, nil
	}
	if storage != ksplatCentre {
		return 0, fmt.Errorf("%d bytes a bucket, not %d", storage, ksplatCentre)
	}
	steps := binary.LittleEndian.Uint32(h[24:])
	if steps == 0 {
		steps = level.steps
	}
	p.middle, p.step = float64(steps), float64(floatAt(h, 4))/2/float64(steps)
	return end, k.readBuckets(p, at, word(2), word(8), partly, buckets)
}

// readBuckets reads which splats are in which bucket: full ones of a size come first, then some of which each has its
// own. The file was found to hold them.
func (k *ksplatFile) readBuckets(p *ksplatPart, at, size, full, partly, buckets int64) error {
	if full > 0 && (size == 0 || full > int64(p.n)/size) || full+partly > buckets {
		return fmt.Errorf("%d full buckets of %d splats and %d others, for %d splats and %d buckets", full, size,
			partly, p.n, buckets)
	}
	p.bucket, p.full = int(size), int(full)
	ends, err := readRows(k.file, at, 4, 0, int(partly), new([]byte))
	if err != nil {
		return err
	}
	p.ends = make([]int, partly)
	last := p.bucket * p.full
	for i := range p.ends {
		if last < p.n { // so that no sum overflows
			last += int(binary.LittleEndian.Uint32(ends[4*i:]))
		}
		p.ends[i] = last
	}
	if last < p.n {
		return fmt.Errorf("%d splats are in buckets, of %d", last, p.n)
	}
	centres, err := readRows(k.file, at+4*partly, ksplatCentre, 0, int(buckets), new([]byte))
	if err != nil {
		return err
	}
	p.centres = make([][3]float32, buckets)
	for i := range p.centres {
		for axis := range 3 {
			p.centres[i][axis] = floatAt(centres, 3*i+axis)
		}
	}
	return nil
}

func (p *ksplatPart) centre(i int) [3]float32 {
	if i < p.bucket*p.full {
		return p.centres[i/p.bucket]
	}
	return p.centres[p.full+sort.Search(len(p.ends), func(j int) bool { return p.ends[j] > i })]
}

func (k *ksplatFile) load(first int, into *scene.Splats) error {
	for at := 0; at < into.N; {
		s := sort.Search(len(k.parts), func(j int) bool { return k.parts[j].first+k.parts[j].n > first })
		if s == len(k.parts) {
			return errors.New("a splat is in no section")
		}
		p := &k.parts[s]
		count := min(into.N-at, p.first+p.n-first)
		rows, err := readRows(k.file, p.start, p.row, first-p.first, count, &k.room)
		if err != nil {
			return err
		}
		for i := range count {
			k.splat(p, first-p.first+i, rows[p.row*i:p.row*(i+1)], into.Slice(at+i, at+i+1))
		}
		first, at = first+count, at+count
	}
	return nil
}

// splat decodes the row of splat i of a section into a model of one splat.
func (k *ksplatFile) splat(p *ksplatPart, i int, row []byte, s *scene.Splats) {
	level := &ksplatLevels[k.level]
	number := func(from, j int) float64 {
		if level.number == 4 {
			return float64(floatAt(row[from:], j))
		}
		return float64(layout.HalfValue(binary.LittleEndian.Uint16(row[from+2*j:])))
	}
	if k.level > 0 {
		centre := p.centre(i)
		for axis := range 3 {
			steps := float64(binary.LittleEndian.Uint16(row[2*axis:])) - p.middle
			s.Means[axis] = float32(float64(steps*p.step) + float64(centre[axis]))
		}
	}
	for axis := range 3 {
		if k.level == 0 {
			s.Means[axis] = floatAt(row, axis)
		}
		s.LogScales[axis] = lengthLog(number(level.scale, axis))
		s.SH[axis] = byteColors[row[level.color+axis]]
	}
	s.LogitOpacities[0] = byteLogits[row[level.color+3]]
	setQuat(s.Quats, number(level.quat, 0), number(level.quat, 1), number(level.quat, 2), number(level.quat, 3))
	clear(s.SH[3:]) // what a section of a lower degree does not have
	for degree, first := 1, 0; degree <= p.degree; degree++ {
		// Each degree by itself: all coefficients of red, then of green, of blue.
		count := 2*degree + 1
		for j := range 3 * count {
			s.SH[3*(degree*degree+j%count)+j/count] = k.rest(row[level.sh+level.rest*(first+j):])
		}
		first += 3 * count
	}
}

// rest decodes a higher coefficient.
func (k *ksplatFile) rest(b []byte) float32 {
	switch ksplatLevels[k.level].rest {
	case 4:
		return floatAt(b, 0)
	case 2:
		return layout.HalfValue(binary.LittleEndian.Uint16(b))
	}
	return float32(float64(float64(b[0])/255*(k.high-k.low)) + k.low)
}
