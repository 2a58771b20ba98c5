package depth

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/photo"
)

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
		text := "1 more map cannot be used, for this reason or another"
		if n > 1 {
			text = fmt.Sprintf("%d more maps cannot be used, for this reason or others", n)
		}
		e.Err = fmt.Errorf("%w; %s", e.Err, scene.Warning{Count: n, Names: scene.FirstNames(more), Text: text})
	}
	return first
}

// By how much the shape of a map may differ from its photo's, because networks round sides to multiples of some 32.
const (
	mostStretch   = 0.05 // of its aspect
	mostRounded   = 31   // pixels of a side, of a map that is smaller than the photo,
	mostOfRounded = 0.2  // if that is less than this of its aspect
)

// checkShape refuses a map that was turned, stretched or cropped against the photo as its file has it.
func (m *mapFile) checkShape(c *scene.Camera, file string, f *form) error {
	width, height := c.Width, c.Height
	if c.Lens != nil { // the camera's picture is another part of what the lens shows
		width, height = c.Lens.Calibration.Width, c.Lens.Calibration.Height
	}
	if sameShape(m.width, m.height, width, height) {
		return nil
	}
	why, hint := "it is stretched or cropped", "give maps of whole photos as their files have them, with the "+
		"distortion of the lens; they may be smaller, of the same aspect"
	if sameShape(m.height, m.width, width, height) {
		why, hint = "it is turned", "turn the maps to the rows and columns that the photos' files have"
		if tag, sideways := photo.SidewaysTag(c.Path); sideways {
			hint += fmt.Sprintf(", before orientation tag %d is applied", tag)
		}
	}
	return fault.Data(f.op, file, hint, "the map has %d x %d pixels, its photo the shape of %d x %d: %s", m.width,
		m.height, width, height, why)
}

// sameShape reports whether a picture may be a scaled copy of the other of w x h.
func sameShape(width, height, w, h int) bool {
	x, y, round := float64(width)/float64(w), float64(height)/float64(h), 1.0
	stretch := math.Abs(x/y - 1)
	if width < w && height < h && stretch < mostOfRounded {
		round = mostRounded
	}
	return stretch <= mostStretch || math.Abs(float64(width)-float64(w)*y) <= round ||
		math.Abs(float64(height)-float64(h)*x) <= round
}
