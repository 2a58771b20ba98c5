package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
)

// ownProcess is set where a test runs in a process of its own.
const ownProcess = "VKSPLAT_TEST_PROCESS"

// TestRescue saves a run that found no memory. It trains in a process of its own: children inherit the peak of resident
// memory, which scripts measure.
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
	o := train.NewOptions()
	o.Scene, o.Out = smallScene(t, 300), t.TempDir()
	var out bytes.Buffer
	r := &train.Run{Options: o, Console: cli.New(nil, &out, &out)}
	defer r.Close()
	err := r.Begin(context.Background())
	if err == nil {
		r.Rec, err = train.OpenRecord(r, &out)
	}
	if err = errors.Join(err, r.Saver.Begin()); err != nil {
		t.Fatal(err)
	}
	full := fmt.Errorf("grow: %w", pipeline.ErrOutOfMemory)
	if err := r.Saver.Rescue(full); err != full {
		t.Errorf("before the first step: %v", err)
	}
	if err := r.Trainer.RunTo(context.Background(), 3, nil); err != nil {
		t.Fatal(err)
	}
	if other := errors.New("defect"); r.Saver.Rescue(other) != other {
		t.Error("a defect is taken for a shortage")
	}
	err = remedy.Memory(r.Saver.Rescue(full))
	if fault.ExitCode(err) != fault.ExitTryAgain || !strings.Contains(fault.Hint(err), "--resume") ||
		!strings.Contains(err.Error(), "step 3 is saved") {
		t.Errorf("%v, exit code %d, hint %q", err, fault.ExitCode(err), fault.Hint(err))
	}
	c, err := output.OpenWhole(r.Saver.CheckpointPath(3))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Header.Step != 3 || c.Header.Frame.Frame() != r.Capture.Frame {
		t.Errorf("saved: %+v", c.Header)
	}
}
