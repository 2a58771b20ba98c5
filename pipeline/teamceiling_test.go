package pipeline

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
)

// TestLowerCeiling goes on with fewer splats allowed than there are, or than would let each device have its share: the
// model keeps its splats, grows to what is allowed in all, and checkpoints of that can be opened.
func TestLowerCeiling(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations = 24
	cams, photos := splitViews(views)
	for n := 1; n <= 2; n++ {
		devices, path := testTeam(t, n), filepath.Join(t.TempDir(), "checkpoint")
		tr := teamTrainer(t, devices, views, init, scale, cfg)
		splatsAfter(t, tr, 4)
		if n == 2 { // unequal shares
			must.Do(t, move(tr.shards.list[1], tr.shards.first, tr.shards.list[1].splats*3/4))
		}
		saved(t, tr, path)
		had, shares := tr.NSplats(), tr.shards.sizes()
		for _, most := range []int{had * 2 / 3, had * 5 / 4} {
			c := must.Get(checkpoint.Open(path))(t)
			less := cfg
			less.MaxSplats = most
			next := must.Get(NewTrainerFrom(devices[0], cams, photos, c, less,
				TrainerOptions{Others: devices[1:], Depths: depthsOf(cams)}))(t)
			memory := next.MemoryStats()
			ceiling, fits := memory.Ceiling, memory.CeilingFits
			if ceiling != max(had, most) || !fits || fmt.Sprint(next.shards.sizes()) != fmt.Sprint(shares) ||
				len(next.Deviations()) > 0 {
				t.Errorf("%d devices: shares %v, %d allowed: goes on with %v under %d, fits: %v, deviations %v", n,
					shares, most, next.shards.sizes(), ceiling, fits, next.Deviations())
			}
			for _, step := range []int{5, less.Iterations} {
				splatsAfter(t, next, step)
				saved(t, next, path+".next")
				again, err := checkpoint.Open(path + ".next")
				if err != nil {
					t.Fatalf("%d devices, %d of %d splats allowed: %v", n, most, had, err)
				}
				if h := again.Header; h.Splats > ceiling || h.SplatCeiling != ceiling ||
					again.Ceiling(less) != ceiling {
					t.Errorf("%d devices: %d splats under %d, then %d", n, h.Splats, h.SplatCeiling,
						again.Ceiling(less))
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := errors.Join(next.Close(), c.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}
