package ply

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/parallel"
	"vksplat/scene"
)

// WritePieces writes a model of n splats in the layout of INRIA's trainer, which viewers read: binary little endian,
// float32, x y z nx ny nz f_dc f_rest opacity scale rot. Opacities are logits, scales logarithms, rotations normalised
// w x y z. The splats, which pieces hands to put in order, are written as they are: see scene.Splats.ToCapture for the
// frame. The file is replaced as a whole (see atomicfile.Write). A NaN or infinite number and a rotation of length zero
// are errors that name the splat. What fails in pieces fails the writing.
func WritePieces(path string, n, degree int, meta Meta, pieces func(put func(piece *scene.Splats) error) error) error {
	finish, err := StartPieces(path, n, degree, meta, pieces)
	if err != nil {
		return err
	}
	return finish()
}

// StartPieces is WritePieces up to where the disk is waited for: all pieces have been taken. finish, which must be
// called once, waits, and puts the file in its place; it may be called from another goroutine.
func StartPieces(path string, n, degree int, meta Meta,
	pieces func(put func(piece *scene.Splats) error) error) (finish func() error, err error) {
	return atomicfile.Start(path, func(w io.Writer) error {
		p, err := newWriter(w, n, degree, meta)
		if err != nil {
			return err
		}
		if err := pieces(p.Append); err != nil {
			_ = p.wait() // the first error is the one to report
			return err
		}
		return p.Close()
	})
}

// writer writes a model piece by piece: the pieces of a large model need
// not be in memory together. While splats are encoded, or come from a device,
// those before are being written.
type writer struct {
	w       io.Writer
	n, done int
	degree  int
	row     int        // bytes per splat
	buf     [2][]byte  // rows of what is encoded, and of what is being written
	writing chan error // gives the result of the write that goes on; nil: none does
}

// A core encodes plyBatch splats at a time, and plyGroup times as many are encoded between two writes: 2 MB at SH
// degree 3.
const (
	plyBatch = 512
	plyGroup = 16
)

// newWriter writes the header of a model of n splats. Line 3 is the element
// line, because SIBR's reader takes the count from there; comments follow it.
func newWriter(w io.Writer, n, degree int, meta Meta) (*writer, error) {
	if n < 0 || degree < 0 || degree > scene.MaxSHDegree {
		return nil, fmt.Errorf("write ply: %d splats of sh degree %d", n, degree)
	}
	comments, err := meta.Lines(degree)
	if err != nil {
		return nil, err
	}
	names := splatProperties(degree)
	if err := writePLYHeader(w, n, comments, names, nil); err != nil {
		return nil, err
	}
	p := &writer{w: w, n: n, degree: degree, row: 4 * len(names)}
	for i := range p.buf {
		p.buf[i] = make([]byte, p.row*min(n, plyGroup*plyBatch))
	}
	return p, nil
}

// writePLYHeader writes a header with one element "vertex": first the float
// properties, then the uchar ones.
func writePLYHeader(w io.Writer, n int, comments, floats, bytes []string) error {
	var b strings.Builder
	b.WriteString("ply\nformat binary_little_endian 1.0\n")
	fmt.Fprintf(&b, "element vertex %d\n", n)
	for _, c := range comments {
		b.WriteString("comment " + c + "\n")
	}
	for _, name := range floats {
		b.WriteString("property float " + name + "\n")
	}
	for _, name := range bytes {
		b.WriteString("property uchar " + name + "\n")
	}
	b.WriteString("end_header\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Append writes further splats. Their degree must be the header's. It may return before they are written, and with the
// error of a write before: Close must be called in any case.
func (p *writer) Append(s *scene.Splats) error {
	if err := s.CheckLengths(); err != nil {
		return err
	}
	if s.Degree != p.degree {
		return fmt.Errorf("write ply: splats have sh degree %d, header has %d", s.Degree, p.degree)
	}
	if s.N > p.n-p.done {
		return fmt.Errorf("write ply: %d splats announced, at least %d given", p.n, p.done+s.N)
	}
	for lo := 0; lo < s.N; lo += plyGroup * plyBatch {
		part := s.Slice(lo, min(lo+plyGroup*plyBatch, s.N))
		if err := p.appendPart(part); err != nil {
			return err
		}
		p.done += part.N
	}
	return nil
}

// appendPart writes splats that the buffer holds, encoded on several cores.
func (p *writer) appendPart(s *scene.Splats) error {
	buf := p.buf[0]
	errs := make([]error, (s.N+plyBatch-1)/plyBatch)
	parallel.For(len(errs), func(batch int) {
		for i := batch * plyBatch; i < min((batch+1)*plyBatch, s.N); i++ {
			if err := p.encode(buf[p.row*i:p.row*(i+1)], s, i); err != nil {
				errs[batch] = fmt.Errorf("write ply: splat %d: %w", p.done+i, err)
				return
			}
		}
	})
	for _, err := range errs { // the first of them is the file's
		if err != nil {
			return err
		}
	}
	if err := p.wait(); err != nil {
		return err
	}
	p.buf[0], p.buf[1] = p.buf[1], buf
	writing := make(chan error, 1)
	p.writing = writing
	go func() {
		_, err := p.w.Write(buf[:p.row*s.N])
		writing <- err
	}()
	return nil
}

// wait returns the result of the write that goes on, if one does.
func (p *writer) wait() error {
	if p.writing == nil {
		return nil
	}
	defer func() { p.writing = nil }()
	return <-p.writing
}

// Close waits until everything is written, and checks that as many splats came
// as the header says. It does not close the underlying writer.
func (p *writer) Close() error {
	if err := p.wait(); err != nil {
		return err
	}
	if p.done != p.n {
		return fmt.Errorf("write ply: %d splats announced, %d given", p.n, p.done)
	}
	return nil
}

var errZeroQuat = errors.New("rotation has length zero")

func (p *writer) encode(row []byte, s *scene.Splats, i int) error {
	at := 0
	put := func(values ...float32) {
		for _, v := range values {
			binary.LittleEndian.PutUint32(row[at:], math.Float32bits(v))
			at += 4
		}
	}
	put(s.Means[3*i : 3*i+3]...)
	put(0, 0, 0)
	k := s.K()
	sh := s.SH[3*k*i : 3*k*(i+1)]
	put(sh[:3]...)
	for c := range 3 {
		for j := 1; j < k; j++ {
			binary.LittleEndian.PutUint32(row[at:], math.Float32bits(sh[3*j+c]))
			at += 4
		}
	}
	put(s.LogitOpacities[i])
	put(s.LogScales[3*i : 3*i+3]...)
	quat, err := normalised(s.Quats[4*i : 4*i+4])
	if err != nil {
		return err
	}
	put(quat[:]...)
	return checkRow(row, p.degree)
}

// normalised returns a quaternion of length 1, computed in float64.
func normalised(q []float32) (out [4]float32, err error) {
	var sum float64
	for _, x := range q {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return out, errZeroQuat
	}
	length := math.Sqrt(sum)
	for i, x := range q {
		out[i] = float32(float64(x) / length)
	}
	return out, nil
}

// checkRow looks for NaN and infinity in an encoded row and names the property.
func checkRow(row []byte, degree int) error {
	for j := 0; j < len(row); j += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(row[j:]))
		if !scene.Finite32(x) {
			return fmt.Errorf("%s is %v: %w", splatProperties(degree)[j/4], x, scene.ErrNotFinite)
		}
	}
	return nil
}

// FilePoint is a point as WritePoints writes it, half as large as a Point.
type FilePoint struct {
	Pos   [3]float32
	Color [3]uint8
}

func FilePoints(c *scene.Capture, origin [3]float64) []FilePoint {
	out := make([]FilePoint, len(c.Points))
	for i, p := range c.Points {
		for k, x := range p.Pos {
			out[i].Pos[k] = float32(x - origin[k])
		}
		out[i].Color = p.Color
	}
	return out
}

// WritePoints writes a point cloud as INRIA's input.ply: float32 x y z nx ny nz
// (normals zero) and uchar red green blue.
func WritePoints(path string, points []FilePoint) error {
	return atomicfile.Write(path, func(w io.Writer) error { return encodePoints(w, points) })
}

func encodePoints(w io.Writer, points []FilePoint) error {
	names := []string{"x", "y", "z", "nx", "ny", "nz"}
	if err := writePLYHeader(w, len(points), nil, names, []string{"red", "green", "blue"}); err != nil {
		return err
	}
	const row = 6*4 + 3
	buf := make([]byte, 0, row*min(len(points), plyBatch))
	for i, pt := range points {
		for axis, v := range pt.Pos {
			if !scene.Finite32(v) {
				return fmt.Errorf("write ply: point %d: %s is %v: %w", i, names[axis], v, scene.ErrNotFinite)
			}
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		buf = append(buf, make([]byte, 3*4)...)
		buf = append(buf, pt.Color[:]...)
		if (i+1)%plyBatch == 0 || i == len(points)-1 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return nil
}
