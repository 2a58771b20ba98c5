package scene

import (
	"fmt"
	"io"
	"slices"

	"vksplat/internal/wording"
)

// Point is a point of a capture's sparse reconstruction.
type Point struct {
	Pos   [3]float64
	Color [3]uint8 // RGB
}

// Warning is something about a capture that training can live with and its owner should know.
type Warning struct {
	Code  string   // short and stable, as in "missing-photos"
	Count int      // how many things it is about
	Names []string // the first few of them
	Text  string   // a sentence
	// What to do about it, where that depends on what was found; "" leaves it to the code.
	Remedy string
}

func (w Warning) String() string {
	s := wording.Escaped(w.Text, "")
	for i, n := range w.Names {
		if i == 0 {
			s += ": "
		} else {
			s += ", "
		}
		s += wording.Printable(n)
	}
	if more := w.Count - len(w.Names); more > 0 && len(w.Names) > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// Capture is a set of calibrated photos and a sparse point cloud.
type Capture struct {
	Root       string    // folder of the capture
	Format     string    // one of Formats
	Model      string    // folder of the reconstruction, or file of cameras, that was read
	Images     string    // folder of the photos
	Cameras    []Camera  // sorted by name
	Points     []Point   // may be none
	Frame      Frame     // of Cameras and Points; the identity until Normalise
	SceneScale float64   // 1.1 times the largest distance of a camera from the mean camera, in Frame; 0 until Normalise
	Warnings   []Warning //

	Renamed   map[string]string // photos of a COLMAP model whose names there lead out of Images, by these names
	HeldOut   map[string]bool   // names of the held-out photos; nil where neither the files nor a split say
	LeftOut   map[string]bool   // photos that the files name and Cameras lacks; true: they count in Split
	Kept      []bool            // of the points that the files hold, those that Points has; nil: all
	Synthetic bool              // a Blender scene: the background is white, the object within 1.3 units of the origin
	Applied   *AppliedTransform // what nerfstudio did to the poses; nil: nothing that it recorded

	Text       bool  // the model that is used is in text form
	Calibrated Files // a COLMAP model with other cameras than Model's; nil: none
}

// Files opens the files of a reconstruction by name, and says how many bytes each has.
type Files func(name string) (r io.ReadCloser, size int64, err error)

// AppliedTransform is how nerfstudio changed the poses that COLMAP found: recorded = Scale (Matrix [x 1]).
type AppliedTransform struct {
	Matrix [12]float64 // 3x4, row-major
	Scale  float64
	Undone bool // the capture is in COLMAP's frame again
}

// Keeps reports whether Points has a point, numbered as in the capture's files.
func (c *Capture) Keeps(point int) bool { return c.Kept == nil || point < len(c.Kept) && c.Kept[point] }

// Warn adds a warning about names; it shows the first of them.
func (c *Capture) Warn(code, text string, names []string) {
	c.Warnings = append(c.Warnings, Warning{Code: code, Count: len(names), Names: FirstNames(names), Text: text})
}

// LeaveOut notes a photo that Cameras lacks.
func (c *Capture) LeaveOut(name string, counts bool) {
	if c.LeftOut == nil {
		c.LeftOut = map[string]bool{}
	}
	c.LeftOut[name] = counts
}

func FirstNames(names []string) []string {
	return slices.Clone(names[:min(len(names), MaxNames)])
}

// WarnBadPoints says how many points were left out.
func (c *Capture) WarnBadPoints(bad int) {
	if bad > 0 {
		c.Warnings = append(c.Warnings, Warning{Code: "bad-points", Count: bad,
			Text: fmt.Sprintf("left out %d of %d points whose coordinates are not finite or beyond %g", bad,
				bad+len(c.Points), float64(MaxCoordinate))})
	}
}
