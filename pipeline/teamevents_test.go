package pipeline

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// TestTeamRefinesPartly has a refinement fail on one device, whose memory must grow, while the other has done it. The
// state that is saved then is that of a run in which it did not fail.
func TestTeamRefinesPartly(t *testing.T) {
	views, init, scale, cfg := wholeScene(t)
	mcmc := recipe.MCMC()
	cfg.Strategy, cfg.MaxSplats, cfg.GrowFactor, cfg.NoiseLR, cfg.ResetEvery, cfg.Iterations = mcmc.Strategy, 40_000,
		3, mcmc.NoiseLR, 0, 14
	if filetest.Long() {
		cfg.Iterations = 24 // refines once more
	}
	dir := t.TempDir()
	whole := teamTrainer(t, testTeam(t, 2), views, init, scale, cfg)
	splatsAfter(t, whole, 11)
	want := saved(t, whole, filepath.Join(dir, "whole"))
	for roomy := range 2 {
		if roomy == 0 && !filetest.Long() {
			continue // the other way round
		}
		tr := teamTrainer(t, testTeam(t, 2), views, init, scale, cfg)
		m := tr.shards.list[roomy]
		must.Do(t, errors.Join(m.e.memory.growModel(20_000, 20_000), m.e.memory.buildToFit()))
		splatsAfter(t, tr, 10)
		for tr.queue.next.Step < 11 {
			must.Do(t, tr.queue.advance(context.Background()))
		}
		if again, err := tr.queue.drain(); !again || err != nil || !tr.shards.partlyDone(tr.queue.next.Number) ||
			m.from <= tr.queue.next.Number {
			t.Fatalf("with room on device %d: done again: %v, done by one: %v, %v", roomy, again,
				tr.shards.partlyDone(tr.queue.next.Number), err)
		}
		if got := saved(t, tr, filepath.Join(dir, "part")); !bytes.Equal(got, want) {
			t.Errorf("with room on device %d: another checkpoint", roomy)
		}
		if got, want := modelHash(splatsAfter(t, tr, cfg.Iterations)),
			modelHash(splatsAfter(t, whole, cfg.Iterations)); got != want {
			t.Errorf("with room on device %d: %s at the end, want %s", roomy, got, want)
		}
	}
}

// TestTeamRebalances makes one share much larger than the other in the middle of a run: shares are made equal before
// the next refinement, also where the run is resumed in between, and runs that are resumed before and after that have
// the same bytes.
func TestTeamRebalances(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations = 24
	cams, photos := splitViews(views)
	devices, dir := testTeam(t, 2), t.TempDir()
	tr := teamTrainer(t, devices, views, init, scale, cfg)
	splatsAfter(t, tr, 4)
	must.Do(t, move(tr.shards.list[1], tr.shards.first, 900/thinning()))
	uneven := tr.shards.sizes()
	for _, name := range []string{"8", "14"} {
		splatsAfter(t, tr, map[string]int{"8": 8, "14": 14}[name])
		saved(t, tr, filepath.Join(dir, name))
	}
	if got := tr.shards.sizes(); got[0] > got[1]*6/5 || uneven[0] < uneven[1]*3 {
		t.Errorf("shares %v, then %v", uneven, got)
	}
	splatsAfter(t, tr, cfg.Iterations)
	want := saved(t, tr, filepath.Join(dir, "end"))
	for _, name := range []string{"8", "14"} {
		c := must.Get(checkpoint.Open(filepath.Join(dir, name)))(t)
		next := must.Get(NewTrainerFrom(devices[0], cams, photos, c, cfg,
			TrainerOptions{Others: devices[1:], Depths: depthsOf(cams)}))(t)
		splatsAfter(t, next, cfg.Iterations)
		if got := saved(t, next, filepath.Join(dir, "again")); !bytes.Equal(got, want) {
			t.Errorf("resumed at step %s: another checkpoint at the end", name)
		}
		if err := errors.Join(next.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	}
}

// cancellingPhotos are photos of which the one that is asked for at a time does not come: the run is cancelled.
type cancellingPhotos struct {
	photos.Images
	left   int // that come before
	cancel context.CancelFunc
}

func (p *cancellingPhotos) Photo(ctx context.Context, view int) (scene.Image, error) {
	if p.left--; p.left == 0 {
		p.cancel()
		return scene.Image{}, ctx.Err()
	}
	return p.Images.Photo(ctx, view)
}

// TestTeamCancelled cancels runs while one of the devices waits for its photo and others have theirs: what comes of
// them is the undisturbed run's.
func TestTeamCancelled(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations, cfg.RefineEvery = 30, 0
	cams, images := splitViews(views)
	all, _ := photos.LayoutOf(cams).Totals(cams)
	devices := testTeam(t, 3)
	train := func(part int64, left int) string {
		t.Helper()
		photos := &cancellingPhotos{Images: images, left: left}
		tr := must.Get(NewTrainer(devices[0], cams, photos, init, scale, cfg,
			TrainerOptions{PhotoBytes: all / part, Others: devices[1:]}))(t)
		defer func() {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}()
		if left > 0 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			photos.cancel = cancel
			if err := tr.Run(ctx, nil); !errors.Is(err, context.Canceled) || tr.Step() >= cfg.Iterations {
				t.Fatalf("cancelled after step %d: %v", tr.Step(), err)
			}
		}
		return modelHash(splatsAfter(t, tr, cfg.Iterations))
	}
	want := train(1, 0)
	for _, c := range []struct {
		part int64
		left int
	}{{1, 2}, {1, 9}, {4, 32}} {
		if got := train(c.part, c.left); got != want {
			t.Errorf("1/%d of the photos on each device, cancelled at photo %d: %s, want %s", c.part, c.left, got, want)
		}
	}
}
