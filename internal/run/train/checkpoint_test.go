package train

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

func TestCheckpointFlags(t *testing.T) {
	for _, tt := range []struct {
		text string
		want everyFlag
		ok   bool
	}{
		{"1000", everyFlag{steps: 1000}, true}, {"0", everyFlag{}, true},
		{"5m", everyFlag{time: 5 * time.Minute}, true},
		{"0.5m", everyFlag{time: 30 * time.Second}, true}, {"0m", everyFlag{}, true},
		{"", everyFlag{}, false}, {"m", everyFlag{}, false}, {"-1", everyFlag{}, false}, {"-1m", everyFlag{}, false},
		{"1e9m", everyFlag{}, false},
		{"999999999999m", everyFlag{}, false}, {"NaNm", everyFlag{}, false}, {"5 m", everyFlag{}, false},
		{"99999999999999999999", everyFlag{}, false},
	} {
		var f everyFlag
		if err := f.Set(tt.text); (err == nil) != tt.ok || f != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, f, err)
		}
	}
	f := everyFlag{time: 90 * time.Second}
	if f.String() != "1.5m" {
		t.Errorf("90 seconds are %q", &f)
	}
	o := newCheckpointOptions()
	if o.keepRunning() != 2 || o.keepAtEnd() != 1 {
		t.Errorf("%d and %d are kept", o.keepRunning(), o.keepAtEnd())
	}
	if o.Keep = 0; o.keepRunning() != 1 || o.keepAtEnd() != 0 {
		t.Errorf("of 0, %d and %d are kept", o.keepRunning(), o.keepAtEnd())
	}
}

func TestNextStop(t *testing.T) {
	o := NewOptions()
	o.Config.Iterations = 100
	o.Checkpoints.Every, o.Checkpoints.SaveAt = everyFlag{steps: 30}, cli.Steps{30, 50, 100, 700}
	s := newSaver(o, &cli.Console{}, nil, nil, nil)
	var stops []int
	for step := 0; step < 100; {
		step = s.nextStop(step)
		stops = append(stops, step)
	}
	if want := []int{30, 50, 60, 90, 100}; !slices.Equal(stops, want) {
		t.Errorf("stops at %v, want %v", stops, want)
	}
	if s.o.Off = true; s.nextStop(0) != 100 {
		t.Error("it stops for checkpoints that are off")
	}
}

// TestPrune keeps the newest, and what was asked for.
func TestPrune(t *testing.T) {
	o := NewOptions()
	o.Out = t.TempDir()
	s := newSaver(o, &cli.Console{}, nil, nil, nil)
	must.Do(t, os.MkdirAll(s.dir, 0o777))
	for _, step := range []int{9, 10, 20, 100} {
		path := s.checkpointPath(step)
		must.Do(t, os.WriteFile(path, nil, 0o666))
		s.kept = append(s.kept, output.CheckpointFile{Path: path, Step: step})
	}
	for _, name := range []string{"step_x.safetensors", "step_5.txt", "other"} {
		must.Do(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o666))
	}
	s.asked = []int{10}
	left := func() (steps []int) {
		list := must.Get(output.ListCheckpoints(s.dir))(t)
		for _, f := range list {
			steps = append(steps, f.Step)
		}
		return steps
	}
	if got := left(); !slices.Equal(got, []int{9, 10, 20, 100}) {
		t.Errorf("the folder has %v", got)
	}
	if s.prune(2); !slices.Equal(left(), []int{10, 20, 100}) {
		t.Errorf("2 and one asked for: %v", left())
	}
	if s.prune(0); !slices.Equal(left(), []int{10}) || len(s.kept) != 1 {
		t.Errorf("none but the one asked for: %v", left())
	}
}
