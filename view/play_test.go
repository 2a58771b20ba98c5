package view

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/atomicfile"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
	"vksplat/view/playtest"
)

// played is what testdata/play.py tells.
type played struct {
	Requests, Console, Errors, Violations, Policy []string
	Colours, Moved                                [][3]int
	Leaves                                        bool
	Cookie, Frame                                 string
	Statuses                                      map[string]int
	Attacks                                       map[string]bool
}

// play opens a page as testdata/play.py does.
func play(t *testing.T, task map[string]any) (log played) {
	t.Helper()
	playtest.Run(t, filepath.Join("testdata", "play.py"), task, &log)
	return log
}

// shC0 is the first basis function of spherical harmonics.
const shC0 = 0.28209479

// marks are balls of plain colours in a frame whose up is z, seen from a camera that looks along -x: right in its
// picture is +y.
var marks = []struct {
	at     [3]float64
	colour [3]int
}{
	{[3]float64{0, 1, 0}, [3]int{255, 0, 0}},      // right
	{[3]float64{0, -1, 0}, [3]int{0, 255, 0}},     // left
	{[3]float64{0, 0, 0.8}, [3]int{0, 0, 255}},    // above
	{[3]float64{0, 0, -0.8}, [3]int{255, 255, 0}}, // below
	{[3]float64{0, 0, 0}, [3]int{255, 255, 255}},
	{[3]float64{-2, 0, 0}, [3]int{255, 0, 255}}, // behind the white one
}

// markedRun writes the model of marks and its cameras.json, and returns the model's file and where in the picture the
// marks are seen.
func markedRun(t *testing.T, width, height int) (path string, pixels [][2]int) {
	t.Helper()
	s := scene.NewSplats(len(marks), 0)
	cam := lookAt(vector{4, 0, 0}, vector{}, vector{0, 0, 1}, 0)
	cam.Name, cam.Width, cam.Height, cam.Cx, cam.Cy, cam.Fx, cam.Fy = "photo.png", 400, 300, 200, 150, 400, 400
	scale := float64(width) / float64(cam.Width)
	for i, m := range marks {
		for k := range 3 {
			s.Means[3*i+k], s.LogScales[3*i+k] = float32(m.at[k]), float32(math.Log(0.15))
			s.SH[3*i+k] = float32((float64(m.colour[k])/255 - 0.5) / shC0)
		}
		s.Quats[4*i], s.LogitOpacities[i] = 1, 8
		p := cam.ToCamera(m.at)
		pixels = append(pixels,
			[2]int{int((cam.Fx*p[0]/p[2] + cam.Cx) * scale), int((cam.Fy*p[1]/p[2] + cam.Cy) * scale)})
	}
	dir := t.TempDir()
	path = filepath.Join(dir, "marks.ply")
	must.Do(t, errors.Join(plytest.Write(path, s, ply.Meta{}),
		inria.WriteCameras(filepath.Join(dir, "cameras.json"), []scene.Camera{cam})))
	return path, append(pixels, [2]int{width / 20, height / 20}) // and a corner, where there is nothing
}

// markedScene is the scene of markedRun.
func markedScene(t *testing.T, path string) (Scene, *Model) {
	t.Helper()
	m, err := Prepare(path, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	cameras, _, err := inria.ReadCameras(filepath.Join(filepath.Dir(path), "cameras.json"))
	if err != nil {
		t.Fatal(err)
	}
	return Scene{Title: "marks", Start: StartAt(cameras, "", m.Positions)}, m
}

// checkPicture wants the colours of the marks where a photo has them, and others once the camera has moved.
func checkPicture(t *testing.T, log played) {
	t.Helper()
	for i, m := range marks[:5] {
		for k, want := range m.colour {
			if got := log.Colours[i][k]; got < want-40 || got > want+40 {
				t.Errorf("mark %d at %v is %v, want %v", i, m.at, log.Colours[i], m.colour)
				break
			}
		}
	}
	if corner := log.Colours[len(marks)]; corner != [3]int{0, 0, 0} {
		t.Errorf("the background is %v", corner)
	}
	if log.Moved[0] == log.Colours[0] && log.Moved[1] == log.Colours[1] {
		t.Errorf("the picture does not change when the camera is turned: %v", log.Moved)
	}
	if len(log.Errors) > 0 || len(log.Violations) > 0 {
		t.Errorf("errors %q, against the policy %q, console %q", log.Errors, log.Violations, log.Console)
	}
	if log.Leaves || len(log.Policy) == 0 {
		t.Errorf("the page reaches other machines: %v, %q", log.Leaves, log.Policy)
	}
	for _, line := range log.Console {
		if strings.HasPrefix(line, "error:") && !strings.Contains(line, "192.0.2.1") {
			t.Errorf("the console says %q", line)
		}
	}
}

// TestPlayServer opens the viewer in a browser that no name leads out of: what it shows, whom it asks, and what pages
// of other servers can do.
func TestPlayServer(t *testing.T) {
	const width, height = 480, 360
	path, pixels := markedRun(t, width, height)
	what, model := markedScene(t, path)
	s := serve(t, ServerOptions{}, what, model)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	defer elsewhere.Close()
	u := must.Get(url.Parse(s.URL()))(t)
	base := "http://" + u.Host + "/"
	log := play(t, map[string]any{"url": s.URL() + "&webgl&noui", "width": width, "height": height, "pixels": pixels,
		"elsewhere": elsewhere.URL, "visits": map[string]string{
			"wrong token": base + "?token=" + secret(), "no token": base,
			"path out": "PAGE/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
			"nothing":  "PAGE/nothing",
			"rebound":  strings.Replace(s.URL(), "127.0.0.1", "rebound.test", 1), "again": "PAGE/",
		}})
	checkPicture(t, log)
	for _, r := range log.Requests {
		if !strings.HasPrefix(r, base) && !strings.HasPrefix(r, "blob:"+base) && !strings.HasPrefix(r, "data:") &&
			r != "https://192.0.2.1/" {
			t.Errorf("the page asks for %s", r)
		}
	}
	for name, want := range map[string]int{"wrong token": 403, "no token": 403, "path out": 404, "nothing": 404,
		"rebound": 403, "again": 200} {
		if got := log.Statuses[name]; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	for name, works := range log.Attacks {
		if works {
			t.Errorf("another server's page succeeds: %s", name)
		}
	}
	if len(log.Attacks) != 5 || strings.HasPrefix(log.Frame, base) || log.Cookie != "" {
		t.Errorf("attacks %v, frame %q, cookie for scripts %q", log.Attacks, log.Frame, log.Cookie)
	}
}

// TestPlayPage opens the page that is one file, without any server.
func TestPlayPage(t *testing.T) {
	const width, height = 480, 360
	path, pixels := markedRun(t, width, height)
	what, model := markedScene(t, path)
	page := filepath.Join(t.TempDir(), "page.html")
	must.Do(t, atomicfile.Write(page, func(w io.Writer) error { return WritePage(w, what, model) }))
	log := play(t, map[string]any{"url": "file://" + page + "?webgl&noui", "width": width, "height": height,
		"pixels": pixels})
	checkPicture(t, log)
	for _, r := range log.Requests {
		if !strings.HasPrefix(r, "file://"+page) && !strings.HasPrefix(r, "blob:null/") &&
			!strings.HasPrefix(r, "data:") && r != "https://192.0.2.1/" {
			t.Errorf("the page asks for %s", r)
		}
	}
}

// TestPlayStreamed has the viewer load a streamed model part by part.
func TestPlayStreamed(t *testing.T) {
	const width, height = 480, 360
	path, pixels := markedRun(t, width, height)
	path = streamedCopy(t, path, "lod-meta.json")
	what, model := markedScene(t, path)
	s := serve(t, ServerOptions{}, what, model)
	log := play(t, map[string]any{"url": s.URL() + "&webgl&noui", "width": width, "height": height, "pixels": pixels})
	checkPicture(t, log)
	parts := 0
	for _, r := range log.Requests {
		if strings.Contains(r, "/model/") {
			parts++
		}
	}
	if parts < 7 { // what there is, and the meta.json and five images of a level
		t.Errorf("the viewer asks for %d parts: %q", parts, log.Requests)
	}
}
