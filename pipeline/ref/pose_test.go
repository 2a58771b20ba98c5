package ref

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// lensView is a view with a lens.
func lensView(fisheye, antialiased bool, degree int) *View[float64] {
	v := gradView(fisheye, antialiased, degree)
	v.Lens = &Lens[float64]{Num: [6]float64{-0.08, 0.03, 0.02, -0.01}, P1: 0.01, P2: -0.02, Limit: 10, Skew: 0.01,
		Lo: [2]float64{-0.6, -0.5}, Hi: [2]float64{0.6, 0.5}, Margin: [2]float64{0.2, 0.2}}
	if !fisheye {
		v.Lens.Den = [3]float64{0.05, -0.02}
	}
	return v
}

// poseTrial is a view that has learnt something of its camera.
func poseTrial(seed uint64, size float64) (a PoseNumbers[float64]) {
	r := rand.New(rand.NewPCG(seed, 21))
	for k := range a {
		a[k] = size * r.NormFloat64()
	}
	return a
}

// TestPoseGradient compares the gradient by everything that is learnt of a camera with central differences of the loss
// of the whole image.
func TestPoseGradient(t *testing.T) {
	for degree := range 4 {
		for bits := range 4 {
			fisheye, antialiased := bits&1 != 0, bits&2 != 0
			t.Run(fmt.Sprintf("degree%d/fisheye=%v/antialiased=%v", degree, fisheye, antialiased), func(t *testing.T) {
				t.Parallel()
				p := gradScene(min(degree+1, 3), uint64(degree))
				given := lensView(fisheye, antialiased, degree)
				target, c := gradTarget(given), LossConfig[float64]{Lambda: 0.2}
				a := poseTrial(uint64(degree), 0.01)
				loss := func() float64 {
					v := given.Refined(&a)
					_, img := Render(p, v, 1)
					return Loss(img.Render, target, v.Width, v.Height, c).Loss
				}
				v := given.Refined(&a)
				l := LossGradients(p, v, target, c, 2)
				got := PoseChain(given, &a, PoseGrad(p, v, l.Projection, l.VProjected))
				want := make([]float64, len(a))
				for k := range a {
					want[k] = centralDifference(&a[k], loss)
				}
				if e := RelNorm(got[:], want); !(e < 2e-6) {
					t.Errorf("relative error %.3g: %g, want %g", e, got, want)
				}
			})
		}
	}
}

// TestPoseHold compares what holds cameras with central differences, near the given pose and far from it, and wants
// nothing to hold a camera that has not moved.
func TestPoseHold(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for _, size := range []float64{1e-3, 0.2} {
		for _, n := range []int{0, 1, 40} {
			for _, fisheye := range []bool{false, true} {
				given := lensView(fisheye, false, 0)
				points := make([]AnchorPoint[float64], n)
				for i := range points {
					points[i].Point = [3]float64{r.NormFloat64(), r.NormFloat64(), 4 + r.NormFloat64()}
					if i == 3 {
						points[i].Point[2] = -5 // behind the camera
					}
					at := given.projectPoint(given.rotation().apply(vec3[float64](points[i].Point)).
						add(vec3[float64](given.T)))
					points[i].Seen = [2]float64{at[0] + 0.1*r.NormFloat64(), at[1] + 0.1*r.NormFloat64()}
				}
				a := poseTrial(9, size)
				loss := func() float64 {
					l, _ := PoseHold(given, &a, points, 0.3)
					return l
				}
				_, got := PoseHold(given, &a, points, 0.3)
				want := make([]float64, len(a))
				for k := range a {
					want[k] = centralDifference(&a[k], loss)
				}
				if e := RelNorm(got[:], want); !(e < 1e-6) {
					t.Errorf("size %g, %d points, fisheye %v: relative error %.3g: %g, want %g", size, n, fisheye, e,
						got, want)
				}
			}
		}
	}
	l, g := PoseHold(lensView(false, false, 0), &PoseNumbers[float64]{}, nil, 1)
	if l != 0 || g != (PoseNumbers[float64]{}) {
		t.Errorf("a camera that has not moved is held by %g, %g", l, g)
	}
}

// someGiven makes cameras that look about, by two makers, around their mean centre.
func someGiven(n int) (given []GivenPose[float64]) {
	r := rand.New(rand.NewPCG(13, 14))
	var mean vec3[float64]
	for i := range n {
		m, _ := turned(vec3[float64]{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()})
		g := GivenPose[float64]{Camera: i % 2, Center: [3]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}}
		for k := range 3 {
			copy(g.R[3*k:], m[k][:])
		}
		mean = mean.add(vec3[float64](g.Center).scale(1 / float64(n)))
		given = append(given, g)
	}
	for i := range given {
		given[i].Center = vec3[float64](given[i].Center).sub(mean)
	}
	return given
}

// TestRefinedPose wants motions that all cameras share to be none, and cameras that have moved to have no such motion.
func TestRefinedPose(t *testing.T) {
	given := someGiven(9)
	own := make([]PoseNumbers[float64], len(given))
	for i := range own {
		own[i] = poseTrial(uint64(i), 0.1)
	}
	shared := make([]PoseNumbers[float64], len(given))
	used := make([]PoseNumbers[float64], len(given))
	for i := range given {
		shared[i] = own[i]
		for k := range 7 {
			turn, shift := given[i].common(k)
			for j := range 3 {
				shared[i][j] += 0.3 * float64(k-2) * turn[j]
				shared[i][3+j] += 0.3 * float64(k-2) * shift[j]
			}
		}
	}
	var along [7]float64
	for i := range given {
		used[i] = RefinedPose(own, given, i)
		for k, x := range RefinedPose(shared, given, i) {
			if math.Abs(x-used[i][k]) > 1e-12 {
				t.Errorf("camera %d: number %d is %g with a motion that all share, %g without", i, k, x, used[i][k])
			}
		}
		for k := range along {
			turn, shift := given[i].common(k)
			along[k] += turn.dot(used[i].turn()) + shift.dot(used[i].shift())
		}
	}
	for k, x := range along {
		if math.Abs(x) > 1e-12 {
			t.Errorf("motion %d that all cameras share is %g", k, x)
		}
	}
	for k := range used[1].optics() {
		if a := used[1].optics()[k]; a != used[3].optics()[k] || a == used[2].optics()[k] {
			t.Errorf("number %d of the lens is not that of cameras", k)
		}
	}
	one := []GivenPose[float64]{{R: given[0].R}}
	if a := RefinedPose(own[:1], one, 0); math.Abs(a[0])+math.Abs(a[3]) > 1e-12 {
		t.Errorf("a camera alone moves by %g", a)
	}
}
