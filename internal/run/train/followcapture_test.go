package train

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
)

// TestFollowCaptureInLittleMemory asks for more splats by the capture than memory has room for: the model ends with
// those that fit, and the run goes on with the same arguments. Where a number is asked for, it is an error.
func TestFollowCaptureInLittleMemory(t *testing.T) {
	capture, out := runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out")
	run := func(want string, fails bool, steps int, change func(o *Options)) {
		t.Helper()
		o := NewOptions()
		o.Scene, o.Out, o.Device.MaxVRAM, o.Config.Iterations, o.Progress = capture, out, "24M", steps, meter.Plain
		o.Config.RefineStart, o.Config.RefineEvery, o.Config.RefineStop, o.Config.ResetEvery = 1, 1, 17, 0
		change(o)
		var said bytes.Buffer
		_, err := Do(cli.New(nil, &said, &said), o)
		if err != nil {
			said.WriteString(err.Error())
		}
		if (err != nil) != fails || !strings.Contains(said.String(), want) {
			t.Errorf("%v, no %q in\n%s", err, want, &said)
		}
	}
	run("memory has room for", false, 18, func(o *Options) { o.SplatsFactor = 100 })
	run("resuming", false, 20, func(o *Options) { o.SplatsFactor, o.Checkpoints.Resume = 100, ResumeAuto })
	run("90000 splats to end with", true, 18, func(o *Options) {
		o.Config.Splats, o.Checkpoints.Overwrite = 90000, true
	})
}
