package scene

import (
	"errors"
	"math"
	"slices"
	"strings"

	"vksplat/internal/fault"
)

// ErrPose is the kind of error of a pose that is not finite, out of range or not a rotation.
var ErrPose = errors.New("no pose")

type PoseError struct{ Cause error }

func (e PoseError) Error() string { return e.Cause.Error() }

func (PoseError) Is(target error) bool { return target == ErrPose }

// Record describes one photo of a capture, before the photo's file is opened.
type Record struct {
	Cam  Camera // name and pose; Path and Mask where the capture names files
	Lens calibrator
	File string // where the capture says that the photo is; "" leaves it to the name
	Role Role   // what the capture says the photo is for
	Bad  error  // why its pose is bad, or nil
}

// Unusable says why the photo is left out: its pose is bad, or a number of its lens no number. nil if neither is so.
func (r *Record) Unusable() error {
	if r.Bad != nil {
		return r.Bad
	}
	k := r.Lens.Calibration(1, 1)
	if slices.ContainsFunc(k.Params, func(p float64) bool { return !(math.Abs(p) <= MaxCoordinate) }) {
		return fault.Data("use calibration", r.Cam.Name, "calibrate again, or remove these photos from the capture",
			"its camera has parameters that are not finite or beyond %g: %g", float64(MaxCoordinate), k.Params)
	}
	return nil
}

// calibrator gives the calibration of a photo of width x height pixels: most
// captures record it, others leave out what the photo's size tells.
type calibrator interface {
	Calibration(width, height int) Calibration
}

type Role int

const (
	RoleNone   Role = iota // the capture does not say
	RoleTrain              //
	RoleTest               // held out
	RoleUnused             // of another split
)

func SortRecords(records []Record) {
	slices.SortStableFunc(records, func(a, b Record) int { return strings.Compare(a.Cam.Name, b.Cam.Name) })
}

// InRange says whether a position is finite and not absurdly far away.
func InRange(p [3]float64) bool {
	return math.Abs(p[0]) <= MaxCoordinate && math.Abs(p[1]) <= MaxCoordinate && math.Abs(p[2]) <= MaxCoordinate
}
