package splatfile

import (
	"fmt"
	"slices"

	"vksplat/scene"
)

// changed is a model whose pieces are changed on their way.
type changed struct {
	Source
	info   Info
	change func(piece *scene.Splats) *scene.Splats // keeps the number of splats; its argument may be changed
}

func (c *changed) Info() Info { return c.info }

func (c *changed) Read(put func(piece *scene.Splats) error) error {
	return c.Source.Read(func(piece *scene.Splats) error { return put(c.change(piece)) })
}

// WithDegree gives the model spherical harmonics of another degree: higher coefficients are dropped, or zero.
func WithDegree(model Source, degree int) Source {
	info := model.Info()
	if info.Degree == degree {
		return model
	}
	info.Degree = degree
	return &changed{model, info, func(piece *scene.Splats) *scene.Splats { return piece.WithDegree(degree) }}
}

// Move carries out a similarity. Coordinates were the capture's, less an origin where the file names one; they are no
// longer, so that the origin is dropped. Vertical, if it is not empty, is recorded as the axis that is vertical now.
func Move(model Source, s Similarity, vertical string) Source {
	if s == Unmoved() && vertical == "" {
		return model
	}
	m, info := newMover(s), model.Info()
	if s != Unmoved() {
		info.Meta.Origin, info.Meta.Vertical = nil, ""
	}
	if vertical != "" {
		info.Meta.Vertical = vertical
	}
	return &changed{model, info, func(piece *scene.Splats) *scene.Splats {
		m.apply(piece)
		return piece
	}}
}

// merged is models one after the other.
type merged struct {
	info  Info
	parts []Source
}

// Merge puts models together, in their order. The degree is the highest of theirs; coordinates are those of the first,
// less its origin; antialiased it is if the first is.
func Merge(models []Source) (Source, error) {
	first := models[0].Info()
	m := &merged{info: Info{Format: first.Format, Meta: first.Meta}}
	for _, model := range models {
		m.info.Degree = max(m.info.Degree, model.Info().Degree)
	}
	for _, model := range models {
		info := model.Info()
		for _, note := range info.Notes {
			if !slices.Contains(m.info.Notes, note) {
				m.info.Notes = append(m.info.Notes, note)
			}
		}
		if m.info.N += info.N; m.info.N > maxSplats {
			return nil, fmt.Errorf("splatfile: merge models: more than %d splats", maxSplats)
		}
		model = WithDegree(model, m.info.Degree)
		if a, b := originOf(first), originOf(info); a != b {
			shift := Unmoved()
			for k := range 3 {
				shift.T[k] = b[k] - a[k]
			}
			model = Move(model, shift, "")
		}
		m.parts = append(m.parts, model)
	}
	return m, nil
}

// maxSplats is the most splats of a model: their numbers fit 32 bits.
const maxSplats = 1<<31 - 1

func originOf(info Info) (origin [3]float64) {
	if info.Meta.Origin != nil {
		origin = *info.Meta.Origin
	}
	return origin
}

func (m *merged) Info() Info   { return m.info }
func (m *merged) Close() error { return nil } // the parts are their owner's

func (m *merged) Read(put func(piece *scene.Splats) error) error {
	for _, part := range m.parts {
		if err := part.Read(put); err != nil {
			return err
		}
	}
	return nil
}
