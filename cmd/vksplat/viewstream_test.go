package main

import (
	"bytes"
	"context"
	"fmt"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/frames"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
	"vksplat/scene/synth"
	"vksplat/view"
	"vksplat/view/playtest"
)

// cityModel writes the splats of a made-up city and a few of its cameras, and returns the model's file and the cameras.
func cityModel(t *testing.T, splats int) (string, []scene.Camera) {
	t.Helper()
	s := must.Get(synth.New(synth.Options{City: true, Images: 100, Width: 112, Height: 80, Points: splats}))(t)
	dir := t.TempDir()
	var cams []scene.Camera
	for i, c := range s.Cameras() {
		if i%25 == 7 {
			c.Name = fmt.Sprintf("view_%d.png", i)
			cams = append(cams, c)
		}
	}
	model := filepath.Join(dir, "model.ply")
	must.Do(t, plytest.Write(model, s.Splats(1), ply.Meta{}))
	must.Do(t, inria.WriteCameras(filepath.Join(dir, captured.CamerasBeside[0]), cams))
	return model, cams
}

// asks sends a query and returns what comes: a picture, or the text of an error.
func asks(t *testing.T, c *websocket.Conn, query string) (picture []byte, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.Do(t, c.Write(ctx, websocket.MessageText, []byte(query)))
	kind, data, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if kind == websocket.MessageText {
		return nil, string(data)
	}
	must.Do(t, c.Write(ctx, websocket.MessageText, []byte(`{"shown":1}`)))
	return data, ""
}

// TestViewStream has a model drawn that is larger than the device: the pictures are those of render, and what does not
// fit is an error, after which others do.
func TestViewStream(t *testing.T) {
	needDevice(t)
	const memory = "8M"
	model, cams := cityModel(t, 120_000)
	received := filepath.Join(t.TempDir(), "frames")
	vksplat(t, "render", model, "--cameras", filepath.Join(filepath.Dir(model), captured.CamerasBeside[0]), "-o",
		received)
	v := startShown(t, "open in a browser: ", "view", model, "--stream", "--no-open", "--max-vram", memory)
	c := must.Get(playtest.Enter(t.Context(), v.address))(t)
	far := `{"view":{"camera":-1,"quaternion":[1,0,0,0],"position":[0,0,200],"tangent":0.2,"width":240,"height":180,"mode":"picture"}}`
	for i, cam := range cams {
		through := fmt.Sprintf(`{"view":{"camera":%d,"width":%d,"height":%d,"mode":"picture"}}`, i, cam.Width,
			cam.Height)
		got, text := asks(t, c, through)
		file, err := os.ReadFile(filepath.Join(received, cam.Name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := photo.JPEG(pngPixels(t, cam.Name, file), frames.Quality)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes %s, the JPEG file of render's picture has %d: %v", cam.Name, len(got), text,
				len(want), err)
		}
		if _, text := asks(t, c, far); !strings.Contains(text, "too many splats in view") {
			t.Errorf("all of the city at once: %q", text)
		}
		for _, mode := range []view.Mode{view.ModeDepth, view.ModeCentres, view.ModeEllipsoids} {
			other, text := asks(t, c, strings.Replace(through, "picture", string(mode), 1))
			if _, err := jpeg.DecodeConfig(bytes.NewReader(other)); err != nil || bytes.Equal(other, got) {
				t.Errorf("%s of %s: %d bytes, %s %v", mode, cam.Name, len(other), text, err)
			}
		}
	}
	if _, text := asks(t, c, `{"view":{"camera":0,"width":100,"height":100,"mode":"error"}}`); !strings.Contains(text,
		"no photos") {
		t.Errorf("the difference from a photo: %q", text)
	}
	must.Do(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"command":"stop"}`)))
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("a command for a training: %v", err)
	}
	must.Do(t, v.cmd.Process.Signal(os.Interrupt))
	v.wait(t)
}

// TestViewStreamAlone wants a view of the whole where nothing says how it was photographed.
func TestViewStreamAlone(t *testing.T) {
	needDevice(t)
	model, _ := cityModel(t, 5_000)
	must.Do(t, os.Remove(filepath.Join(filepath.Dir(model), captured.CamerasBeside[0])))
	v := startShown(t, "open in a browser: ", "view", model, "--stream", "--no-open")
	c, err := playtest.Enter(t.Context(), v.address)
	if err != nil {
		t.Fatal(err)
	}
	picture, text := asks(t, c,
		`{"view":{"camera":-1,"quaternion":[0,0,0,1],"position":[0,0,-1],"tangent":0.58,"width":240,"height":180,"mode":"picture"}}`)
	img, err := jpeg.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(text, err)
	}
	lit := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, g, b, _ := img.At(x, y).RGBA(); r+g+b > 0x3000 {
				lit++
			}
		}
	}
	if lit < 240*180/20 {
		t.Errorf("%d pixels of the city, a unit away, are lit", lit)
	}
	must.Do(t, v.cmd.Process.Signal(os.Interrupt))
	v.wait(t)
}

// TestPlayStream looks at a model that this machine draws in a browser that no name leads out of.
func TestPlayStream(t *testing.T) {
	needDevice(t)
	model, cams := cityModel(t, 20_000)
	v := startShown(t, "open in a browser: ", "view", model, "--stream", "--no-open")
	var log struct {
		Requests, Errors, Violations, Hidden, Modes []string

		Views []struct {
			Camera int
			Mode   view.Mode
		}
		Says string
		Note bool
	}
	playtest.Run(t, filepath.Join("testdata", "stream.py"),
		map[string]any{"url": v.address, "shots": os.Getenv("VKSPLAT_SHOTS")}, &log)
	must.Do(t, v.cmd.Process.Signal(os.Interrupt))
	v.wait(t)
	if log.Says != "20,000 splats" || len(log.Hidden) != 13 ||
		!slices.Equal(log.Modes, []string{"Picture", "Depth", "Centres", "Ellipsoids"}) {
		t.Errorf("the page says %q, hides %q and offers %q", log.Says, log.Hidden, log.Modes)
	}
	asked := map[string]bool{}
	for _, q := range log.Views {
		asked[fmt.Sprint(q.Camera, " ", q.Mode)] = true
		if q.Camera >= len(cams) || q.Mode == view.ModeError {
			t.Errorf("the page asks for %+v", q)
		}
	}
	for _, want := range []string{"0 picture", "1 picture", "1 depth", "-1 picture"} {
		if !asked[want] {
			t.Errorf("nobody asked for %s: %v", want, asked)
		}
	}
	at, _, _ := strings.Cut(v.address, "?")
	for _, r := range log.Requests {
		if !strings.HasPrefix(r, at) && !strings.HasPrefix(r, "data:") || strings.Contains(r, "photo") {
			t.Errorf("the page asks for %s", r)
		}
	}
	if len(log.Errors) > 0 || len(log.Violations) > 0 || log.Note {
		t.Errorf("errors %q, against the policy %q, a note: %v", log.Errors, log.Violations, log.Note)
	}
}
