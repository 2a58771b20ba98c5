package ref

import (
	"fmt"
	"math"
)

type PixelReport struct {
	Pixels   int
	Outliers int     // pixels of which a channel differs by more than the threshold
	Worst    float64 // largest difference of any channel; +Inf where a number meets a NaN
	RelNorm  float64 // ||out - ref|| / ||ref|| over the other pixels
}

// PixelCompare compares images of the given number of channels per pixel. Pixels that differ by more than threshold
// count as outliers. A difference in length is an infinite difference.
func PixelCompare[A, B Real](out []A, ref []B, channels int, threshold float64) PixelReport {
	r := PixelReport{Pixels: len(ref) / channels}
	if len(out) != len(ref) {
		return PixelReport{Pixels: r.Pixels, Outliers: r.Pixels, Worst: math.Inf(1), RelNorm: math.Inf(1)}
	}
	var diff, norm float64
	for p := range r.Pixels {
		var worst, d2, n2 float64
		for k := p * channels; k < (p+1)*channels; k++ {
			d := math.Abs(float64(out[k]) - float64(ref[k]))
			if math.IsNaN(d) {
				d = math.Inf(1)
			}
			worst = max(worst, d)
			d2 += d * d
			n2 += float64(ref[k]) * float64(ref[k])
		}
		r.Worst = max(r.Worst, worst)
		if worst > threshold {
			r.Outliers++
			continue
		}
		diff += d2
		norm += n2
	}
	r.RelNorm = ratio(diff, norm)
	return r
}

// ratio is sqrt(diff / norm), and 0 for 0/0.
func ratio(diff, norm float64) float64 {
	if diff == 0 {
		return 0
	}
	return math.Sqrt(diff / norm)
}

func (r PixelReport) Share() float64 { return float64(r.Outliers) / float64(max(1, r.Pixels)) }

// Check returns an error unless at most maxShare of the pixels are outliers, none differs by more than maxWorst, and
// the others' norm is within maxRel.
func (r PixelReport) Check(maxShare, maxWorst, maxRel float64) error {
	if r.Share() <= maxShare && r.Worst <= maxWorst && r.RelNorm <= maxRel {
		return nil
	}
	return fmt.Errorf("compare pixels: %v exceeds share %g, worst %g, norm %g", r, maxShare, maxWorst, maxRel)
}

func (r PixelReport) String() string {
	return fmt.Sprintf("%d of %d outliers (%.4f %%), worst %.3g, relative norm of the rest %.3g", r.Outliers, r.Pixels,
		100*r.Share(), r.Worst, r.RelNorm)
}

// RelNorm returns ||out - ref|| / ||ref||; 0 when both are zero, +Inf when the lengths differ, NaN if a NaN is in
// either.
func RelNorm[A, B Real](out []A, ref []B) float64 {
	if len(out) != len(ref) {
		return math.Inf(1)
	}
	var diff, norm float64
	for i := range ref {
		d := float64(out[i]) - float64(ref[i])
		diff += d * d
		norm += float64(ref[i]) * float64(ref[i])
	}
	return ratio(diff, norm)
}
