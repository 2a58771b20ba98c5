package mapping

import (
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/twoview"
)

const (
	// Focal lengths are sought between these shares of the photo's longer side: fields of view of 118 to 8 degrees.
	leastFocal, mostFocal = 0.3, 7
	focalSteps            = 128
	focalSweeps           = 10
	// essentialNoise is by how much singular values of a right pair's essential matrix differ, as a share.
	essentialNoise = 0.02
	// focalPrior is how much a guess counts, in pairs, that is off by a factor of e.
	focalPrior = 0.2
)

// epipolar is a pair as a fundamental matrix relative to the principal points, in pixels.
type epipolar struct {
	a, b   int // lenses
	f      [9]float64
	weight float64
}

// calibrateFocals replaces the focal lengths of lenses that are not known by those which best make the fundamental
// matrices essential, whose two singular values are alike (Mendonca and Cipolla: A Simple Technique for
// Self-Calibration, 1999), robustly, one lens after the other, as GLOMAP's view-graph calibration (section 3.1 there,
// with the cost of Fetzer et al., 2020). Photos of one lens share its focal length.
func calibrateFocals(in *Input, lenses []scene.Calibration) {
	of := make([][]epipolar, len(lenses))
	for i := range in.Pairs {
		p := &in.Pairs[i]
		a, b := in.Photos[p.A].Lens, in.Photos[p.B].Lens
		if p.Relation.Kind != twoview.Uncalibrated && p.Relation.Kind != twoview.Calibrated {
			continue
		}
		ka, kb := unit(lenses[a]), unit(lenses[b])
		fundamental := geom.Product(geom.Transposed(matrixOf(&kb)), geom.Product(p.Relation.F, matrixOf(&ka)))
		e := epipolar{a, b, fundamental,
			min(1, float64(len(p.Relation.Inliers))/100)}
		of[a] = append(of[a], e)
		if b != a {
			of[b] = append(of[b], e)
		}
	}
	guess := make([]float64, len(lenses))
	focals := make([]float64, len(lenses))
	for i, k := range lenses {
		guess[i] = k.Params[0]
		if k.Model == scene.LensEquirectangular {
			guess[i] = 1 // of rays
		}
		focals[i] = guess[i]
	}
	for range focalSweeps {
		var moved float64
		for i := range lenses {
			if in.Lenses[i].FocalKnown || len(of[i]) == 0 || lenses[i].Model == scene.LensEquirectangular {
				continue
			}
			f := bestFocal(i, of[i], focals, guess[i], float64(max(lenses[i].Width, lenses[i].Height)))
			moved = max(moved, math.Abs(math.Log(f/focals[i])))
			focals[i] = f
		}
		if moved < 1e-4 {
			break
		}
	}
	for i := range lenses {
		setFocal(&lenses[i], focals[i])
	}
}

// unit returns a lens with a focal length of one pixel.
func unit(k scene.Calibration) scene.Calibration {
	k.Params = slices.Clone(k.Params)
	setFocal(&k, 1)
	return k
}

// setFocal sets all focal lengths of a lens.
func setFocal(k *scene.Calibration, f float64) {
	info, _ := k.Model.Info()
	scale := f / k.Params[0]
	for i := range info.Focals {
		k.Params[i] *= scale
	}
}

// bestFocal minimises the cost of a lens over its focal length: on a grid, then by golden sections.
func bestFocal(lens int, pairs []epipolar, focals []float64, guess, size float64) float64 {
	at := func(log float64) float64 {
		f := math.Exp(log)
		cost := focalPrior * geom.Square(math.Log(f/guess))
		for i := range pairs {
			p := &pairs[i]
			fa, fb := focals[p.a], focals[p.b]
			if p.a == lens {
				fa = f
			}
			if p.b == lens {
				fb = f
			}
			r := geom.Square(p.unlike(fa, fb) / essentialNoise)
			cost += p.weight * r / (1 + r)
		}
		return cost
	}
	from, to := math.Log(leastFocal*size), math.Log(mostFocal*size)
	step := (to - from) / focalSteps
	best, least := from, math.Inf(1)
	for i := range focalSteps + 1 {
		if c := at(from + float64(i)*step); c < least {
			best, least = from+float64(i)*step, c
		}
	}
	const golden = 0.6180339887498949
	lo, hi := best-step, best+step
	for range 24 {
		if x, y := hi-golden*(hi-lo), lo+golden*(hi-lo); at(x) < at(y) {
			hi = y
		} else {
			lo = x
		}
	}
	return math.Exp((lo + hi) / 2)
}

// unlike returns by which share the smaller singular value of the pair's essential matrix is below the larger one: from
// the sums of their squares and fourth powers.
func (p *epipolar) unlike(fa, fb float64) float64 {
	e := p.f
	for i := range 2 {
		for k := range 3 {
			e[3*i+k] *= fb
		}
	}
	for i := range 3 {
		for k := range 2 {
			e[3*i+k] *= fa
		}
	}
	square := geom.Product(e, geom.Transposed(e))
	sum := square[0] + square[4] + square[8] // of squares
	product := square[0]*square[4] - square[1]*square[3] + square[0]*square[8] - square[2]*square[6] +
		square[4]*square[8] - square[5]*square[7]
	root := math.Sqrt(max(0, sum*sum-4*product))
	return 1 - math.Sqrt(max(0, sum-root)/(sum+root))
}
