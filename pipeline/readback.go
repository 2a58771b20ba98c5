package pipeline

import (
	"encoding/binary"
	"errors"
	"math"

	"vksplat/internal/parallel"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// pieceSplats is how many splats of a model are in RAM at once on their way to a file: 4 MB at SH degree 3.
const pieceSplats = 1 << 14

// blockSplats is how many splats a processor works on at once.
const blockSplats = 1 << 11

// readbackBytes returns the RAM that ReadSplats needs for a model of at most n splats: a piece in mapped memory, as
// bytes, as those of the previous piece, as numbers, what is made of them, and what is being written.
func readbackBytes(degree, n int) int64 {
	return 6 * 4 * int64(layout.RowsOf(degree, false).NParams) * int64(min(n, pieceSplats))
}

// ReadSplats gives the model, in the training frame, to each, piece by piece in the order of the splats: RAM is bounded
// whatever the number of splats. A piece is valid until each returns; an error of each ends the reading. NaN and
// infinite numbers are ErrDiverged.
func (t *Trainer) ReadSplats(each func(piece *scene.Splats) error) error {
	if _, err := t.queue.drain(); err != nil {
		return err
	}
	return t.shards.each(func(m *shard) error {
		begun := false
		read := func() error {
			return m.e.setup.model.read(m.splats, pieceSplats, finitePieces(func(piece *scene.Splats) error {
				begun = true
				return each(piece)
			}))
		}
		err := read()
		if errors.Is(err, vk.ErrOutOfMemory) && !begun {
			t.saver.writer.Finish() // which may hold the memory that is needed here
			err = read()
		}
		return err
	})
}

// read is ReadSplats of the first n splats, at most most at once.
func (m *model) read(n, most int, each func(piece *scene.Splats) error) error {
	s := &checkpoint.Share{Dev: m.dev, Rows: m.Rows, N: n, Parts: m.parts(n), Pieces: most}
	return s.WriteWords(&splatPieces{Rows: m.Rows, each: each}, m.Stored)
}

// splatPieces turns rows of parameters, a splat's side by side, into splats.
type splatPieces struct {
	layout.Rows
	piece *scene.Splats // as large as the largest piece so far
	each  func(piece *scene.Splats) error
}

// Write receives the rows of whole splats.
func (w *splatPieces) Write(rows []byte) (int, error) {
	n := len(rows) / (4 * w.Stored)
	if w.piece == nil || w.piece.N < n {
		w.piece = scene.NewSplats(n, w.Degree)
	}
	s := w.piece.Slice(0, n)
	tensors := s.Tensors()
	parallel.For((n+blockSplats-1)/blockSplats, func(b int) {
		for i := b * blockSplats; i < min((b+1)*blockSplats, n); i++ {
			w.splat(tensors[:], i, rows[4*w.Stored*i:4*w.Stored*(i+1)])
		}
	})
	return len(rows), w.each(s)
}

// splat sets splat i of the tensors, which are in the order of their rows, from its words.
func (w *splatPieces) splat(tensors []scene.SplatTensor, i int, words []byte) {
	row := 0
	for _, t := range tensors {
		for k, to := 0, t.At(i); k < len(to); k++ {
			to[k] = w.valueAt(words, row+k)
		}
		row += t.Width
	}
}

// valueAt returns parameter r from the words of a splat.
func (w *splatPieces) valueAt(words []byte, r int) float32 {
	if w.Mixed && r >= layout.RowSh {
		return layout.HalfValue(binary.LittleEndian.Uint16(words[4*layout.RowSh+2*(r-layout.RowSh):]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(words[4*r:]))
}
