package bench

import (
	"bytes"
	"context"
	"math"
	"testing"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/internal/run/train"
	pass "vksplat/pipeline/bench"
)

// TestBenchOnDevice measures a made-up model and wants all of a step to be accounted for: its passes, the copy of its
// photo among them where there is one, and what is left make up a step without timestamps.
func TestBenchOnDevice(t *testing.T) {
	runtest.NeedDevice(t)
	var out bytes.Buffer
	o := &Options{Options: *train.NewOptions(), TrainSteps: -1, Settle: 2, Steps: 4, Rounds: 2}
	o.Progress = meter.None
	b := &bencher{console: cli.New(nil, &out, &out), o: o, events: &out, file: &benchFile{
		Rates: pass.Rates{CopyBytes: 1e10, Instructions: 1e10, SharedWords: 1e10, Shuffles: 1e10, LaunchSeconds: 1e-6}}}
	must.Do(t, b.madeUp(context.Background(), madeUp{splats: 400, width: 64, height: 48}))
	s := b.file.Scenes[0]
	sum, floors := s.GapMS.Median, 0.0
	for _, p := range s.Passes {
		sum += p.MeanMS
		floors += p.FloorMS
		if !(p.MeanMS > 0 && p.FloorMS > 0) || p.Bound == "" || !(p.Launches > 0) {
			t.Errorf("%+v", p)
		}
	}
	if math.Abs(sum-s.WallMS.Median) > 1e-9 || math.Abs(floors-s.FloorMS) > 1e-9 || s.TimedMS.Median < s.PassesMS.Min {
		t.Errorf("passes and gaps are %g ms of a step of %g ms, floors %g of %g ms", sum, s.WallMS.Median, floors,
			s.FloorMS)
	}
	t.Log(out.String())
}
