package pipeline

import (
	"fmt"
	"slices"
	"testing"
)

// TestSharedPhotosMerge has two devices say what they will ask for, one of them much less often: the source hears of it by step and device, as far as both have
// said so, and again where one starts anew.
func TestSharedPhotosMerge(t *testing.T) {
	src := &expectedPhotos{Images: make(Images, 100)}
	shares := shareSource(src, 2)
	a, b := shares[0].(*photoShare), shares[1].(*photoShare)
	heard := func(want ...int) {
		t.Helper()
		if !slices.Equal(src.queue, want) {
			t.Fatalf("the source was told %v, want %v", src.queue, want)
		}
	}
	photo := func(p *photoShare, view int) {
		t.Helper()
		if _, err := p.Photo(t.Context(), view); err != nil {
			t.Fatal(err)
		}
	}
	a.expect(0, []ask{{0, 10}, {3, 13}, {5, 15}}, 6)
	heard()
	b.expect(0, []ask{{0, 20}, {1, 21}, {2, 22}, {3, 23}}, 4)
	heard(10, 20, 21, 22, 13, 23)
	photo(a, 10)
	photo(b, 20)
	b.expect(1, []ask{{4, 24}}, 8)
	heard(21, 22, 13, 23, 24, 15)
	photo(b, 21)
	photo(a, 99) // a step that is done again
	b.forget()
	heard()
	b.expect(2, []ask{{2, 32}, {6, 36}}, 8)
	heard(32, 13, 15)
	photo(b, 32)
	a.expect(3, nil, never) // it has all photos but those
	heard(13, 15, 36)
	photo(a, 13)
	photo(a, 15)
	photo(b, 36)
	b.expect(8, []ask{{8, 38}, {9, 39}}, 16)
	heard(38, 39)
	if src.unexpected != 1 {
		t.Errorf("%d photos were not announced, 1 was not", src.unexpected)
	}
}

// TestTeamPhotosAreExpected trains on several devices that keep some of the photos: what is read is announced, in the order in which it is asked for.
func TestTeamPhotosAreExpected(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cams, images := splitViews(views)
	cfg.Iterations, cfg.RefineEvery, cfg.startCapacities = 30, 0, 16
	all, _ := layoutOf(cams).totals(cams)
	for _, c := range []struct {
		n    int
		part int64
	}{{2, 1}, {2, 2}, {3, 4}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			photos := &expectedPhotos{Images: images}
			devices := testTeam(t, c.n)
			tr, err := NewTrainer(devices[0], cams, photos, init, scale, cfg, TrainerOptions{PhotoBytes: all / c.part, Others: devices[1:]})
			if err != nil {
				t.Fatal(err)
			}
			splatsAfter(t, tr, cfg.Iterations)
			if most := c.n * cfg.Iterations; photos.unexpected != 0 || photos.asked > most*9/10 || c.part == 1 && photos.asked > c.n*len(cams) {
				t.Errorf("%d of %d photos asked for, %d of them not announced", photos.asked, most, photos.unexpected)
			}
			t.Logf("%d asked for in %d steps of %d views of %d photos", photos.asked, cfg.Iterations, c.n, len(cams))
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
