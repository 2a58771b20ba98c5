package ref

import (
	"fmt"
	"math"
	"testing"
)

// movingView is gradView through a lens, of a camera that moves more than a phone's.
func movingView(lens *Lens[float64], fisheye, antialiased bool) *View[float64] {
	v := gradView(fisheye, antialiased, 1)
	v.Lens = lens
	v.Motion = &Motion[float64]{Turn: [3]float64{0.06, -0.09, 0.05}, Move: [3]float64{0.1, -0.05, 0.08}}
	return v
}

// TestShutterGradients compares every parameter's gradient with central differences, poses and shears held.
func TestShutterGradients(t *testing.T) {
	for i, lens := range gradLenses() {
		for _, fisheye := range []bool{false, true} {
			t.Run(fmt.Sprintf("lens%d/fisheye=%v", i, fisheye), func(t *testing.T) {
				t.Parallel()
				p, v := gradScene(1, uint64(i)), movingView(lens, fisheye, i%2 == 0)
				target := gradTarget(v)
				c := LossConfig[float64]{Lambda: 0.2}
				got := LossGradients(p, v, target, c, 2).VParams
				held := *v
				for k := range p.N {
					held.held = append(held.held, v.ofSplat(p, k))
				}
				checkGradients(t, p, got, func() float64 {
					_, img := Render(p, &held, 1)
					return Loss(img.Render, target, v.Width, v.Height, c).Loss
				})
			})
		}
	}
}

// TestShutterRows wants each splat where the pose of the row that it is drawn at has it, and that place to follow the
// mean as the gradients say, though the row moves with it.
func TestShutterRows(t *testing.T) {
	const h = 1e-5
	for i, lens := range gradLenses() {
		for _, fisheye := range []bool{false, true} {
			p, v := gradScene(1, uint64(i)), movingView(lens, fisheye, false)
			for k := range p.N {
				place := func() [2]float64 {
					row := v.ofSplat(p, k)
					return row.projectPoint(row.rotation().apply(p.mean(k)).add(vec3[float64](row.T)))
				}
				at := place()
				time := at[1]/float64(v.Height) - 0.5
				if math.Abs(time) > shutterReach {
					continue
				}
				still := v.atTime(time)
				want := still.projectPoint(still.rotation().apply(p.mean(k)).add(vec3[float64](still.T)))
				if d := math.Hypot(at[0]-want[0], at[1]-want[1]); d > 1e-3 {
					t.Errorf("lens %d, fisheye %v, splat %d: at %v, its row's pose has it at %v", i, fisheye, k, at,
						want)
				}
				row := v.ofSplat(p, k)
				point := row.rotation().apply(p.mean(k)).add(vec3[float64](row.T))
				for axis := range 2 {
					var of [2]float64
					of[axis] = 1
					slope := row.rotation().transposed().apply(row.pointVJP(point, of, mat23[float64]{}))
					for c := range 3 {
						mean := &p.Means[3*k+c]
						x := *mean
						*mean = x + h
						up := place()
						*mean = x - h
						down := place()
						*mean = x
						if want := (up[axis] - down[axis]) / (2 * h); math.Abs(slope[c]-want) > 2e-3*v.Fx {
							t.Errorf("lens %d, fisheye %v, splat %d: d(image %d)/d(mean %d) is %g, want %g", i, fisheye,
								k, axis, c, slope[c], want)
						}
					}
				}
			}
		}
	}
}
