package evaluate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
)

// A round takes the views in their order, whatever the order in which comparisons end; photos without a pixel that
// counts are told of and left out, and any other failure ends the round.
func TestViewRound(t *testing.T) {
	const n, side = 9, 16
	dir := t.TempDir()
	cams := make([]scene.Camera, n)
	for i := range cams {
		cams[i] = scene.Camera{Name: fmt.Sprint(i), Path: filepath.Join(dir, fmt.Sprint(i)+".png"), Width: side,
			Height: side}
		must.Do(t, photo.WritePNG(cams[i].Path, make([]float32, 3*side*side), side, side))
	}
	plan := &pipeline.HostPlan{Cache: 64 << 20, Decode: 64 << 20, Picture: 1 << 20, Workers: 4}
	failed := errors.New("no")
	round := func(strict bool, outcome func(i int) error) (taken []int, warned int, err error) {
		r := must.Get(NewViewRound(cams, plan))(t)
		defer r.Photos.Close()
		later := make(chan struct{}) // the first comparison ends after the second
		r.Strict = strict
		r.Warn = func(string) { warned++ }
		r.Draw = func(memory []float32, _ int) ([]float32, error) {
			return append(memory[:0], make([]float32, 3*side*side)...), nil
		}
		r.Compare = func(c *Comparison) (func(), error) {
			switch {
			case c.Index == 0 && r.atOnce > 1:
				<-later
			case c.Index == 1:
				close(later)
			}
			return func() { taken = append(taken, c.Index) }, outcome(c.Index)
		}
		err = r.Run(context.Background())
		return taken, warned, err
	}
	uncounted := func(i int) error {
		if i == 3 {
			return fmt.Errorf("measure: %w", metric.ErrUncounted)
		}
		return nil
	}
	if taken, warned, err := round(false, uncounted); err != nil || warned != 1 ||
		!slices.Equal(taken, []int{0, 1, 2, 4, 5, 6, 7, 8}) {
		t.Errorf("%v, %d warnings, %v", taken, warned, err)
	}
	if _, _, err := round(true, uncounted); !errors.Is(err, metric.ErrUncounted) {
		t.Errorf("strict: %v", err)
	}
	taken, _, err := round(false, func(i int) error {
		if i == 2 {
			return failed
		}
		return nil
	})
	if !errors.Is(err, failed) || len(taken) < 2 || slices.Contains(taken, 2) || len(taken) == n {
		t.Errorf("a failure: %v, %v", taken, err)
	}
}
