package scene

import (
	"errors"
	"fmt"
	"math"
)

// leastUp is how long the mean of the cameras' unit vectors up must be, for it to mean anything. The mean of n
// directions at random is about 1/sqrt(n) long: a few dozen photos that are turned every way stay below it.
const leastUp = 0.2

// MeanUp returns the mean up direction of cameras, a unit vector in their frame: against their y axis, which is the
// second row of R.
func MeanUp(cams []Camera) (up [3]float64, err error) {
	if len(cams) == 0 {
		return up, errors.New("there are no cameras")
	}
	for i := range cams {
		for k := range up {
			up[k] -= cams[i].R[3+k] / float64(len(cams))
		}
	}
	length := math.Sqrt(up[0]*up[0] + up[1]*up[1] + up[2]*up[2])
	if !(length >= leastUp) {
		return up, fmt.Errorf("the cameras have no common up: their mean up vector is %.2g long", length)
	}
	for k := range up {
		up[k] /= length
	}
	return up, nil
}
