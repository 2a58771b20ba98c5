package scene

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
)

// farOrigin is where float32 resolves a thousandth of a unit and no finer, and farFromScene, times the median distance
// of the cameras from their mean, where it moves splats by a tenth of a pixel or so: a file would score less than its
// model.
const (
	farOrigin    = 1e4
	farFromScene = 1e3
)

// Origin gives what to subtract from coordinates that are written, in the capture's own frame: nothing with mode
// "keep", the given numbers with "x,y,z", and with "auto" the mean camera rounded to whole numbers if a coordinate of a
// camera exceeds 1e4, or 1e3 times the median distance of the cameras from their mean, nothing otherwise; points do not
// count, because a single stray one would move an ordinary capture. It may be called before and after Normalise. Errors
// are of kind fault.ErrUsage.
func (c *Capture) Origin(mode string) (origin [3]float64, err error) {
	switch mode {
	case "keep":
		return origin, nil
	case "auto":
		return c.autoOrigin(), nil
	}
	fail := &fault.Error{Op: "choose origin", Kind: fault.ErrUsage,
		Err:  fmt.Errorf("%s is not an origin", strconv.Quote(mode)),
		Hint: "give keep, auto or three numbers, as in 500000,4500000,0"}
	parts := strings.Split(mode, ",")
	if len(parts) != len(origin) {
		return origin, fail
	}
	for i, p := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !geom.Finite(x) {
			return [3]float64{}, fail
		}
		origin[i] = x
	}
	return origin, nil
}

func (c *Capture) autoOrigin() (origin [3]float64) {
	if len(c.Cameras) == 0 {
		return origin
	}
	cams := c.trainingCameras()
	for i := range cams {
		cams[i] = c.Frame.ToCapture(cams[i], [3]float64{})
	}
	far := 0.0
	centres, mean, distances := spread(cams)
	for _, p := range centres {
		far = max(far, math.Abs(p[0]), math.Abs(p[1]), math.Abs(p[2]))
	}
	if size := Median(distances); far <= farOrigin && (size == 0 || far <= farFromScene*size) {
		return origin
	}
	for k, x := range mean {
		origin[k] = math.Round(x) + 0 // no negative zero
	}
	return origin
}
