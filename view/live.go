package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"net/http"
	"strconv"
	"text/template"
	"time"
)

// Streamed is a scene of which this machine draws what browsers want to see. Its methods are called by several
// goroutines.
type Streamed interface {
	// Cameras are those of the photos, in the frame in which FrameQuery gives poses. They do not change.
	Cameras() []LiveCamera
	// Frame is a picture of the model as it is, a JPEG. It waits for its turn.
	Frame(ctx context.Context, q FrameQuery) ([]byte, error)
}

type Training interface {
	Streamed
	// Photo is the JPEG that a camera's picture is compared with.
	Photo(ctx context.Context, camera int) ([]byte, error)
	// Status says how far the training is.
	Status() Status
	// History is the course of the training since its begin, at most some hundred moments, oldest first.
	History() []Moment
	// Losses are the last losses of the photos, see ViewLoss.
	Losses() []ViewLoss
	// Do carries out what the user wants.
	Do(ctx context.Context, c Command) error
	// Watched receives the number of watchers whenever it changes.
	Watched(n int)
	// Ended is closed when the training has ended. Status says by then how it ended.
	Ended() <-chan struct{}
}

// Command is an order of a watching user to a training.
type Command string

const (
	CommandPause  Command = "pause"
	CommandResume Command = "resume"
	CommandSave   Command = "save" // a checkpoint, now
	CommandStop   Command = "stop" // as Ctrl-C does
)

// LiveCamera is a photo's camera.
type LiveCamera struct {
	Name     string     `json:"name"`
	Held     bool       `json:"held"`     // held out of the training
	Rotation [9]float64 `json:"rotation"` // world to camera, rows; x right, y down, z forward
	Position [3]float64 `json:"position"` // in the world
	Tangent  float64    `json:"tangent"`  // of half the vertical field of view, about
	Width    int        `json:"width"`    // px
	Height   int        `json:"height"`
}

// Mode is the kind of frame.
type Mode string

const (
	ModePicture    Mode = "picture"
	ModeDepth      Mode = "depth"
	ModeCentres    Mode = "centres"    // a dot where each splat is
	ModeEllipsoids Mode = "ellipsoids" // opaque, without what fades out around them
	ModeError      Mode = "error"      // the difference from the photo of Camera
)

type FrameQuery struct {
	Camera   int        // of Cameras, with its own projection; -1: the pose below
	Rotation [9]float64 // world to camera, orthonormal
	Position [3]float64 // in the world
	Tangent  float64    // of half the vertical field of view
	Width    int        // px; with Camera at most that, in its shape
	Height   int
	Mode     Mode
	Still    bool // nothing moves: the frame may take longer
}

// Status says how far a training is.
type Status struct {
	Step     int     `json:"step"`
	Steps    int     `json:"steps"` // in all
	Splats   int     `json:"splats"`
	Loss     float64 `json:"loss"`   // running mean
	Rate     float64 `json:"rate"`   // steps a second, lately
	Paused   bool    `json:"paused"` // or about to be
	Doing    string  `json:"doing"`  // "training", "paused", "measuring the held-out photos", ...
	HeldPSNR float64 `json:"heldPsnr"`
	HeldStep int     `json:"heldStep"` // of HeldPSNR; 0: not measured yet
	Save     Save    `json:"save"`
	End      *End    `json:"end,omitempty"` // nil while it goes on
}

// Save is the outcome of the last CommandSave.
type Save struct {
	State SaveState `json:"state"` // "": none was given
	Step  int       `json:"step"`  // of the checkpoint, when it is saved
	Text  string    `json:"text"`  // its file, or why there is none
}

type SaveState string

const (
	SaveWriting SaveState = "writing"
	SaveDone    SaveState = "saved"
	SaveFailed  SaveState = "failed"
)

type End struct {
	State EndState `json:"state"`
	Model string   `json:"model"` // file of the model, "" if none was written
	Text  string   `json:"text"`  // how to go on, or what went wrong
}

// EndState is how well a training ended.
type EndState string

const (
	EndFinished EndState = "finished"
	EndStopped  EndState = "stopped" // by the user, or by a time limit
	EndFailed   EndState = "failed"
)

// Moment is a place of the curves.
type Moment struct {
	Step   int     `json:"step"`
	Loss   float64 `json:"loss"` // mean since the moment before
	Splats int     `json:"splats"`
	PSNR   float64 `json:"psnr"` // of the photos trained on, from the mean squared error since the moment before
}

// ViewLoss is a photo's last loss.
type ViewLoss struct {
	Camera int     `json:"camera"`
	Step   int     `json:"step"` // when it was trained on; 0: not yet
	Loss   float64 `json:"loss"`
}

// Bounds of frames.
const (
	leastSide = 16
	mostSide  = 2560 // px
)

// wireQuery is a FrameQuery as a browser sends it.
type wireQuery struct {
	Camera     int        `json:"camera"`
	Quaternion [4]float64 `json:"quaternion"` // camera to world, x, y, z, w; camera x right, y down, z forward
	Position   [3]float64 `json:"position"`
	Tangent    float64    `json:"tangent"`
	Width      int        `json:"width"`
	Height     int        `json:"height"`
	Mode       Mode       `json:"mode"`
	Still      bool       `json:"still"`
}

// query checks what came from outside.
func (w *wireQuery) query(cameras int) (FrameQuery, error) {
	q := FrameQuery{Camera: w.Camera, Position: w.Position, Tangent: w.Tangent, Width: w.Width, Height: w.Height,
		Mode: w.Mode, Still: w.Still}
	if q.Camera < -1 || q.Camera >= cameras {
		return q, fmt.Errorf("frame: camera %d of %d", q.Camera, cameras)
	}
	if min(q.Width, q.Height) < leastSide || max(q.Width, q.Height) > mostSide {
		return q, fmt.Errorf("frame: %dx%d pixels, each side is from %d to %d", q.Width, q.Height, leastSide, mostSide)
	}
	switch q.Mode {
	case ModePicture, ModeDepth, ModeCentres, ModeEllipsoids:
	case ModeError:
		if q.Camera < 0 {
			return q, fmt.Errorf("frame: the error is that of a camera")
		}
	default:
		return q, fmt.Errorf("frame: no mode %.20q", string(q.Mode))
	}
	if q.Camera >= 0 {
		return q, nil
	}
	x, y, z, s := w.Quaternion[0], w.Quaternion[1], w.Quaternion[2], w.Quaternion[3]
	norm := math.Sqrt(x*x + y*y + z*z + s*s)
	far := math.Abs(q.Position[0]) + math.Abs(q.Position[1]) + math.Abs(q.Position[2])
	if !(norm > 1e-6 && norm < 1e6 && far < 1e9 && q.Tangent > 0.01 && q.Tangent < 10) {
		return q, fmt.Errorf("frame: no pose")
	}
	x, y, z, s = x/norm, y/norm, z/norm, s/norm
	// The transpose of the quaternion's matrix: world to camera.
	q.Rotation = [9]float64{
		1 - 2*(y*y+z*z), 2 * (x*y + s*z), 2 * (x*z - s*y),
		2 * (x*y - s*z), 1 - 2*(x*x+z*z), 2 * (y*z + s*x),
		2 * (x*z + s*y), 2 * (y*z - s*x), 1 - 2*(x*x+y*y),
	}
	return q, nil
}

var liveTemplate = template.Must(template.New("live").Parse(string(mustAsset("live/index.html"))))

// liveJSON is the data for live.js in the page.
type liveJSON struct {
	Title   string       `json:"title"`
	Cameras []LiveCamera `json:"cameras"`
	Up      [3]float64   `json:"up"` // of the photos
	// Of a finished model; of a training they are not there.
	Splats int         `json:"splats,omitempty"`
	Start  *LiveCamera `json:"start,omitempty"` // where the free camera stands first
	Edit   *EditPage   `json:"edit,omitempty"`  // of one that is edited
}

// ShowTraining serves a page with a training. up is the photos', a unit vector in the cameras' frame.
func ShowTraining(s *Server, title string, up [3]float64, t Training) error {
	cameras := t.Cameras()
	if err := showLive(s, liveJSON{Title: title, Cameras: cameras, Up: up}); err != nil {
		return err
	}
	s.Handle("photo", photoHandler(t, len(cameras)))
	s.Handle("watch", newWatch(t, t))
	return nil
}

// ShowStreamed serves a page with a finished model. up is a unit vector in the cameras' frame; start
// is where the free camera stands first.
func ShowStreamed(s *Server, title string, splats int, up [3]float64, start LiveCamera, m Streamed) error {
	if err := showLive(s, liveJSON{Title: title, Cameras: m.Cameras(), Up: up, Splats: splats,
		Start: &start}); err != nil {
		return err
	}
	s.Handle("watch", newWatch(m, nil))
	return nil
}

// showLive serves the page of what is drawn here.
func showLive(s *Server, what liveJSON) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	page := new(bytes.Buffer)
	if err := liveTemplate.Execute(page,
		pageParts{Title: html.EscapeString(what.Title), Scene: string(data)}); err != nil {
		return err
	}
	showLivePage(s, page.Bytes(), "live.css", "live.js", "camera.js", "curves.js")
	return nil
}

// ShowSearch serves a page about a search for cameras, whose script, search.js, asks for what search answers.
func ShowSearch(s *Server, title string, search http.Handler) {
	s.Handle("search", search)
	page := bytes.ReplaceAll(mustAsset("live/search.html"), []byte("{{.Title}}"), []byte(html.EscapeString(title)))
	showLivePage(s, page, "live.css", "search.js", "camera.js", "box.js")
}

// showLivePage serves a page and what it loads.
func showLivePage(s *Server, page []byte, files ...string) {
	for _, name := range files {
		s.Handle(name, bytesHandler(name, mustAsset("live/"+name)))
	}
	s.Handle("", bytesHandler("index.html", page))
}

// photoHandler serves photos by number.
func photoHandler(t Training, cameras int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.URL.Query().Get("camera"))
		if err != nil || id < 0 || id >= cameras {
			http.Error(w, "there is no such photo", http.StatusNotFound)
			return
		}
		data, err := t.Photo(r.Context(), id)
		if err != nil {
			http.Error(w, "the photo cannot be read: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "image/jpeg")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}
