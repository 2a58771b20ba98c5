package view

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	must "vksplat/internal/musttest"
)

// fakeEdit is a model that nobody draws, and remembers what is asked of it.
type fakeEdit struct {
	fakeTraining
	mu      sync.Mutex
	state   EditState
	change  chan struct{}
	asked   []*EditQuery
	exports []*ExportQuery
	files   map[string]string
}

func (f *fakeEdit) Edits() EditState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *fakeEdit) EditsChange() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.change
}

func (f *fakeEdit) Edit(_ context.Context, q *EditQuery) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, q)
	if q.Do == EditRedo {
		return errors.New("nothing to redo")
	}
	f.state.Version++
	close(f.change)
	f.change = make(chan struct{})
	return nil
}

func (f *fakeEdit) Export(q *ExportQuery) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exports = append(f.exports, q)
	return nil
}

func (f *fakeEdit) Exported(name string) string { return f.files[name] }

// editServer serves a model that is edited.
func editServer(t *testing.T) (*Server, *fakeEdit) {
	t.Helper()
	s := must.Get(Listen(ServerOptions{}))(t)
	f := &fakeEdit{change: make(chan struct{}), state: EditState{Version: 1, Splats: 5, Of: 5}}
	must.Do(t, ShowEdited(s, "a model", [3]float64{0, -1, 0}, LiveCamera{}, EditFrame{Scale: 1},
		[]EditFormat{{"ply", ".ply"}}, "folder", f))
	serving(t, s)
	return s, f
}

const (
	asJSON    = "Content-Type: application/json"
	goodBrush = `{"do":"brush","path":[[0.1,0.2],[0.3,0.4]],"radius":0.1,"through":true,"view":{"camera":-1,` +
		`"quaternion":[0,0,0,1],"position":[1,2,3],"tangent":0.5,"width":64,"height":48,"mode":"picture"}}`
	goodCrop = `{"do":"crop","keep":"inside","box":[0,1,2,3,4,5],"turn":30}`
)

// TestEdit hands on what is asked for, and answers with how the edit stands.
func TestEdit(t *testing.T) {
	s, f := editServer(t)
	for i, body := range []string{goodBrush, goodCrop, `{"do":"up","up":"-z"}`, `{"do":"undo"}`} {
		status, text := raw(t, s, post(s, "edit", body, asJSON))
		var state EditState
		if err := json.Unmarshal([]byte(text), &state); status != 200 || err != nil || state.Version != i+2 {
			t.Errorf("%s: %d %s, %v", body, status, text, err)
		}
	}
	brush, crop := f.asked[0], f.asked[1]
	if len(brush.Path) != 2 || brush.Path[1] != [2]float64{0.3, 0.4} || brush.Radius != 0.1 || !brush.Through ||
		brush.View.Position != [3]float64{1, 2, 3} || brush.View.Width != 64 {
		t.Errorf("the brush: %+v", brush)
	}
	if crop.Box != [6]float64{0, 1, 2, 3, 4, 5} || !crop.Inside || crop.Turn != 30 || f.asked[2].Up != "-z" {
		t.Errorf("the box: %+v, up %q", crop, f.asked[2].Up)
	}
	if status, text := raw(t, s, post(s, "edit", `{"do":"redo"}`, asJSON)); status != 400 ||
		!strings.Contains(text, "nothing to redo") {
		t.Errorf("an error: %d %s", status, text)
	}
	if status, _ := raw(t, s, post(s, "export", `{"name":"a","format":"ply"}`, asJSON)); status != 200 ||
		f.exports[0].Name != "a" || f.exports[0].Format != "ply" {
		t.Errorf("an export: %d, %+v", status, f.exports)
	}
	f.files = map[string]string{"a b.ply": filepath.Join("testdata", "play.py"), "gone.ply": "nowhere", "dir.ply": "testdata"}
	for name, want := range map[string]int{"a%20b.ply": 200, "gone.ply": 404, "dir.ply": 404, "b.ply": 404, "": 404,
		"../edit.js": 404, "%2e%2e/edit.js": 404} {
		if status, text := raw(t, s, request(s, s.prefix+"exported/"+name)); status != want ||
			want == 200 && !strings.Contains(text, "import") {
			t.Errorf("the file %q: %d %.40s", name, status, text)
		}
	}
}

// TestEditHostile sends what a hostile page or program would: nothing is handed on.
func TestEditHostile(t *testing.T) {
	s, f := editServer(t)
	with := func(old, new string) string { return strings.Replace(goodBrush, old, new, 1) }
	box := func(numbers string) string { return strings.Replace(goodCrop, "0,1,2,3,4,5", numbers, 1) }
	for _, body := range []string{
		"", "{", "null", "[]", `"undo"`, `{}`, `{"do":"rm"}`, `{"do":1}`, `{"do":"undo","args":"x"}`,
		`{"do":"undo"}{"do":"undo"}`, box("0,1,2,3,4"), box("0,1,2,3,4,5,6"), box("0,1,2,3,4,NaN"),
		box("0,1,2,3,4,1e999"), box("0,1,2,3,4,1e300"), box("0,1,2,-3,4,5"), box("null"),
		strings.Replace(goodCrop, "inside", "both", 1), strings.Replace(goodCrop, "30", "1e9", 1),
		with("0.3,0.4", "0.3,1.4"), with("0.3,0.4", "0.3"), with("0.3,0.4", "0.3,-0.1"), with("0.3,0.4", "0.3,0.4,0"),
		with("[0.1,0.2],[0.3,0.4]", ""), with("[0.1,0.2],", strings.Repeat("[0,0],", maxPath)),
		with("[0.1,0.2],", strings.Repeat("[0,0],", maxEdit/6)), with(`"radius":0.1`, `"radius":-1`),
		with(`"radius":0.1`, `"radius":50`), with(`"radius":0.1`, `"radius":1e999`), with(`"camera":-1`, `"camera":9`),
		with(`"camera":-1`, `"camera":-2`), with(`"width":64`, `"width":1000000`), with("[1,2,3]", "[1e300,2,3]"),
		with("[0,0,0,1]", "[0,0,0,0]"), `{"do":"brush","path":[[0,0]],"radius":0.1}`, `{"do":"up"}`,
		`{"do":"up","up":"w"}`, `{"do":"up","up":"view"}`, strings.Replace(goodBrush, "brush", "floor", 1),
	} {
		if status, text := raw(t, s, post(s, "edit", body, asJSON)); status != 400 {
			t.Errorf("%.80s: %d %s", body, status, text)
		}
	}
	good := post(s, "edit", goodCrop, asJSON)
	for _, c := range []struct {
		what, text string
		want       int
	}{
		{"no cookie", strings.Replace(good, "Cookie:", "Biscuit:", 1), 403},
		{"no origin", strings.Replace(good, "Origin:", "Source:", 1), 403},
		{"a foreign origin", strings.Replace(good, "Origin: http://", "Origin: http://evil.example/", 1), 403},
		{"a foreign host", strings.Replace(good, "Host: 127.0.0.1", "Host: evil.example", 1), 403},
		{"a form", post(s, "edit", goodCrop, "Content-Type: text/plain"), 400},
		{"a link", request(s, s.prefix+"edit"), 404},
		{"an export by a link", request(s, s.prefix+"export"), 404},
		{"an export without a cookie", strings.Replace(post(s, "export", `{"name":"a","format":"ply"}`, asJSON),
			"Cookie:", "Biscuit:", 1), 403},
		{"a folder for an export", post(s, "export", `{"name":"a","format":"ply","folder":"/"}`, asJSON), 400},
		{"the assets' folder", request(s, s.prefix+"live/edit.js"), 404},
	} {
		if status, text := raw(t, s, c.text); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, status, text, c.want)
		}
	}
	if len(f.asked)+len(f.exports) > 0 {
		t.Errorf("handed on: %+v, %+v", f.asked, f.exports)
	}
}

// TestEditTold has every browser that watches hear of a change, and get a new picture of what it looks at.
func TestEditTold(t *testing.T) {
	f := &fakeEdit{change: make(chan struct{}), state: EditState{Version: 1, Of: 5}}
	h := newWatch(f, nil)
	h.edited = f
	var all []*websocket.Conn
	for range 2 {
		c := dial(t, served(t, h))
		hear(t, c, func(_ websocket.MessageType, _ []byte, m *message) bool {
			return m.Edits != nil && m.Edits.Version == 1
		})
		say(t, c, freeView)
		hear(t, c, isFrame)
		say(t, c, `{"shown":1}`)
		all = append(all, c)
	}
	must.Do(t, f.Edit(t.Context(), &EditQuery{Do: EditUndo}))
	for _, c := range all {
		told, drawn := false, false
		hear(t, c, func(kind websocket.MessageType, data []byte, m *message) bool {
			told = told || m.Edits != nil && m.Edits.Version == 2
			drawn = drawn || isFrame(kind, data, m)
			return told && drawn
		})
	}
}
