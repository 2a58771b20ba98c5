package depth

import (
	"errors"
	"io/fs"
	"math"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/scene"
)

// inverseFit takes the numbers of a photo's map of inverse depth to inverse depths in the capture's unit.
type inverseFit struct {
	Scale  float64 `json:"scale"`
	Offset float64 `json:"offset"`
}

// depth is the depth that a number of the map says, 0 where none is known.
func (p inverseFit) depth(value float64) float64 {
	if inverse := p.Scale*value + p.Offset; inverse > 0 {
		return 1 / inverse
	}
	return 0
}

// A map counts where its scale is within these shares of the median of all, as in INRIA's loader.
const (
	leastScale = 0.2
	mostScale  = 5
)

// INRIA's make_depth_scale.py wants more points of a photo than these, and this range of their inverse depths.
const (
	leastFitted = 10
	leastRange  = 1e-3
)

// readParams reads the scales and offsets of photos by their names without extension; nil: there is no such file.
func readParams(file string) (params map[string]inverseFit, err error) {
	err = strictjson.ReadFile(file, &params)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fault.Error{Op: opMaps, Path: file, Err: err, Kind: fault.ReadKind(err),
			Hint: "make it again, or remove it: scales and offsets then follow from the capture's points"}
	}
	return params, nil
}

// pairs calls f with the numbers of a map and of points at the same pixels.
func pairs(values, points []scene.KnownDepth, f func(value, depth float64)) {
	at := make(map[[2]uint16]float32, len(points))
	for _, p := range points {
		at[[2]uint16{p.X, p.Y}] = p.Depth
	}
	for _, v := range values {
		if depth, known := at[[2]uint16{v.X, v.Y}]; known {
			f(float64(v.Depth), float64(depth))
		}
	}
}

// fitUnit returns by what depths of all maps are to be multiplied so that half of the points are nearer than they say,
// and the number of these points.
func fitUnit(maps []reading) (unit float64, n int) {
	var ratios []float64
	for i := range maps {
		for k, value := range maps[i].values {
			ratios = append(ratios, maps[i].depths[k]/value)
		}
	}
	if len(ratios) == 0 {
		return 0, 0
	}
	return scene.Median(ratios), len(ratios)
}

// fitInverse finds scale and offset of a photo's inverse depths: as INRIA's make_depth_scale.py does, so that medians
// meet, and mean distances from them, and then so that the sum of what is left over is least, because points at the
// edges of things may lie on either side. The zero value says that its points do not tell.
func fitInverse(r *reading) inverseFit {
	m, q := r.values, make([]float64, len(r.depths)) // of the map, of the points
	for i, depth := range r.depths {
		q[i] = 1 / depth
	}
	if len(q) <= leastFitted || !(slices.Max(q)-slices.Min(q) > leastRange) {
		return inverseFit{}
	}
	tm, tq := scene.Median(slices.Clone(m)), scene.Median(slices.Clone(q))
	var sm, sq float64
	for i := range m {
		sm, sq = sm+math.Abs(m[i]-tm), sq+math.Abs(q[i]-tq)
	}
	if sm == 0 {
		return inverseFit{}
	}
	p := inverseFit{Scale: sq / sm, Offset: tq - tm*sq/sm}
	for range fitRounds {
		p = p.refit(m, q, fitFloor*sq/float64(len(q)))
	}
	return p
}

// fitInverse repeats least squares fitRounds times. Each is weighed by what the one before left over, but not by less
// than this share of the points' mean distance from their median.
const (
	fitRounds = 20
	fitFloor  = 1e-3
)

// refit is the line through (m, q) that least squares give, weighed by the inverse of p's distance from each.
func (p inverseFit) refit(m, q []float64, floor float64) inverseFit {
	var sum, sm, sq, smm, smq float64
	for i := range m {
		w := 1 / max(math.Abs(p.Scale*m[i]+p.Offset-q[i]), floor)
		sum, sm, sq = sum+w, sm+w*m[i], sq+w*q[i]
		smm, smq = smm+w*m[i]*m[i], smq+w*m[i]*q[i]
	}
	det := sum*smm - sm*sm
	if !(det > 1e-12*sum*smm) {
		return p
	}
	scale := (sum*smq - sm*sq) / det
	return inverseFit{Scale: scale, Offset: (sq - scale*sm) / sum}
}

// leastSpread is how far the depths of a photo's points must lie apart, in the mean of logarithms, to judge its map by
// them.
const leastSpread = 0.05

// misfits reports whether a map, whose numbers depthOf takes to depths, tells less of the points of its photo than one
// depth for all of them would: it is upside down, has another unit, or holds something else.
func (r *reading) misfits(depthOf func(value float64) float64) bool {
	if len(r.depths) <= leastFitted {
		return false
	}
	middle := scene.Median(slices.Clone(r.depths))
	var off, spread float64
	n := 0
	for i, depth := range r.depths {
		z := depthOf(r.values[i])
		if !(z > 0) {
			continue
		}
		off += math.Abs(math.Log(z / depth))
		spread += math.Abs(math.Log(depth / middle))
		n++
	}
	return spread > leastSpread*float64(n) && off > spread
}

// medianScale is the median of the positive scales.
func medianScale(fits []inverseFit) float64 {
	var scales []float64
	for _, f := range fits {
		if f.Scale > 0 {
			scales = append(scales, f.Scale)
		}
	}
	if len(scales) == 0 {
		return math.Inf(1)
	}
	return scene.Median(scales)
}
