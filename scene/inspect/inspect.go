package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
)

type Severity string

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

func (p Problem) String() string { return p.warning().String() }

func (p Problem) warning() scene.Warning {
	return scene.Warning{Code: p.Code, Count: p.Count, Names: p.Names, Text: p.Text, Remedy: p.Remedy}
}

// Report is the result of Inspect. Distances are in the capture's own units.
type Report struct {
	Root   string `json:"root"`
	Format string `json:"format,omitempty"` // as Capture.Format; COLMAP's text form is "colmap, text"
	Model  string `json:"model,omitempty"`
	Images string `json:"images,omitempty"`

	Photos  int `json:"photos"`   // with a camera
	HeldOut int `json:"held_out"` // by the capture's own files
	Masks   int `json:"masks"`
	Points  int `json:"points"`
	// share of the points that a camera sees; 0 without Options.Coverage
	PointsSeen     float64     `json:"points_seen"`
	MeanCamera     [3]float64  `json:"mean_camera"`            //
	MedianDistance float64     `json:"median_camera_distance"` // from the mean camera
	Extent         float64     `json:"largest_camera_distance"`
	Sizes          []SizeCount `json:"sizes,omitempty"`
	Lenses         []LensCount `json:"lenses,omitempty"`

	Applied  *scene.AppliedTransform `json:"applied_transform,omitempty"`
	Cameras  []CameraReport          `json:"cameras,omitempty"`
	Problems []Problem               `json:"problems"`
}

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

type CameraReport struct {
	Name     string  `json:"name"`
	Width    int     `json:"width"`
	Height   int     `json:"height"`
	Lens     string  `json:"lens"`
	Fx       float64 `json:"fx"`
	Fy       float64 `json:"fy"`
	Distance float64 `json:"distance"` // from the mean camera
	// in view; an estimate when there are more than 200,000; 0 without Options.Coverage
	Points  int  `json:"points"`
	HeldOut bool `json:"held_out,omitempty"`
	Mask    bool `json:"mask,omitempty"`

	// Of the decoded photo, absent when it was not decoded.
	Brightness *float64 `json:"brightness,omitempty"` // mean, 0 to 1
	Sharpness  *float64 `json:"sharpness,omitempty"`  // variance of the Laplacian over the median of all photos
}

// Options say how much Inspect looks at, beyond what its warnings need.
type Options struct {
	Pixels bool // decode every photo, at reduced size, to find black and blurred ones and masks that leave nothing
	Unused bool // the capture's points: training begins with other splats
	// count the points of each camera and those that are seen; otherwise both stay 0 and counting ends as soon as
	// nothing is to be warned of
	Coverage bool
}

// Capture examines a capture that has been loaded. The only error is that of ctx.
func Capture(ctx context.Context, c *scene.Capture, o Options) (*Report, error) {
	r := &Report{Root: c.Root, Format: c.Format, Model: c.Model, Images: c.Images, Points: len(c.Points),
		Applied: c.Applied, Problems: []Problem{}}
	if c.Text {
		r.Format += ", text"
	}
	for _, w := range c.Warnings {
		severity := SeverityWarning
		if Note(w) {
			severity = SeverityNote
		}
		r.add(Problem{Severity: severity, Code: w.Code, Text: w.Text, Count: w.Count, Names: w.Names, Remedy: w.Remedy,
			loading: true})
	}
	r.describe(c)
	r.checkPoses(c)
	if len(c.Points) > 0 || !o.Unused {
		r.checkPoints(c, o)
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
	} else { // or decoding has found out
		r.checkEnds(c)
	}
	rank := []Severity{SeverityFatal, SeverityWarning, SeverityNote}
	slices.SortStableFunc(r.Problems,
		func(a, b Problem) int { return slices.Index(rank, a.Severity) - slices.Index(rank, b.Severity) })
	return r, nil
}

// FailedReport is the report of a capture that Load refused with err.
func FailedReport(root string, err error) *Report {
	text := err.Error()
	var e *fault.Error
	if errors.As(err, &e) {
		text = e.Error()
	}
	return &Report{Root: root,
		Problems: []Problem{{Severity: SeverityFatal, Code: "cannot-load", Text: text, Remedy: fault.Hint(err)}}}
}

// Warnings are those that a training run prints: of loading, and of the checks.
func (r *Report) Warnings() []scene.Warning {
	var out []scene.Warning
	for _, p := range r.Problems {
		if p.loading || p.Severity == SeverityWarning {
			out = append(out, p.warning())
		}
	}
	return out
}

// Fatal gives the first problem that leaves nothing to train on as an *Error of kind fault.ErrData, or nil.
func (r *Report) Fatal() error {
	for _, p := range r.Problems {
		if p.Severity == SeverityFatal {
			return &fault.Error{Op: "inspect capture", Path: r.Root, Err: errors.New(p.String()), Hint: p.Remedy}
		}
	}
	return nil
}

// Pointless reports what NeedsInit did of the capture.
func (r *Report) Pointless() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool {
		return p.Code == "no-points" && p.Severity == SeverityWarning
	})
}

// Note reports whether the warning needs no action.
func Note(w scene.Warning) bool { return slices.Contains(announcements, w.Code) }

// announcements are codes of load's warnings that need no action.
var announcements = []string{"masks", "other-format", "unused-split", "reduced-photos", "moved-points",
	"disabled-photos"}

func (r *Report) add(p Problem) {
	if p.Remedy == "" {
		p.Remedy = scene.Remedies[p.Code]
	}
	r.Problems = append(r.Problems, p)
}

// about notes a problem with photos, if there are any.
func (r *Report) about(severity Severity, code string, names []string, format string, args ...any) {
	if len(names) > 0 {
		r.add(Problem{Severity: severity, Code: code, Text: fmt.Sprintf(format, args...), Count: len(names),
			Names: scene.FirstNames(names)})
	}
}

// describe fills the table and the counts.
func (r *Report) describe(c *scene.Capture) {
	photos, lenses, sizes := map[string]bool{}, map[string]int{}, map[[2]int]int{}
	for _, cam := range c.Cameras {
		row := CameraReport{Name: cam.Name, Width: cam.Width, Height: cam.Height, Lens: photoLens(cam), Fx: cam.Fx,
			Fy: cam.Fy, Mask: cam.Mask != "", HeldOut: c.HeldOut[cam.PhotoName()]}
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
	slices.SortFunc(r.Sizes, func(a,
		b SizeCount) int {
		return slices.Compare([]int{a.Width, a.Height}, []int{b.Width, b.Height})
	})
	for _, w := range c.Warnings {
		if w.Code == "unregistered-photos" && w.Count > r.Photos {
			r.add(Problem{Severity: SeverityWarning, Code: "few-registered",
				Text: fmt.Sprintf("only %d of %d photos are part of the model", r.Photos, r.Photos+w.Count)})
		}
	}
}

// photoLens names the lens of the photo, which is not always the camera's.
func photoLens(c scene.Camera) string {
	if c.Lens != nil {
		return c.Lens.Calibration.Model.String()
	}
	if c.Model == scene.Fisheye {
		return "EQUIDISTANT"
	}
	return scene.LensPinhole.String()
}
