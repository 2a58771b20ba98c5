package view

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
)

// Edited is a finished model that browsers change. What they make of it is written as a new file.
type Edited interface {
	Streamed
	// Edits returns the state of the edit without waiting.
	Edits() EditState
	// EditsChange is closed when Edits has become another.
	EditsChange() <-chan struct{}
	// Edit carries out what a browser wants. It waits for its turn.
	Edit(ctx context.Context, q *EditQuery) error
	// Export begins to write the model as it is now. How that goes is in Edits.
	Export(q *ExportQuery) error
	// Exported is where a file lies that was exported, by its name; "" for none.
	Exported(name string) string
}

type EditState struct {
	Version int        `json:"version"` // grows with every change
	Splats  int        `json:"splats"`  // that are left
	Of      int        `json:"of"`
	Done    int        `json:"done"`   // operations
	Undone  int        `json:"undone"` // that can be carried out again
	Up      [3]float64 `json:"up"`     // a unit vector in the cameras' frame
	Chosen  bool       `json:"chosen"` // Up is by an operation
	// Axes are the rows of the rotation from the model's file to the model as an export would have it now.
	Axes   [9]float64 `json:"axes"`
	Box    [6]float64 `json:"box"`  // around most of what matters, in the frame of an export
	Name   string     `json:"name"` // for an export, as none has it
	Export Save       `json:"export"`
	File   string     `json:"file"` // name of the last that was exported
}

// EditFrame is how the frame of the cameras lies to that of the model's file: x in the file is at (x - Center) * Scale.
type EditFrame struct {
	Center [3]float64 `json:"center"`
	Scale  float64    `json:"scale"`
}

type EditFormat struct {
	Name   string `json:"name"`
	Ending string `json:"ending"`
}

// EditPage is the initial state of the page of an edit.
type EditPage struct {
	Frame   EditFrame    `json:"frame"`
	Formats []EditFormat `json:"formats"`
	Folder  string       `json:"folder"` // of exports
	State   EditState    `json:"state"`
}

// EditKind is the kind of an EditQuery.
type EditKind string

const (
	EditCrop  EditKind = "crop"
	EditBrush EditKind = "brush"
	EditUp    EditKind = "up"
	EditFloor EditKind = "floor" // up by three places
	EditUndo  EditKind = "undo"
	EditRedo  EditKind = "redo"
	EditReset EditKind = "reset" // takes everything back
)

// EditQuery is a browser's request to an edit. Which fields count depends on Do.
type EditQuery struct {
	Do      EditKind
	View    FrameQuery   // the picture that Path lies in; of EditBrush, EditFloor, and EditUp with UpView
	Path    [][2]float64 // 0 at the left and the top to 1; a stroke, or three places
	Radius  float64      // of the brush, in heights of the picture
	Through bool         // the brush takes also what the picture hides
	Box     [6]float64   // in the frame of an export: least x, y, z, then greatest
	Turn    float64      // of the box about the vertical axis, degrees
	Inside  bool         // what is in the box stays, not what is outside
	Up      string       // an axis of the model's file, as in "+z", UpPhotos or UpView
}

// What up can be beside an axis.
const (
	UpPhotos = "photos" // the mean of the photos' up
	UpView   = "view"   // of the picture
)

// Axes are the axes that up can be.
var Axes = map[string][3]float64{"+x": {1, 0, 0}, "-x": {-1, 0, 0}, "+y": {0, 1, 0}, "-y": {0, -1, 0}, "+z": {0, 0, 1},
	"-z": {0, 0, -1}}

type ExportQuery struct {
	Name   string `json:"name"`   // of the file, without folder and ending
	Format string `json:"format"` // of EditPage.Formats
}

// Bounds of what browsers send.
const (
	maxEdit     = 64 << 10 // bytes
	maxPath     = 1000     // places of a stroke
	maxRadius   = 0.5
	maxBox      = 1e9
	maxBoxTurns = 360
)

// wireEdit is an EditQuery as a browser sends it. Lists have any length there.
type wireEdit struct {
	Do      EditKind    `json:"do"`
	View    *wireQuery  `json:"view"`
	Path    [][]float64 `json:"path"`
	Radius  float64     `json:"radius"`
	Through bool        `json:"through"`
	Box     []float64   `json:"box"`
	Turn    float64     `json:"turn"`
	Keep    string      `json:"keep"`
	Up      string      `json:"up"`
}

// query checks what came from outside.
func (w *wireEdit) query(cameras int) (*EditQuery, error) {
	q := &EditQuery{Do: w.Do, Radius: w.Radius, Through: w.Through, Turn: w.Turn, Up: w.Up}
	var err error
	switch w.Do {
	case EditUndo, EditRedo, EditReset:
	case EditCrop:
		q.Inside = w.Keep == "inside"
		q.Box, err = w.box()
	case EditUp:
		if _, axis := Axes[w.Up]; w.Up == UpView {
			q.View, err = w.picture(cameras)
		} else if !axis && w.Up != UpPhotos {
			err = fmt.Errorf("up: there is no axis %.20q", w.Up)
		}
	case EditFloor, EditBrush:
		if q.View, err = w.picture(cameras); err == nil {
			q.Path, err = w.path()
		}
		if err == nil && w.Do == EditFloor && len(q.Path) != 3 {
			err = errors.New("floor: expected three places")
		}
		if err == nil && w.Do == EditBrush && !(w.Radius > 0 && w.Radius <= maxRadius) {
			err = errors.New("brush: there is no such size")
		}
	default:
		err = fmt.Errorf("edit: unknown operation %.20q", string(w.Do))
	}
	return q, err
}

func (w *wireEdit) picture(cameras int) (FrameQuery, error) {
	if w.View == nil {
		return FrameQuery{}, errors.New("edit: no picture is given")
	}
	return w.View.query(cameras)
}

func (w *wireEdit) box() (box [6]float64, err error) {
	if len(w.Box) != len(box) || w.Keep != "inside" && w.Keep != "outside" || !(math.Abs(w.Turn) <= maxBoxTurns) {
		return box, errors.New("crop: expected six numbers, an angle and a side")
	}
	copy(box[:], w.Box)
	for k := range 3 {
		if !(box[k] >= -maxBox && box[k] <= box[3+k] && box[3+k] <= maxBox) {
			return box, errors.New("crop: there is no such box")
		}
	}
	return box, nil
}

func (w *wireEdit) path() ([][2]float64, error) {
	if len(w.Path) == 0 || len(w.Path) > maxPath {
		return nil, fmt.Errorf("edit: a path of %d places, expected 1 to %d", len(w.Path), maxPath)
	}
	path := make([][2]float64, len(w.Path))
	for i, p := range w.Path {
		if len(p) != 2 || !(p[0] >= 0 && p[0] <= 1 && p[1] >= 0 && p[1] <= 1) {
			return nil, errors.New("edit: a place outside of the picture")
		}
		path[i] = [2]float64(p)
	}
	return path, nil
}

// ShowEdited serves a page with a finished model that is edited. up is a unit vector in the cameras' frame; start is
// where the free camera stands first.
func ShowEdited(s *Server, title string, up [3]float64, start LiveCamera, frame EditFrame, formats []EditFormat,
	folder string, m Edited) error {
	state := m.Edits()
	if err := showLive(s, liveJSON{Title: title, Cameras: m.Cameras(), Up: up, Splats: state.Of, Start: &start,
		Edit: &EditPage{Frame: frame, Formats: formats, Folder: folder, State: state}}); err != nil {
		return err
	}
	for _, name := range []string{"edit.js", "box.js", "paint.js"} {
		s.Handle(name, bytesHandler(name, mustAsset("live/"+name)))
	}
	h := newWatch(m, nil)
	h.edited = m
	s.Handle("watch", h)
	cameras := h.cameras
	s.HandlePost("edit", edits(m, func(r *http.Request, w *wireEdit) error {
		q, err := w.query(cameras)
		if err != nil {
			return err
		}
		return m.Edit(r.Context(), q)
	}))
	s.Handle(exportedPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", "attachment")
		serveFile(w, r, m.Exported(strings.TrimPrefix(s.Below(r), exportedPath)), "there is no such file",
			http.StatusNotFound)
	}))
	s.HandlePost("export", edits(m, func(_ *http.Request, q *ExportQuery) error { return m.Export(q) }))
	return nil
}

// exportedPath is above the files that were exported.
const exportedPath = "exported/"

// edits answers with how the edit stands after a change.
func edits[T any](m Edited, change func(r *http.Request, v *T) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := Asked[T](w, r, maxEdit)
		if err == nil {
			err = change(r, v)
		}
		if err != nil {
			AnswerError(w, http.StatusBadRequest, err)
			return
		}
		Answer(w, m.Edits())
	})
}
