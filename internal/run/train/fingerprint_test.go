package train

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// hashedRun is a run from the start on a made-up capture, one photo of which takes some time to hash. change happens
// meanwhile.
func hashedRun(t *testing.T, change func(photo string)) (r *Run, warnings *bytes.Buffer) {
	r, warnings = hashingRun(t, 256<<20)
	change(r.Capture.Cameras[3].Path)
	r.id.identify(r.Trainer)
	return r, warnings
}

// hashingRun is a run that has begun to hash its photos, one of which has so many bytes.
func hashingRun(t *testing.T, long int64) (r *Run, warnings *bytes.Buffer) {
	dir := t.TempDir()
	must.Do(t, synthtest.Write(dir, synth.Options{Images: 4, Width: 32, Height: 24, Points: 100}))
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t)
	// Zeros behind the picture take no room on the disk.
	must.Do(t, os.Truncate(c.Cameras[3].Path, long))
	warnings = &bytes.Buffer{}
	r = NewRun(NewOptions(), cli.New(nil, &bytes.Buffer{}, warnings))
	r.Capture, r.Trainer = c, &pipeline.Trainer{}
	r.Out = filepath.Join(dir, "out")
	must.Do(t, r.id.start(t.Context(), c, false, false))
	t.Cleanup(r.id.hashing.Close)
	if r.id.text != "" || r.id.hashing.Done() {
		t.Error("a run from the start waited for the fingerprint")
	}
	return r, warnings
}

// TestMotionInFingerprint: how cameras moved is in the fingerprint of a run that trains on photos as taken, and of no
// other, which ignores it and has the fingerprint that builds made of such a capture before they knew of motion.
func TestMotionInFingerprint(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, synthtest.Write(dir, synth.Options{Images: 4, Width: 32, Height: 24, Points: 100}))
	text := func(native, moved bool) string {
		c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t)
		if moved {
			c.Cameras[1].Motion.Turn[0] = 0.1
		}
		r := NewRun(NewOptions(), cli.New(nil, io.Discard, io.Discard))
		must.Do(t, r.id.start(t.Context(), c, native, false))
		defer r.id.hashing.Close()
		sum := must.Get(r.id.hashing.Wait(t.Context()))(t)
		return r.known.fingerprint(sum)
	}
	still := text(false, false)
	if text(false, true) != still || text(true, false) != still {
		t.Error("a motion that is ignored, or none, changes the fingerprint")
	}
	if text(true, true) == still {
		t.Error("a motion that photos are trained on with does not change the fingerprint")
	}
}

// TestStopBeforeHashes stops a run whose photos take hours to read: soon after its start nothing waits for that, later
// the checkpoint is worth it.
func TestStopBeforeHashes(t *testing.T) {
	r, _ := hashingRun(t, 1<<40)
	if !tooEarly(&r.id, &r.control.watch) {
		t.Error("a run that has just begun waits for its photos")
	}
	r.control.watch.before = 2 * worthWaiting
	if tooEarly(&r.id, &r.control.watch) {
		t.Error("two minutes of training are lost")
	}
	began := time.Now()
	r.id.hashing.Close()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("hashing went on for %v", took)
	}
}

func TestIdentify(t *testing.T) {
	r, said := hashedRun(t, func(string) {})
	if len(r.id.text) != 64 || said.Len() > 0 || len(r.Trainer.Deviations()) > 0 {
		t.Errorf("fingerprint %q, %s", r.id.text, said)
	}
	// Of a photo that is changed later the fingerprint stays, and it is told once.
	known := r.id.text
	if r.id.identify(r.Trainer); said.Len() > 0 {
		t.Error(said)
	}
	must.Do(t, os.Truncate(r.Capture.Cameras[1].Path, 1<<20))
	for range 2 {
		r.id.identify(r.Trainer)
	}
	if text := said.String(); r.id.text != known || len(r.Trainer.Deviations()) != 1 ||
		strings.Count(text, "the file changed") != 1 {
		t.Errorf("fingerprint %q, %v, %s", r.id.text, r.Trainer.Deviations(), said)
	}
	r, said = hashedRun(t, func(photo string) {
		must.Do(t, os.Truncate(photo, 1<<20))
	})
	if text := said.String(); r.id.text != noFingerprint || len(r.Trainer.Deviations()) != 1 ||
		!strings.Contains(text, "the file changed") || !strings.Contains(text, "accept-changes") {
		t.Errorf("fingerprint %q, %v, %s", r.id.text, r.Trainer.Deviations(), text)
	}
	// It is said once.
	before := said.Len()
	if r.id.identify(r.Trainer); said.Len() != before {
		t.Error(said)
	}
}
