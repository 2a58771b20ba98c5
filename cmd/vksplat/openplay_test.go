package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/scene/synth"
	"vksplat/view/playtest"
)

// worked is what testdata/desk.py tells.
type worked struct {
	Requests, Errors, Violations []string
	Verdict, Costs, Watched      string
	Stopped, Edited, Download    string
	Continued                    []int // the step at which it stopped, and one after it went on
	Bytes, Columns               int
	Film                         float64 // seconds
	Capture                      []string
	Wide                         map[string]int // px that pages take on a phone
	Lacks                        []string       // names, contrast, ways for a keyboard
	Took                         []string       // what each part took
}

// TestPlayDesk works on the page of open in a browser, with a mouse and on a phone: a real training is started,
// watched, stopped and continued, and its model opened and exported.
func TestPlayDesk(t *testing.T) {
	needDevice(t)
	root, size := t.TempDir(), synth.Options{Images: 12, Width: 64, Height: 48, Points: 300}
	if os.Getenv("VKSPLAT_SHOTS") != "" { // where somebody looks at it
		size = synth.Options{Images: 24, Width: 480, Height: 360, Points: 6000}
	}
	scene := filepath.Join(root, "garden")
	must.Do(t, synth.Write(scene, size))
	hostile := "<img src=x onerror=alert(1)> & 'so' \"on\""
	must.Do(t, os.Mkdir(filepath.Join(root, hostile), 0o777))
	photos, err := filepath.Glob(filepath.Join(scene, "images", "*"))
	if err != nil || len(photos) < 2 {
		t.Fatal(photos, err)
	}
	_, missing := exec.LookPath("ffmpeg")
	v := startShown(t, "open in a browser: ", "open", root, "--no-open")
	var log worked
	playtest.Run(t, filepath.Join("testdata", "desk.py"), map[string]any{"url": v.address, "scene": "garden",
		"hostile": hostile, "shots": os.Getenv("VKSPLAT_SHOTS"), "photos": photos[:2], "flight": missing == nil,
		"places": map[string][2]string{"runs": {"#/", "article.run"}, "new": {"#/new/", ".entry"},
			"verdict": {"#/new/garden", ".costs dl"}, "compare": {"#/compare", "table.compare"},
			"run": {"#/run/vksplat/runs/garden-default", ".pair select"}}}, &log)
	must.Do(t, v.cmd.Process.Signal(os.Interrupt))
	v.wait(t)
	if log.Verdict == "" || !strings.Contains(log.Costs, "takes about") || !strings.Contains(log.Costs, "device memory") {
		t.Errorf("verdict %q, costs %q", log.Verdict, log.Costs)
	}
	if log.Watched != "true" || !strings.Contains(log.Stopped, "held-out photos") {
		t.Errorf("watched %q, stopped %q", log.Watched, log.Stopped)
	}
	if len(log.Continued) != 2 || log.Continued[1] <= log.Continued[0] || log.Continued[0] == 0 {
		t.Errorf("continued at steps %v", log.Continued)
	}
	if !strings.Contains(log.Edited, "are left") {
		t.Errorf("edited: %q", log.Edited)
	}
	if log.Download != "garden-default.spz" || log.Bytes == 0 || log.Columns != 1 {
		t.Errorf("downloaded %q, %d bytes; %d runs compared", log.Download, log.Bytes, log.Columns)
	}
	if missing == nil && (log.Film < 0.9 || log.Film > 1.1) {
		t.Errorf("the flight takes %g s", log.Film)
	}
	if len(log.Capture) != 2 || !output.IsFolder(filepath.Join(root, "vksplat", "uploads")) {
		t.Errorf("captured %q", log.Capture)
	}
	t.Log(log.Took)
	for _, text := range log.Lacks {
		t.Error(text)
	}
	for name, wide := range log.Wide {
		if wide > 390 {
			t.Errorf("on a phone, %s is %d px wide", name, wide)
		}
	}
	u := must.Get(url.Parse(v.address))(t)
	for _, r := range log.Requests {
		if base := "http://" + u.Host + "/"; !strings.HasPrefix(r, base) && !strings.HasPrefix(r, "data:") &&
			!strings.HasPrefix(r, "blob:") {
			t.Errorf("the page asks for %s", r)
		}
	}
	if len(log.Errors) > 0 || len(log.Violations) > 0 || len(log.Wide) != 5 {
		t.Errorf("errors %q, against the policy %q, phone %v", log.Errors, log.Violations, log.Wide)
	}
}
