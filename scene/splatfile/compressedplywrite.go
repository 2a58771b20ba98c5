package splatfile

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/geom"
	"vksplat/scene"
)

// packedLog bounds the logarithms of scales, as in SuperSplat: one axis of no length would cost the others of its chunk
// their precision.
const packedLog = 20

// packer writes a compressed PLY.
type packer struct {
	info               Info
	chunks, words, sh  *bufio.Writer // the file's three elements
	row                []byte
	cutScales, cutRest int // values beyond what the format holds
}

func writeCompressedPLY(path string, model Source, o WriteOptions) (lost []string, err error) {
	m, err := arrange(model, o.FolderFor(path), packedOrder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.free()) }()
	p := &packer{info: m.Info()}
	if o.Generator != "" {
		p.info.Meta.Generator = o.Generator
	}
	header, err := packedHeader(p.info)
	if err == nil {
		err = atomicfile.WriteAt(path, func(w io.WriterAt) error {
			if _, err := w.WriteAt([]byte(header), 0); err != nil {
				return err
			}
			return p.write(w, int64(len(header)), m)
		})
	}
	if err != nil {
		return nil, err
	}
	lost = lostSome(nil, p.cutScales, fmt.Sprintf("scales outside e^-%d to e^%d became that", packedLog, packedLog))
	return lostSome(lost, p.cutRest, "coefficients of the spherical harmonics outside -4 to 4 became that"), nil
}

// farAway is from which distance from the middle on splats are of the sky, in those of the median splat.
const farAway = 16

// packedOrder is the Z-order with the sky behind everything else. A chunk's positions are as coarse as it is wide, so
// what shares one with the sky is far off its place: those are the splats of the least opacity.
func packedOrder(model Source) ([]uint32, error) {
	means, err := readMeans(model)
	if err != nil {
		return nil, err
	}
	near, sky := divide(means, zOrder(len(means)/3, func(i int) []float32 { return means[3*i : 3*i+3] }))
	if rest := len(near) % packedChunk; rest > 0 && len(sky) > 0 {
		if near, err = faintLast(model, near, rest); err != nil {
			return nil, err
		}
	}
	return append(near, sky...), nil
}

// divide divides splats in an order, which it overwrites, into those that are near and those of the sky.
func divide(means []float32, order []uint32) (near, sky []uint32) {
	values := make([]float64, len(order))
	var middle [3]float64
	for k := range middle {
		for i := range values {
			values[i] = float64(means[3*i+k])
		}
		middle[k] = scene.Median(values)
	}
	distance := func(i int) float64 {
		return geom.Length(geom.Sub([3]float64{float64(means[3*i]), float64(means[3*i+1]), float64(means[3*i+2])},
			middle))
	}
	for i := range values {
		values[i] = distance(i)
	}
	far := farAway * scene.Median(values)
	near = order[:0]
	for _, id := range order {
		if distance(int(id)) > far {
			sky = append(sky, id)
		} else {
			near = append(near, id)
		}
	}
	return near, sky
}

// faintLast moves the n splats of the least opacity to the end of an order, which it overwrites.
func faintLast(model Source, order []uint32, n int) ([]uint32, error) {
	logits := make([]float32, 0, model.Info().N)
	err := eachPiece(model, func(_ int, piece *scene.Splats) error {
		logits = append(logits, piece.LogitOpacities...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	by := slices.Clone(order)
	slices.SortStableFunc(by, func(a, b uint32) int { return cmp.Compare(logits[a], logits[b]) })
	last := make(map[uint32]bool, n)
	for _, id := range by[:n] {
		last[id] = true
	}
	first, rest := order[:0], make([]uint32, 0, n)
	for _, id := range order {
		if last[id] {
			rest = append(rest, id)
		} else {
			first = append(first, id)
		}
	}
	return append(first, rest...), nil
}

// packedHeader is everything up to and including end_header.
func packedHeader(info Info) (string, error) {
	comments, err := info.Meta.Lines(info.Degree)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("ply\nformat binary_little_endian 1.0\n")
	for _, c := range comments {
		b.WriteString("comment " + c + "\n")
	}
	fmt.Fprintf(&b, "element chunk %d\n", (info.N+packedChunk-1)/packedChunk)
	for _, name := range packedBounds {
		b.WriteString("property float " + name + "\n")
	}
	fmt.Fprintf(&b, "element vertex %d\n", info.N)
	for _, name := range packedWords {
		b.WriteString("property uint " + name + "\n")
	}
	if info.Degree > 0 {
		fmt.Fprintf(&b, "element sh %d\n", info.N)
	}
	for i := range restNumbers(info.Degree) {
		b.WriteString("property uchar f_rest_" + strconv.Itoa(i) + "\n")
	}
	b.WriteString("end_header\n")
	return b.String(), nil
}

// write writes the elements, which begin at a place in the file, chunk by chunk.
func (p *packer) write(w io.WriterAt, start int64, m *arranged) error {
	const buffer = 1 << 20
	chunks := int64((p.info.N + packedChunk - 1) / packedChunk)
	words := start + 4*int64(len(packedBounds))*chunks
	sh := words + 4*int64(len(packedWords))*int64(p.info.N)
	p.chunks = bufio.NewWriterSize(io.NewOffsetWriter(w, start), buffer)
	p.words = bufio.NewWriterSize(io.NewOffsetWriter(w, words), buffer)
	p.sh = bufio.NewWriterSize(io.NewOffsetWriter(w, sh), buffer)
	if err := m.each(packedChunk, p.chunk); err != nil {
		return err
	}
	return errors.Join(p.chunks.Flush(), p.words.Flush(), p.sh.Flush())
}

// chunk writes up to 256 splats.
func (p *packer) chunk(s *scene.Splats) error {
	k := 3 * s.K()
	values := make([][9]float32, s.N) // in the order of bound
	b := bound{}
	for i := range s.N {
		v := &values[i]
		copy(v[:3], s.Means[3*i:])
		for axis := range 3 {
			scale := s.LogScales[3*i+axis]
			v[3+axis] = min(max(scale, -packedLog), packedLog)
			if v[3+axis] != scale {
				p.cutScales++
			}
			v[6+axis] = float32(colorOf(s.SH[k*i+axis]))
		}
		for j, x := range v {
			if i == 0 {
				b.low[j], b.high[j] = x, x
			}
			b.low[j], b.high[j] = min(b.low[j], x), max(b.high[j], x)
		}
	}
	if err := p.bound(&b); err != nil {
		return err
	}
	for i := range s.N {
		if err := p.splat(s, i, &values[i], &b); err != nil {
			return err
		}
	}
	return nil
}

// bound writes a row of element chunk.
func (p *packer) bound(b *bound) error {
	p.row = p.row[:0]
	for part := 0; part < 9; part += 3 {
		for _, values := range [2][9]float32{b.low, b.high} {
			p.row = appendFloats(p.row, values[part:part+3]...)
		}
	}
	_, err := p.chunks.Write(p.row)
	return err
}

// splat writes a row of element vertex and of sh.
func (p *packer) splat(s *scene.Splats, i int, v *[9]float32, b *bound) error {
	part := func(j int, top uint32) uint32 {
		low, high := float64(b.low[j]), float64(b.high[j])
		if high == low {
			return 0
		}
		return unit((float64(v[j])-low)/(high-low), top)
	}
	p.row = binary.LittleEndian.AppendUint32(p.row[:0], part(0, 2047)<<21|part(1, 1023)<<11|part(2, 2047))
	p.row = binary.LittleEndian.AppendUint32(p.row, packQuat(doubles(s.Quats[4*i:4*i+4])))
	p.row = binary.LittleEndian.AppendUint32(p.row, part(3, 2047)<<21|part(4, 1023)<<11|part(5, 2047))
	p.row = binary.LittleEndian.AppendUint32(p.row,
		part(6, 255)<<24|part(7, 255)<<16|part(8, 255)<<8|uint32(opacityByte(s.LogitOpacities[i])))
	if _, err := p.words.Write(p.row); err != nil {
		return err
	}
	k := s.K()
	sh := s.SH[3*k*i : 3*k*(i+1)]
	p.row = p.row[:0]
	for c := range 3 {
		for j := 1; j < k; j++ {
			p.row = append(p.row, p.rest(sh[3*j+c]))
		}
	}
	_, err := p.sh.Write(p.row)
	return err
}

// rest gives the byte of a higher coefficient, see packedSH.
func (p *packer) rest(x float32) uint8 {
	if x < -4 || x > 4 {
		p.cutRest++
	}
	return uint8(min(max(math.Floor(float64(float64(x)*32)+128), 0), 255))
}

// packQuat packs a rotation of length 1, see packedWords.
func packQuat(q [4]float64) uint32 {
	largest, others := threeOf(q)
	word := uint32(largest)
	for _, x := range others {
		word = word<<10 | unit(float64(x*math.Sqrt2/2)+0.5, 1023)
	}
	return word
}
