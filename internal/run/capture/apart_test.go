//go:build unix

package capture

import (
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/internal/run/reconstruct"
	"vksplat/scene/mapping"
)

// TestApart names groups of photos without a camera, and what would join them.
func TestApart(t *testing.T) {
	w := &own{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		w.photos = append(w.photos, reconstruct.Photo{Name: name})
	}
	member := func(photo, first, part, best, matches int) mapping.Missing {
		return mapping.Missing{Photo: photo, First: first, Part: part, Best: best, Matches: matches}
	}
	got := w.apart([]mapping.Missing{member(0, 0, 3, -1, 0), member(1, 0, 3, 7, 20), member(2, 0, 3, 8, 19),
		member(3, 3, 3, -1, 0), member(4, 4, 2, 7, 5), member(5, 3, 3, -1, 0), member(6, 3, 3, -1, 0)})
	want := []string{
		"3 photos (from a to c) hang together but not with the rest: take photos between b and h",
		"3 photos (among d to g) hang together but not with the rest: take photos that show parts of both"}
	if !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

// TestNotes prints what the mapper noted, and has it in the report.
func TestNotes(t *testing.T) {
	o := withPhotos(t, 4)
	must.Get(run(t.Context(), o))(t)
	earth := reconstruct.Earth{Latitude: 47.5, Photos: 4, Off: 1.25}
	n := notes{Apart: []string{"3 photos hang together"}, Earth: &earth}
	must.Do(t, output.WriteJSON(o.in(componentsFolder, notesFile), n))
	said := must.Get(run(t.Context(), o))(t)
	r := reportOf(t, o)
	if !strings.Contains(said, "z up of 47.500000, 0.000000; 4 photos off by 1.2 m") ||
		!strings.Contains(said, n.Apart[0]) || !slices.Contains(r.Advice, n.Apart[0]) || r.Earth == nil ||
		*r.Earth != earth {
		t.Errorf("said %s, report %+v", said, r)
	}
}
