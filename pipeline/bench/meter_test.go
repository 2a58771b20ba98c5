package bench

import (
	"slices"
	"testing"

	"vksplat/vk"
)

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
