package pipeline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/shaders/layout"
)

// TestTeamRescue ends a run for want of memory on one device: what there is can be saved, and goes on to the
// undisturbed end.
func TestTeamRescue(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations = 14
	cams, photos := splitViews(views)
	dir := t.TempDir()
	for n := 1; n <= 2; n++ {
		devices := testTeam(t, n)
		whole := teamTrainer(t, devices, views, init, scale, cfg)
		splatsAfter(t, whole, cfg.Iterations)
		want := saved(t, whole, filepath.Join(dir, "whole"))
		tr := teamTrainer(t, devices, views, init, scale, cfg)
		splatsAfter(t, tr, 4)
		short, reports := tr.shards.list[n-1], make([]*layout.Report, n)
		short.e.setup.bands = short.e.setup.mostBands() // more would not help
		reports[n-1] = &layout.Report{Failed: layout.FailedIsects, Needed: 1 << 30, NSplats: uint32(short.splats)}
		if tr.queue.err = tr.pressure.makeRoom(reports, tr.queue.next); !IsShortage(tr.queue.err) {
			t.Fatalf("%d devices: error %v", n, tr.queue.err)
		}
		path := filepath.Join(dir, "rescued")
		saved(t, tr, path)
		c := must.Get(checkpoint.Open(path))(t)
		next := must.Get(NewTrainerFrom(devices[0], cams, photos, c, cfg,
			TrainerOptions{Others: devices[1:], Depths: depthsOf(cams)}))(t)
		splatsAfter(t, next, cfg.Iterations)
		if got := saved(t, next, filepath.Join(dir, "end")); !bytes.Equal(got, want) {
			t.Errorf("%d devices: other bytes at the end, deviations %v", n, next.Deviations())
		}
		if err := errors.Join(next.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestTeamLost loses a device while packets are under way: the others may have stepped on half a packet, so nothing of
// it is saved.
func TestTeamLost(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	tr := teamTrainer(t, testTeam(t, 2), views, init, scale, cfg)
	splatsAfter(t, tr, 3)
	gone := errors.New("a device is gone")
	for tr.queue.submitted < 6 {
		must.Do(t, tr.queue.advance(context.Background()))
	}
	_ = tr.shards.first.e.programs.team.Fail(gone)
	path := filepath.Join(t.TempDir(), "checkpoint")
	for range 2 { // the second time nothing is in flight
		if _, err := tr.SaveCheckpoint(path, false); !errors.Is(err, gone) {
			t.Errorf("a checkpoint of it: %v", err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file of it: %v", err)
	}
}
