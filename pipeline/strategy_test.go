package pipeline

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref"
	"vksplat/pipeline/ref/goldentest"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// manySplats are more than the chunks hold that a device of small bindings starts with.
func manySplats() int {
	if filetest.Long() {
		return 4000
	}
	return 2400
}

// shortMCMC makes a run of a few relocations, some of which find dead splats, and of growth to a given number.
func shortMCMC(c *recipe.Config) {
	m := recipe.MCMC()
	c.Strategy, c.ResetEvery, c.OpacityReg, c.ScaleReg, c.NoiseLR = m.Strategy, 0, 0.5, m.ScaleReg, m.NoiseLR
	c.Iterations, c.RefineStop, c.RefineStart, c.RefineEvery = 22, 21, 2, 6
	c.PruneOpacity, c.Splats, c.RandomBackground = 0.06, manySplats(), true
}

// shortExact makes a run of the strategy 3dgs to a given number, with everything that is off by default.
func shortExact(c *recipe.Config) {
	c.Iterations, c.RefineStop, c.RefineStart, c.RefineEvery, c.ResetEvery = 22, 21, 2, 6, 9
	c.AbsGrad, c.GrowGrad2D, c.RevisedOpacity = true, recipe.AbsGradThreshold, true
	c.Splats, c.OpacityReg = manySplats(), 0.01
}

// TestStrategiesSameBytes trains with every strategy in the ways that must not matter, and ends at the promised number
// of splats.
func TestStrategiesSameBytes(t *testing.T) {
	limits := t.TempDir() + "/limits.json"
	must.Do(t, os.WriteFile(limits, []byte(`{"maxStorageBufferRange": 1048576}`), 0o644))
	mixed := func(short func(*recipe.Config)) func(*recipe.Config) {
		return func(c *recipe.Config) { short(c); c.Precision = recipe.PrecisionMixed }
	}
	for name, change := range map[string]func(*recipe.Config){"mcmc": shortMCMC, "exact": shortExact,
		"mixed mcmc": mixed(shortMCMC), "mixed exact": mixed(shortExact)} {
		t.Run(name, func(t *testing.T) {
			d := testDevice(t)
			want, n := trainHash(t, d, change)
			t.Log(want)
			if many := manySplats(); n != many {
				t.Errorf("%d splats, %d were promised", n, many)
			}
			same := func(what string, d *Device, o TrainerOptions) {
				t.Helper()
				if got, _ := trainHashWith(t, d, change, o); got != want {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
			}
			if !strings.HasPrefix(name, "mixed") || filetest.Long() {
				t.Run("bands", func(t *testing.T) {
					inBands(t, 3)
					same("larger buffers and bands", d, larger)
				})
				t.Run("serial", func(t *testing.T) {
					t.Setenv("VKSPLAT_SERIAL", "1")
					same("serial", d, TrainerOptions{})
				})
			}
			t.Run("small bindings", func(t *testing.T) {
				t.Setenv("VKSPLAT_LIMITS", limits)
				same("1 MiB bindings, verified", verified(t), TrainerOptions{})
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
		"splat_from_rank": 7, "shapes": nan, "paints": nan, "first_isect": 7, "slot_from_isect": 1 << 30,
		"tile_offsets": 1 << 30, "tile_order": 1 << 20,
		"render": nan, "v_render": nan, "v_slots": nan, "v_projected": nan, "v_beside": nan, "chunk": nan,
	} {
		t.Run(buffer, func(t *testing.T) {
			views, init, scale, cfg := promiseScene(t)
			cfg.Iterations, cfg.AbsGrad = 2, true
			tr, err := trainOn(d, views, init, scale, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			tr.shards.first.e.setup.hooks.sabotage = func(v *view, what string) {
				if x := v.buffersByName()[what]; what == buffer {
					v.r.Fill(x.Slice(4, 4), bad) // the second word
				}
			}
			must.Do(t, tr.shards.first.e.programs.build())
			err = tr.Run(context.Background(), nil)
			if err == nil || !strings.Contains(err.Error(), " of "+buffer+":") {
				t.Errorf("got %v, want an error that names %s", err, buffer)
			}
		})
	}
}

func (v *view) buffersByName() map[string]vk.View {
	return map[string]vk.View{
		"splat_from_rank": v.splatFromRank.View, "shapes": v.shapes.View, "paints": v.paints.View,
		"first_isect":     v.firstIsect.View,
		"slot_from_isect": v.slotFromIsect.View, "tile_offsets": v.tileOffsets.View, "tile_order": v.tileOrder.View,
		"render": v.render.View, "v_render": v.vShown.View,
		"v_slots": v.vSlots.View, "v_projected": v.vProjected.View, "v_beside": v.vBeside.View,
		"chunk": v.s.model.chunks[0].View,
	}
}

// trained returns the mean loss of the last epoch and the number of splats.
func trained(t *testing.T, d *Device, change func(*recipe.Config)) (loss float64, splats int) {
	t.Helper()
	views, init, scale, cfg := promiseScene(t)
	change(&cfg)
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	must.Do(t, tr.Run(context.Background(), func(p Progress) {
		if p.Step > cfg.Iterations-len(views) {
			loss += float64(p.Loss) / float64(len(views))
		}
		splats = p.Splats
	}))
	return loss, splats
}

// TestMCMCLearns trains with both strategies to the same number of splats.
func TestMCMCLearns(t *testing.T) {
	d := testDevice(t)
	splats := 4000 / thinning()
	both := func(c *recipe.Config) {
		c.Iterations, c.RefineStart, c.RefineStop, c.RefineEvery, c.ResetEvery, c.Splats = 60, 5, 40, 5, 0, splats
	}
	standard, n := trained(t, d, both)
	mcmc, m := trained(t, d, func(c *recipe.Config) {
		both(c)
		c.Strategy, c.OpacityReg, c.ScaleReg = recipe.StrategyMCMC, 0.01, 0.01
	})
	t.Logf("loss %.5f with %d splats; MCMC %.5f with %d", standard, n, mcmc, m)
	if n != splats || m != splats {
		t.Error("not the promised number of splats")
	}
	if !(mcmc <= standard) {
		t.Error("MCMC learns less")
	}
}

// TestSplatsOutOfReach refuses numbers that cannot be kept, and thins out what MCMC cannot remove.
func TestSplatsOutOfReach(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := wholeScene(t)
	for name, c := range map[string]struct {
		change func(*recipe.Config)
		want   error
	}{
		"no refinement":     {func(c *recipe.Config) { c.Splats, c.RefineEvery = 5000, 0 }, errUnreachable},
		"doubled too often": {func(c *recipe.Config) { c.Splats, c.RefineStop = 30000, 25 }, errUnreachable},
		"ceiling":           {func(c *recipe.Config) { c.MaxSplats = 100 }, ErrTooMany},
		"memory":            {func(c *recipe.Config) { c.Splats = math.MaxInt32 }, ErrTooSmall},
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
	m := recipe.MCMC()
	m.Splats = 1000
	if s := thinned(&m, init); s.N != 1000 || s.Means[0] != init.Means[0] ||
		s.SH[len(s.SH)-1] != init.SH[len(init.SH)/init.N*(999*init.N/1000+1)-1] {
		t.Errorf("%d splats", s.N)
	}
}

// TestFewerSplats prunes to a number below that at the start.
func TestFewerSplats(t *testing.T) {
	want := 1500 / thinning()
	if _, n := trainHash(t, testDevice(t), func(c *recipe.Config) { shortExact(c); c.Splats = want }); n != want {
		t.Errorf("%d splats, want %d", n, want)
	}
}

// TestGoldenAbsGrad compares sums of absolute gradients with those of an independent implementation.
func TestGoldenAbsGrad(t *testing.T) {
	g := must.Get(goldenOnce())(t)
	d := testDevice(t)
	for _, c := range g.Renders {
		t.Run(c.Name, func(t *testing.T) {
			out := runBackwardOf(t, d, c.Params, c.View, c.VRender, 2, strategy3DGS{absgrad: true})
			var got, signed []float32
			for i, v := range out.vAbsMean2D {
				s := out.vProjected[i].Mean2d
				if out.depthKeys[i] == layout.Culled {
					v, s = [2]float32{}, [2]float32{}
				}
				got, signed = append(got, v[:]...), append(signed, s[:]...)
			}
			goldentest.Within(t, "v_abs_mean2d", ref.RelNorm(got, c.AbsMeans2D), 1e-3)
			goldentest.Within(t, "v_means2d", ref.RelNorm(signed, c.VMeans2D), 1e-3)
		})
	}
}

// TestDiverged stops a run whose numbers run away.
func TestDiverged(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.LRSH0, cfg.Iterations = 1e30, 20
	tr := must.Get(trainOn(testDevice(t), views, init, scale, cfg))(t)
	defer tr.Close()
	if err := tr.Run(t.Context(), nil); !errors.Is(err, ErrDiverged) || fault.Hint(err) == "" || tr.Step() > 3 {
		t.Errorf("step %d: %v", tr.Step(), err)
	}
}
