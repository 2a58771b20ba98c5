package ref

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"vksplat/shaders/layout"
)

// gradLenses bend the whole picture of gradView: a camera's, a rational one, a fisheye's and thin prisms, both ways.
func gradLenses() []*Lens[float64] {
	limits := func(l Lens[float64]) *Lens[float64] {
		l.Lo, l.Hi, l.Margin, l.Limit = [2]float64{-0.65, -0.55}, [2]float64{0.6, 0.5}, [2]float64{0.15, 0.12}, 3
		return &l
	}
	return []*Lens[float64]{
		limits(Lens[float64]{Num: [6]float64{-0.2, 0.08}, P1: 0.01, P2: -0.02}),
		limits(Lens[float64]{Num: [6]float64{0.4, 0.1, 0.02}, Den: [3]float64{0.6, 0.2, 0.01}, P1: -0.02, P2: 0.01,
			Skew: 0.03}),
		limits(Lens[float64]{Num: [6]float64{0.05, -0.03, 0.02, -0.004, 0.001, -0.0001},
			PrismX: [2]float64{0.02, -0.01}, PrismY: [2]float64{-0.03, 0.02}}),
		limits(Lens[float64]{Num: [6]float64{-0.1, 0.02}, P1: 0.02, P2: 0.01, PrismX: [2]float64{0.02, -0.01},
			PrismY: [2]float64{-0.03, 0.02}, After: true}),
	}
}

// TestLensGradients compares every parameter's gradient through a lens with central differences.
func TestLensGradients(t *testing.T) {
	for i, lens := range gradLenses() {
		for _, fisheye := range []bool{false, true} {
			t.Run(fmt.Sprintf("lens%d/fisheye=%v", i, fisheye), func(t *testing.T) {
				t.Parallel()
				p, v := gradScene(1, uint64(i)), gradView(fisheye, i%2 == 0, 1)
				v.Lens = lens
				target := gradTarget(v)
				c := LossConfig[float64]{Lambda: 0.2}
				got := LossGradients(p, v, target, c, 2).VParams
				checkGradients(t, p, got, func() float64 {
					_, img := Render(p, v, 1)
					return Loss(img.Render, target, v.Width, v.Height, c).Loss
				})
			})
		}
	}
}

// TestLensJacobian compares the Jacobian of a lens, and its change, with central differences.
func TestLensJacobian(t *testing.T) {
	const h = 1e-5
	for i, lens := range gradLenses() {
		for _, u := range [][2]float64{{0, 0}, {0.3, -0.2}, {-0.6, 0.45}, {0.01, -0.5}} {
			_, slope := lens.bend(u)
			g := mat2[float64]{{0.3, -1.1}, {0.7, 0.5}}
			vjp := lens.slopeVJP(u, g)
			for k := range 2 {
				up, down := u, u
				up[k], down[k] = u[k]+h, u[k]-h
				a, slopeA := lens.bend(up)
				b, slopeB := lens.bend(down)
				along := 0.0
				for r := range 2 {
					if want := (a[r] - b[r]) / (2 * h); math.Abs(slope[r][k]-want) > 1e-8 {
						t.Errorf("lens %d at %v: slope [%d][%d] is %g, want %g", i, u, r, k, slope[r][k], want)
					}
					for c := range 2 {
						along += g[r][c] * (slopeA[r][c] - slopeB[r][c]) / (2 * h)
					}
				}
				if math.Abs(vjp[k]-along) > 1e-8 {
					t.Errorf("lens %d at %v: the gradient by u[%d] is %g, want %g", i, u, k, vjp[k], along)
				}
			}
		}
	}
}

// TestStraightLens: a lens that bends nothing changes nothing but what is seen.
func TestStraightLens(t *testing.T) {
	for _, fisheye := range []bool{false, true} {
		p, v := gradScene(1, 3), gradView(fisheye, true, 1)
		want := Project(p, v)
		margin := JacobianMargin * 0.5
		w, h := float64(v.Width)/v.Fx, float64(v.Height)/v.Fy
		v.Lens = &Lens[float64]{Limit: 10, Lo: [2]float64{-v.Cx / v.Fx, -v.Cy / v.Fy},
			Hi: [2]float64{w - v.Cx/v.Fx, h - v.Cy/v.Fy}, Margin: [2]float64{margin * w, margin * h}}
		got := Project(p, v)
		for i := range want.Splats {
			for k, x := range want.Splats[i].Conic {
				if y := got.Splats[i].Conic[k]; math.Abs(x-y) > 1e-12*math.Abs(x) {
					t.Errorf("fisheye %v: splat %d: conic %v, want %v", fisheye, i, got.Splats[i].Conic,
						want.Splats[i].Conic)
				}
			}
		}
		v.Lens.Limit = 0.01
		if got := Project(p, v); got.Visible(1) {
			t.Error("a splat beyond the limit of the lens is seen")
		}
	}
}

// wideView is a view through a fisheye that sees more than half of everything.
func wideView() *View[float64] {
	v := gradView(true, false, 0)
	v.Fx, v.Fy = 8, 8 // 2 radians are 16 px
	v.Lens = &Lens[float64]{Lo: [2]float64{-3, -3}, Hi: [2]float64{3, 3}, Limit: 2.2, Wide: true}
	return v
}

// putAt puts splat i at a place of the camera's frame.
func putAt(p *Params[float64], v *View[float64], i int, at vec3[float64]) {
	world := v.rotation().transposed().apply(at.sub(vec3[float64](v.T)))
	copy(p.Means[3*i:], world[:])
}

// offAxis is the place at a distance and an angle from the axis, in degrees.
func offAxis(angle, distance float64) vec3[float64] {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	return vec3[float64]{0, distance * sin, distance * cos}
}

// TestWideLens: a fisheye that sees more than half of everything shows what is behind the camera.
func TestWideLens(t *testing.T) {
	p, v := gradScene(0, 3), wideView()
	behind := vec3[float64]{0, 2, -0.8}
	putAt(p, v, 0, behind)
	proj := Project(p, v)
	if !proj.Visible(0) {
		t.Fatal("the splat is not seen")
	}
	want := math.Float32bits(float32(layout.LensSide * math.Sqrt(behind.dot(behind))))
	if got := proj.DepthKeys[0]; got != want {
		t.Errorf("depth key %#x, want %#x", got, want)
	}
	v.Lens.Limit = math.Atan2(2, -0.8) - 0.01
	if Project(p, v).Visible(0) {
		t.Error("it is seen beyond the limit")
	}
}

// TestWideLensOrder: splats beside the camera are sorted by their distance, however near they are.
func TestWideLensOrder(t *testing.T) {
	p, v := gradScene(0, 3), wideView()
	putAt(p, v, 0, offAxis(95, 0.06))
	putAt(p, v, 1, offAxis(95, 0.03))
	keys := Project(p, v).DepthKeys[:2]
	if order := SortDepth(keys); !slices.Equal(order, []uint32{1, 0}) {
		t.Errorf("from near to far: %v, want the second splat first; keys %#x", order, keys)
	}
}

// TestWideLensNear: a wide lens sees splats from the same distance on at every angle, and any other lens from the same
// z on.
func TestWideLensNear(t *testing.T) {
	for _, angle := range []float64{0, 45, 80, 87.5, 87.9, 88.1, 95, 120} {
		for _, distance := range []float64{0.09, 0.2} {
			for _, wide := range []bool{false, true} {
				p, v := gradScene(0, 3), wideView()
				v.Near, v.Lens.Wide = 0.1, wide
				at := offAxis(angle, distance)
				putAt(p, v, 0, at)
				want := at[2] > v.Near || wide && distance > v.Near
				if got := Project(p, v).Visible(0); got != want {
					t.Errorf("wide %v, %g degrees, distance %g: seen %v, want %v", wide, angle, distance, got, want)
				}
			}
		}
	}
}

// TestFisheyeBehind has a point right behind a fisheye, which is far off the axis.
func TestFisheyeBehind(t *testing.T) {
	for _, x := range []float64{0.01, 0.1, 0.19, 0.21, 1} {
		v := View[float64]{Fx: 1, Fy: 1, Fisheye: true}
		if got, want := v.projectPoint(vec3[float64]{x, 0, -1})[0], math.Pi-math.Atan(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("x = %g: got %g, want %g", x, got, want)
		}
	}
}
