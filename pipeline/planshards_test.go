package pipeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// TestDealt deals splats out: all of them, each once, as many as the shares say, and at any place of the list in
// proportion to them.
func TestDealt(t *testing.T) {
	for _, shares := range [][]int{{1}, {5}, {3, 2}, {4, 3, 3}, {7, 7, 7, 7}, {1, 99}, {500, 20, 300},
		{1, 1, 1000, 1}} {
		total := sum(shares)
		seen := make([]int, total)
		for k, n := range shares {
			ids := shardSplats(shares, k)
			if len(ids) != n {
				t.Errorf("%v: device %d gets %d", shares, k, len(ids))
			}
			for i, id := range ids {
				seen[id]++
				if due := float64(n) * float64(id+1) / float64(total); float64(i+1) > due+float64(len(shares)) ||
					float64(i+1) < due-1 {
					t.Errorf("%v: device %d has %d of the first %d", shares, k, i+1, id+1)
				}
				if slices.Max(shares)-slices.Min(shares) <= 1 && id != k+i*len(shares) {
					t.Errorf("%v: splat %d of device %d is %d, not one of each in turn", shares, i, k, id)
				}
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%v: splat %d goes to %d devices", shares, id, n)
			}
		}
	}
}

// TestTeamUnequal trains on two devices of which one has too little memory for half of the splats: it has as many as it
// can hold, the other has the rest, a resumed run has the same bytes, and one device more or less goes on as well.
func TestTeamUnequal(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	mcmc := recipe.MCMC()
	cfg.Strategy, cfg.MaxSplats, cfg.GrowFactor, cfg.NoiseLR, cfg.ResetEvery = mcmc.Strategy, 15_000, 3, mcmc.NoiseLR, 0
	cfg.Iterations = 34 // three refinements
	little := int64(8 << 20)
	if filetest.Long() {
		cfg.MaxSplats, little = 30_000, 12<<20
	}
	cams, photos := splitViews(views)
	devices := []*Device{budgetDevice(t, little), testDevice(t)}
	plan := must.Get(devices[0].Plan(cams, init.N, cfg, TrainerOptions{Others: devices[1:]}))(t)
	t.Logf("ceilings %v of %d", plan.Shares, plan.Ceiling)
	if len(plan.Shares) != 2 || plan.Ceiling != cfg.MaxSplats || plan.Shares[0] > cfg.MaxSplats/3 {
		t.Fatalf("ceilings %v of %d: the test proves nothing", plan.Shares, plan.Ceiling)
	}
	dir := t.TempDir()
	tr := teamTrainer(t, devices, views, init, scale, cfg)
	if got := fmt.Sprint(tr.shards.ceilings()); got != fmt.Sprint(plan.Shares) {
		t.Errorf("ceilings %s, planned %v", got, plan.Shares)
	}
	splatsAfter(t, tr, 17)
	saved(t, tr, filepath.Join(dir, "middle"))
	splatsAfter(t, tr, cfg.Iterations)
	if got := tr.shards.sizes(); got[0] != plan.Shares[0] || sum(got) != cfg.MaxSplats {
		t.Errorf("shares %v at the end, of ceilings %v", got, plan.Shares)
	}
	want := saved(t, tr, filepath.Join(dir, "end"))
	devices = []*Device{budgetDevice(t, little), testDevice(t), testDevice(t)} // free ones
	for i, list := range [][]*Device{devices[:2], devices[1:2], devices, {devices[1], devices[0]}} {
		if i == 2 && !filetest.Long() {
			continue // more devices than before: TestTeamResume has that
		}
		c := must.Get(checkpoint.Open(filepath.Join(dir, "middle")))(t)
		next := must.Get(NewTrainerFrom(list[0], cams, photos, c, cfg,
			TrainerOptions{Others: list[1:], Depths: depthsOf(cams)}))(t)
		splatsAfter(t, next, cfg.Iterations)
		if got := saved(t, next, filepath.Join(dir, "again")); len(list) == 2 && list[0] == devices[0] &&
			!bytes.Equal(got, want) {
			t.Error("resumed on the same devices: another checkpoint at the end")
		}
		if swapped := len(list) == 2 &&
			list[0] != devices[0]; swapped != (len(list) == 2 && len(next.Deviations()) == 1) {
			t.Errorf("on %d devices, others first %v: deviations %v", len(list), swapped, next.Deviations())
		}
		if next.NSplats() != cfg.MaxSplats {
			t.Errorf("on %d devices: %d splats at the end, shares %v", len(list), next.NSplats(), next.shards.sizes())
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTeamUnequalStart deals out splats to start with of which one device holds fewer than half.
func TestTeamUnequalStart(t *testing.T) {
	cams := planCameras(4, 64, 48)
	devices := []*Device{budgetDevice(t, 1<<30), budgetDevice(t, 60<<20)}
	cfg := recipe.Default()
	o := TrainerOptions{Others: devices[1:]}
	plans, list, err := planShards(devices, cams, 400_000, knownSizes{}, cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, ceilings %v", list, []int{plans[0].Ceiling, plans[1].Ceiling})
	if list[0].splats+list[1].splats != 400_000 || list[1].splats > plans[1].Ceiling || list[1].splats < 30_000 ||
		plans[0].Ceiling < list[0].splats {
		t.Errorf("splats to start with: %+v", list)
	}
	if _, err := devices[0].Plan(cams, 4_000_000, cfg, o); err == nil {
		t.Error("four million fit")
	}
}

// TestTeamUnequalTrains trains on devices of which one has far less memory than the other: views that see some of the
// splats fit.
func TestTeamUnequalTrains(t *testing.T) {
	views, _, scale, cfg := promiseScene(t)
	cfg.Iterations, cfg.RefineEvery = 2, 0
	for _, c := range []struct {
		budgets [2]int64
		splats  int
	}{{[2]int64{128 << 20, 64 << 20}, 140_000}, {[2]int64{24 << 20, 240 << 20}, 120_000}} {
		devices := []*Device{budgetDevice(t, c.budgets[0]), budgetDevice(t, c.budgets[1])}
		tr := teamTrainer(t, devices, views, randomSplats(c.splats), scale, cfg)
		splatsAfter(t, tr, cfg.Iterations)
		t.Logf("%d bytes: shares %v, packets of %d", c.budgets, tr.shards.sizes(),
			tr.shards.first.e.programs.team.Records())
	}
}

// randomSplats are small splats in a cube around the origin, of which a view sees some.
func randomSplats(n int) *scene.Splats {
	s := scene.NewSplats(n, 0)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		for k := range 3 {
			s.Means[3*i+k], s.LogScales[3*i+k] = 8*random.Float32()-4, -6
		}
		s.Quats[4*i] = 1
	}
	return s
}
