package train

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/depth"
	"vksplat/scene/load"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// normalMaps writes maps in axes of opengl to a folder of a capture, and returns its name. All have one normal, but for
// columns at the left, of 32, in which surfaces look away.
func normalMaps(t *testing.T, dir, name string, away int) string {
	t.Helper()
	c := must.Get(load.Capture(dir, scene.LoadOptions{}))(t)
	img := image.NewRGBA(image.Rect(0, 0, 32, 24))
	for p := range 32 * 24 {
		n := color.RGBA{R: 150, G: 120, B: 252, A: 255}
		if p%32 < away {
			n.B = 3
		}
		img.SetRGBA(p%32, p/32, n)
	}
	var b bytes.Buffer
	must.Do(t, png.Encode(&b, img))
	for i := range c.Cameras {
		file := filepath.Join(dir, name, filepath.FromSlash(c.Cameras[i].PhotoName()))
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o777))
		must.Do(t, os.WriteFile(file, b.Bytes(), 0o666))
	}
	return name
}

// TestTrainNormals: normals change the model. A run that is resumed ends with the bytes of the undisturbed run, and
// refuses other normals.
func TestTrainNormals(t *testing.T) {
	runtest.NeedDevice(t)
	scenes, dir := filepath.Join(t.TempDir(), "scene"), t.TempDir()
	must.Do(t, synthtest.Write(scenes, synth.Options{Images: 8, Width: 48, Height: 36, Points: 100}))
	maps, some := normalMaps(t, scenes, "normals", 0), normalMaps(t, scenes, "some", 12)
	trained := func(name, normals, from string) (model []byte, told string, err error) {
		o := NewOptions()
		o.Scene, o.Out, o.Progress, o.Report = scenes, filepath.Join(dir, name), meter.None, false
		o.Config.Iterations, o.Config.RefineEvery, o.Normal.Maps, o.Eval = 12, 0, normals, true
		o.Checkpoints.SaveAt, o.Checkpoints.Keep, o.Checkpoints.Resume = cli.Steps{6}, 5, from
		var text bytes.Buffer
		if _, err = Do(cli.New(nil, io.Discard, &text), o); err == nil {
			model, err = os.ReadFile(filepath.Join(o.Out, output.ModelFolder+"12", output.ModelName))
		}
		return model, text.String(), err
	}
	plain, told, err := trained("plain", "", "")
	if err != nil || strings.Contains(told, "normals") {
		t.Fatalf("%v, told %q", err, told)
	}
	want, told, err := trained("whole", maps, "")
	if err != nil || bytes.Equal(want, plain) ||
		!strings.Contains(told, "normals at 12096 places of 7 training photos are compared, of maps in axes of opengl") {
		t.Fatalf("%v, the same model %v, told %q", err, bytes.Equal(want, plain), told)
	}
	middle := filepath.Join(dir, "whole", output.CheckpointFolder, "step_6.safetensors")
	if got, told, err := trained("resumed", maps, middle); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, resumed, it ends with other bytes: %v; told %q", err, !bytes.Equal(got, want), told)
	}
	if _, _, err := trained("other", some, middle); err == nil ||
		!strings.Contains(err.Error(), "made with other settings: capture's known normals: ") ||
		!strings.Contains(fault.Hint(err), "give the known normals that the run was made with") {
		t.Errorf("with other normals: %v, hint %q", err, fault.Hint(err))
	}
	if _, told, err = trained("some", some, ""); err != nil ||
		!strings.Contains(told, "38 % of the normals look away from their camera in axes of opengl") {
		t.Errorf("%v, told %q", err, told)
	}
}

// TestNoteDepths counts pixels and the photos that have any.
func TestNoteDepths(t *testing.T) {
	k := knowns{notes: &notes{}}
	k.noteDepths(depth.Known{make([]scene.KnownDepth, 5), nil, make([]scene.KnownDepth, 2)}, "of points")
	want := "depths at 7 pixels of 2 training photos are compared, of points"
	if len(k.list) != 1 || k.list[0].Text != want {
		t.Errorf("told %q, want %q", k.list, want)
	}
}

// TestAdoptNormals: a run that is resumed has the normals that it was begun with, but for what the call says.
func TestAdoptNormals(t *testing.T) {
	given := func(flags ...string) func(string) bool {
		return func(flag string) bool { return slices.Contains(flags, flag) }
	}
	begun, earlier := &NormalOptions{Maps: "a", Frame: depth.FrameWorld}, &NormalOptions{}
	for _, c := range []struct {
		was         *NormalOptions
		given       func(string) bool
		maps, frame string
	}{
		{begun, given(), "a", depth.FrameWorld}, {begun, given("normals"), "b", depth.FrameWorld},
		{begun, given("normal-frame"), "a", depth.FrameAuto}, {earlier, given(), "", depth.FrameAuto},
	} {
		o := NormalOptions{Maps: "b", Frame: depth.FrameAuto}
		if o.adopt(c.was, c.given); o.Maps != c.maps || o.Frame != c.frame {
			t.Errorf("%+v, want %s in axes of %s", o, c.maps, c.frame)
		}
	}
}

// TestWitnessBytes counts depths and normals that are kept while a run trains.
func TestWitnessBytes(t *testing.T) {
	o := pipeline.TrainerOptions{Known: pipeline.KnownDepths{make([]scene.KnownDepth, 3), nil},
		Normals: pipeline.KnownNormals{{}, scene.NewNormalMap(8, 4, 0)}}
	if got, want := witnessBytes(&o), int64(3*8+8*4*4); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// TestLimitedNormals rehearses on some of the photos, of which depths and normals are known.
func TestLimitedNormals(t *testing.T) {
	runtest.NeedDevice(t)
	scenes := filepath.Join(t.TempDir(), "scene")
	must.Do(t, synthtest.Write(scenes, synth.Options{Images: 8, Width: 48, Height: 36, Points: 100}))
	o := timed(t, scenes, filepath.Join(t.TempDir(), "out"), "10s", "10s")
	o.Depth.Points, o.Normal.Maps = true, normalMaps(t, scenes, "normals", 0)
	if st, err := Do(cli.New(nil, io.Discard, io.Discard), o); err != nil || st.Step < 50 {
		t.Errorf("%+v: %v", st, err)
	}
}
