package pipeline

import (
	"errors"
	"fmt"
	"math"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// HiddenLogit is a logit opacity at which no picture shows a splat: its opacity is far below what a pixel can hold.
const HiddenLogit = -100

// SetOpacities has the splats of the model drawn with other logit opacities from now on, [N]. The renderer may keep the
// list: a caller that changes it calls SetOpacities again before the next picture.
func (r *Renderer) SetOpacities(logits []float32) error {
	if err := r.Drain(); err != nil {
		return err
	}
	if len(logits) != r.splats {
		return fmt.Errorf("set opacities: %d numbers for %d splats", len(logits), r.splats)
	}
	if m := r.subset; m != nil {
		changed := *m.whole
		changed.LogitOpacities = logits
		m.whole, m.loaded = &changed, nil // the next picture takes what it shows to the device
		return nil
	}
	return r.e.setup.model.uploadRow(layout.RowLogitOpacities, logits)
}

// uploadRow writes one row of the parameters of all splats. It goes through staging memory, a unit at a time.
func (m *model) uploadRow(row int, values []float32) (err error) {
	staging, err := vk.Make[uint32](m.dev, vk.Upload, m.unit, "row staging")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.dev.Free(staging.View)) }()
	words := vk.Host(staging)
	for _, c := range m.chunks {
		for at := 0; at < c.splats && c.first+at < len(values); at += m.unit {
			clear(words)
			for i, x := range values[c.first+at : min(c.first+at+m.unit, len(values))] {
				words[i] = math.Float32bits(x)
			}
			r := vk.NewRecorder(m.dev)
			r.Copy(c.At(row*c.splats+at, m.unit).View, staging.View)
			if err := m.dev.RunOnce(r, "write row"); err != nil {
				return err
			}
		}
	}
	return nil
}
