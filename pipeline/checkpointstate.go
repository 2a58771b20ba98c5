package pipeline

import (
	"errors"
	"io"

	"vksplat/scene/safetensors"
	"vksplat/vk"
)

// minPiece is the fewest splats that a staging buffer is made for.
const minPiece = 256

// extraState is state beside the splats that a checkpoint holds: a table of the trainer's on the device. Whoever owns
// the table appends it to Trainer.extra in newTrainer, before the splats are filled in; writing and reading it follow
// from that.
type extraState struct {
	name  string
	shape []int
	data  vk.Slice[float32]
}

func (x extraState) tensor() safetensors.TensorInfo {
	return safetensors.TensorInfo{Name: x.name, DType: "F32", Shape: x.shape}
}

// part is a run of splats as a matrix [rows][stride], of which the first count columns are splats.
type part struct {
	rows          vk.Slice[float32]
	count, stride int
}

// state is all of a trainer's state on one device: where it lives, or a copy.
type state struct {
	dev    *vk.Device
	fields []field
	rows   int // of a part
	mixed  bool
	n      int
	parts  []part
	extra  []extraState
	owned  []vk.View // what the copy holds
	pieces int       // splats that staging holds at most; 0: mostPiece
}

// parts returns the first n splats where they are.
func (m *model) parts(n int) (list []part) {
	for _, c := range m.chunks {
		if c.first < n {
			list = append(list, part{c.Slice, min(c.splats, n-c.first), c.splats})
		}
	}
	return list
}

// bytes returns the size of a copy.
func (s *state) bytes() int64 {
	n := int64(s.rows) * int64(s.n) * 4
	for _, x := range s.extra {
		n += x.data.Size()
	}
	return n
}

// copied returns a copy of s in memory of the given kind. The error wraps vk.ErrOutOfMemory where there is no room;
// nothing is held then.
func (s *state) copied(kind vk.MemoryKind) (c *state, err error) {
	c = &state{dev: s.dev, fields: s.fields, rows: s.rows, mixed: s.mixed, n: s.n, pieces: s.pieces}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.free())
		}
	}()
	take := func(n int) (vk.Slice[float32], error) {
		v, err := vk.Make[float32](s.dev, kind, n, "checkpoint copy")
		if err == nil {
			c.owned = append(c.owned, v.View)
		}
		return v, err
	}
	r := vk.NewRecorder(s.dev)
	for _, p := range s.parts {
		to, err := take(s.rows * p.count)
		if err != nil {
			return c, err
		}
		c.parts = append(c.parts, part{to, p.count, p.count})
		copyRows(r, to, p, 0, s.rows, 0, p.count)
	}
	for _, x := range s.extra {
		to, err := take(x.data.N())
		if err != nil {
			return c, err
		}
		c.extra = append(c.extra, extraState{x.name, x.shape, to})
		r.Copy(to.View, x.data.View)
	}
	return c, runOnce(s.dev, r, "copy state")
}

// copyRows records the copy of columns first to first+count of some rows of p, packed, to the start of dst.
func copyRows(r *vk.Recorder, dst vk.Slice[float32], p part, row, rows, first, count int) {
	if count == p.stride {
		r.Copy(dst.At(0, rows*count).View, p.rows.At(row*p.stride, rows*count).View)
		return
	}
	for i := range rows {
		r.Copy(dst.At(i*count, count).View, p.rows.At((row+i)*p.stride+first, count).View)
	}
}

// free gives a copy's memory back.
func (s *state) free() (err error) {
	for _, v := range s.owned {
		err = errors.Join(err, s.dev.Free(v))
	}
	s.owned = nil
	return err
}

// staging is host memory that the state passes through, some splats of one tensor at a time.
type staging struct {
	dev  *vk.Device
	data vk.Slice[float32] // zero where the state is mapped itself
	out  []byte
}

// mostPiece is the most splats that a staging buffer is made for.
const mostPiece = 1 << 16

// newStaging makes a staging buffer for a chunk of the widest tensor, or a smaller one where that is large or memory is
// short. State that is mapped needs only the host's side of it.
func (s *state) newStaging(kind vk.MemoryKind) (*staging, error) {
	widest, most := 1, minPiece
	for _, f := range s.fields {
		widest = max(widest, f.width)
	}
	for _, p := range s.parts {
		most = max(most, p.count)
	}
	if most = min(most, mostPiece); s.pieces > 0 {
		most = min(most, s.pieces)
	}
	if s.mapped() {
		return &staging{dev: s.dev, out: make([]byte, 4*widest*most)}, nil
	}
	for {
		data, err := vk.Make[float32](s.dev, kind, widest*most, "checkpoint staging")
		if err == nil {
			return &staging{dev: s.dev, data: data, out: make([]byte, 4*widest*most)}, nil
		}
		if most <= minPiece || !errors.Is(err, vk.ErrOutOfMemory) {
			return nil, err
		}
		most = max(most/2, minPiece)
	}
}

func (g *staging) free() error {
	if g.data.IsZero() {
		return nil
	}
	return g.dev.Free(g.data.View)
}

// mapped reports whether the host can read the state where it is.
func (s *state) mapped() bool { return len(s.parts) > 0 && s.parts[0].rows.View.Host() != nil }

// writeField writes one tensor, splat-major.
func (s *state) writeField(w io.Writer, f field, g *staging) error {
	atOnce := len(g.out) / (4 * f.width)
	for _, p := range s.parts {
		for first := 0; first < p.count; first += atOnce {
			count := min(atOnce, p.count-first)
			src, stride := p.rows.View.Host(), p.stride
			if src != nil {
				src = src[4*(f.row*p.stride+first):]
			} else {
				r := vk.NewRecorder(s.dev)
				copyRows(r, g.data, p, f.row, f.rows, first, count)
				if err := runOnce(s.dev, r, "read state"); err != nil {
					return err
				}
				src, stride = g.data.View.Host(), count
			}
			out := g.out[:f.bytes()*f.width*count]
			f.gather(out, src, count, stride)
			if _, err := w.Write(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeExtra writes a table as it is.
func (s *state) writeExtra(w io.Writer, x extraState, g *staging) error {
	if host := x.data.View.Host(); host != nil {
		_, err := w.Write(host)
		return err
	}
	for at := 0; at < x.data.N(); at += g.data.N() {
		n := min(g.data.N(), x.data.N()-at)
		r := vk.NewRecorder(s.dev)
		r.Copy(g.data.At(0, n).View, x.data.At(at, n).View)
		if err := runOnce(s.dev, r, "read state"); err != nil {
			return err
		}
		if _, err := w.Write(g.data.At(0, n).View.Host()); err != nil {
			return err
		}
	}
	return nil
}

// readPart fills a part of the state, which is where training has it, from a tensor.
func (s *state) readPart(r io.Reader, f field, g *staging, p part) error {
	atOnce := len(g.out) / (4 * f.width)
	for first := 0; first < p.count; first += atOnce {
		count := min(atOnce, p.count-first)
		in := g.out[:f.bytes()*f.width*count]
		if _, err := io.ReadFull(r, in); err != nil {
			return err
		}
		if f.dtype != "F32" { // it shares words with other fields
			rec := vk.NewRecorder(s.dev)
			copyRows(rec, g.data, p, f.row, f.rows, first, count)
			if err := runOnce(s.dev, rec, "read state"); err != nil {
				return err
			}
		}
		f.scatter(g.data.View.Host(), in, count, count)
		rec := vk.NewRecorder(s.dev)
		for i := range f.rows {
			rec.Copy(p.rows.At((f.row+i)*p.stride+first, count).View, g.data.At(i*count, count).View)
		}
		if err := runOnce(s.dev, rec, "write state"); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) readExtra(r io.Reader, x extraState, g *staging) error {
	for at := 0; at < x.data.N(); at += g.data.N() {
		n := min(g.data.N(), x.data.N()-at)
		if _, err := io.ReadFull(r, g.data.At(0, n).View.Host()); err != nil {
			return err
		}
		rec := vk.NewRecorder(s.dev)
		rec.Copy(x.data.At(at, n).View, g.data.At(0, n).View)
		if err := runOnce(s.dev, rec, "write state"); err != nil {
			return err
		}
	}
	return nil
}
