package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func lensCases() []Case {
	return slices.Concat(projectLensCases("project_lens", newCase), projectLensCases("project_lens_mixed", mixedCase),
		adamLensCases("project_bwd_adam_lens", newCase), adamLensCases("project_bwd_adam_lens_mixed", mixedCase))
}

// numLenses is how many kinds of lenses bend makes.
const numLenses = 6

// bend gives the view the lens of a number: a camera's of OpenCV, a rational one, a fisheye's, thin prisms both ways,
// and one that sees behind the camera. The last three are fisheyes.
func (t *trial) bend(v *ref.View[float32], number int) *ref.View[float32] {
	l := &ref.Lens[float32]{Lo: [2]float32{-0.7, -0.6}, Hi: [2]float32{0.65, 0.55}, Margin: [2]float32{0.2, 0.17},
		Limit: 1.1}
	switch number {
	case 0:
		l.Num, l.P1, l.P2 = [6]float32{-0.2, 0.08}, 0.01, -0.02
	case 1:
		l.Num, l.Den, l.P1, l.P2, l.Skew = [6]float32{0.4, 0.1, 0.02}, [3]float32{0.6, 0.2, 0.01}, -0.02, 0.01, 0.03
	case 2:
		l.Num = [6]float32{0.05, -0.03, 0.02, -0.004, 0.001, -0.0001}
	case 3:
		l.Num, l.PrismX, l.PrismY = [6]float32{-0.1, 0.02}, [2]float32{0.02, -0.01}, [2]float32{-0.03, 0.02}
	case 4:
		l.Num, l.P1, l.P2, l.After = [6]float32{-0.1, 0.02}, 0.02, 0.01, true
		l.PrismX, l.PrismY = [2]float32{0.02, -0.01}, [2]float32{-0.03, 0.02}
	case 5:
		l.Lo, l.Hi = [2]float32{-1.8, -1.7}, [2]float32{1.7, 1.8}
		l.Num, l.Limit, l.Wide = [6]float32{-0.02, 0.001}, 2, true
		v.Fx, v.Fy, v.T = 0.3*v.Fx, 0.3*v.Fy, [3]float32{0.1, -0.2, 1.2}
	}
	v.Lens, v.Fisheye = l, number >= 3
	return v
}

// move has the view's camera move while its rows are read out, more than a phone does.
func (t *trial) move(v *ref.View[float32]) *ref.View[float32] {
	v.Motion = &ref.Motion[float32]{}
	for k := range 3 {
		v.Motion.Turn[k], v.Motion.Move[k] = float32(0.05*t.NormFloat64()), float32(0.1*t.NormFloat64())
	}
	return v
}

func projectLensCases(kernel string, newCase caseMaker) []Case {
	return []Case{
		newCase(kernel, "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, chunkSplats - 1, chunkSplats, chunkSplats + 1, 1000},
				func(n int) error { return checkProject(t, t.splats(n, 0), t.bend(t.camera(123, 83), 0)) })
		}),
		newCase(kernel, "lenses", func(t *trial) error {
			return eachLens(t, func(degree int, v *ref.View[float32]) error {
				return checkProject(t, t.splats(400, 3), v)
			})
		}),
		newCase(kernel, "at a fold", func(t *trial) error {
			return eachFold(t, func(p *ref.Params[float32], v *ref.View[float32]) error {
				return checkProject(t, p, v)
			})
		}),
		newCase(kernel, "near, all round", checkNearLens),
		newCase(kernel, "rolling shutter", func(t *trial) error {
			return eachLens(t, func(degree int, v *ref.View[float32]) error {
				return checkProject(t, t.splats(400, 3), t.move(v))
			})
		}),
		newCase(kernel, "poison", func(t *trial) error {
			return each([]int{0, 1, 2, 3, 4, 5, 6, 7}, func(mode int) error {
				v := t.camera(123, 83)
				v.Antialiased, v.SHDegree = mode&1 != 0, 1
				if v = t.bend(v, 1+mode%4); mode >= 4 {
					v = t.move(v)
				}
				return checkProjectPoisonIn(t, v)
			})
		}),
		newCase(kernel, "a failed unit sees nothing", func(t *trial) error {
			_, err := runProject(t, t.splats(500, 0), t.bend(t.camera(64, 48), 0), 0)
			return err
		}),
	}
}

// eachLens calls f for each lens, plain and antialiased, with SH degrees up to the model's.
func eachLens(t *trial, f func(degree int, v *ref.View[float32]) error) error {
	var numbers []int
	for i := range 2 * numLenses {
		numbers = append(numbers, i)
	}
	return each(numbers, func(i int) error {
		v := t.bend(t.camera(123, 83), i%numLenses)
		v.Antialiased, v.SHDegree = i >= numLenses, i%4
		return f(3, v)
	})
}

// eachFold calls f with splats at the radius where a lens folds its picture, and just inside: the Jacobian has no
// inverse there.
func eachFold(t *trial, f func(p *ref.Params[float32], v *ref.View[float32]) error) error {
	const k = -0.3
	fold := math.Sqrt(-1 / (3 * k)) // where the derivative of r + k r^3 is 0
	inside := []float64{0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2}
	const directions = 8
	return each([]bool{false, true}, func(fisheye bool) error {
		v := t.camera(123, 83)
		v.R, v.T, v.Fisheye = [9]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}, [3]float32{}, fisheye
		v.Fx, v.Fy = 40, 35
		v.Lens = &ref.Lens[float32]{Num: [6]float32{k}, Lo: [2]float32{-1.2, -1.2}, Hi: [2]float32{1.2, 1.2},
			Margin: [2]float32{0.3, 0.3}, Limit: float32(fold)}
		p := t.splats(directions*len(inside), 0)
		for i := range p.N {
			sin, cos := math.Sincos(2 * math.Pi * float64(i%directions) / directions)
			r := fold * (1 - inside[i/directions])
			side, z := 4*r, 4.0
			if fisheye {
				side, z = 4*math.Sin(r), 4*math.Cos(r)
			}
			copy(p.Means[3*i:], []float32{float32(side * cos), float32(side * sin), float32(z)})
		}
		return f(p, v)
	})
}

// checkNearLens puts splats about as far away as the nearest that are seen, at angles up to those that lie behind the
// camera.
func checkNearLens(t *trial) error {
	return each([]int{0, 1, 2, 3}, func(mode int) error {
		v := t.bend(t.camera(123, 83), 5)
		v.R, v.T, v.Near = [9]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}, [3]float32{}, 0.1
		if v.Lens.Wide = mode&1 != 0; mode&2 != 0 {
			v = t.move(v)
			v.Motion.Move = [3]float32{0.01, -0.005, 0.008}
		}
		var places [][3]float32
		for _, angle := range []float64{0, 45, 80, 84, 87, 87.5, 87.9, 88.1, 89, 91, 95, 110} {
			sin, cos := math.Sincos(angle * math.Pi / 180)
			for _, distance := range []float64{0.05, 0.099, 0.101, 0.2, 1, 3} {
				places = append(places, [3]float32{float32(distance * sin), 0, float32(distance * cos)})
			}
		}
		p := t.splats(len(places), 0)
		for i, place := range places {
			copy(p.Means[3*i:], place[:])
			for k := range 3 {
				p.LogScales[3*i+k] = -6
			}
		}
		return checkProject(t, p, v)
	})
}

func adamLensCases(kernel string, newCase caseMaker) []Case {
	return []Case{
		newCase(kernel, "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, chunkSplats + 1}, func(n int) error {
				return checkAdam(t, t.backward(n, 0, t.bend(t.camera(123, 83), 0)), 7, 0)
			})
		}),
		newCase(kernel, "lenses", func(t *trial) error {
			return eachLens(t, func(degree int, v *ref.View[float32]) error {
				return checkAdam(t, t.backward(300, degree, v), 30, 0)
			})
		}),
		newCase(kernel, "rolling shutter", func(t *trial) error {
			return eachLens(t, func(degree int, v *ref.View[float32]) error {
				return checkAdam(t, t.backward(300, degree, t.move(v)), 30, 0)
			})
		}),
		newCase(kernel, "at a fold", func(t *trial) error {
			return eachFold(t, func(p *ref.Params[float32], v *ref.View[float32]) error {
				return checkAdam(t, t.backwardOf(p, v), 30, 0)
			})
		}),
		newCase(kernel, "absolute gradients, noise", func(t *trial) error {
			return checkAdamWith(t, t.backward(400, 1, t.bend(t.camera(123, 83), 1)), 30,
				adamVariant{absgrad: true, noise: 3})
		}),
		newCase(kernel, "a failed unit changes nothing", func(t *trial) error {
			return checkAdam(t, t.backward(400, 1, t.bend(t.camera(123, 83), 0)), 7, layout.FailedSplats)
		}),
	}
}

// lensOf is a view's lens as kernels read it.
func (l *list) lensOf(v *ref.View[float32]) vk.Slice[layout.Lens] {
	d := v.Lens
	out := layout.Lens{Num: d.Num, Den: d.Den, P1: d.P1, P2: d.P2, Prism: [2]float32{d.PrismX[0], d.PrismY[0]},
		Prism4: [2]float32{d.PrismX[1], d.PrismY[1]}, Skew: d.Skew, Limit2: d.Limit * d.Limit, Lo: d.Lo, Hi: d.Hi,
		Margin: d.Margin}
	if d.After {
		out.Flags |= layout.LensAfter
	}
	if d.Wide {
		out.Flags |= layout.LensWide
	}
	if m := v.Motion; m != nil {
		out.Turn, out.Move = m.Turn, m.Move
	}
	return input(l, "lens", []layout.Lens{out})
}

// projectLens dispatches a chunk's projection through the lens of a view.
func (l *list) projectLens(p *shaders.Project, v *ref.View[float32]) {
	l.r.Dispatch(&shaders.ProjectLens{
		Params: p.Params, Counters: p.Counters, Chunk: p.Chunk, Shapes: p.Shapes, Paints: p.Paints,
		DepthKeys: p.DepthKeys, Lens: l.lensOf(v), Mixed: p.Mixed, Push: shaders.ProjectLensPush(p.Push),
		Spec: shaders.ProjectLensSpec{Shutter: v.Motion != nil},
	}, vk.Items(chunkSplats, 128))
}

// adamSeen dispatches a chunk's step by what a view saw, through its lens if it has one.
func (l *list) adamSeen(m *model, v *ref.View[float32], p shaders.ProjectBwdAdam) {
	if v.Lens == nil {
		l.adam(m, p)
		return
	}
	l.r.Dispatch(&shaders.ProjectBwdAdamLens{
		Params: p.Params, Counters: p.Counters, DepthKeys: p.DepthKeys, VProjected: p.VProjected, Chunk: p.Chunk,
		VAbsMean2d: p.VAbsMean2d, Paints: p.Paints, Lens: l.lensOf(v), Mixed: m.mixed,
		Push: shaders.ProjectBwdAdamLensPush(p.Push),
		Spec: shaders.ProjectBwdAdamLensSpec{Absgrad: p.Spec.Absgrad, Noise: p.Spec.Noise,
			UnseenApart: p.Spec.UnseenApart, Shutter: v.Motion != nil},
	}, vk.Items(m.size, 128))
}
