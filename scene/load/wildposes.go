package load

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/scene"
)

// A single pose that is wrong by orders of magnitude must not decide the training frame, whose centre is the mean of
// all cameras and whose extent is their maximum: one translation of 1e7 among thirteen photos squeezes the scene into a
// thousandth of a pixel. Medians find such poses, because fewer than half of the photos cannot move a median far. Their
// photos are dropped when the capture is read, so that training, evaluation, trajectories and plans agree on the
// capture and on every 8th photo of it. The frame is still computed from the mean and the maximum of the cameras that
// remain: a capture without wild poses keeps its frame, bit for bit.
//
// Distance alone proves nothing. Real captures have a few photos from 20 times the median distance (a whole hill, a
// telephoto lens), and from farther still where most photos turn around one spot. Points give better evidence: a photo
// that was registered by matches sees a good share of the points, spread over its picture. A photo with a wild pose
// looks past them, or sees them all within a few pixels.
const (
	// wildDistance is the distance, in sizes of the scene, beyond which a photo has to see the scene. The size is the
	// median distance from the middle of the cameras: of the cameras or of the points, whichever is larger, because
	// photos from a tripod are centimetres apart.
	wildDistance = 50
	// wildWithoutPoints takes its place where there are no points to see. Photos around one spot and one from across
	// the street differ by three orders of magnitude.
	wildWithoutPoints = 1e4
	// wildEvidence is the least number of points that count as evidence.
	wildEvidence = 50
	// A photo sees the scene if it has a share of wildShare of the points in view, and 9 of 10 of these span wildSpread
	// of its longer side.
	wildShare, wildSpread = 0.01, 0.02
	// wildSample is the largest number of points that are looked at.
	wildSample = 20000
	// samePlace is the distance from the middle of the cameras that is rounding alone, as a share of the middle's
	// coordinates and of the third quartile of the distances.
	samePlace = 1e-9
)

// dropBadPoses drops photos whose poses or lenses are not finite, or whose poses are not rotations, with a warning. It
// fails when strict, or when too few photos remain.
func dropBadPoses(c *scene.Capture, records []scene.Record, strict bool) ([]scene.Record, error) {
	var names []string
	var first error
	lenses := 0
	kept := make([]scene.Record, 0, len(records))
	for _, r := range records {
		if err := r.Unusable(); err != nil {
			names, first = append(names, r.Cam.Name), cmp.Or(first, err)
			if r.Bad == nil {
				lenses++
			}
			c.LeaveOut(r.Cam.Name, false)
			continue
		}
		kept = append(kept, r)
	}
	if len(names) == 0 {
		return records, nil
	}
	if strict || len(kept) < scene.MinPhotos {
		if lenses == len(names) {
			return nil, badLens(c, names)
		}
		return nil, first
	}
	c.Warn("bad-poses", fmt.Sprintf("left out %d of %d photos whose poses or lenses are not finite, no rotation or "+
		"beyond %g", len(names), len(records), float64(scene.MaxCoordinate)), names)
	return kept, nil
}

// badLens is the error of photos whose cameras have numbers that are none. The numbers themselves say nothing: formats
// read NaN and what is missing in their own ways.
func badLens(c *scene.Capture, names []string) error {
	whose := "its camera"
	if n := len(names); n > 1 {
		whose = fmt.Sprintf("the camera of this and %d more of the photos", n-1)
	}
	return fault.Data("use calibration", names[0], "fix the calibration in "+c.Model+
		", or calibrate again", "%s has parameters that are not finite or beyond %g", whose,
		float64(scene.MaxCoordinate))
}

// DropWildPoses drops photos whose poses cannot be right, with a warning. It fails when strict, or when too few photos
// remain.
func DropWildPoses(c *scene.Capture, strict bool) error {
	groups := scene.PhotoGroups(c.Cameras)
	far := farPhotosOf(c, groups)
	if len(far.photos) == 0 {
		return nil
	}
	wild := map[string]bool{}
	var names []string
	nearest, farthest := math.Inf(1), 0.0
	for _, g := range far.photos {
		name := c.Cameras[groups[g].First].PhotoName()
		wild[name] = true
		c.LeaveOut(name, false)
		names = append(names, name)
		nearest, farthest = min(nearest, far.distances[g]), max(farthest, far.distances[g])
	}
	at := fmt.Sprintf("%.3g", nearest)
	if len(names) > 1 {
		at += fmt.Sprintf(" to %.3g", farthest)
	}
	text := fmt.Sprintf("%d of %d photos whose poses cannot be right: they are %s away from the middle of the "+
		"cameras, the median one is %.3g away", len(names), len(groups), at, far.median)
	if kept := len(groups) - len(names); strict || kept < scene.MinPhotos {
		err := fmt.Errorf("%s", scene.Warning{Count: len(names), Names: scene.FirstNames(names), Text: text})
		hint := scene.Remedies["wild-poses"]
		if kept < scene.MinPhotos {
			hint += fmt.Sprintf("; at least %d photos are needed", scene.MinPhotos)
		} else {
			hint += ", or leave out " + fault.Setting("strict") + " to train without these photos"
		}
		return &fault.Error{Op: "load capture", Path: c.Model, Err: err, Hint: hint}
	}
	c.Cameras = slices.DeleteFunc(c.Cameras, func(cam scene.Camera) bool { return wild[cam.PhotoName()] })
	for name := range wild {
		delete(c.HeldOut, name)
	}
	c.Warn("wild-poses", "left out "+text, names)
	return nil
}

// farPhotos are photos whose poses cannot be right.
type farPhotos struct {
	photos    []int     // numbers of groups
	distances []float64 // of all groups, from the middle
	median    float64
}

// farPhotosOf finds them. The faces of a panorama count as one photo.
func farPhotosOf(c *scene.Capture, groups []scene.Span) (f farPhotos) {
	centres := make([][3]float64, len(groups))
	for i, g := range groups {
		centres[i] = c.Cameras[g.First].Center()
	}
	middle := medianPoint(centres)
	f.distances = make([]float64, len(groups))
	for i, p := range centres {
		f.distances[i] = geom.Length(geom.Sub(p, middle))
	}
	sorted := slices.Clone(f.distances)
	f.median = scene.Median(sorted)
	rounding := samePlace * max(geom.Length(middle), sorted[3*len(sorted)/4])
	size, limit := f.median, float64(wildWithoutPoints)
	var points [][3]float64
	if len(c.Points) >= wildEvidence {
		limit = wildDistance
	} else if !(size > rounding) { // most photos are in one place: the others' distances are all there is
		size = scene.Median(slices.DeleteFunc(sorted, func(d float64) bool { return !(d > rounding) }))
	}
	if !f.beyond(limit * size) {
		return f
	}
	if limit == wildDistance {
		points = somePoints(c)
		size = max(size, medianDistance(points, middle))
	}
	for i, g := range groups {
		if size > rounding && !(f.distances[i] <= limit*size) && !showsScene(c.Cameras[g.First:g.End], points) {
			f.photos = append(f.photos, i)
		}
	}
	return f
}

// beyond reports whether any photo is farther away.
func (f *farPhotos) beyond(distance float64) bool {
	return slices.ContainsFunc(f.distances, func(d float64) bool { return !(d <= distance) })
}

// somePoints returns every n-th point, at most wildSample of them.
func somePoints(c *scene.Capture) (list [][3]float64) {
	stride := 1 + (len(c.Points)-1)/wildSample
	for i := 0; i < len(c.Points); i += stride {
		list = append(list, c.Points[i].Pos)
	}
	return list
}

// medianPoint is the median of the points along each axis.
func medianPoint(points [][3]float64) (middle [3]float64) {
	along := make([]float64, len(points))
	for k := range middle {
		for i, p := range points {
			along[i] = p[k]
		}
		middle[k] = scene.Median(along)
	}
	return middle
}

func medianDistance(points [][3]float64, from [3]float64) float64 {
	distances := make([]float64, len(points))
	for i, p := range points {
		distances[i] = geom.Length(geom.Sub(p, from))
	}
	return scene.Median(distances)
}

// showsScene reports whether the cameras of a photo see a good share of the points, spread over a picture; false if
// there are no points.
func showsScene(cams []scene.Camera, points [][3]float64) bool {
	shown, spread := 0, 0.0
	for i := range cams {
		cam := &cams[i]
		var across, down []float64
		for _, p := range points {
			if u, v, _, in := cam.Project(p, 0, math.Inf(1)); in {
				across, down = append(across, u), append(down, v)
			}
		}
		shown += len(across)
		spread = max(spread, max(middleSpan(across), middleSpan(down))/float64(max(cam.Width, cam.Height)))
	}
	return float64(shown) >= wildShare*float64(len(points)) && shown >= scene.BlindCamera && spread >= wildSpread
}

// middleSpan sorts the values and returns the length of the interval that holds all but the lowest and the highest
// twentieth.
func middleSpan(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	cut := len(values) / 20
	return values[len(values)-1-cut] - values[cut]
}
