package pipeline

import (
	"errors"

	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// pieceSplats is how many splats of a model are in RAM at once on their way to a file: 4 MB at SH degree 3.
const pieceSplats = 1 << 14

// readbackBytes is what ReadSplats takes in RAM for a model of at most n splats: a piece in mapped memory, as bytes, as numbers, and what is made of them.
func readbackBytes(degree, n int) int64 {
	return 4 * 4 * int64(paramRows(degree)) * int64(min(n, pieceSplats))
}

// ReadSplats gives the model, in the training frame, to each, piece by piece in the order of the splats: RAM is bounded whatever the number of splats. A
// piece is valid until each returns; an error of each ends the reading.
func (t *Trainer) ReadSplats(each func(piece *scene.Splats) error) error {
	if _, err := t.drain(); err != nil {
		return err
	}
	t.FinishWrites() // which may hold the memory that is needed here
	return t.e.model.read(t.progress.Splats, pieceSplats, each)
}

// read is ReadSplats of the first n splats, at most so many at once.
func (m *model) read(n, most int, each func(piece *scene.Splats) error) (err error) {
	whole := field{width: m.nParams}
	s := &state{dev: m.dev, fields: []field{whole}, n: n, parts: m.parts(n), pieces: most}
	g, err := s.newStaging(vk.Readback)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.free()) }()
	return s.writeField(&splatPieces{degree: m.degree, each: each}, whole, g)
}

// splatPieces turns rows of parameters, a splat's side by side, into splats.
type splatPieces struct {
	degree int
	piece  *scene.Splats // as large as the largest piece so far
	each   func(piece *scene.Splats) error
}

// Write takes the rows of whole splats.
func (w *splatPieces) Write(rows []byte) (int, error) {
	width := paramRows(w.degree)
	n := len(rows) / (4 * width)
	if w.piece == nil || w.piece.N < n {
		w.piece = scene.NewSplats(n, w.degree)
	}
	s := w.piece.Slice(0, n)
	transposeParts(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			at := i * width
			take := func(dst []float32) {
				for k := range dst {
					dst[k] = floatAt(rows, at+k)
				}
				at += len(dst)
			}
			take(s.Means[3*i : 3*i+3])
			take(s.Quats[4*i : 4*i+4])
			take(s.LogScales[3*i : 3*i+3])
			take(s.LogitOpacities[i : i+1])
			take(s.SH[(width-layout.RowSh)*i : (width-layout.RowSh)*(i+1)])
		}
	})
	return len(rows), w.each(s)
}
