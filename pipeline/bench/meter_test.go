package bench

import (
	"slices"
	"testing"

	"vksplat/vk"
)

// TestMeans wants means of a pass that not every step has, such as the copy of a photo that the cache mostly holds.
func TestMeans(t *testing.T) {
	m := newMeter(4, true)
	for _, copied := range []bool{true, false, true, false} {
		times := []vk.PassTime{{Name: "begin", Nanoseconds: 2e6}, {Name: "loss", Nanoseconds: 1e6},
			{Name: "loss", Nanoseconds: 1e6, Beside: true}}
		s := Step{}
		if copied {
			s.PhotoBytes = 1000
			times = append([]vk.PassTime{{Name: PhotoCopy, Nanoseconds: 3e6}}, times...)
		}
		m.note(s)
		m.take(times)
	}
	r := roundOf(m, newMeter(4, false))
	want := []PassSample{{PhotoCopy, 1.5, 0.5, 0.5}, {"begin", 2, 1, 1}, {"loss", 2, 2, 1}}
	if !slices.Equal(r.Passes, want) || r.PhotoBytes != 500 {
		t.Errorf("%g bytes, passes %+v", r.PhotoBytes, r.Passes)
	}
}

func TestPassLabels(t *testing.T) {
	times := func(names ...string) (list []vk.PassTime) {
		for _, n := range names {
			list = append(list, vk.PassTime{Name: n})
		}
		return list
	}
	got := passLabels(times("begin", "sort_scan", "sort_scatter", "count_tiles", "sort_scan", "loss", "scan_tiles",
		"sort_scan"))
	want := []string{"begin", "sort_scan (depth)", "sort_scatter (depth)", "count_tiles", "sort_scan (tiles)", "loss",
		"scan_tiles", "sort_scan (tiles)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
