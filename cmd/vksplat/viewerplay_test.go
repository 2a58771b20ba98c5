package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/load"
	"vksplat/scene/synth"
	"vksplat/view/playtest"
)

// seen is what testdata/watch.py tells.
type seen struct {
	Requests, Console, Errors, Violations, Shares []string

	Training struct {
		Doing  string
		Frames int
	}
	Paused   []int             // steps at the begin and the end of the pause
	Pictures map[string]string // PNG files in base64
	View     sentView          // of Pictures["turned"]
	Saved    string
	Phone    struct {
		Open   bool
		Wide   int   // px that the page takes
		Curves []int // pixels that are drawn on
		Views  []sentView
	}
	Statuses map[string]int
	Sockets  map[string]bool
	Path     int
	Leaves   bool
	// of each browser: what is done, the words of the end, whether there is an error, whether one can save
	End [][]any
}

// sentView is what a browser asks to see.
type sentView struct {
	Camera     int
	Quaternion [4]float64 // camera to world, x, y, z, w
	Position   [3]float64
	Tangent    float64
}

// pixels decodes a picture of the log.
func (s *seen) pixels(t *testing.T, name string) scene.Image {
	t.Helper()
	data := must.Get(base64.StdEncoding.DecodeString(s.Pictures[name]))(t)
	return pngPixels(t, name, data)
}

func pngPixels(t *testing.T, name string, data []byte) scene.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	flat := image.NewNRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Src)
	return scene.Image{Width: flat.Rect.Dx(), Height: flat.Rect.Dy(), Pix: flat.Pix}
}

// part is a picture from x0 to x1, of so many rows.
func part(img scene.Image, x0, x1, height int) scene.Image {
	out := scene.Image{Width: x1 - x0, Height: height}
	for y := range height {
		out.Pix = append(out.Pix, img.Pix[4*(y*img.Width+x0):4*(y*img.Width+x1)]...)
	}
	return out
}

// shades is how many values the first channel has.
func shades(img scene.Image) (n int) {
	var there [256]bool
	for i := 0; i < len(img.Pix); i += 4 {
		if v := img.Pix[i]; !there[v] {
			there[v] = true
			n++
		}
	}
	return n
}

// drawnBy renders a checkpoint by a camera that is in the capture's frame.
func drawnBy(t *testing.T, checkpoint string, cam scene.Camera) scene.Image {
	t.Helper()
	dir := t.TempDir()
	cameras, out := filepath.Join(dir, "cameras.json"), filepath.Join(dir, "out")
	cam.Name = "view.png"
	must.Do(t, inria.WriteCameras(cameras, []scene.Camera{cam}))
	vksplat(t, "render", checkpoint, "--cameras", cameras, "-o", out)
	data := must.Get(os.ReadFile(filepath.Join(out, "view.png")))(t)
	return pngPixels(t, "render", data)
}

// turned turns a by the view's quaternion, u and w: a + 2 u x (u x a + w a).
func (v *sentView) turned(a [3]float64) [3]float64 {
	u, w := [3]float64(v.Quaternion[:3]), v.Quaternion[3]
	cross := func(a, b [3]float64) [3]float64 {
		return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
	}
	inner := cross(u, a)
	for k := range 3 {
		inner[k] += w * a[k]
	}
	for k, x := range cross(u, inner) {
		a[k] += 2 * x
	}
	return a
}

// camera is that of a view of some size, in the capture's frame.
func (v *sentView) camera(c *scene.Capture, width, height int) scene.Camera {
	focal := float64(height) / 2 / v.Tangent
	cam := scene.Camera{Width: width, Height: height, Fx: focal, Fy: focal, Cx: float64(width) / 2,
		Cy: float64(height) / 2}
	for i := range 3 {
		var axis [3]float64
		axis[i] = 1
		axis = v.turned(axis)
		copy(cam.R[3*i:], axis[:]) // world to camera
	}
	for i := range 3 {
		for k := range 3 {
			cam.T[i] -= cam.R[3*i+k] * v.Position[k]
		}
	}
	return c.Frame.ToCapture(cam, [3]float64{})
}

// TestPlayLive watches a run in a browser that no name leads out of, on a desk and on a phone.
func TestPlayLive(t *testing.T) {
	needDevice(t)
	dir := t.TempDir()
	folder, out := filepath.Join(dir, "scene"), filepath.Join(dir, "out")
	must.Do(t, synth.Write(folder, synth.Options{Images: 12, Width: 160, Height: 120, Points: 1500}))
	v := startViewed(t, folder, "-m", out, "--viewer", "--iterations", "1000000", "--checkpoint-every", "0",
		"--keep-checkpoints", "2", "--progress", "none")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	defer elsewhere.Close()
	u := must.Get(url.Parse(v.address))(t)
	base := "http://" + u.Host + "/"
	var log seen
	playtest.Run(t, filepath.Join("testdata", "watch.py"),
		map[string]any{"url": v.address, "steps": 40, "elsewhere": elsewhere.URL, "shots": os.Getenv("VKSPLAT_SHOTS"),
			"visits": map[string]string{
				"stranger, wrong token": base + "?token=" + strings.Repeat("A", 43), "stranger, no token": base,
				"stranger, the page": "PAGE/",
				"path out":           "PAGE/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "a path of the run": "PAGE/stats.json",
				"again": "PAGE/",
			}}, &log)
	<-v.rest
	if err := v.cmd.Wait(); v.cmd.ProcessState.ExitCode() != fault.ExitInterrupted {
		t.Errorf("stopped: %v", err)
	}
	checkShown(t, &log, folder, out)
	checkSlider(t, &log)
	checkPhone(t, &log)
	checkEnds(t, &log, out)
	for _, r := range log.Requests {
		if !strings.HasPrefix(r, base) && !strings.HasPrefix(r, "data:") && r != "https://192.0.2.1/" {
			t.Errorf("the page asks for %s", r)
		}
	}
	for name, want := range map[string]int{"stranger, wrong token": 403, "stranger, no token": 403,
		"stranger, the page": 403, "path out": 404, "a path of the run": 404, "again": 200} {
		if got := log.Statuses[name]; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if !log.Sockets["own"] || log.Sockets["foreign"] || log.Path != http.StatusNotFound || log.Leaves {
		t.Errorf("WebSockets %v, a path for a number %d, reaches other machines: %v", log.Sockets, log.Path, log.Leaves)
	}
	if len(log.Errors) > 0 || len(log.Violations) != 1 || !strings.Contains(log.Violations[0], "192.0.2.1") {
		t.Errorf("errors %q, against the policy %q", log.Errors, log.Violations)
	}
}

// checkShown compares what was shown during the pause with renders of the checkpoint that was saved then.
func checkShown(t *testing.T, log *seen, folder, out string) {
	t.Helper()
	if log.Training.Doing != "training" || log.Training.Frames < 2 {
		t.Errorf("while it trains: %+v", log.Training)
	}
	step := log.Paused[0]
	if log.Paused[1] != step {
		t.Errorf("the pause begins at step %d and ends at %d", step, log.Paused[1])
	}
	checkpoint := filepath.Join(out, output.CheckpointFolder,
		fmt.Sprintf("%s%d%s", output.CheckpointPrefix, step, output.CheckpointSuffix))
	if !strings.Contains(log.Saved, checkpoint) || !output.IsFile(checkpoint) {
		t.Fatalf("the page says %q, wanted is %s", log.Saved, checkpoint)
	}
	c := must.Get(load.Capture(folder, scene.LoadOptions{}))(t)
	photo := c.Cameras[0]
	c.Normalise()
	through, turned := log.pixels(t, "photo camera"), log.pixels(t, "turned")
	for _, p := range []struct {
		name      string
		got, want scene.Image
	}{
		{"a photo's camera", through, drawnBy(t, checkpoint, photo)},
		{"a free camera", turned, drawnBy(t, checkpoint, log.View.camera(c, turned.Width, turned.Height))},
	} {
		db := apart(t, p.got, p.want)
		t.Logf("step %d, %s, %dx%d: the frame is %.1f dB from vksplat render's picture", step, p.name, p.got.Width,
			p.got.Height, db)
		if db < 34 || shades(p.got) < 50 { // a JPEG of 85 %
			t.Errorf("%s: %.1f dB from vksplat render's picture, %d levels", p.name, db, shades(p.got))
		}
	}
	free := log.pixels(t, "free") // frames are as large as they may be, in steps: those of two views differ a little
	w, h := min(free.Width, turned.Width), min(free.Height, turned.Height)
	if db := apart(t, part(turned, 0, w, h), part(free, 0, w, h)); db > 28 {
		t.Errorf("the picture hardly changes when the camera is turned: %.1f dB", db)
	}
	if db := apart(t, through, log.pixels(t, "again")); db < 60 {
		t.Errorf("the same picture twice: %.1f dB apart", db)
	}
	for _, mode := range []string{"error", "depth", "centres", "ellipsoids"} {
		if db := apart(t, through, log.pixels(t, mode)); db > 28 {
			t.Errorf("%s looks like the picture: %.1f dB", mode, db)
		}
	}
}

// checkSlider wants the photo left of the slider's place and the render right of it.
func checkSlider(t *testing.T, log *seen) {
	t.Helper()
	if !slices.Equal(log.Shares, []string{"0", "100", "50"}) {
		t.Fatalf("the slider goes to %v", log.Shares)
	}
	render, photo, half := log.pixels(t, "slider 0"), log.pixels(t, "slider 100"), log.pixels(t, "slider 50")
	w, h := render.Width, render.Height
	if db := apart(t, render, photo); db > 35 {
		t.Errorf("photo and render are alike: %.1f dB", db)
	}
	left, right := apart(t, part(half, 0, w/2-4, h), part(photo, 0, w/2-4, h)),
		apart(t, part(half, w/2+4, w, h), part(render, w/2+4, w, h))
	if left < 60 || right < 60 {
		t.Errorf("the slider in the middle: left %.1f dB from the photo, right %.1f dB from the render", left, right)
	}
}

// checkPhone wants a page that fits, curves as soon as the panel opens, and fingers that turn and come nearer.
func checkPhone(t *testing.T, log *seen) {
	t.Helper()
	p := &log.Phone
	if p.Open || p.Wide > 390 || len(p.Curves) != 3 || slices.Min(p.Curves) < 50 {
		t.Errorf("phone: panel open at first %v, %d px wide, curves %v", p.Open, p.Wide, p.Curves)
	}
	if len(p.Views) != 3 || p.Views[2].Camera != -1 {
		t.Fatalf("views %+v", p.Views)
	}
	far := func(a, b sentView) (sum float64) {
		for k := range 4 {
			sum += (a.Quaternion[k] - b.Quaternion[k]) * (a.Quaternion[k] - b.Quaternion[k])
		}
		return sum
	}
	if first := p.Views[0]; far(first, p.Views[1]) < 1e-3 {
		t.Errorf("a finger turns nothing: %+v, %+v", first, p.Views[1])
	}
	// Two fingers that go apart come nearer and keep the direction.
	if a, b := p.Views[1], p.Views[2]; far(a, b) > 1e-9 || a.Position == b.Position {
		t.Errorf("two fingers: from %+v to %+v", a, b)
	}
}

// checkEnds wants every browser told how the run ended, and nothing after.
func checkEnds(t *testing.T, log *seen, out string) {
	t.Helper()
	models, err := filepath.Glob(filepath.Join(out, output.ModelFolder+"*", output.ModelName))
	if err != nil || len(models) != 1 {
		t.Fatalf("models %v, %v", models, err)
	}
	for i, end := range log.End {
		text := fmt.Sprint(end[1])
		if end[0] != "stopped" || !strings.Contains(text, "Training was stopped.") ||
			!strings.Contains(text, models[0]) || !strings.Contains(text, "vksplat resume ") || end[2] != false ||
			end[3] != false {
			t.Errorf("browser %d: %v, want %s", i, end, models[0])
		}
	}
	if len(log.End) != 2 {
		t.Errorf("ends %v", log.End)
	}
}
