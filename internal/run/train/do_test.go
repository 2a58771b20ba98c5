package train

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
)

// TestDo trains a capture in this process, refuses to replace what it made, and measures the model: without a command
// line, the same scores.
func TestDo(t *testing.T) {
	capture, out := runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out")
	options := func() *Options {
		o := NewOptions()
		o.Scene, o.Out, o.Eval, o.Progress, o.Config.Iterations = capture, out, true, meter.None, 20
		return o
	}
	var seen atomic.Int32
	o := options()
	o.Observers = append(o.Observers,
		func(*Options, *cli.Console) (Observer, error) { return counting(&seen, func() {}), nil })
	st := must.Get(Do(cli.New(nil, io.Discard, io.Discard), o))(t)
	if st.Step != 20 || st.Scores == nil || int(seen.Load()) != st.TestImages ||
		!output.IsFile(filepath.Join(out, output.ReportFile)) {
		t.Errorf("%+v with %d pictures seen", st, seen.Load())
	}
	if _, err := Do(cli.New(nil, io.Discard, io.Discard), options()); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a second run in the same folder: %v", err)
	}
	var text bytes.Buffer
	e := evaluate.NewOptions()
	e.Models = []string{out}
	if err := evaluate.Run(cli.New(nil, &text, io.Discard), e); err != nil || !strings.Contains(text.String(), "PSNR") {
		t.Errorf("evaluation printed %q: %v", &text, err)
	}
}
