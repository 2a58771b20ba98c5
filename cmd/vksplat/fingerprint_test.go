package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/pipeline"
	"vksplat/scene"
)

// hashedRun is a run from the start on a made-up capture, one photo of which takes some time to hash. change happens meanwhile.
func hashedRun(t *testing.T, change func(photo string)) (r *trainRun, warnings *bytes.Buffer) {
	dir := t.TempDir()
	if err := scene.WriteSynth(dir, scene.SynthOptions{Images: 4, Width: 32, Height: 24, Points: 100}); err != nil {
		t.Fatal(err)
	}
	c, err := scene.Load(dir, scene.LoadOptions{Model: scene.AnyModel})
	if err != nil {
		t.Fatal(err)
	}
	const long = 256 << 20 // zeros behind the picture, which take no room on the disk
	if err := os.Truncate(c.Cameras[3].Path, long); err != nil {
		t.Fatal(err)
	}
	warnings = &bytes.Buffer{}
	r = &trainRun{trainOptions: newTrainOptions(), app: newApp(nil, &bytes.Buffer{}, warnings), capture: c, trainer: &pipeline.Trainer{}}
	r.out = filepath.Join(dir, "out")
	r.saver = newSaver(r)
	if err := r.startFingerprint(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.hashing.Close)
	if r.fingerprint != "" || r.hashing.Done() {
		t.Error("a run from the start waited for the fingerprint")
	}
	change(c.Cameras[3].Path)
	r.saver.identify()
	return r, warnings
}

func TestIdentify(t *testing.T) {
	r, said := hashedRun(t, func(string) {})
	if len(r.fingerprint) != 64 || said.Len() > 0 || len(r.trainer.Deviations()) > 0 {
		t.Errorf("fingerprint %q, %s", r.fingerprint, said)
	}
	// Of a photo that is changed later the fingerprint stays, and it is told once.
	known := r.fingerprint
	if r.saver.identify(); said.Len() > 0 {
		t.Error(said)
	}
	if err := os.Truncate(r.capture.Cameras[1].Path, 1<<20); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.saver.identify()
	}
	if text := said.String(); r.fingerprint != known || len(r.trainer.Deviations()) != 1 || strings.Count(text, "was changed") != 1 {
		t.Errorf("fingerprint %q, %v, %s", r.fingerprint, r.trainer.Deviations(), said)
	}
	r, said = hashedRun(t, func(photo string) {
		if err := os.Truncate(photo, 1<<20); err != nil {
			t.Fatal(err)
		}
	})
	if text := said.String(); r.fingerprint != noFingerprint || len(r.trainer.Deviations()) != 1 || !strings.Contains(text, "was changed") || !strings.Contains(text, "--force") {
		t.Errorf("fingerprint %q, %v, %s", r.fingerprint, r.trainer.Deviations(), text)
	}
	// It is said once.
	before := said.Len()
	if r.saver.identify(); said.Len() != before {
		t.Error(said)
	}
}
