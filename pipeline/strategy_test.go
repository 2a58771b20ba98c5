package pipeline

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// manySplats are more than the chunks hold that a device of small bindings starts with.
const manySplats = 4000

// shortMCMC makes a run of a few relocations, some of which find dead splats, and of growth to a given number.
func shortMCMC(c *Config) {
	m := MCMCConfig()
	c.Strategy, c.ResetEvery, c.OpacityReg, c.ScaleReg, c.NoiseLR = m.Strategy, 0, 0.5, m.ScaleReg, m.NoiseLR
	c.Iterations, c.RefineStop, c.RefineStart, c.RefineEvery = 22, 21, 2, 6
	c.PruneOpacity, c.Splats, c.RandomBackground = 0.06, manySplats, true
}

// shortExact makes a run of the default strategy to a given number, with everything that is off by default.
func shortExact(c *Config) {
	c.Iterations, c.RefineStop, c.RefineStart, c.RefineEvery, c.ResetEvery = 22, 21, 2, 6, 9
	c.AbsGrad, c.GrowGrad2D, c.RevisedOpacity, c.Splats, c.OpacityReg = true, AbsGradThreshold, true, manySplats, 0.01
}

// TestStrategiesSameBytes trains with every strategy in the ways that must not matter, and ends at the promised number
// of splats.
func TestStrategiesSameBytes(t *testing.T) {
	limits := t.TempDir() + "/limits.json"
	if err := os.WriteFile(limits, []byte(`{"maxStorageBufferRange": 1048576}`), 0o644); err != nil {
		t.Fatal(err)
	}
	mixed := func(short func(*Config)) func(*Config) {
		return func(c *Config) { short(c); c.Precision = PrecisionMixed }
	}
	for name, change := range map[string]func(*Config){"mcmc": shortMCMC, "exact": shortExact,
		"mixed mcmc": mixed(shortMCMC), "mixed exact": mixed(shortExact)} {
		t.Run(name, func(t *testing.T) {
			d := testDevice(t)
			want, n := trainHash(t, d, change)
			t.Log(want)
			if n != manySplats {
				t.Errorf("%d splats, %d were promised", n, manySplats)
			}
			same := func(what string, d *Device, more func(*Config)) {
				t.Helper()
				if got, _ := trainHash(t, d, func(c *Config) { change(c); more(c) }); got != want {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
			}
			same("larger buffers and bands", d, func(c *Config) { c.startCapacities, c.bands = 4, 3 })
			t.Run("serial", func(t *testing.T) {
				t.Setenv("VKSPLAT_SERIAL", "1")
				same("serial", d, func(*Config) {})
			})
			t.Run("small bindings", func(t *testing.T) {
				t.Setenv("VKSPLAT_LIMITS", limits)
				same("1 MiB bindings, verified", verified(t), func(*Config) {})
			})
		})
	}
}

// verified returns a device whose engines verify every pass.
func verified(t *testing.T) *Device {
	t.Setenv(verifyVariable, "1")
	return testDevice(t)
}

// TestVerifySabotage breaks each verified buffer in turn, with a value that its check must find.
func TestVerifySabotage(t *testing.T) {
	d := verified(t)
	nan := math.Float32bits(float32(math.NaN()))
	for buffer, bad := range map[string]uint32{
		"splat_from_rank": 7, "projected": nan, "extents": nan, "first_isect": 7, "slot_from_isect": 1 << 30,
		"tile_offsets": 1 << 30,
		"render":       nan, "v_render": nan, "v_slots": nan, "v_projected": nan, "v_abs_mean2d": nan, "chunk": nan,
	} {
		t.Run(buffer, func(t *testing.T) {
			views, init, scale, cfg := promiseScene(t)
			cfg.Iterations, cfg.AbsGrad = 2, true
			tr, err := trainOn(d, views, init, scale, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			tr.e.sabotage = func(v *view, what string) {
				if x := v.buffersByName()[what]; what == buffer {
					v.r.Fill(x.Slice(4, 4), bad) // the second word
				}
			}
			if err := tr.e.build(); err != nil {
				t.Fatal(err)
			}
			err = tr.Run(context.Background(), nil)
			if err == nil || !strings.Contains(err.Error(), " of "+buffer+":") {
				t.Errorf("got %v, want an error that names %s", err, buffer)
			}
		})
	}
}

func (v *view) buffersByName() map[string]vk.View {
	return map[string]vk.View{
		"splat_from_rank": v.splatFromRank.View, "projected": v.projected.View, "extents": v.extents.View,
		"first_isect":     v.firstIsect.View,
		"slot_from_isect": v.slotFromIsect.View, "tile_offsets": v.tileOffsets.View, "render": v.render.View,
		"v_render": v.vShown.View,
		"v_slots":  v.vSlots.View, "v_projected": v.vProjected.View, "v_abs_mean2d": v.vAbsMean2D.View,
		"chunk": v.model.chunks[0].View,
	}
}

// trained returns the mean loss of the last epoch and the number of splats.
func trained(t *testing.T, d *Device, change func(*Config)) (loss float64, splats int) {
	t.Helper()
	views, init, scale, cfg := promiseScene(t)
	change(&cfg)
	tr, err := trainOn(d, views, init, scale, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	err = tr.Run(context.Background(), func(p Progress) {
		if p.Step > cfg.Iterations-len(views) {
			loss += float64(p.Loss) / float64(len(views))
		}
		splats = p.Splats
	})
	if err != nil {
		t.Fatal(err)
	}
	return loss, splats
}

// TestMCMCLearns trains with both strategies to the same number of splats.
func TestMCMCLearns(t *testing.T) {
	d := testDevice(t)
	both := func(c *Config) {
		c.Iterations, c.RefineStart, c.RefineStop, c.RefineEvery, c.ResetEvery, c.Splats = 60, 5, 40, 5, 0, 4000
	}
	standard, n := trained(t, d, both)
	mcmc, m := trained(t, d, func(c *Config) {
		both(c)
		c.Strategy, c.OpacityReg, c.ScaleReg = StrategyMCMC, 0.01, 0.01
	})
	t.Logf("loss %.5f with %d splats; MCMC %.5f with %d", standard, n, mcmc, m)
	if n != 4000 || m != 4000 {
		t.Error("not the promised number of splats")
	}
	if !(mcmc <= standard) {
		t.Error("MCMC learns less")
	}
}

func TestScaled(t *testing.T) {
	c := DefaultConfig()
	c.RefineStart = 0
	half, tiny := c.Scaled(0.29), c.Scaled(1e-9)
	if half.Iterations != 8700 || half.SHInterval != 290 || half.RefineStop != 4350 || half.RefineEvery != 29 ||
		half.ResetEvery != 870 || half.RefineStart != 0 || half.ResolutionSchedule != 870 {
		t.Errorf("%+v", half)
	}
	if tiny.Iterations != 1 || tiny.RefineEvery != 1 || tiny.Validate() != nil || c.Scaled(1) != c {
		t.Errorf("%+v", tiny)
	}
	quarter := c.ForShare(0.25)
	if quarter.Iterations != 7500 || quarter.LRMeansFinal != c.LRMeansFinal || c.ForShare(1) != c {
		t.Errorf("%+v", quarter)
	}
	for i, rate := range quarter.SplatRates() {
		if *rate != 2**c.SplatRates()[i] {
			t.Errorf("rate %d of a quarter is %g", i, *rate)
		}
	}
	for _, f := range []float64{0, -1, math.NaN(), math.Inf(1), 1e30} {
		if c.Scaled(f).Validate() == nil {
			t.Errorf("factor %g is accepted", f)
		}
	}
}

func TestSplatsFor(t *testing.T) {
	cams := make([]scene.Camera, 100)
	for i := range cams {
		cams[i].Width, cams[i].Height = 1000, 800 // 80 million pixels
	}
	for _, x := range []struct {
		points int
		factor float64
		want   int
	}{
		{20000, 0.25, 316228}, {20000, 0.5, 632456}, {80000, 0.25, 632456},
		{0, 0.25, 447214},                             // one for 2000 pixels: 40000
		{9000000, 0.25, 894427}, {160000, 1, 3577709}, // one for 500 pixels at most
		{3, 0.25, 200000}, // one for 10000 at least
		{20000, 1e-9, 1}, {20000, 1e30, math.MaxInt32},
	} {
		if got := SplatsFor(cams, x.points, x.factor); got != x.want {
			t.Errorf("%d points, factor %g: %d splats, want %d", x.points, x.factor, got, x.want)
		}
	}
}

func TestTargetSplats(t *testing.T) {
	steps := func(c Config) (r []int) {
		for s := range c.Iterations {
			if c.refines(s) {
				r = append(r, s)
			}
		}
		return r
	}
	for name, c := range map[string]Config{"default": DefaultConfig(), "mcmc": MCMCConfig()} {
		for _, n := range []int{500, 1000, 1001, 5000, 900_000} {
			for _, iterations := range []int{700, 7000, 30000} {
				c.Splats, c.Iterations = n, iterations
				last, all := 1000, steps(c)
				if len(all) != c.refinements() {
					t.Fatalf("%d refinements, want %d", c.refinements(), len(all))
				}
				for k, s := range all {
					got := c.targetSplats(1000, 1<<30, s)
					if c.refinement(s) != k+1 || (got < last) != (n < 1000 && got < last) || got > max(n, 1000) {
						t.Errorf("%s to %d: %d after %d", name, n, got, last)
					}
					last = got
				}
				if last != n && !(name == "mcmc" && n < 1000) {
					t.Errorf("%s ends with %d splats, want %d", name, last, n)
				}
			}
		}
	}
	// More iterations than the run was started with keep the promised number.
	for name, c := range map[string]Config{"default": DefaultConfig(), "mcmc": MCMCConfig()} {
		for _, started := range []int{400, 1000, 7000} {
			c.Splats, c.Iterations, c.scheduleIterations = 5000, 30000, started
			if c.refinements() == 0 {
				c.Splats = 1000 // no other number can be promised
			}
			for _, s := range []int{started / 100 * 100, 7100, 14900} {
				if got := c.targetSplats(1000, 1<<30, s); c.refines(s) && s >= started && got != c.Splats {
					t.Errorf("%s of %d iterations, after step %d: %d splats, want %d", name, started, s, got, c.Splats)
				}
			}
		}
	}
	c := MCMCConfig()
	if got := c.targetSplats(1000, 1100, 600); got != 1050 {
		t.Errorf("%d splats, want 1050", got)
	}
	if got := c.targetSplats(1000, 1100, 900); got != 1100 {
		t.Errorf("%d splats, want the ceiling", got)
	}
	if got := c.targetSplats(2000, 1100, 900); got != 2000 {
		t.Errorf("%d splats, want those that live", got)
	}
}

// TestSplatsOutOfReach refuses numbers that cannot be kept, and thins out what MCMC cannot remove.
func TestSplatsOutOfReach(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := promiseScene(t)
	for name, c := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"no refinement":     {func(c *Config) { c.Splats, c.RefineEvery = 5000, 0 }, ErrUnreachable},
		"doubled too often": {func(c *Config) { c.Splats, c.RefineStop = 30000, 25 }, ErrUnreachable},
		"ceiling":           {func(c *Config) { c.MaxSplats = 100 }, ErrTooMany},
		"memory":            {func(c *Config) { c.Splats = math.MaxInt32 }, ErrTooSmall},
	} {
		change := cfg
		c.change(&change)
		if tr, err := trainOn(d, views, init, scale, change); !errors.Is(err, c.want) || fault.Hint(err) == "" {
			t.Errorf("%s: got %v", name, err)
			if err == nil {
				tr.Close()
			}
		}
	}
	m := MCMCConfig()
	m.Splats = 1000
	if s := m.thinned(init); s.N != 1000 || s.Means[0] != init.Means[0] ||
		s.SH[len(s.SH)-1] != init.SH[len(init.SH)/init.N*(999*init.N/1000+1)-1] {
		t.Errorf("%d splats", s.N)
	}
}

// TestFewerSplats prunes to a number below that at the start.
func TestFewerSplats(t *testing.T) {
	if _, n := trainHash(t, testDevice(t), func(c *Config) { shortExact(c); c.Splats = 1500 }); n != 1500 {
		t.Errorf("%d splats, want 1500", n)
	}
}

func TestRandomBackground(t *testing.T) {
	c := DefaultConfig()
	if c.Background = [3]float32{0.1, 0.2, 0.3}; c.backgroundOf(5) != c.Background {
		t.Error("the background is not the one asked for")
	}
	c.RandomBackground = true
	if a, b := c.backgroundOf(1), c.backgroundOf(2); a == b || a != c.backgroundOf(1) {
		t.Error("not another colour every step")
	}
	var all []float32
	for s := range 2000 {
		rgb := c.backgroundOf(s)
		all = append(all, rgb[:]...)
	}
	if lo, hi := slices.Min(all), slices.Max(all); lo < 0 || hi > 1 || lo > 0.01 || hi < 0.99 {
		t.Errorf("from %g to %g", lo, hi)
	}
}

// TestGoldenAbsGrad compares sums of absolute gradients with those of an independent implementation.
func TestGoldenAbsGrad(t *testing.T) {
	g, err := ref.LoadGolden("testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	d := testDevice(t)
	for _, c := range g.Renders {
		t.Run(c.Name, func(t *testing.T) {
			out := runBackwardOf(t, d, c.Params, c.View, c.VRender, 2, strategy{absgrad: true})
			var got, signed []float32
			for i, v := range out.vAbsMean2D {
				s := out.vProjected[i].Mean2d
				if out.depthKeys[i] == layout.Culled {
					v, s = [2]float32{}, [2]float32{}
				}
				got, signed = append(got, v[:]...), append(signed, s[:]...)
			}
			within(t, "v_abs_mean2d", ref.RelNorm(got, c.AbsMeans2D), 1e-3)
			within(t, "v_means2d", ref.RelNorm(signed, c.VMeans2D), 1e-3)
		})
	}
}

// TestDiverged stops a run whose numbers run away.
func TestDiverged(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.LRSH0, cfg.Iterations = 1e30, 20
	tr, err := trainOn(testDevice(t), views, init, scale, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := tr.Run(t.Context(), nil); !errors.Is(err, ErrDiverged) || fault.Hint(err) == "" || tr.Step() > 3 {
		t.Errorf("step %d: %v", tr.Step(), err)
	}
}
