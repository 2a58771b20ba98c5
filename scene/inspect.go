package scene

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad a Problem is.
type Severity string

// The severities.
const (
	SeverityNote    Severity = "note"    // worth knowing
	SeverityWarning Severity = "warning" // the model will be worse than it could be
	SeverityFatal   Severity = "fatal"   // there is nothing to train on
)

// Problem is something about a capture that its owner should know.
type Problem struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // short and stable
	Text     string   `json:"text"`
	Count    int      `json:"count,omitempty"` // how many things it is about
	Names    []string `json:"names,omitempty"` // the first few of them
	Remedy   string   `json:"remedy,omitempty"`

	loading bool // it was found while loading
}

// String returns the text with the names.
func (p Problem) String() string { return p.warning().String() }

func (p Problem) warning() Warning {
	return Warning{Code: p.Code, Count: p.Count, Names: p.Names, Text: p.Text, Remedy: p.Remedy}
}

// Report is what Inspect found. Distances are in the capture's own units.
type Report struct {
	Root   string `json:"root"`
	Format string `json:"format,omitempty"` // as Capture.Format; COLMAP's text form is "colmap, text"
	Model  string `json:"model,omitempty"`
	Images string `json:"images,omitempty"`

	Photos         int         `json:"photos"`   // with a camera
	HeldOut        int         `json:"held_out"` // by the capture's own files
	Masks          int         `json:"masks"`
	Points         int         `json:"points"`
	PointsSeen     float64     `json:"points_seen"`            // share of the points that a camera sees; 0 without InspectOptions.Coverage
	MeanCamera     [3]float64  `json:"mean_camera"`            //
	MedianDistance float64     `json:"median_camera_distance"` // from the mean camera
	Extent         float64     `json:"largest_camera_distance"`
	Sizes          []SizeCount `json:"sizes,omitempty"`
	Lenses         []LensCount `json:"lenses,omitempty"`

	Applied  *AppliedTransform `json:"applied_transform,omitempty"`
	Cameras  []CameraReport    `json:"cameras,omitempty"`
	Problems []Problem         `json:"problems"`
}

// SizeCount says how many cameras have a size.
type SizeCount struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	Count  int `json:"count"`
}

// LensCount says how many cameras have a lens model.
type LensCount struct {
	Lens  string `json:"lens"`
	Count int    `json:"count"`
}

// CameraReport is a row of the table of cameras.
type CameraReport struct {
	Name     string  `json:"name"`
	Width    int     `json:"width"`
	Height   int     `json:"height"`
	Lens     string  `json:"lens"`
	Fx       float64 `json:"fx"`
	Fy       float64 `json:"fy"`
	Distance float64 `json:"distance"` // from the mean camera
	Points   int     `json:"points"`   // in view; an estimate when there are more than 200,000; 0 without InspectOptions.Coverage
	HeldOut  bool    `json:"held_out,omitempty"`
	Mask     bool    `json:"mask,omitempty"`

	// Of the decoded photo, absent when it was not decoded.
	Brightness *float64 `json:"brightness,omitempty"` // mean, 0 to 1
	Sharpness  *float64 `json:"sharpness,omitempty"`  // variance of the Laplacian over the median of all photos
}

// InspectOptions say how much Inspect looks at, beyond what its warnings need.
type InspectOptions struct {
	Pixels   bool // decode every photo, at reduced size, to find black and blurred ones and masks that leave nothing
	Unused   bool // the capture's points: training begins with other splats
	Coverage bool // count the points of each camera and those that are seen; otherwise both stay 0 and counting ends as soon as nothing is to be warned of
}

// Inspect examines a capture that has been loaded. The only error is that of ctx.
func Inspect(ctx context.Context, c *Capture, o InspectOptions) (*Report, error) {
	r := &Report{Root: c.Root, Format: c.Format, Model: c.Model, Images: c.Images, Points: len(c.Points), Applied: c.Applied, Problems: []Problem{}}
	if c.text {
		r.Format += ", text"
	}
	for _, w := range c.Warnings {
		severity := SeverityWarning
		if w.Note() {
			severity = SeverityNote
		}
		r.add(Problem{Severity: severity, Code: w.Code, Text: w.Text, Count: w.Count, Names: w.Names, Remedy: w.Remedy, loading: true})
	}
	r.describe(c)
	r.checkPoses(c)
	if len(c.Points) > 0 || !o.Unused {
		r.checkPoints(c, o.Coverage)
	}
	r.checkOrientation(c)
	r.checkSizes(c)
	r.checkLenses(c)
	r.checkPanoramas(c)
	if err := r.checkMasks(ctx, c, o.Pixels); err != nil {
		return nil, err
	}
	if o.Pixels {
		if err := r.checkPixels(ctx, c); err != nil {
			return nil, err
		}
	} else { // or decoding has told
		r.checkEnds(c)
	}
	rank := []Severity{SeverityFatal, SeverityWarning, SeverityNote}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int { return slices.Index(rank, a.Severity) - slices.Index(rank, b.Severity) })
	return r, nil
}

// FailedReport is the report of a capture that Load refused with err.
func FailedReport(root string, err error) *Report {
	text := err.Error()
	var e *Error
	if errors.As(err, &e) {
		text = strings.TrimPrefix(e.Error(), "scene: ")
	}
	return &Report{Root: root, Problems: []Problem{{Severity: SeverityFatal, Code: "cannot-load", Text: text, Remedy: Hint(err)}}}
}

// Warnings are what a training run tells: what was found while loading, and the warnings of the checks.
func (r *Report) Warnings() []Warning {
	var out []Warning
	for _, p := range r.Problems {
		if p.loading || p.Severity == SeverityWarning {
			out = append(out, p.warning())
		}
	}
	return out
}

// Fatal gives the first problem that leaves nothing to train on as an *Error of kind ErrData, or nil.
func (r *Report) Fatal() error {
	for _, p := range r.Problems {
		if p.Severity == SeverityFatal {
			return &Error{Op: "inspect capture", Path: r.Root, Err: errors.New(p.String()), Hint: p.Remedy}
		}
	}
	return nil
}

// Note reports whether the warning needs no action.
func (w Warning) Note() bool { return slices.Contains(announcements, w.Code) }

// announcements are codes of load's warnings that need no action.
var announcements = []string{"masks", "other-format", "unused-split", "reduced-photos"}

// remedies say what to do, by the code of a problem.
var remedies = map[string]string{
	"missing-photos":       "copy the photos to where the model expects them, or name their folder with --images DIR",
	"broken-photos":        "copy or export these photos again as JPEG or PNG",
	"cut-photos":           "copy these photos again: the copies are incomplete; without, their steps train on the photos after them",
	"undecodable-photos":   "copy or export these photos again as JPEG or PNG",
	"unregistered-photos":  "nothing needs to be done; to use these photos too, add views that overlap with them and run COLMAP again",
	"few-registered":       "the reconstruction lost most photos: match exhaustively, take more photos that overlap, or choose another model with --model N",
	"other-models":         "choose another model with --model N; several models mean that COLMAP could not connect the photos: take more that overlap",
	"bad-points":           "export the model again if this is more than a few points",
	"bad-poses":            "export the model again, or remove these photos from it",
	"wild-poses":           "correct these poses, or remove the photos from the model",
	"missing-points":       "correct ply_file_path, or begin with --init random or --init ply:FILE",
	"missing-masks":        "add masks named after these photos, or leave it: they count whole",
	"no-masks":             "name the masks after the photos: the mask of a/b.jpg is a/b.png, a/b.jpg.png or a/b.mask.png",
	"unknown-filenames":    "correct the lists of filenames in the JSON file",
	"skewed-poses":         "write the file again with more digits",
	"scaled-poses":         "write poses without scale, or leave it: the positions are taken as they are",
	"no-applied-transform": "leave out --undo-applied-transform",
	"no-points":            "begin with random points, --init random, or with a point cloud, --init ply:FILE",
	"few-points":           "take more photos that overlap, or begin with a denser cloud: --init ply:FILE",
	"far-points":           "nothing needs to be done if it is the sky; otherwise remove these points, or sample with --init-grid",
	"unseen-points":        "check that points and poses are of the same model",
	"blind-cameras":        "check the poses of these photos; remove from the model those that are wrong",
	"same-pose":            "keep one photo of each pose: the others say nothing about depth",
	"one-pose":             "the model has no poses: run COLMAP again, or export the poses with the cameras' own matrices",
	"far-cameras":          "check the poses of these photos; remove from the model those that are wrong",
	"orientation-tags":     "nothing needs to be done, as long as the model was made from these files as they are",
	"dark-photos":          "remove photos that show nothing",
	"blurred-photos":       "remove the blurred ones where sharp photos show the same",
	"small-photos":         "train on larger photos, or with a smaller --downscale",
	"folded-lenses":        "calibrate again, with fewer distortion parameters or more photos, or correct the camera's parameters in the capture",
	"odd-panoramas":        "export them at 2:1, with black where nothing was seen, if they show less than the whole sphere",
	"broken-masks":         "export these masks again as PNG, white where the photo counts, or remove them: their photos count whole then",
	"stretched-masks":      "draw the masks from the photos that are trained on, or from copies of them scaled as a whole, not cropped",
	"turned-masks":         "turn the masks to how the photos are stored: orientation tags do not count",
	"black-masks":          "white counts: draw these masks again, invert them all with --invert-masks, or remove them: their photos count whole then",
}

// add notes a problem with its remedy.
func (r *Report) add(p Problem) {
	if p.Remedy == "" {
		p.Remedy = remedies[p.Code]
	}
	r.Problems = append(r.Problems, p)
}

// about notes a problem with photos, if there are any.
func (r *Report) about(severity Severity, code string, names []string, format string, args ...any) {
	if len(names) > 0 {
		r.add(Problem{Severity: severity, Code: code, Text: fmt.Sprintf(format, args...), Count: len(names), Names: firstNames(names)})
	}
}

// describe fills the table and the counts.
func (r *Report) describe(c *Capture) {
	photos, lenses, sizes := map[string]bool{}, map[string]int{}, map[[2]int]int{}
	for _, cam := range c.Cameras {
		row := CameraReport{Name: cam.Name, Width: cam.Width, Height: cam.Height, Lens: photoLens(cam), Fx: cam.Fx, Fy: cam.Fy, Mask: cam.Mask != "", HeldOut: c.HeldOut[cam.PhotoName()]}
		if name := cam.PhotoName(); !photos[name] {
			photos[name] = true
			if row.HeldOut {
				r.HeldOut++
			}
			if row.Mask {
				r.Masks++
			}
		}
		lenses[row.Lens]++
		sizes[[2]int{cam.Width, cam.Height}]++
		r.Cameras = append(r.Cameras, row)
	}
	r.Photos = len(photos)
	for lens, n := range lenses {
		r.Lenses = append(r.Lenses, LensCount{lens, n})
	}
	slices.SortFunc(r.Lenses, func(a, b LensCount) int { return strings.Compare(a.Lens, b.Lens) })
	for size, n := range sizes {
		r.Sizes = append(r.Sizes, SizeCount{size[0], size[1], n})
	}
	slices.SortFunc(r.Sizes, func(a, b SizeCount) int { return slices.Compare([]int{a.Width, a.Height}, []int{b.Width, b.Height}) })
	for _, w := range c.Warnings {
		if w.Code == "unregistered-photos" && w.Count > r.Photos {
			r.add(Problem{Severity: SeverityWarning, Code: "few-registered", Text: fmt.Sprintf("only %d of %d photos are part of the model", r.Photos, r.Photos+w.Count)})
		}
	}
}

// photoLens names the lens of the photo, which is not always the camera's.
func photoLens(c Camera) string {
	if c.Lens != nil {
		return c.Lens.Calibration.Model.String()
	}
	if c.Model == Fisheye {
		return "EQUIDISTANT"
	}
	return LensPinhole.String()
}
