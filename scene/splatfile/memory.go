package splatfile

import (
	"vksplat/scene"
	"vksplat/scene/ply"
)

type memory struct{ indexed }

func (m *memory) Close() error { return nil }

// Memory makes a Gatherer of a model in memory. The model is not changed by those who read it.
func Memory(s *scene.Splats, meta ply.Meta) Gatherer {
	return inMemory(s, Info{N: s.N, Degree: s.Degree, Meta: meta})
}

func inMemory(s *scene.Splats, info Info) *memory {
	return &memory{indexed{info, func(first int, into *scene.Splats) error {
		copySplats(into, 0, s, first, into.N)
		return nil
	}}}
}

// copySplats copies n splats between models of the same degree.
func copySplats(to *scene.Splats, at int, from *scene.Splats, first, n int) {
	dst := to.Tensors()
	for k, t := range from.Tensors() {
		copy(dst[k].Data[t.Width*at:], t.Data[t.Width*first:t.Width*(first+n)])
	}
}

// All reads a whole model into memory.
func All(model Source) (*scene.Splats, error) {
	info := model.Info()
	var all *scene.Splats
	err := eachPiece(model, func(first int, piece *scene.Splats) error {
		// not before: a packed file shows with its first splats that there is more to it than a header's claim
		if all == nil {
			all = scene.NewSplats(info.N, info.Degree)
		}
		copySplats(all, first, piece, 0, piece.N)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = scene.NewSplats(0, info.Degree)
	}
	return all, nil
}
