package twoview

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"vksplat/internal/philox"
)

// Options say what counts as an inlier and how long to look for them. Zero values mean the defaults.
type Options struct {
	Pixels     float64 // largest error of an inlier; 4 for Relate, 12 for Locate
	MinInliers int     // 15
	Iterations int     // samples drawn at most; 2,000 of 5 matches or 3 points, 4,000 of 7 matches
	Key        uint64  // of the random numbers: seed and names of the photos, mixed
}

func (o Options) filled(pixels float64, iterations int) Options {
	o.Pixels, o.MinInliers, o.Iterations = cmp.Or(o.Pixels, pixels), cmp.Or(o.MinInliers, 15),
		cmp.Or(o.Iterations, iterations)
	return o
}

func (o Options) limit() float64 { return o.Pixels * o.Pixels }

const (
	// confidence is the probability with which a sample without outliers was drawn when a search ends early.
	confidence = 0.9999
	// locally is how many inliers the local optimisation uses at most.
	locally = 150
)

// search is a search for the model that most of n data agree with.
type search[M any] struct {
	n       int
	size    int // of a sample
	purpose uint32
	solve   func(sample []int32, out []M) []M // appends models that agree with a sample
	miss    func(m *M, i int32) float64       // squared error of a datum, pixels
	improve func(m M, inliers []int32) M      // refines a model
}

// run returns the model with the lowest sum of squared errors, each at most the threshold's (MSAC: Torr, Zisserman
// 2000), and its inliers; ok is false if there are fewer than Options.MinInliers.
func (s *search[M]) run(o Options) (best M, inliers []int32, ok bool) {
	limit := o.limit()
	if s.n < max(o.MinInliers, s.size) {
		return best, nil, false
	}
	lowest := float64(s.n) * limit
	needed := s.iterations(o.MinInliers, o.Iterations)
	var sample [maxFreedoms]int32
	var models []M
	for it := 0; it < needed; it++ {
		draw(sample[:s.size], s.n, o.Key, s.purpose, it)
		found := false
		models = s.solve(sample[:s.size], models[:0])
		for i := range models {
			if c := s.cost(&models[i], limit, lowest, max(len(inliers), o.MinInliers)); c < lowest {
				best, lowest, found = models[i], c, true
			}
		}
		if !found {
			continue
		}
		if inliers = s.inliers(&best, limit, inliers[:0]); len(inliers) < o.MinInliers {
			continue
		}
		better := s.improve(best, inliers[:min(len(inliers), locally)])
		if c := s.cost(&better, limit, lowest, 0); c < lowest {
			best, lowest = better, c
			inliers = s.inliers(&best, limit, inliers[:0])
		}
		needed = min(needed, s.iterations(len(inliers), o.Iterations))
	}
	inliers = s.inliers(&best, limit, inliers[:0])
	return best, inliers, len(inliers) >= o.MinInliers && lowest < float64(s.n)*limit
}

// cost stops where it exceeds a bound, or where far fewer data agree than would if the model had at least a number of
// inliers: less than three standard deviations below. The data must be in random order.
func (s *search[M]) cost(m *M, limit, bound float64, inliers int) (sum float64) {
	agree, check := 0, int32(16)
	for i := range int32(s.n) {
		if e := s.miss(m, i); e < limit {
			sum += e
			agree++
		} else if sum += limit; sum >= bound {
			return sum
		}
		if i+1 == check {
			share, n := float64(inliers)/float64(s.n), float64(check)
			if float64(agree) < share*n-3*math.Sqrt(share*(1-share)*n) {
				return infinite
			}
			check *= 2
		}
	}
	return sum
}

func (s *search[M]) inliers(m *M, limit float64, list []int32) []int32 {
	for i := range int32(s.n) {
		if s.miss(m, i) < limit {
			list = append(list, i)
		}
	}
	return list
}

// iterations returns how many samples are needed if a number of the data are inliers.
func (s *search[M]) iterations(inliers, most int) int {
	good := 1.0
	for i := range s.size {
		good *= float64(inliers-i) / float64(s.n-i)
	}
	if good >= 1 {
		return 1
	}
	return int(min(float64(most), math.Ceil(math.Log(1-confidence)/math.Log1p(-good))))
}

// draw fills a sample with different numbers below n, which is not less than its length.
func draw(sample []int32, n int, key uint64, purpose uint32, iteration int) {
	var words [4]uint32
	used := uint32(0)
	for i := 0; i < len(sample); {
		if used%4 == 0 {
			words = philox.Block([4]uint32{uint32(iteration), purpose, philox.StreamSamples, used / 4}, philox.Key(key))
		}
		at, _ := bits.Mul32(words[used%4], uint32(n))
		used++
		if !slices.Contains(sample[:i], int32(at)) {
			sample[i] = int32(at)
			i++
		}
	}
}
