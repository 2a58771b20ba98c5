package mapping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/adjust"
	"vksplat/scene/twoview"
)

// Photo is a photo with its keypoints.
type Photo struct {
	Name      string
	Lens      int          // in Input.Lenses
	Keypoints [][2]float32 // pixels of the lens's calibration
	// Photos of one number, from 1 to that of photos, were taken at once by cameras that are fixed to each other, each
	// with its own lens.
	Moment int
	Given  *Place // nil: the place is found
}

// Place is where a photo was taken, which stays: x_cam = R x + T, R row-major.
type Place struct {
	R [9]float64
	T [3]float64
}

// Lens is the camera of one or several photos. The focal length of one that is not known is found; that of a known one
// is refined. EQUIRECTANGULAR stays as it is.
type Lens struct {
	scene.Calibration
	FocalKnown bool // as from EXIF or a calibration; otherwise the focal length is a guess
	Fixed      bool // the calibration stays as it is; FocalKnown is true
	// The model is the one to find. Otherwise it becomes RADIAL, or OPENCV where that explains the photos better, and
	// the same of fisheyes.
	Chosen bool
}

// Pair is two photos and their verified matches.
type Pair struct {
	A, B     int        // in Input.Photos, A != B
	Matches  [][2]int32 // keypoints of A and B
	Relation twoview.Relation
}

// Input is what Map works on. It is not changed.
type Input struct {
	Photos []Photo
	Lenses []Lens
	Pairs  []Pair
}

// Options say how to map.
type Options struct {
	Seed     uint64
	Progress func(done, total int) // called with the number of photos placed, if not nil
	// Growing is called after each round, and once more for the best model, if not nil. look is the model as it is,
	// without Missing and with a part of its points; both hold until Growing returns.
	Growing func(look func() *Model, last bool)
}

// Sight is a keypoint of a photo.
type Sight struct{ Photo, Keypoint int32 }

// Point is a point of the model.
type Point struct {
	X     [3]float64
	Track []Sight // by photo; two at least
	Error float64 // pixels, mean over the track
}

// Model is what Map found: poses and points in a frame of their own, whose scale says nothing.
type Model struct {
	Lenses []scene.Calibration // as Input.Lenses
	Poses  []adjust.Pose       // as Input.Photos; of those that are not placed the zero value
	Placed []bool              // of each photo: whether it has a pose
	Points []Point
	// how many moments' photos were kept fixed to each other; 0: none are, or they contradict it
	Moments int
	// Why photos are not placed, in the order of Input.Photos.
	Missing []Missing
}

// ErrNoPair says that no two photos show enough of the same, from places far enough apart.
var ErrNoPair = errors.New("map photos: no two photos share enough matches from different places")

// Map finds the cameras and points of the largest part of a capture that hangs together. Where photos have given
// places, the others are placed among them, and points found of all. It returns ErrNoPair if there is nothing to begin
// with, an error for an input whose indices or lenses are wrong, or when ctx is done.
func Map(ctx context.Context, in *Input, o Options) (*Model, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	m, err := newMapper(ctx, in, o)
	if err != nil {
		return nil, err
	}
	find := m.search
	if slices.ContainsFunc(in.Photos, func(p Photo) bool { return p.Given != nil }) {
		find = m.grownFromGiven
	}
	best, err := find()
	if err = cmp.Or(ctx.Err(), err); err != nil { // where the context was done, parts of the work may be left out
		return nil, err
	}
	report(best, true)
	found := best.model(math.MaxInt)
	found.Missing = best.missing()
	return found, nil
}

// check refuses what would make Map fail.
func (in *Input) check() error {
	for i, l := range in.Lenses {
		if _, err := l.Optics(l.Width, l.Height); err != nil {
			return fmt.Errorf("map photos: lens %d: %w", i, err)
		}
		switch {
		case l.Fixed && !l.FocalKnown:
			return fmt.Errorf("map photos: lens %d is fixed, and its focal length is a guess", i)
		case l.Model.Calibrated() == 0 && l.Model != scene.LensEquirectangular:
			return fmt.Errorf("map photos: lens %d: the model %s cannot be adjusted", i, l.Model)
		}
	}
	taken := map[[2]int]bool{}
	for _, p := range in.Photos {
		at := [2]int{p.Moment, p.Lens}
		if p.Moment < 0 || p.Moment > len(in.Photos) || p.Moment > 0 && taken[at] {
			return fmt.Errorf("map photos: %s: moment %d is out of range or has two photos of a lens", p.Name, p.Moment)
		}
		taken[at] = true
		if p.Lens < 0 || p.Lens >= len(in.Lenses) {
			return fmt.Errorf("map photos: %s has lens %d of %d", p.Name, p.Lens, len(in.Lenses))
		}
		if g := p.Given; g != nil && !geom.Finite(append(g.R[:], g.T[:]...)...) {
			return fmt.Errorf("map photos: the given place of %s is not finite", p.Name)
		}
		for _, x := range p.Keypoints {
			if !geom.Finite(float64(x[0]), float64(x[1])) {
				return fmt.Errorf("map photos: %s has a keypoint that is not finite", p.Name)
			}
		}
	}
	for i := range in.Pairs {
		if err := in.checkPair(&in.Pairs[i]); err != nil {
			return fmt.Errorf("map photos: pair %d: %w", i, err)
		}
	}
	return nil
}

func (in *Input) checkPair(p *Pair) error {
	if p.A < 0 || p.B < 0 || p.A >= len(in.Photos) || p.B >= len(in.Photos) || p.A == p.B {
		return fmt.Errorf("photos %d and %d of %d", p.A, p.B, len(in.Photos))
	}
	a, b := len(in.Photos[p.A].Keypoints), len(in.Photos[p.B].Keypoints)
	for _, m := range p.Matches {
		if m[0] < 0 || m[1] < 0 || int(m[0]) >= a || int(m[1]) >= b {
			return fmt.Errorf("match of keypoints %d and %d of %d and %d", m[0], m[1], a, b)
		}
	}
	for _, at := range p.Relation.Inliers {
		if at < 0 || int(at) >= len(p.Matches) {
			return fmt.Errorf("inlier %d of %d matches", at, len(p.Matches))
		}
	}
	return nil
}
