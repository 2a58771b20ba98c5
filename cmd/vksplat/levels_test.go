package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/demo"
	"vksplat/scene/splatfile"
	"vksplat/scene/synth"
)

// TestLevels trains two levels below a model. On photos of its size each is better than what merging alone makes of the
// model, and not 0.3 dB below the model itself; convert writes them, and what it makes below.
func TestLevels(t *testing.T) {
	needDevice(t)
	o, steps, each := synth.Options{Images: 12, Width: 96, Height: 72, Points: 800}, "120", "40"
	if filetest.Long() {
		o, steps, each = synth.Options{Images: demo.Photos, Width: demo.Width, Height: demo.Height,
			Points: demo.Points}, "1500", "300"
	}
	dir := t.TempDir()
	capture, out := filepath.Join(dir, "capture"), filepath.Join(dir, "out")
	must.Do(t, synth.Write(capture, o))
	vksplat(t, "train", capture, "-m", out, "--eval", "--max-splats", "5000", "--iterations", steps,
		"--progress", "none")
	vksplat(t, "levels", out, "--lod", "3", "--steps", each)
	for k, size := range []string{"2", "4"} {
		model := heldOutPSNR(t, out, capture, size)
		trained := heldOutPSNR(t, filepath.Join(out, "levels", string(rune('1'+k))), capture, size)
		merged := filepath.Join(dir, "merged"+size+".ply")
		vksplat(t, "convert", out, merged, "--decimate", []string{"50%", "25%"}[k])
		alone := heldOutPSNR(t, merged, capture, size)
		t.Logf("1/%s: the model %.2f dB, level %d %.2f dB, %.2f dB by merging alone", size, model, k+1, trained, alone)
		if trained < model-0.3 || trained < alone {
			t.Errorf("level %d is worse", k+1)
		}
	}
	file := filepath.Join(dir, "city", "lod-meta.json")
	must.Do(t, os.Mkdir(filepath.Dir(file), 0o777))
	vksplat(t, "convert", out, file)
	var meta struct{ Counts []int }
	filetest.ReadJSON(t, file, &meta)
	n := meta.Counts[0]
	if want := []int{n, (n + 1) / 2, (n + 3) / 4, (n + 7) / 8}; !slices.Equal(meta.Counts, want) {
		t.Errorf("%v splats, want %v", meta.Counts, want)
	}
	checkLevelOne(t, filepath.Dir(file), filepath.Join(out, "levels", "1"))
	again, err := exec.Command("vksplat", "levels", out, "--lod", "3", "--steps", each).CombinedOutput()
	if err != nil || strings.Count(string(again), "done before") != 2 {
		t.Errorf("the same command again: %v, %s", err, again)
	}
	// Photos of an eighth would be too small to train on: 12x9.
	if !filetest.Long() {
		more, err := exec.Command("vksplat", "levels", out, "--lod", "4", "--steps", each).CombinedOutput()
		if err != nil || strings.Count(string(more), "done before") != 2 ||
			!strings.Contains(string(more), "16 pixels a side: 2 levels below the model's own") {
			t.Errorf("a level of small photos: %v, %s", err, more)
		}
	}
	other, err := exec.Command("vksplat", "levels", out, "--steps", "7").CombinedOutput()
	if err == nil || !strings.Contains(string(other), "--overwrite") {
		t.Errorf("other settings: %v, %s", err, other)
	}
}

// heldOutPSNR is the score of a model on held-out photos of a size.
func heldOutPSNR(t *testing.T, model, capture, downscale string) float64 {
	t.Helper()
	to := t.TempDir()
	vksplat(t, "eval", model, "--capture", capture, "--downscale", downscale, "--test-every", "8", "-o", to)
	data := must.Get(os.ReadFile(filepath.Join(to, "results.json")))(t)
	var methods map[string]struct{ PSNR float64 }
	if err := json.Unmarshal(data, &methods); err != nil || len(methods) != 1 {
		t.Fatalf("%v: %s", err, data)
	}
	for _, scores := range methods {
		return scores.PSNR
	}
	return 0
}

// checkLevelOne wants level 1 to lie where the trained one does.
func checkLevelOne(t *testing.T, city, run string) {
	t.Helper()
	model := must.Get(splatfile.Find(run))(t)
	var all [2][]float32 // the least coordinates
	for i, path := range []string{filepath.Join(city, "1_0", "meta.json"), model} {
		m := must.Get(splatfile.Open(path))(t)
		s := must.Get(splatfile.All(m))(t)
		_ = m.Close() // only read
		low := slices.Clone(s.Means[:3])
		for k, x := range s.Means {
			low[k%3] = min(low[k%3], x)
		}
		all[i] = low
	}
	for k := range 3 {
		if d := all[0][k] - all[1][k]; d > 1e-2 || d < -1e-2 {
			t.Errorf("level 1 begins at %v, the trained one at %v", all[0], all[1])
			break
		}
	}
}
