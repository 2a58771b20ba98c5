package main

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"vksplat/internal/filetest"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// openPreview reads a preview and wants it to be what it shall be.
func openPreview(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds(); len(data) > photo.PreviewBytes || max(size.Dx(), size.Dy()) > photo.PreviewSide {
		t.Errorf("a preview of %d bytes and %v pixels", len(data), size)
	}
	return img
}

// TestPreviewBytes trains with and without --preview: pictures come while it trains, the last is of the end, and the
// model has the same bytes.
func TestPreviewBytes(t *testing.T) {
	capture, dir := smallScene(t, 300), t.TempDir()
	args := []string{"train", capture, "--refine-start", "20", "--refine-every", "30", "--refine-stop", "150",
		"--progress", "none", "--checkpoint-every", "0", "--eval"}
	alone, watched, file := filepath.Join(dir, "alone"), filepath.Join(dir, "watched"), filepath.Join(dir, "now.jpg")
	steps := 200
	const long = 3 * time.Second // pictures take a hundredth of the time: on fast devices few steps see none
	for began := time.Now(); ; began = time.Now() {
		vksplat(t, append(args, "--overwrite", "-m", alone, "--iterations", strconv.Itoa(steps))...)
		if time.Since(began) >= long || steps == 20000 {
			break
		}
		steps *= 10
	}
	cmd := exec.Command("vksplat",
		append(args, "-m", watched, "--iterations", strconv.Itoa(steps), "--preview", file, "--preview-every",
			"0.1")...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	seen := map[string]bool{}
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, said.Bytes())
			}
			running = false
		case <-time.After(5 * time.Millisecond):
		}
		if data, err := os.ReadFile(file); err == nil && !seen[string(data)] {
			openPreview(t, data) // never half of one
			seen[string(data)] = true
		}
	}
	if len(seen) < 2 {
		t.Errorf("%d pictures were seen, one of them at the end", len(seen))
	}
	model := fmt.Sprintf("point_cloud/iteration_%d/point_cloud.ply", steps)
	filetest.Same(t, filepath.Join(alone, model), filepath.Join(watched, model))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The last one is the first held-out view as it was measured.
	_, want, err := photo.ReadSheet(firstSheet(t, filepath.Join(watched, "test", fmt.Sprint("ours_", steps))))
	if err != nil {
		t.Fatal(err)
	}
	img, got := openPreview(t, data), scene.Image{Width: want.Width, Height: want.Height}
	for y := range got.Height {
		for x := range got.Width {
			red, green, blue, _ := img.At(x, y).RGBA()
			got.Pix = append(got.Pix, uint8(red>>8), uint8(green>>8), uint8(blue>>8), 255)
		}
	}
	if p := apart(t, got, want); p < 24 { // 64x48 pixels in a JPEG
		t.Errorf("the last preview is %.1f dB from the picture that was measured", p)
	}
}

// firstSheet is the first picture below a folder of held-out views.
func firstSheet(t *testing.T, dir string) string {
	t.Helper()
	var first string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && first == "" && filepath.Ext(path) == ".png" {
			first = path
		}
		return err
	})
	if err != nil || first == "" {
		t.Fatal("no picture in", dir, err)
	}
	return first
}

// TestPreviewOfTeam trains on two devices, which are one: the preview is of the whole model.
func TestPreviewOfTeam(t *testing.T) {
	capture, dir := smallScene(t, 300), t.TempDir()
	file := filepath.Join(dir, "now.jpg")
	vksplat(t, "train", capture, "-m", filepath.Join(dir, "out"), "--iterations", "20", "--progress", "none",
		"--devices", "0,0", "--preview", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	openPreview(t, data)
}
