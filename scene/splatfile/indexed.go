package splatfile

import (
	"fmt"
	"io"

	"vksplat/scene"
)

// indexed is a model whose splats are found by their numbers: readers say how, and it is read in pieces and in any
// order.
type indexed struct {
	info Info
	// decode fills into with the splats of the model from first on, which are there.
	decode func(first int, into *scene.Splats) error
}

func (m *indexed) Info() Info { return m.info }

func (m *indexed) Read(put func(piece *scene.Splats) error) error {
	room := scene.NewSplats(min(m.info.N, PieceSplats), m.info.Degree)
	for first := 0; first < m.info.N; first += PieceSplats {
		piece := room.Slice(0, min(PieceSplats, m.info.N-first))
		if err := m.decode(first, piece); err != nil {
			return err
		}
		if err := put(piece); err != nil {
			return err
		}
	}
	return nil
}

func (m *indexed) Gather(ids []uint32, into *scene.Splats) error {
	for i := 0; i < len(ids); {
		first, n := int64(ids[i]), 1
		for i+n < len(ids) && n < PieceSplats && ids[i+n] == ids[i]+uint32(n) {
			n++
		}
		if first+int64(n) > int64(m.info.N) {
			return fmt.Errorf("splatfile: gather splats: splat %d of %d", first+int64(n)-1, m.info.N)
		}
		if err := m.decode(int(first), into.Slice(i, i+n)); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// rowSource is a model in a file of rows: nothing but rows that are wanted is in memory.
type rowSource struct {
	indexed
	io.Closer
}

// openRows opens a file of rows. open reads its headers, and returns how to read splats.
func openRows(op, path string, open func(f io.ReaderAt, size int64, info *Info) (
	load func(first int, into *scene.Splats) error, err error)) (Source, error) {
	return openWith(op, path, func(path string, f io.ReaderAt, size int64, closer io.Closer) (Source, error) {
		r := &rowSource{Closer: closer}
		load, err := open(f, size, &r.info)
		r.decode = func(first int, into *scene.Splats) error { return readError(op, path, load(first, into), "") }
		return r, err
	})
}
