//go:build unix

package capture

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestResume stops the work in each stage, by a failure and by the user, and wants the same command to continue there.
func TestResume(t *testing.T) {
	stages := []string{"feature_extractor", "exhaustive_matcher", "mapper"}
	for i, stage := range stages {
		for _, how := range []string{fakeFails, fakeHangs} {
			o := withPhotos(t, 4)
			o.Again = "vksplat capture again"
			t.Setenv(how, stage)
			ctx, cancel := context.WithCancel(t.Context())
			if how == fakeHangs {
				go cancelAfter(cancel, o, stage)
			}
			_, err := run(ctx, o)
			cancel()
			stopped := errors.Is(err, fault.ErrInterrupted) && strings.Contains(fault.Hint(err), o.Again)
			if how == fakeHangs && !stopped {
				t.Errorf("%s: stopped: %v; %s", stage, err, fault.Hint(err))
			}
			if r := reportOf(t, o); how == fakeHangs && r.ExitCode != fault.ExitInterrupted {
				t.Errorf("%s: stopped: the report has exit code %d", stage, r.ExitCode)
			}
			// The mapper that fails has written a component, which is taken for broken.
			if how == fakeFails && (err == nil || !strings.Contains(err.Error(), "something is wrong with "+stage)) {
				t.Errorf("%s: it failed: %v", stage, err)
			}
			t.Setenv(how, "")
			calls(t)
			said, err := run(t.Context(), o)
			if err != nil {
				t.Fatalf("%s: again: %v", stage, err)
			}
			want := strings.Join(stages[i:], " ") // COLMAP keeps the pairs that it has matched
			if got := strings.Join(commands(calls(t)), " "); got != want {
				t.Errorf("%s: again it ran %s, want %s", stage, got, want)
			}
			if !strings.Contains(said, "cameras:  4 of 4") {
				t.Errorf("%s: %s", stage, said)
			}
		}
	}
}

// TestResumeForgetting fails while matches of other options are removed. It wants the rest removed by the same options,
// and what was removed matched again by the old ones.
func TestResumeForgetting(t *testing.T) {
	for matching, want := range map[string]string{
		MatchSequential: "database_cleaner sequential_matcher mapper",
		Auto:            "exhaustive_matcher mapper",
	} {
		o := withPhotos(t, 4)
		must.Get(run(t.Context(), o))(t)
		o.Matching = MatchSequential
		t.Setenv(fakeFails, "database_cleaner")
		if _, err := run(t.Context(), o); err == nil {
			t.Error("a cleaner that failed was not noticed")
		}
		t.Setenv(fakeFails, "")
		calls(t)
		o.Matching = matching
		must.Get(run(t.Context(), o))(t)
		if got := strings.Join(commands(calls(t)), " "); got != want {
			t.Errorf("again it ran %s, want %s", got, want)
		}
	}
}

// cancelAfter cancels once a stage has begun.
func cancelAfter(cancel func(), o *Options, stage string) {
	logs := map[string]string{"feature_extractor": stageFeatures, "exhaustive_matcher": stageMatches,
		"mapper": stageMapping}
	for range 1000 {
		data, _ := os.ReadFile(o.in(logsFolder, logs[stage]+".log")) // not there yet
		if strings.Contains(string(data), "hangs") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
}

// TestChangedOptions wants stages to be done again from the first that an option affects.
func TestChangedOptions(t *testing.T) {
	o := withPhotos(t, 4)
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() {}, "feature_extractor exhaustive_matcher mapper"},
		{func() { o.Matching = MatchSequential }, "database_cleaner sequential_matcher mapper"},
		{func() { o.MaxSize = 1000 }, "feature_extractor sequential_matcher mapper"},
		{func() { o.Model = 0 }, ""},
		{func() { _ = os.Remove(o.in(databaseFile)) }, "feature_extractor sequential_matcher mapper"},
	} {
		c.change()
		must.Get(run(t.Context(), o))(t)
		if got := strings.Join(commands(calls(t)), " "); got != c.want {
			t.Errorf("it ran %q, want %q", got, c.want)
		}
	}
}
