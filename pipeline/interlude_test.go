package pipeline

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// watchedTrainer is the promise scene's, with a way in between its steps.
func watchedTrainer(t *testing.T, d *Device) (*Trainer, []scene.Camera, *Interludes) {
	t.Helper()
	views, init, scale, cfg := promiseScene(t)
	cams, photos := splitViews(views)
	between := NewInterludes()
	tr := must.Get(NewTrainer(d, cams, photos, init, scale, cfg,
		TrainerOptions{Interludes: between, Depths: depthsOf(cams)}))(t)
	t.Cleanup(func() { _ = tr.Close() }) // one that a test closes is closed once
	return tr, cams, between
}

// trainedHash is modelHash of what a trainer has by now.
func trainedHash(t *testing.T, tr *Trainer) string {
	t.Helper()
	s := must.Get(tr.Splats())(t)
	return modelHash(s)
}

// Pictures between steps, larger than those that were planned for, change no byte, and errors of those who ask disturb
// no training.
func TestInterludes(t *testing.T) {
	d := testDevice(t)
	want := plainHash(t, d)
	tr, cams, between := watchedTrainer(t, d)
	large := cams[0]
	large.Width, large.Height = 2*large.Width+1, 2*large.Height+3
	pictures, asked := 0, errors.New("asked for")
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			err := between.Do(context.Background(), func() error {
				picture, err := tr.RenderInto(nil, large)
				if err != nil || len(picture) != 3*large.Width*large.Height {
					t.Errorf("%d numbers, %v", len(picture), err)
				}
				pictures++
				return asked
			})
			if errors.Is(err, ErrNotTraining) {
				return
			}
			if err != asked {
				t.Errorf("got %v", err)
				return
			}
		}
	}()
	must.Do(t, tr.Run(context.Background(), nil))
	if got := trainedHash(t, tr); got != want {
		t.Errorf("with pictures between the steps: %s, without: %s", got, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := between.Do(ctx, func() error { return nil }); !errors.Is(err, context.Canceled) &&
		!errors.Is(err, asked) {
		t.Errorf("no training is running: %v", err)
	}
	must.Do(t, tr.Close())
	<-over
	if pictures == 0 {
		t.Error("no picture was made")
	}
}

// A held training goes on where it was, what is asked for meanwhile is done, the time does not count, and who stops it
// need not release it.
func TestInterludesHold(t *testing.T) {
	d := testDevice(t)
	want := plainHash(t, d)
	tr, _, between := watchedTrainer(t, d)
	const held = 3 * time.Second
	begin := time.Now()
	go func() {
		between.Hold()
		between.Hold() // twice is once
		for !between.Still() {
			time.Sleep(time.Millisecond)
		}
		for range 3 {
			at := -1
			if err := between.Do(context.Background(), func() error { at = tr.Step(); return nil }); err != nil ||
				!between.Held() || !between.Still() {
				t.Errorf("while it is held: step %d, %v", at, err)
			}
		}
		time.Sleep(held)
		between.Release()
		between.Release()
	}()
	must.Do(t, tr.Run(context.Background(), nil))
	if got := trainedHash(t, tr); got != want || between.Still() {
		t.Errorf("held once: %s, never: %s", got, want)
	}
	if whole := time.Since(begin); tr.Seconds() > (whole - held + time.Second).Seconds() {
		t.Errorf("%.1f s of training in %v, %v of them held", tr.Seconds(), whole, held)
	}
}

// What is lost to interludes is their own time and that until a unit is submitted again; neither what was in flight
// before nor a hold.
func TestInterludesLost(t *testing.T) {
	tr, _, between := watchedTrainer(t, testDevice(t))
	const each, times = 40 * time.Millisecond, 5
	var before, took []time.Duration // of each: what was lost before it, and its own time
	done := make(chan struct{})
	do := func(f func()) {
		if err := between.Do(context.Background(), func() error { f(); return nil }); err != nil {
			t.Error(err)
		}
	}
	go func() {
		defer close(done)
		for range times {
			do(func() {
				before = append(before, between.Lost())
				begin := time.Now()
				time.Sleep(each)
				took = append(took, time.Since(begin))
			})
		}
		between.Hold()
		do(func() {})
		held := between.Lost()
		time.Sleep(time.Second)
		between.Release()
		do(func() {})
		if after := between.Lost(); after > held+500*time.Millisecond {
			t.Errorf("a hold of a second: %v lost", after-held)
		}
	}()
	must.Do(t, tr.Run(context.Background(), nil))
	<-done
	least := time.Hour
	for i := range times - 1 {
		lost := before[i+1] - before[i]
		if lost <= took[i] {
			t.Errorf("interlude %d took %v, %v are lost: nothing between its end and the next unit's submit", i,
				took[i], lost)
		}
		least = min(least, lost-took[i])
	}
	if least > 20*time.Millisecond { // what is in flight takes longer
		t.Errorf("at least %v are lost beside the interludes' own time", least)
	}
}

func TestInterludesHoldIsStopped(t *testing.T) {
	tr, _, between := watchedTrainer(t, testDevice(t))
	between.Hold()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if err := between.Do(ctx, func() error { return nil }); err != nil {
			t.Error(err)
		}
		cancel()
	}()
	if err := tr.Run(ctx, nil); !errors.Is(err, context.Canceled) || tr.Step() != 0 {
		t.Errorf("step %d, %v", tr.Step(), err)
	}
}

// A frame that is watched takes nothing of training's: it is no larger than the photos, what does not fit is told and
// leaves bands and buffers alone, and the bytes are those of a run that nobody watches.
func TestShow(t *testing.T) {
	d := testDevice(t)
	want := plainHash(t, d)
	tr, cams, between := watchedTrainer(t, d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := between.Do(context.Background(), func() error {
			large := cams[0].Rescaled(5*cams[0].Width, 4*cams[0].Height)
			for _, look := range []Look{LookColor, LookDepth, LookCenters, LookEllipsoids} {
				rgb, drawn, err := tr.Show(nil, large, look)
				if err != nil || len(rgb) != 3*drawn.Width*drawn.Height ||
					drawn.Width*drawn.Height > cams[0].Width*cams[0].Height {
					t.Errorf("look %d: %d numbers of %dx%d, %v", look, len(rgb), drawn.Width, drawn.Height, err)
				}
			}
			rgb, _, err := tr.Show(nil, cams[0], LookColor)
			whole, err2 := tr.RenderInto(nil, cams[0])
			if err != nil || err2 != nil || !slices.Equal(rgb, whole) {
				t.Errorf("a frame is not the picture of its camera: %v, %v", err, err2)
			}
			bands, drawn := tr.shards.first.e.setup.bands, tr.shards.first.e.setup.drawn
			tr.shards.first.e.setup.isectCapacity = layout.MostBucket
			if err := errors.Join(tr.shards.first.e.programs.free(), tr.shards.first.e.programs.build()); err != nil {
				return err
			}
			if _, _, err := tr.Show(nil, cams[0], LookColor); !errors.Is(err, ErrFrameTooFull) {
				t.Errorf("a frame that does not fit: %v", err)
			}
			if tr.shards.first.e.setup.bands != bands || tr.shards.first.e.setup.drawn != drawn ||
				tr.shards.first.e.setup.isectCapacity != layout.MostBucket {
				t.Errorf("after a frame that does not fit there are %d bands, room for %d pairs and %+v",
					tr.shards.first.e.setup.bands,
					tr.shards.first.e.setup.isectCapacity, tr.shards.first.e.setup.drawn)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	must.Do(t, tr.Run(context.Background(), nil))
	<-done
	if got := trainedHash(t, tr); got != want {
		t.Errorf("watched: %s, alone: %s", got, want)
	}
}
