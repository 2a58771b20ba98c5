package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
)

func TestCheckpointFlags(t *testing.T) {
	for _, tt := range []struct {
		text string
		want everyFlag
		ok   bool
	}{
		{"1000", everyFlag{steps: 1000}, true}, {"0", everyFlag{}, true}, {"5m", everyFlag{time: 5 * time.Minute}, true},
		{"0.5m", everyFlag{time: 30 * time.Second}, true}, {"0m", everyFlag{}, true},
		{"", everyFlag{}, false}, {"m", everyFlag{}, false}, {"-1", everyFlag{}, false}, {"-1m", everyFlag{}, false}, {"1e9m", everyFlag{}, false},
		{"999999999999m", everyFlag{}, false}, {"NaNm", everyFlag{}, false}, {"5 m", everyFlag{}, false}, {"99999999999999999999", everyFlag{}, false},
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
	if o.keep = 0; o.keepRunning() != 1 || o.keepAtEnd() != 0 {
		t.Errorf("of 0, %d and %d are kept", o.keepRunning(), o.keepAtEnd())
	}
}

func TestNextStop(t *testing.T) {
	o := defaultTrainOptions()
	o.config.Iterations = 100
	o.checkpoints.every, o.checkpoints.saveAt = everyFlag{steps: 30}, cli.Steps{30, 50, 100, 700}
	s := newSaver(&trainRun{trainOptions: o})
	var stops []int
	for step := 0; step < 100; {
		step = s.nextStop(step)
		stops = append(stops, step)
	}
	if want := []int{30, 50, 60, 90, 100}; !slices.Equal(stops, want) {
		t.Errorf("stops at %v, want %v", stops, want)
	}
	if s.o.off = true; s.nextStop(0) != 100 {
		t.Error("it stops for checkpoints that are off")
	}
}

// TestPrune keeps the newest, and what was asked for.
func TestPrune(t *testing.T) {
	o := defaultTrainOptions()
	o.out = t.TempDir()
	s := newSaver(&trainRun{trainOptions: o})
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{9, 10, 20, 100} {
		path := s.checkpointPath(step)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		s.kept = append(s.kept, output.CheckpointFile{Path: path, Step: step})
	}
	for _, name := range []string{"step_x.safetensors", "step_5.txt", "other"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s.asked = []int{10}
	left := func() (steps []int) {
		list, err := output.ListCheckpoints(s.dir)
		if err != nil {
			t.Fatal(err)
		}
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

// ownProcess is set where a test runs in a process of its own.
const ownProcess = "VKSPLAT_TEST_PROCESS"

// TestRescue saves a run that found no memory. It trains in a process of its own: children inherit the peak of resident memory, which scripts measure.
func TestRescue(t *testing.T) {
	needDevice(t)
	if os.Getenv(ownProcess) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRescue$", "-test.v")
		cmd.Env = append(os.Environ(), ownProcess+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestRescue")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	o := defaultTrainOptions()
	o.scene, o.out = smallScene(t, 300), t.TempDir()
	var out bytes.Buffer
	r := &trainRun{trainOptions: o, app: cli.New(nil, &out, &out)}
	defer r.close()
	err := r.begin(context.Background())
	if err == nil {
		r.rec, err = openRecord(r, &out)
	}
	if err = errors.Join(err, r.saver.begin()); err != nil {
		t.Fatal(err)
	}
	full := fmt.Errorf("grow: %w", pipeline.ErrOutOfMemory)
	if err := r.saver.rescue(full); err != full {
		t.Errorf("before the first step: %v", err)
	}
	if err := r.trainer.RunTo(context.Background(), 3, nil); err != nil {
		t.Fatal(err)
	}
	if other := errors.New("defect"); r.saver.rescue(other) != other {
		t.Error("a defect is taken for a shortage")
	}
	err = remedy.Memory(r.saver.rescue(full))
	if exitCode(err) != exitRetry || !strings.Contains(remedy.Of(err), "--resume") || !strings.Contains(err.Error(), "step 3 is saved") {
		t.Errorf("%v, exit code %d, hint %q", err, exitCode(err), remedy.Of(err))
	}
	c, err := output.OpenWhole(r.saver.checkpointPath(3))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Header.Step != 3 || c.Header.Frame.Frame() != r.capture.Frame {
		t.Errorf("saved: %+v", c.Header)
	}
}
