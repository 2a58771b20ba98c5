package mapping

import (
	"context"
	"testing"
)

// A sample has enough tracks of each pair of photos, and far from all.
func TestSample(t *testing.T) {
	m, err := newMapper(context.Background(), around(24, 6000).input(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := newDraft(m)
	free := make([]bool, len(d.placed))
	n := len(free)
	for i := range free {
		free[i] = i != 3
	}
	for i := range d.tracks {
		t := &d.tracks[i]
		t.ok = i%7 > 0
		for k := range t.sights {
			t.sights[k].used = t.ok && (i+k)%5 > 0
		}
	}
	chosen := d.sample(free)
	all, some, picked := make([]int, n*n), make([]int, n*n), 0
	for i, t := range d.tracks {
		if chosen[i] {
			picked++
		}
		for _, a := range t.sights {
			for _, b := range t.sights {
				if at := int(a.Photo)*n + int(b.Photo); a.used && b.used && (free[a.Photo] || free[b.Photo]) {
					all[at]++
					if chosen[i] {
						some[at]++
					}
				}
			}
		}
	}
	for at, most := range all {
		if some[at] < min(most, samplePair) {
			t.Errorf("photos %d and %d share %d tracks and have %d of them", at/n, at%n, most, some[at])
		}
	}
	if picked > len(d.tracks)/2 {
		t.Errorf("a sample has %d of %d tracks", picked, len(d.tracks))
	}
}
