package scene

import "math"

// Farthest returns a distance beyond which no camera has a splat's center: that of the farthest corner of the box
// around them.
func Farthest(cams []Camera, s *Splats) float64 {
	lo, hi := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}, [3]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	for i, x := range s.Means[:3*s.N] {
		lo[i%3], hi[i%3] = min(lo[i%3], float64(x)), max(hi[i%3], float64(x))
	}
	far := 0.0
	for i := range cams {
		center, sum := cams[i].Center(), 0.0
		for k, x := range center {
			d := max(math.Abs(x-lo[k]), math.Abs(x-hi[k]))
			sum += d * d
		}
		far = max(far, math.Sqrt(sum))
	}
	return far
}
