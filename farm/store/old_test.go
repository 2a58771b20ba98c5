package store

import (
	"errors"
	"io/fs"
	"testing"

	must "vksplat/internal/musttest"
)

func TestOld(t *testing.T) { onRoots(t, testOld) }

// testOld has results be wanted anew twice: what was there right before is found, and its files read, until they are
// swept away.
func testOld(t *testing.T, r *rig) {
	old := func() (text string) {
		t.Helper()
		m, below, err := Old(r, "j/t")
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		if err != nil {
			t.Fatal(err)
		}
		return getText(t, r, m.Key(below, m.Files[0]))
	}
	for generation, text := range []string{"first", "second", "third"} {
		want := []string{"", "", "first"}[generation]
		if got := old(); got != want {
			t.Errorf("before generation %d: %q, want %q", generation, got, want)
		}
		must.Do(t, Outdate(r, "j/t", generation))
		if _, own, err := Commit(t.Context(), r, "j/t", work(t, map[string]string{"model": text}), []string{"model"},
			Made{Hash: "h", Attempt: generation + 1, Generation: generation}); err != nil || !own {
			t.Fatal(own, err)
		}
	}
	if got := old(); got != "second" {
		t.Errorf("at the end: %q", got)
	}
	if _, err := Sweep(r, "j/t"); err != nil || old() != "" {
		t.Errorf("%v; swept results are there", err)
	}
	if got := getText(t, r, r.result(t, "j/t", "model")); got != "third" {
		t.Errorf("the results are %q", got)
	}
}
