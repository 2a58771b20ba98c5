//go:build unix

package task

import (
	"context"
	"errors"
	"slices"
	"testing"

	"vksplat/farm/store"
)

// TestResultsAreOfTheEnd has a training be interrupted, which leaves a model, and go on in the same folder: its results
// are those of one that nobody disturbed.
func TestResultsAreOfTheEnd(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f, calm := newFarm(t, `checkpoint_every = "1h"`), newFarm(t, "")
	want, err := Run(context.Background(), calm.options(0, 1, "a"))
	if err != nil || len(want.Files) != 4 {
		t.Fatal(want, err)
	}
	if _, err := f.runUntil(f.options(0, 1, "a"), ErrStopped); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if left := globbed(f.top, "a/*/out/point_cloud/iteration_*"); len(left) != 1 {
		t.Fatalf("the child that was stopped left %q", left)
	}
	m, err := Run(context.Background(), f.options(0, 2, "a"))
	if err != nil || !slices.Equal(m.Files, want.Files) {
		t.Errorf("%v, undisturbed %v, %v", m.Files, want.Files, err)
	}
}

// TestMeasuredOnTheWay has a training measure where it was told to, and where it was interrupted: the first is among
// the results, of the second nothing, also in files of scores.
func TestMeasuredOnTheWay(t *testing.T) {
	t.Setenv(fakeVariable, "measures")
	f, calm := newFarm(t, `checkpoint_every = "1h"`), newFarm(t, "")
	want, err := Run(context.Background(), calm.options(0, 1, "a"))
	if err != nil || !slices.ContainsFunc(want.Files,
		func(f store.File) bool { return f.Name == "test/ours_5/picture" }) {
		t.Fatal(want, err)
	}
	if _, err := f.runUntil(f.options(0, 1, "a"), ErrStopped); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if left := globbed(f.top, "a/*/out/test/ours_*"); len(left) != 2 {
		t.Fatalf("the child that was stopped left %q", left)
	}
	m, err := Run(context.Background(), f.options(0, 2, "a"))
	if err != nil || !slices.Equal(m.Files, want.Files) {
		t.Errorf("%v, undisturbed %v, %v; %s", m.Files, want.Files, err, f.read("train", "out", "results.json"))
	}
}
