package checkpoint

import (
	"errors"
	"io"

	"vksplat/scene/safetensors"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// MinPiece is the fewest splats that a staging buffer is made for.
const MinPiece = 256

// Extra is state beside the splats: a table of the trainer's on the device.
type Extra struct {
	Name  string
	Shape []int
	Data  vk.Slice[float32]
	// Each device has rows of its own, whose number is the first of the shape; a file has those of all. It may have
	// been written by another number of devices: rows that it lacks are filled with its own in turn.
	AnyRows bool
}

func (x Extra) tensor() safetensors.TensorInfo {
	return safetensors.TensorInfo{Name: x.Name, DType: "F32", Shape: x.Shape}
}

// Part is a run of splats as a matrix [rows][Stride], of which the first Count columns are splats.
type Part struct {
	Rows          vk.Slice[float32]
	Count, Stride int
}

// Share is all of a trainer's state on one device: where it lives, or a copy.
type Share struct {
	Dev    *vk.Device
	Rows   layout.Rows // of a part
	N      int         // splats
	Parts  []Part
	Extra  []Extra // on the other devices than the first only what has AnyRows
	Pieces int     // splats that are moved at once at most; 0: mostPiece

	owned []vk.View // what the copy holds
}

// bytes returns the size of a copy.
func (s *Share) bytes() int64 {
	n := int64(s.Rows.NRows()) * int64(s.N) * 4
	for _, x := range s.Extra {
		n += x.Data.Size()
	}
	return n
}

// copied returns a copy of s in memory of the given kind. The error wraps vk.ErrOutOfMemory where there is no room;
// nothing is held then.
func (s *Share) copied(kind vk.MemoryKind) (c *Share, err error) {
	c = &Share{Dev: s.Dev, Rows: s.Rows, N: s.N, Pieces: s.Pieces}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.free())
		}
	}()
	take := func(n int) (vk.Slice[float32], error) {
		v, err := vk.Make[float32](s.Dev, kind, n, "checkpoint copy")
		if err == nil {
			c.owned = append(c.owned, v.View)
		}
		return v, err
	}
	r := vk.NewRecorder(s.Dev)
	for _, p := range s.Parts {
		to, err := take(s.Rows.NRows() * p.Count)
		if err != nil {
			return c, err
		}
		c.Parts = append(c.Parts, Part{to, p.Count, p.Count})
		copyRows(r, to, p, 0, s.Rows.NRows(), 0, p.Count)
	}
	for _, x := range s.Extra {
		to, err := take(x.Data.N())
		if err != nil {
			return c, err
		}
		c.Extra = append(c.Extra, Extra{Name: x.Name, Shape: x.Shape, Data: to})
		r.Copy(to.View, x.Data.View)
	}
	return c, s.Dev.RunOnce(r, "copy state")
}

// copyRows records the copy of columns first to first+count of some rows of p, packed, to the start of dst.
func copyRows(r *vk.Recorder, dst vk.Slice[float32], p Part, row, rows, first, count int) {
	if count == p.Stride {
		r.Copy(dst.At(0, rows*count).View, p.Rows.At(row*p.Stride, rows*count).View)
		return
	}
	for i := range rows {
		r.Copy(dst.At(i*count, count).View, p.Rows.At((row+i)*p.Stride+first, count).View)
	}
}

// WriteWords writes the first rows of all splats, words as they are, splat by splat.
func (s *Share) WriteWords(w io.Writer, rows int) (err error) {
	g, err := s.newStaging(vk.Readback, rows)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.free()) }()
	return s.writeField(w, field{dtype: "F32", width: rows, rows: rows}, g)
}

// free gives a copy's memory back.
func (s *Share) free() (err error) {
	for _, v := range s.owned {
		err = errors.Join(err, s.Dev.Free(v))
	}
	s.owned = nil
	return err
}

// staging is host memory that the state passes through, some splats of one tensor at a time.
type staging struct {
	dev  *vk.Device
	data vk.Slice[float32] // zero where the state is mapped itself
	out  [2][]byte         // what is being read, and what is being written
}

// mostPiece is the most splats that a staging buffer is made for.
const mostPiece = 1 << 15

// newStaging makes a staging buffer for a chunk of a tensor as wide as the widest, or a smaller one where that is large
// or memory is short. State that is mapped needs only the host's side of it.
func (s *Share) newStaging(kind vk.MemoryKind, widest int) (*staging, error) {
	most := MinPiece
	for _, p := range s.Parts {
		most = max(most, p.Count)
	}
	if most = min(most, mostPiece); s.Pieces > 0 {
		most = min(most, s.Pieces)
	}
	g := &staging{dev: s.Dev}
	for !s.mapped() {
		var err error
		if g.data, err = vk.Make[float32](s.Dev, kind, widest*most, "checkpoint staging"); err == nil {
			break
		}
		if most <= MinPiece || !errors.Is(err, vk.ErrOutOfMemory) {
			return nil, err
		}
		most = max(most/2, MinPiece)
	}
	for i := range g.out {
		g.out[i] = make([]byte, 4*widest*most)
	}
	return g, nil
}

func (g *staging) free() error {
	if g.data.IsZero() {
		return nil
	}
	return g.dev.Free(g.data.View)
}

// mapped reports whether the host can read the state where it is.
func (s *Share) mapped() bool { return len(s.Parts) > 0 && s.Parts[0].Rows.View.Host() != nil }

// writeField writes one tensor, splat-major. While a piece is being written, the next is read from the device.
func (s *Share) writeField(w io.Writer, f field, g *staging) error {
	atOnce := len(g.out[0]) / (4 * f.width)
	written := make(chan error, 1) // whether the piece before was
	written <- nil
	for _, p := range s.Parts {
		for first := 0; first < p.Count; first += atOnce {
			count := min(atOnce, p.Count-first)
			out := g.out[0][:f.bytes()*f.width*count]
			failed := s.readField(out, f, g, p, first, count)
			if err := <-written; err != nil {
				return err
			}
			if failed != nil {
				return failed
			}
			g.out[0], g.out[1] = g.out[1], g.out[0]
			go func() {
				_, err := w.Write(out)
				written <- err
			}()
		}
	}
	return <-written
}

// readField reads columns first to first+count of a part, splat-major.
func (s *Share) readField(out []byte, f field, g *staging, p Part, first, count int) error {
	src, stride := p.Rows.View.Host(), p.Stride
	if src != nil {
		src = src[4*(f.row*p.Stride+first):]
	} else {
		r := vk.NewRecorder(s.Dev)
		copyRows(r, g.data, p, f.row, f.rows, first, count)
		if err := s.Dev.RunOnce(r, "read state"); err != nil {
			return err
		}
		src, stride = g.data.View.Host(), count
	}
	f.gather(out, src, count, stride)
	return nil
}

// writeExtra writes a table as it is.
func (s *Share) writeExtra(w io.Writer, x Extra, g *staging) error {
	if host := x.Data.View.Host(); host != nil {
		_, err := w.Write(host)
		return err
	}
	for at := 0; at < x.Data.N(); at += g.data.N() {
		n := min(g.data.N(), x.Data.N()-at)
		r := vk.NewRecorder(s.Dev)
		r.Copy(g.data.At(0, n).View, x.Data.At(at, n).View)
		if err := s.Dev.RunOnce(r, "read state"); err != nil {
			return err
		}
		if _, err := w.Write(g.data.At(0, n).View.Host()); err != nil {
			return err
		}
	}
	return nil
}

// readPart fills a part of the state, which is where training has it, from a tensor.
func (s *Share) readPart(r io.Reader, f field, g *staging, p Part) error {
	atOnce := len(g.out[0]) / (4 * f.width)
	for first := 0; first < p.Count; first += atOnce {
		count := min(atOnce, p.Count-first)
		in := g.out[0][:f.bytes()*f.width*count]
		if _, err := io.ReadFull(r, in); err != nil {
			return err
		}
		if f.dtype != "F32" { // it shares words with other fields
			rec := vk.NewRecorder(s.Dev)
			copyRows(rec, g.data, p, f.row, f.rows, first, count)
			if err := s.Dev.RunOnce(rec, "read state"); err != nil {
				return err
			}
		}
		f.scatter(g.data.View.Host(), in, count, count)
		rec := vk.NewRecorder(s.Dev)
		for i := range f.rows {
			rec.Copy(p.Rows.At((f.row+i)*p.Stride+first, count).View, g.data.At(i*count, count).View)
		}
		if err := s.Dev.RunOnce(rec, "write state"); err != nil {
			return err
		}
	}
	return nil
}

// readExtra fills a table, or some of its rows.
func (s *Share) readExtra(r io.Reader, x Extra, g *staging) error {
	for at := 0; at < x.Data.N(); at += g.data.N() {
		n := min(g.data.N(), x.Data.N()-at)
		if _, err := io.ReadFull(r, g.data.At(0, n).View.Host()); err != nil {
			return err
		}
		rec := vk.NewRecorder(s.Dev)
		rec.Copy(x.Data.At(at, n).View, g.data.At(0, n).View)
		if err := s.Dev.RunOnce(rec, "write state"); err != nil {
			return err
		}
	}
	return nil
}
