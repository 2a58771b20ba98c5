package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
)

// TestRescue saves a run that found no memory.
func TestRescue(t *testing.T) {
	o := NewOptions()
	o.Scene, o.Out = runtest.SmallScene(t, 300), t.TempDir()
	var out bytes.Buffer
	r := NewRun(o, cli.New(nil, &out, &out))
	defer r.Close()
	err := r.Begin(context.Background())
	if err == nil {
		_, err = r.Started(&out)
	}
	must.Do(t, errors.Join(err, r.saver.begin()))
	r.Trainer.SetRun(r.record(&r.id))
	full := fmt.Errorf("grow: %w", pipeline.ErrOutOfMemory)
	if err := r.saver.rescue(full); err != full {
		t.Errorf("before the first step: %v", err)
	}
	must.Do(t, r.Trainer.RunTo(context.Background(), 3, nil))
	if other := errors.New("defect"); r.saver.rescue(other) != other {
		t.Error("a defect is taken for a shortage")
	}
	err = remedy.Memory(r.saver.rescue(full))
	if fault.ExitCode(err) != fault.ExitTryAgain || !strings.Contains(fault.Hint(err), "continue with --resume") ||
		!strings.Contains(err.Error(), "step 3 is saved") {
		t.Errorf("%v, exit code %d, hint %q", err, fault.ExitCode(err), fault.Hint(err))
	}
	c := must.Get(output.OpenWhole(r.saver.checkpointPath(3)))(t)
	defer c.Close()
	if c.Header.Step != 3 || c.Header.Frame.Frame() != r.Capture.Frame {
		t.Errorf("saved: %+v", c.Header)
	}
}
