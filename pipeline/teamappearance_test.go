package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// appearanceTable reads what a trainer's photos have learnt, from each of its devices alike.
func appearanceTable(t testing.TB, tr *Trainer) (table []layout.Appearance) {
	t.Helper()
	for i, m := range tr.shards.list {
		got := must.Get(m.e.setup.appearances.download())(t)
		if table = got; i > 0 {
			first := must.Get(tr.shards.first.e.setup.appearances.download())(t)
			for v := range first {
				if first[v] != got[v] {
					t.Errorf("the appearance of photo %d is %v on device %d, %v on the first", v, got[v], i, first[v])
				}
			}
		}
	}
	return table
}

// TestTeamAppearance compares the appearance that several devices learn with what one does. In the first step each
// device has a photo of its own, whose appearance must be bit for bit what one device makes of it.
func TestTeamAppearance(t *testing.T) {
	views, init, scale, cfg := partialScene(t)
	untie(t, init, views)
	cfg.Iterations, cfg.AppearanceStart = 1, 0
	team := teamTrainer(t, testTeam(t, 3), views, init, scale, cfg)
	splatsAfter(t, team, 1)
	table := appearanceTable(t, team)
	known := map[int]bool{}
	for _, m := range team.shards.list {
		view := m.photos.order.at(0)
		one := teamTrainer(t, testTeam(t, 1), views, init, scale, cfg)
		fixViews(&one.shards.first.photos.order, view)
		splatsAfter(t, one, 1)
		if want := appearanceTable(t, one)[view]; table[view] != want || want == (layout.Appearance{}) {
			t.Errorf("the appearance of photo %d is %v, of one device %v", view, table[view], want)
		}
		known[view] = true
	}
	for v, x := range table {
		if !known[v] && x != (layout.Appearance{}) {
			t.Errorf("photo %d was not trained on, it has %v", v, x)
		}
	}
}

// TestTeamAppearanceBytes learns appearance on three devices in every way that must not matter. There are eight photos,
// one of which cannot be decoded, so that two devices have the same one now and then.
func TestTeamAppearanceBytes(t *testing.T) {
	views, init, scale, cfg := partialScene(t)
	if !filetest.Long() {
		cfg.Iterations = 18
	}
	cams, photos := splitViews(views)
	bad := withoutPhoto{photos, 2}
	dir := t.TempDir()
	trainer := func(devices []*Device, from string) *Trainer {
		t.Helper()
		o := TrainerOptions{Others: devices[1:]}
		var tr *Trainer
		var err error
		if from == "" {
			tr, err = NewTrainer(devices[0], cams, bad, init, scale, cfg, o)
		} else {
			c := must.Get(checkpoint.Open(from))(t)
			defer c.Close()
			tr, err = NewTrainerFrom(devices[0], cams, bad, c, cfg, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		})
		_, _, _, _, run := checkpointScene(t)
		tr.SetRun(run)
		return tr
	}
	devices := testTeam(t, 4)
	tr := trainer(devices[:3], "")
	twice := false
	for step := range cfg.Iterations {
		if tr.advanceTo(t, step+1); tr.queue.views[0] == tr.queue.views[1] || tr.queue.views[1] == tr.queue.views[2] {
			twice = true
		}
		if step == 12 {
			saved(t, tr, filepath.Join(dir, "middle"))
		}
	}
	if !twice {
		t.Error("no two devices had the same photo: the test proves too little")
	}
	appearanceTable(t, tr)
	want := saved(t, tr, filepath.Join(dir, "whole"))
	same := func(name string, tr *Trainer) {
		t.Helper()
		splatsAfter(t, tr, cfg.Iterations)
		appearanceTable(t, tr)
		if got := saved(t, tr, filepath.Join(dir, "other")); !bytes.Equal(got, want) {
			t.Errorf("%s: another checkpoint at the end", name)
		}
	}
	small := trainer(devices[:3], "")
	if err := small.shards.first.e.programs.team.Resize(1); err != nil { // units fail on all devices because of one
		t.Fatal(err)
	}
	for _, m := range small.shards.list {
		must.Do(t, errors.Join(m.e.programs.free(), m.e.memory.buildToFit()))
	}
	same("small packets", small)
	same("resumed", trainer(devices[:3], filepath.Join(dir, "middle")))
	for _, n := range []int{1, 4} {
		splatsAfter(t, trainer(devices[:n], filepath.Join(dir, "middle")), 16)
	}
	limits := filepath.Join(dir, "limits")
	must.Do(t, os.WriteFile(limits, []byte(`{"externalMemoryHost": false}`), 0o644))
	t.Setenv("VKSPLAT_LIMITS", limits)
	same("without common memory", trainer(testTeam(t, 3), ""))
}

// withoutPhoto are photos of which one cannot be decoded.
type withoutPhoto struct {
	photos.Images
	bad int
}

func (p withoutPhoto) Photo(ctx context.Context, view int) (scene.Image, error) {
	if view == p.bad {
		return scene.Image{}, fmt.Errorf("no pixels: %w", fault.ErrData)
	}
	return p.Images.Photo(ctx, view)
}

// advanceTo trains up to a step.
func (tr *Trainer) advanceTo(t testing.TB, step int) {
	t.Helper()
	must.Do(t, tr.RunTo(t.Context(), step, nil))
}

// untie moves splats along the view until no two of them have depths that are alike to those that sort them, in any of
// the views: these are in the order of their numbers, which several devices give otherwise than one.
func untie(t *testing.T, s *scene.Splats, views []TrainView) {
	t.Helper()
	type at struct {
		order uint32
		splat int
	}
	for range 100 {
		moved := false
		for _, v := range views {
			var list []at
			for i := range s.N {
				m := s.Means[3*i:]
				z := v.Camera.ToCamera([3]float64{float64(m[0]), float64(m[1]), float64(m[2])})[2]
				if z > 0 {
					list = append(list, at{ref.DepthOrder(math.Float32bits(float32(z))), i})
				}
			}
			slices.SortFunc(list, func(a, b at) int { return cmp.Compare(a.order, b.order) })
			for k, x := range list[1:] {
				if x.order-list[k].order > 1 {
					continue
				}
				for axis := range 3 {
					s.Means[3*x.splat+axis] += 2e-5 * float32(v.Camera.R[6+axis])
				}
				moved = true
			}
		}
		if !moved {
			return
		}
	}
	t.Fatal("depths are alike still")
}
