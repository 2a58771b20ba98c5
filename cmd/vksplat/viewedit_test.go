package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/edit"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/splatfile"
	"vksplat/view"
	"vksplat/view/playtest"
)

// edited is a model that is edited, as a browser has it.
type edited struct {
	*viewed
	t      *testing.T
	client *http.Client
	at     *url.URL
	watch  *websocket.Conn
}

// startEdit begins to edit a model. Exports go to a folder.
func startEdit(t *testing.T, model, folder string, more ...string) *edited {
	t.Helper()
	v := startShown(t, "open in a browser: ",
		append([]string{"view", model, "--edit", "--no-open", "--export-to", folder}, more...)...)
	client, at, err := playtest.Visit(v.address)
	if err != nil {
		t.Fatal(err)
	}
	watch := must.Get(playtest.Watch(t.Context(), client, at))(t)
	return &edited{v, t, client, at, watch}
}

// post asks for something that must be refused, or not.
func (e *edited) post(name, body string, want int) (s view.EditState, text string) {
	e.t.Helper()
	status, text, err := playtest.Post(e.client, e.at, name, body)
	if err != nil || status != want {
		e.t.Fatalf("%s: %d %s, %v", body, status, text, err)
	}
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			e.t.Fatal(err)
		}
	}
	return s, text
}

func (e *edited) edit(body string) view.EditState {
	e.t.Helper()
	s, _ := e.post("edit", body, http.StatusOK)
	return s
}

// export exports and waits until the file is there.
func (e *edited) export(name, format string) string {
	e.t.Helper()
	begun, _ := e.post("export", fmt.Sprintf(`{"name":%q,"format":%q}`, name, format), http.StatusOK)
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	for {
		_, data, err := e.watch.Read(ctx) // texts alone: nothing was asked to be drawn
		var m struct{ Edits *view.EditState }
		if err := errors.Join(err, json.Unmarshal(data, &m)); err != nil {
			e.t.Fatal(err)
		}
		if m.Edits == nil || m.Edits.Version < begun.Version || m.Edits.Export.State == view.SaveWriting {
			continue
		}
		if m.Edits.Export.State != view.SaveDone || !strings.Contains(m.Edits.Export.Text, name) {
			e.t.Fatalf("export %s: %+v", name, m.Edits.Export)
		}
		return m.Edits.Export.Text
	}
}

const lookQuery = `{"camera":%d,"width":112,"height":80,"mode":"picture"}`

// frame is a picture by a camera of the photos, as a browser gets it that has just come.
func (e *edited) frame(camera int) []byte {
	e.t.Helper()
	c, err := playtest.Watch(e.t.Context(), e.client, e.at)
	if err != nil {
		e.t.Fatal(err)
	}
	defer c.CloseNow()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	err = c.Write(ctx, websocket.MessageText, []byte(`{"view":`+fmt.Sprintf(lookQuery, camera)+`}`))
	for err == nil {
		var kind websocket.MessageType
		var data []byte
		if kind, data, err = c.Read(ctx); kind == websocket.MessageBinary {
			return data
		}
	}
	e.t.Fatal(err)
	return nil
}

// end interrupts the viewer.
func (e *edited) end() {
	e.t.Helper()
	if err := e.cmd.Process.Signal(os.Interrupt); err != nil {
		e.t.Fatal(err)
	}
	e.wait(e.t)
}

// numbersOf prints a box as the command and as the page have it.
func numbersOf(box [6]float64) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(box)), ","), "[]")
}

// TestViewEdit edits a model as browsers do: what is exported is what convert makes of the same edit, byte by byte, and
// the model's own file stays as it is.
func TestViewEdit(t *testing.T) {
	needDevice(t)
	model, _ := cityModel(t, 5_000)
	before, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	dir, made := t.TempDir(), t.TempDir()
	e := startEdit(t, model, dir)
	whole := e.frame(0)

	// The box: the bytes of convert --crop.
	box := e.edit(`{"do":"reset"}`).Box
	box[0] += (box[3] - box[0]) / 3
	s := e.edit(`{"do":"crop","keep":"inside","box":[` + numbersOf(box) + `]}`)
	if s.Of != 5_000 || s.Splats == 0 || s.Splats > 4_500 || s.Done != 1 {
		t.Errorf("cropped: %+v", s)
	}
	if text := e.export("cropped", "ply"); !strings.Contains(text, fmt.Sprintf(": %d splats, ", s.Splats)) {
		t.Errorf("exported: %s, want %d splats", text, s.Splats)
	}
	want := filepath.Join(made, "crop.ply")
	vksplat(t, "convert", model, want, "--crop="+numbersOf(box))
	filetest.Same(t, filepath.Join(dir, "cropped.ply"), want)
	answer := must.Get(e.client.Get(e.at.JoinPath("exported", "cropped.ply").String()))(t)
	downloaded, err := io.ReadAll(answer.Body)
	must.Do(t, errors.Join(err, answer.Body.Close()))
	if file, err := os.ReadFile(want); err != nil || !bytes.Equal(downloaded, file) {
		t.Errorf("downloaded: %s, %d bytes, want %d: %v", answer.Status, len(downloaded), len(file), err)
	}

	// Undo and redo: the same picture again.
	cropped := e.frame(0)
	if bytes.Equal(cropped, whole) {
		t.Error("the box changes nothing in the picture")
	}
	if s := e.edit(`{"do":"undo"}`); s.Splats != 5_000 || s.Undone != 1 || !bytes.Equal(e.frame(0), whole) {
		t.Errorf("undone: %+v, or another picture", s)
	}
	if s := e.edit(`{"do":"redo"}`); s.Undone != 0 || !bytes.Equal(e.frame(0), cropped) {
		t.Errorf("redone: %+v, or another picture", s)
	}

	// The brush, on the surface and through it.
	brush := `{"do":"brush","view":` + fmt.Sprintf(lookQuery, 1) +
		`,"path":[[0.3,0.4],[0.7,0.6]],"radius":0.15,"through":false}`
	view1 := e.frame(1)
	front := e.edit(brush)
	if front.Splats >= s.Splats || bytes.Equal(e.frame(1), view1) {
		t.Errorf("the brush leaves %d of %d, or the same picture", front.Splats, s.Splats)
	}
	e.edit(`{"do":"undo"}`)
	if through := e.edit(strings.Replace(brush, "false", "true", 1)); through.Splats >= front.Splats {
		t.Errorf("through everything %d are left, %d of what is seen", through.Splats, front.Splats)
	}
	e.edit(`{"do":"undo"}`)
	e.edit(brush)

	// Up, and another box in the turned frame.
	e.checkUps()
	up := e.edit(`{"do":"up","up":"+x"}`)
	if !up.Chosen || up.Up != [3]float64{1, 0, 0} {
		t.Errorf("up: %+v", up)
	}
	box = up.Box
	box[4] -= (box[4] - box[1]) / 4
	last := e.edit(`{"do":"crop","keep":"inside","turn":20,"box":[` + numbersOf(box) + `]}`)
	shown := e.frame(0)
	e.checkExports(model, dir, made, last, shown)
	e.checkRefusals(dir)

	// What is not exported is kept at the end, and can be gone on with.
	e.edit(`{"do":"undo"}`)
	e.end()
	kept, err := filepath.Glob(filepath.Join(dir, "model_edited"+edit.FileSuffix))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	again := startEdit(t, model, dir, "--edits", kept[0])
	s = again.edit(`{"do":"crop","keep":"inside","turn":20,"box":[` + numbersOf(box) + `]}`)
	if s.Splats != last.Splats || !bytes.Equal(again.frame(0), shown) {
		t.Errorf("gone on: %d splats, want %d, or another picture", s.Splats, last.Splats)
	}
	again.end()
	if after, err := os.ReadFile(model); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the model's own file is another: %v", err)
	}
}

// checkUps chooses up by what the cameras see, which look down on a city whose up is +z.
func (e *edited) checkUps() {
	e.t.Helper()
	picture := fmt.Sprintf(lookQuery, 1)
	for _, body := range []string{`{"do":"up","up":"photos"}`, `{"do":"up","up":"view","view":` + picture + `}`,
		`{"do":"floor","path":[[0.1,0.9],[0.9,0.9],[0.5,0.2]],"view":` + picture + `}`} {
		if s := e.edit(body); !s.Chosen || s.Up == [3]float64{} {
			e.t.Errorf("%s: %+v", body, s)
		} else if floor := strings.Contains(body, "floor"); floor && s.Up[2] < 0.7 {
			e.t.Errorf("the floor's up is %v, +z is", s.Up)
		}
		e.edit(`{"do":"undo"}`)
	}
}

// checkExports compares exports of all formats with what convert makes of the same edits, and a render of the turned
// model by the turned cameras with what the editor showed.
func (e *edited) checkExports(model, dir, made string, last view.EditState, shown []byte) {
	t := e.t
	t.Helper()
	for _, f := range splatfile.Formats() {
		if f.Write == nil || f.Open == nil {
			continue
		}
		name, ending := "all_"+strings.ReplaceAll(f.Name, ".", "_"), f.Extensions[0]
		e.export(name, f.Name)
		want := filepath.Join(made, name+ending)
		vksplat(t, "convert", model, want, "--edits", filepath.Join(dir, name+edit.FileSuffix))
		filetest.Same(t, filepath.Join(dir, name+ending), want)
	}
	file := filepath.Join(dir, "all_ply.ply")
	source := must.Get(splatfile.Open(file))(t)
	if info := source.Info(); info.N != last.Splats || info.Meta.Vertical != "y" {
		t.Errorf("exported: %d splats, want %d; vertical axis %q", info.N, last.Splats, info.Meta.Vertical)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	cameras := filepath.Join(dir, "all_ply"+output.CamerasSuffix)
	if got := captured.FindCameras(file, captured.CamerasBeside[:1], false); got != cameras {
		t.Errorf("cameras of the export: %q", got)
	}
	vksplat(t, "render", file, "--cameras", cameras, "-o", filepath.Join(made, "views"))
	data := must.Get(os.ReadFile(filepath.Join(made, "views", "view_7.png")))(t)
	if db := apart(t, pngPixels(t, "render", data), decoded(t, shown)); db < 30 {
		t.Errorf("the exported model, drawn by its cameras, is %.1f dB from what was shown", db)
	}
}

// decoded is a frame's pixels.
func decoded(t *testing.T, jpeg []byte) scene.Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "frame.jpg")
	must.Do(t, os.WriteFile(path, jpeg, 0o666))
	img := must.Get(photo.Decode(scene.Camera{Path: path, Width: 112, Height: 80}))(t)
	return img
}

// checkRefusals wants nothing written where something is, or elsewhere.
func (e *edited) checkRefusals(dir string) {
	e.t.Helper()
	for _, name := range []string{"cropped", "cropped.ply", "", ".hidden", "../out", "a/b", `a\b`, "a\n", "c:", "a.", " a",
		strings.Repeat("a", 200)} {
		e.post("export", fmt.Sprintf(`{"name":%q,"format":"ply"}`, name), http.StatusBadRequest)
	}
	for _, format := range []string{"ksplat", "checkpoint", "exe", ""} {
		e.post("export", fmt.Sprintf(`{"name":"new","format":%q}`, format), http.StatusBadRequest)
	}
	if list, err := filepath.Glob(filepath.Join(dir, "new*")); err != nil || len(list) > 0 {
		e.t.Errorf("written: %v, %v", list, err)
	}
	s := e.edit(`{"do":"redo"}`)
	for _, body := range []string{`{"do":"crop","keep":"inside","box":[1e8,1e8,1e8,2e8,2e8,2e8]}`,
		`{"do":"crop","keep":"outside","box":[1e8,1e8,1e8,2e8,2e8,2e8]}`, `{"do":"up","up":"+x"}`, `{"do":"brush"}`} {
		e.post("edit", body, http.StatusBadRequest)
	}
	if now := e.edit(`{"do":"redo"}`); now.Splats != s.Splats || now.Done != s.Done {
		e.t.Errorf("what was refused changes something: %+v, %+v", s, now)
	}
}

// TestViewEditPlaces refuses to export where a run keeps its models, and what contradicts itself.
func TestViewEditPlaces(t *testing.T) {
	model, _ := cityModel(t, 100)
	out := filepath.Join(filepath.Dir(model), "out")
	models := filepath.Join(out, filepath.FromSlash("point_cloud/iteration_7"))
	must.Do(t, os.MkdirAll(models, 0o777))
	must.Do(t, os.Rename(model, filepath.Join(models, "point_cloud.ply")))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"holds the run's own models", []string{"--edit", "--export-to", models}},
		{"holds the run's own models", []string{"--edit", "--export-to", filepath.Dir(models)}},
		{"there is no folder", []string{"--edit", "--export-to", filepath.Join(out, "nowhere")}},
		{"--export-to has no effect without --edit", []string{"--export-to", out}},
		{"--edit and --stream", []string{"--edit", "--stream=false"}},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"view", out, "--no-open"}, c.args...), &stdout, &stderr)
		if code != 2 || !strings.Contains(stderr.String(), c.want) || !strings.Contains(stderr.String(), "hint:") {
			t.Errorf("%q: exit code %d\n%s%s", c.args, code, &stdout, &stderr)
		}
	}
}

// TestConvertEdits has convert refuse edits of another model, and what contradicts them.
func TestConvertEdits(t *testing.T) {
	model, _ := cityModel(t, 100)
	other, _ := cityModel(t, 101)
	source, err := splatfile.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	all, err := splatfile.All(source)
	must.Do(t, errors.Join(err, source.Close()))
	state, dir := edit.New(all.Means), t.TempDir()
	for _, op := range []edit.Operation{{Remove: []uint32{3, 40}}, {Up: &[3]float64{0, 0, 1}}} {
		must.Get(state.Do(op))(t)
	}
	edits, bad := filepath.Join(dir, "a"+edit.FileSuffix), filepath.Join(dir, "bad"+edit.FileSuffix)
	must.Do(t, errors.Join(state.Document().Write(edits),
		os.WriteFile(bad, []byte(`{"version":1,"x":2}`), 0o666)))
	for i, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{model, "--edits", edits}, 0, "60 splats"},
		{[]string{model, "--edits", edits, "--max-splats", "10"}, 0, "10 splats"},
		{[]string{other, "--edits", edits}, 65, "a model of 100 splats, this one has 101"},
		{[]string{model, "--edits", bad}, 65, "not an edits file"},
		{[]string{model, "--edits", filepath.Join(dir, "none")}, 65, "read edits"},
		{[]string{model, "--edits", edits, "--orient", "up"}, 2, "the edits say where up is"},
		{[]string{model, other, "--merge", "--edits", edits}, 2, "edits apply to one model"},
	} {
		var stdout, stderr bytes.Buffer
		out := filepath.Join(dir, fmt.Sprint("out", i, ".ply"))
		code := run(append(append([]string{"convert"}, c.args...), out), &stdout, &stderr)
		said := stdout.String() + stderr.String()
		if code != c.code || !strings.Contains(said, c.want) || code != 0 && !strings.Contains(said, "hint:") ||
			output.IsFile(out) != (code == 0) {
			t.Errorf("%q: exit code %d\n%s", c.args, code, said)
		}
	}
}

// TestPlayEdit edits a model in a browser that no name leads out of, with a mouse and on a phone.
func TestPlayEdit(t *testing.T) {
	needDevice(t)
	model, _ := cityModel(t, 20_000)
	dir := t.TempDir()
	v := startShown(t, "open in a browser: ", "view", model, "--edit", "--no-open", "--export-to", dir)
	var log struct {
		Requests, Errors, Violations []string

		Counts            map[string]int
		Boxed, PhoneBox   []any
		Faces             [][]string
		Sizes             []float64
		Written, Download string
		Refused           string
		Wide              int
		Overlay           bool
		Tools             []struct{ X, Y, Width, Height float64 }
	}
	playtest.Run(t, filepath.Join("testdata", "edit.py"),
		map[string]any{"url": v.address, "shots": os.Getenv("VKSPLAT_SHOTS")}, &log)
	must.Do(t, v.cmd.Process.Signal(os.Interrupt))
	v.wait(t)
	n := log.Counts
	if n["whole"] != 20_000 || n["inside"] >= n["whole"] || n["undone"] != n["whole"] || n["redone"] != n["inside"] ||
		n["brushed"] >= n["inside"] {
		t.Errorf("splats: %v", n)
	}
	if n["phone reset"] != n["whole"] || n["phone two fingers"] != n["phone brushed"] || n["phone "+
		"brushed"] >= n["whole"] ||
		n["phone undone"] != n["whole"] {
		t.Errorf("splats on the phone: %v", n)
	}
	if len(log.Faces) != 2 || slices.Equal(log.Faces[0], log.Faces[1]) || log.Boxed[0] != true ||
		log.Boxed[1].(float64) < 200 {
		t.Errorf("the box: %v, drawn %v", log.Faces, log.Boxed)
	}
	if log.Overlay {
		t.Error("the stroke is left on the picture")
	}
	if len(log.Sizes) != 2 || log.Sizes[1] <= log.Sizes[0] {
		t.Errorf("sizes of the brush: %v", log.Sizes)
	}
	source := must.Get(splatfile.Open(filepath.Join(dir, "from the page.spz")))(t)
	if got := source.Info().N; got != n["brushed"] || log.Download != "from the page.spz" ||
		!strings.Contains(log.Refused, "already exists") {
		t.Errorf("%s, %d splats, want %d; downloaded %q; again: %q", log.Written, got, n["brushed"], log.Download,
			log.Refused)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	if log.Wide > 390 || len(log.Tools) != 5 {
		t.Errorf("on a phone: %d px wide, %d tools", log.Wide, len(log.Tools))
	}
	for _, b := range log.Tools {
		if b.X < 0 || b.X+b.Width > 390 || b.Y+b.Height > 844 || b.Height < 40 {
			t.Errorf("a tool on a phone: %+v", b)
		}
	}
	at, _, _ := strings.Cut(v.address, "?")
	for _, r := range log.Requests {
		if !strings.HasPrefix(r, at) && !strings.HasPrefix(r, "data:") {
			t.Errorf("the page asks for %s", r)
		}
	}
	if len(log.Errors) > 0 || len(log.Violations) > 0 {
		t.Errorf("errors %q, against the policy %q", log.Errors, log.Violations)
	}
}
