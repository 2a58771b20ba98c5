package splatfile

import (
	"fmt"
	"os"

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
	file *os.File
}

// newRows makes a model of a file whose headers have been read. op is for errors: "read splat".
func newRows(info Info, op string, file *os.File, load func(first int, into *scene.Splats) error) *rowSource {
	return &rowSource{indexed{info, func(first int, into *scene.Splats) error {
		return readError(op, file.Name(), load(first, into), "")
	}}, file}
}

func (r *rowSource) Close() error { return r.file.Close() }
