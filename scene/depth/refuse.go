package depth

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// refuseFolder is the error of a folder of maps that is none.
func refuseFolder(dir string, f *form) error {
	info, err := os.Stat(dir)
	e := &fault.Error{Op: f.op, Path: dir,
		Hint: fault.Setting(f.setting) + " names a folder below the capture's, or an absolute one"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Err = errors.New("no such folder")
	case err != nil:
		e.Err, e.Kind = fault.TrimPath(err), fault.ReadKind(err)
	case !info.IsDir():
		e.Err = errors.New("this is a file, and a folder of maps is wanted")
		e.Hint += ": of one map give the folder that it is in"
	default:
		return nil
	}
	return e
}

// refuseMaps is the error of the maps of dir that cannot be used, nil if all can: that of the first, which counts the
// others and names some. Several cameras may have one photo, and one map.
func refuseMaps(dir string, files []string, errs []error) error {
	var first error
	var more []string
	last := ""
	for i, err := range errs {
		switch {
		case err == nil || files[i] == last:
			continue
		case first == nil:
			first = err
		default:
			name := strings.TrimPrefix(files[i], dir+string(filepath.Separator))
			more = append(more, filepath.ToSlash(name))
		}
		last = files[i]
	}
	var e *fault.Error
	if n := len(more); n > 0 && errors.As(first, &e) {
		text := fmt.Sprintf("%d more maps cannot be used, for this reason or others", n)
		e.Err = fmt.Errorf("%w; %s", e.Err, scene.Warning{Count: n, Names: scene.FirstNames(more), Text: text})
	}
	return first
}

// mostStretch is by how much the aspect of a map may differ from its photo's: networks round sides to multiples of 32
// or so.
const mostStretch = 0.05

// checkShape refuses a map that was turned, stretched or cropped against the photo as its file has it.
func (m *mapFile) checkShape(c *scene.Camera, file string, f *form) error {
	width, height := c.Width, c.Height
	if c.Lens != nil { // the camera's picture is another part of what the lens shows
		width, height = c.Lens.Calibration.Width, c.Lens.Calibration.Height
	}
	if sameShape(m.width, m.height, width, height) {
		return nil
	}
	why, hint := "it is stretched or cropped", "give maps of whole photos as their files have them, with the distortion "+
		"of the lens; they may be smaller, of the same aspect"
	if sameShape(m.height, m.width, width, height) {
		why, hint = "it is turned", "turn the maps to the rows and columns that the photos' files have"
		if tag, sideways := photo.SidewaysTag(c.Path); sideways {
			hint += fmt.Sprintf(", before orientation tag %d is applied", tag)
		}
	}
	return fault.Data(f.op, file, hint, "the map has %d x %d pixels, its photo %d x %d: %s", m.width, m.height, width,
		height, why)
}

// sameShape reports whether one picture may be a scaled copy of the other, but for mostStretch or a pixel.
func sameShape(width, height, w, h int) bool {
	x, y := float64(width)/float64(w), float64(height)/float64(h)
	return math.Abs(x/y-1) <= mostStretch || math.Abs(float64(width)-float64(w)*y) <= 1 ||
		math.Abs(float64(height)-float64(h)*x) <= 1
}
