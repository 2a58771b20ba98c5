package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

const (
	// leastSeen is how many observations there must be of a photo on average.
	leastSeen = 30
	// leastPhotos is how many training photos a calibration takes.
	leastPhotos = 8
	// exactPixels is the median distance below which observations are projections of the model, not of photos.
	exactPixels = 1e-4
	// sampled is how many observations of a photo the ladder takes on average, and mostSampled how many at most of all.
	leastKept = 80 // percent of the observations that must be left of a calibration
	// A step takes as long as there are pairs of observations of a point: so many are taken at most by the ladder, and
	// by the adjustment after it.
	sampledPairs, mostPairs = 4e6, 3e7
	sampled, mostSampled    = 1000, 400_000
)

// Result is what Capture found.
type Result struct {
	Cameras  scene.Files // with what improved; nil: the given cameras stay
	Skipped  string      // why nothing was judged; "" where something was
	Before   *Residuals  // of the given cameras, also where they stay; nil where there are no observations
	After    *Residuals  // of Cameras
	Apart    []string    // photos whose poses cannot be right, held-out ones among them, and that were not placed again
	Unplaced []string    // held-out photos that keep their given poses: they show too few points
	Rungs    []Rung      // of the ladder

	text string
}

// Options say what Capture may do.
type Options struct {
	Bytes int64 // of memory at most; 0: no limit
	Check bool  // measure only
	Found bool  // by an adjustment to the same observations: measure only, if no photo stands apart
	Match Match // finds the poses of photos that stand apart; nil: they are left out
}

// Capture measures the cameras of a capture against its observations, which COLMAP's models have, and refines them
// where a held-back tenth says so. Training photos alone decide: c.HeldOut names the others, whose poses are found
// last, by points and lenses that stay. The result is in the capture's frame, which c must be in. Errors are those of
// reading the model, of memory, and of ctx.
func Capture(ctx context.Context, c *scene.Capture, o Options) (*Result, error) {
	res := &Result{}
	if o.Bytes > 0 && !o.Check {
		if need := bytesPerByte * colmap.PointsSize(c); need > o.Bytes {
			res.Skipped = fmt.Sprintf("to adjust them takes at least %d MiB of memory, and %d MiB are there", need>>20,
				o.Bytes>>20)
			return res, nil
		}
	}
	m, ok, err := colmap.ReadModel(c)
	if err != nil { // training does not read the observations
		res.Skipped = "the capture's observations cannot be read: " + err.Error()
		return res, nil
	}
	var n *network
	if ok {
		n = newNetwork(c, m)
	}
	if !ok || len(n.seen) == 0 {
		res.Skipped = "the capture has no observations of points by two training photos"
		return res, nil
	}
	if res.Before, err = n.residuals(); err != nil {
		res.Skipped = "the capture's cameras cannot be used: " + err.Error()
		return res, nil
	}
	medians := make([]float64, len(n.photos))
	for i := range res.Before.Photos {
		medians[i] = res.Before.Photos[i].Median
	}
	apart := n.standApart(medians)
	res.Apart = n.names(apart)
	photos, seen := n.training()
	switch need := n.bytes(); {
	case o.Check:
		return res, nil
	case o.Found && len(apart) == 0:
		res.Skipped = "vksplat capture has adjusted them to the same observations"
	case res.Before.Median < exactPixels:
		res.Skipped = "the observations are where the cameras project the points: nothing can be learnt from them"
	case photos < leastPhotos || seen < leastSeen*photos:
		res.Skipped = fmt.Sprintf("%d observations of %d photos are too few", seen, photos)
	case o.Bytes > 0 && need > o.Bytes:
		res.Skipped = fmt.Sprintf("to adjust %d observations takes %d MiB of memory, and %d MiB are there", len(n.seen),
			need>>20, o.Bytes>>20)
	}
	if res.Skipped != "" {
		return res, nil
	}
	return res, res.improve(ctx, n, m, apart, o.Match)
}

// improve places photos again that stand apart, leaves out what cannot be placed, and refines the rest.
func (res *Result) improve(ctx context.Context, n *network, m *colmap.Model, apart []int, match Match) error {
	rest, still, err := n.again(ctx, m, apart, match)
	if err != nil {
		return divergence(ctx, res, err)
	}
	res.Apart = n.names(still)
	moved := slices.DeleteFunc(slices.Clone(apart), func(at int) bool { return slices.Contains(still, at) })
	res.text = joined(named(n, moved, "1 photo whose pose could not be right is placed by new matches",
		"%d photos whose poses could not be right are placed by new matches"), leftOut(n, still))
	if res.text != "" {
		if res.Cameras, err = rest.files(m, still); err != nil {
			return divergence(ctx, res, err)
		}
	}
	return res.refine(ctx, rest, m, still)
}

// refine climbs the ladder, and sets Cameras where that improved something.
func (res *Result) refine(ctx context.Context, n *network, m *colmap.Model, apart []int) error {
	photos, seen := n.training()
	pairs := n.pairs()
	share := min(1, float64(min(sampled*photos, mostSampled))/float64(max(1, seen)), sampledPairs/pairs)
	unit := n.normalised()
	l, err := climb(ctx, unit, share)
	if err != nil {
		return divergence(ctx, res, err)
	}
	res.Rungs = l.list
	if !slices.ContainsFunc(l.list, func(r Rung) bool { return r.Kept }) {
		return nil
	}
	now, unplaced, err := n.finish(ctx, unit, l.best, min(1, mostPairs/pairs))
	if err != nil {
		return divergence(ctx, res, err)
	}
	after, err := now.residuals()
	if err != nil {
		return divergence(ctx, res, err)
	}
	given := *n
	given.seen = now.seen // of points that are left: both means are of the same observations
	before, err := given.residuals()
	if err != nil {
		return divergence(ctx, res, err)
	}
	if len(now.seen) < leastKept*len(n.seen)/100 {
		res.Skipped = fmt.Sprintf("the given cameras are too wrong: only %d of %d observations fit better ones",
			len(now.seen), len(n.seen))
		return nil
	}
	if after.Mean < before.Mean {
		files, err := now.files(m, apart)
		if err != nil {
			return divergence(ctx, res, err)
		}
		res.Unplaced, res.After, res.Cameras = unplaced, after, files
		text := fmt.Sprintf("%s: reprojection %.3f to %.3f px", n.changes(now), before.Mean, after.Mean)
		res.text = joined(text, res.text)
	}
	return nil
}

// joined puts texts one behind the other; those that are "" are left out.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}

// divergence is the error of an interrupted calibration. Other errors leave the given cameras as they are.
func divergence(ctx context.Context, res *Result, err error) error {
	if ctx.Err() != nil {
		return err
	}
	res.Skipped = "the adjustment failed: " + err.Error()
	return nil
}

// bytesPerByte is how much memory an adjustment takes at least for each byte of the file of points: a point that two
// photos show has 67 bytes there, or some 100 as text, see network.bytes.
const bytesPerByte = 12

// bytes is about how much memory an adjustment takes.
func (n *network) bytes() int64 {
	variables := int64(6*len(n.photos) + scene.MaxCalibrated*len(n.lenses))
	return pointBytes(int64(len(n.seen)), int64(len(n.points))) + 4*variables*variables
}

// pointBytes is about how much memory the adjustment of points alone takes.
func pointBytes(observations, points int64) int64 { return 550*observations + 250*points }

// files returns those of a model with the network's lenses, poses and points. Training photos that stand apart are not
// in it.
func (n *network) files(m *colmap.Model, apart []int) (scene.Files, error) {
	errs, err := n.pointErrors()
	if err != nil {
		return nil, err
	}
	out := &colmap.Model{Cameras: map[uint32]scene.Calibration{}}
	for i, p := range m.Points {
		if p.Pos, p.Error = n.points[i], errs[i]; !n.lost[i] {
			out.Points = append(out.Points, p)
		}
	}
	images := slices.Clone(m.Images)
	for i := range n.photos {
		p := &n.photos[i]
		img := &images[p.image]
		img.Quat, img.T, img.Camera = geom.QuatFromRotation(p.R), p.T, n.ids[p.Lens]
	}
	drop := make([]bool, len(images))
	for _, at := range apart {
		drop[n.photos[at].image] = !n.photos[at].HeldOut
	}
	for i, img := range images {
		if drop[i] {
			continue
		}
		out.Images, out.Seen = append(out.Images, img), append(out.Seen, m.Seen[i])
		k := m.Cameras[img.Camera]
		if at, known := slices.BinarySearch(n.ids, img.Camera); known {
			k = n.lenses[at]
		}
		out.Cameras[img.Camera] = k
	}
	return out.Files(), nil
}

// pointErrors returns how far training photos show each point from where they project it, on average and in pixels;
// noError for points that fewer than two of them show.
func (n *network) pointErrors() ([]float64, error) {
	list, err := n.problem().Residuals()
	if err != nil {
		return nil, err
	}
	sums, count := make([]float64, len(n.points)), make([]float64, len(n.points))
	for i, o := range n.seen {
		if !n.photos[o.Pose].HeldOut {
			sums[o.Point] += math.Hypot(list[i][0], list[i][1])
			count[o.Point]++
		}
	}
	for i := range sums {
		if sums[i] /= count[i]; count[i] == 0 {
			sums[i] = noError
		}
	}
	return sums, nil
}

// noError is what COLMAP writes of a point whose error it does not know.
const noError = -1
