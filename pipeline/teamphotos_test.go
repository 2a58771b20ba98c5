package pipeline

import (
	"fmt"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/photos"
)

// TestTeamPhotosAreExpected trains on several devices that keep some of the photos: what is read is announced, in the
// order in which it is asked for.
func TestTeamPhotosAreExpected(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cams, images := splitViews(views)
	cfg.Iterations, cfg.RefineEvery = 30, 0
	init = init.Slice(0, 64) // photos are the subject
	all, _ := photos.LayoutOf(cams).Totals(cams)
	for _, c := range []struct {
		n    int
		part int64
	}{{2, 1}, {2, 2}, {3, 4}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			photos := &expectedPhotos{Images: images}
			devices := testTeam(t, c.n)
			tr := must.Get(NewTrainer(devices[0], cams, photos, init, scale, cfg,
				TrainerOptions{PhotoBytes: all / c.part, Others: devices[1:], hooks: testHooks{capacities: 16}}))(t)
			splatsAfter(t, tr, cfg.Iterations)
			if most := c.n * cfg.Iterations; photos.unexpected != 0 || photos.asked > most*9/10 || c.part == 1 &&
				photos.asked > c.n*len(cams) {
				t.Errorf("%d of %d photos asked for, %d of them not announced", photos.asked, most, photos.unexpected)
			}
			t.Logf("%d asked for in %d steps of %d views of %d photos", photos.asked, cfg.Iterations, c.n, len(cams))
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
