package inspect

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/initial"
	"vksplat/scene/photo"
)

// Limits of the checks.
const (
	farCamera = 3   // times the median distance from the mean camera
	farPoint  = 100 // likewise
	fewPoints = 500 // points that are a poor start

	samePose      = 1e-6   // of rotations, and of positions in units of the median distance
	countedPoints = 200000 // points that are projected into each camera at most
)

// checkPoses looks for cameras that are far outside or in the same place.
func (r *Report) checkPoses(c *scene.Capture) {
	own := make([]scene.Camera, len(c.Cameras))
	centres, distances := make([][3]float64, len(own)), make([]float64, len(own))
	for i, cam := range c.Cameras {
		own[i] = c.Frame.ToCapture(cam, [3]float64{})
		centres[i] = own[i].Center()
		r.MeanCamera = geom.Add(r.MeanCamera, geom.Scale(centres[i], 1/float64(len(own))))
	}
	for i := range centres {
		distances[i] = geom.Length(geom.Sub(centres[i], r.MeanCamera))
		r.Cameras[i].Distance = distances[i]
		r.Extent = max(r.Extent, distances[i])
	}
	r.MedianDistance = scene.Median(slices.Clone(distances))
	var far []string
	groups := scene.PhotoGroups(c.Cameras)
	for _, g := range groups {
		if r.MedianDistance > 0 && distances[g.First] > farCamera*r.MedianDistance {
			far = append(far, c.Cameras[g.First].PhotoName())
		}
	}
	r.about(SeverityWarning, "far-cameras", far,
		"%d of %d cameras are more than %d times as far from the mean camera as the median one, the farthest %.3g "+
			"times",
		len(far), len(groups), farCamera, r.Extent/r.MedianDistance)
	r.checkSamePoses(own, centres)
}

// checkSamePoses finds photos with the pose of another.
func (r *Report) checkSamePoses(cams []scene.Camera, centres [][3]float64) {
	unit := samePose * max(r.MedianDistance, math.SmallestNonzeroFloat64)
	seen := make(map[[12]float64]bool, len(cams))
	photos := map[string]bool{}
	var same []string
	for i, cam := range cams {
		if photos[cam.PhotoName()] {
			continue // another face of the same photo
		}
		photos[cam.PhotoName()] = true
		var key [12]float64
		for k, x := range cam.R {
			key[k] = math.Round(x / samePose)
		}
		for k, x := range geom.Sub(centres[i], r.MeanCamera) {
			key[9+k] = math.Round(x / unit)
		}
		if seen[key] {
			same = append(same, cam.Name)
		}
		seen[key] = true
	}
	if len(same) > 0 && len(seen) == 1 {
		r.add(Problem{Severity: SeverityFatal, Code: "one-pose",
			Text: fmt.Sprintf("all %d photos have the same pose", len(photos))})
		return
	}
	r.about(SeverityWarning, "same-pose", same, "%d of %d photos have the pose of another photo", len(same),
		len(photos))
}

// NeedsInit reports whether nothing in a capture says where to begin: training needs a flag such as --init random.
func NeedsInit(c *scene.Capture) bool {
	return len(c.Points) == 0 && !c.Synthetic && !initial.Options{}.Random(c)
}

// checkPoints looks for points that no camera sees and for cameras that see none. With Coverage it counts
// everything.
func (r *Report) checkPoints(c *scene.Capture, o Options) {
	n, all := len(c.Points), o.Coverage
	switch {
	case NeedsInit(c):
		r.add(Problem{Severity: SeverityWarning, Code: "no-points", Text: "there are no points to start with"})
		return
	case n == 0 && c.Synthetic:
		r.add(Problem{Severity: SeverityNote, Code: "no-points", Remedy: "no action needed",
			Text: fmt.Sprintf("there are no points; training starts with %d random ones within %g units of the origin",
				initial.DefaultRandomPoints, initial.SyntheticHalf)})
		return
	case n == 0:
		r.add(Problem{Severity: SeverityNote, Code: "no-points", Remedy: "no action needed",
			Text: fmt.Sprintf("there are no points; training starts with %d random ones between the depths in %s",
				initial.DefaultRandomPoints, filepath.Base(c.Model))})
		return
	case n < fewPoints && !o.Unused:
		r.add(Problem{Severity: SeverityWarning, Code: "few-points",
			Text: fmt.Sprintf("there are only %d initial points", n)})
	}
	v := coverage{c: c, stride: (n + countedPoints - 1) / countedPoints}
	v.counted = (n + v.stride - 1) / v.stride
	v.countByCamera(all)
	seen := v.countSeen(all)
	if all {
		for i, in := range v.inView {
			r.Cameras[i].Points = min(in*v.stride, n)
		}
		r.PointsSeen = float64(seen) / float64(v.counted)
	}
	r.judgePoints(&v, seen)
}

// coverage counts which points cameras see: every stride-th point stands for as many.
type coverage struct {
	c       *scene.Capture
	stride  int
	counted int   // points that are looked at
	inView  []int // of them, by camera
}

// countByCamera counts the points in view of each camera, or without all as many as keep it from being blind.
func (v *coverage) countByCamera(all bool) {
	v.inView = make([]int, len(v.c.Cameras))
	parallel.For(len(v.c.Cameras), func(i int) {
		in := 0
		for k := 0; k < v.counted && (all || in*v.stride < scene.BlindCamera); k++ {
			if v.sees(i, k) {
				in++
			}
		}
		v.inView[i] = in
	})
}

// sees says whether a camera sees a counted point.
func (v *coverage) sees(camera, k int) bool {
	_, seen := v.c.Cameras[camera].SeesBetween(v.c.Points[k*v.stride].Pos, 0, math.Inf(1))
	return seen
}

// countSeen counts the points that any camera sees, or without all no more than half of them and some.
func (v *coverage) countSeen(all bool) int {
	const block = 4096
	var total atomic.Int64
	parallel.For((v.counted+block-1)/block, func(b int) {
		if !all && 2*total.Load() >= int64(v.counted) {
			return
		}
		seen := 0
		for k := b * block; k < min((b+1)*block, v.counted); k++ {
			for i := range v.c.Cameras {
				if v.sees(i, k) {
					seen++
					break
				}
			}
		}
		total.Add(int64(seen))
	})
	return int(total.Load())
}

// judgePoints draws conclusions from the counts. seen is that of points in view of any camera.
func (r *Report) judgePoints(v *coverage, seen int) {
	c := v.c
	if seen == 0 {
		r.add(Problem{Severity: SeverityFatal, Code: "unseen-points",
			Text: "no camera sees any point: poses and points do not match"})
		return
	}
	if 2*seen < v.counted {
		r.add(Problem{Severity: SeverityWarning, Code: "unseen-points",
			Text: fmt.Sprintf("only %.0f %% of the points are in view of a camera",
				100*float64(seen)/float64(v.counted))})
	}
	var blind []string
	groups := scene.PhotoGroups(c.Cameras)
	for _, g := range groups {
		in := 0
		for _, n := range v.inView[g.First:g.End] {
			in += n
		}
		if min(in*v.stride, len(c.Points)) < scene.BlindCamera && len(c.Points) >= fewPoints {
			blind = append(blind, c.Cameras[g.First].PhotoName())
		}
	}
	r.about(SeverityWarning, "blind-cameras", blind, "%d of %d cameras see fewer than %d points", len(blind),
		len(groups), scene.BlindCamera)
	far, all := 0, 0
	for k := 0; k < len(c.Points); k += v.stride {
		all++
		p := c.Points[k].Pos
		for axis := range p {
			p[axis] = p[axis]/c.Frame.Scale + c.Frame.Center[axis]
		}
		if r.MedianDistance > 0 && geom.Length(geom.Sub(p, r.MeanCamera)) > farPoint*r.MedianDistance {
			far++
		}
	}
	if share := float64(far) / float64(all); far > 0 {
		severity := SeverityNote
		if share > 0.05 {
			severity = SeverityWarning
		}
		r.add(Problem{Severity: severity, Code: "far-points",
			Text: fmt.Sprintf("%.3g %% of the points are more than %d times as far from the mean camera as the median "+
				"camera", 100*share, farPoint)})
	}
}

// checkOrientation names photos whose tags ask to be turned.
func (r *Report) checkOrientation(c *scene.Capture) {
	turned, _ := photosThat(c, func(path string) bool {
		o, err := photo.Orientation(path)
		return err == nil && o > 1
	})
	r.about(SeverityNote, "orientation-tags", turned,
		"%d of %d photos carry an orientation tag; it is ignored, because their calibration is of the pixels as stored",
		len(turned), r.Photos)
}
