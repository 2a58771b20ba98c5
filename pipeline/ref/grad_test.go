package ref

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// gradScene returns a small scene in front of gradView: ordinary splats, one near the optical axis, one above the alpha
// ceiling, one with colours below 0, and a large one beyond the margin where the pinhole Jacobian is clamped. Few
// enough that no pixel's transmittance reaches the stop.
func gradScene(degree int, seed uint64) *Params[float64] {
	r := rand.New(rand.NewPCG(seed, 2))
	p := NewParams[float64](9, degree)
	for i := range p.N {
		for k := range 3 {
			p.Means[3*i+k] = 0.8*r.NormFloat64() + []float64{0, 0, 4}[k]
			p.LogScales[3*i+k] = -1.6 + 0.5*r.NormFloat64()
		}
		for k := range 4 {
			p.Quats[4*i+k] = r.NormFloat64()
		}
		p.LogitOpacities[i] = -0.5 + 0.7*r.NormFloat64()
	}
	for i := range p.SH {
		p.SH[i] = 0.4 * r.NormFloat64()
	}
	copy(p.Means[0:], []float64{0.02, -0.03, 3})
	copy(p.Means[3:], []float64{0.4, 0.5, 3})
	copy(p.LogScales[3:], []float64{-0.2, -0.4, -0.3})
	p.LogitOpacities[1] = 8
	width := 3 * p.Coefficients()
	p.SH[2*width], p.SH[2*width+1] = -3, 2
	copy(p.Means[9:], []float64{5.2, -3.9, 3.5})
	copy(p.LogScales[9:], []float64{0.6, 0.5, 0.4})
	p.LogitOpacities[3] = 1
	return p
}

func gradView(fisheye, antialiased bool, degree int) *View[float64] {
	// A slight turn about y and a shift; rows stay orthonormal.
	c, s := math.Cos(0.1), math.Sin(0.1)
	return &View[float64]{
		R: [9]float64{c, 0, s, 0, 1, 0, -s, 0, c}, T: [3]float64{-0.3, 0.1, 0.4}, Fx: 31, Fy: 28, Cx: 19.2, Cy: 14.7,
		Width: 37, Height: 29,
		Near: 0.01, Fisheye: fisheye, Antialiased: antialiased, Background: [3]float64{0.3, 0.6, 0.1}, SHDegree: degree,
	}
}

// TestGradients compares every parameter's gradient with central differences of the loss of the whole image.
func TestGradients(t *testing.T) {
	for degree := range 4 {
		for _, fisheye := range []bool{false, true} {
			for _, antialiased := range []bool{false, true} {
				if antialiased && degree%3 != 0 {
					continue
				}
				t.Run(fmt.Sprintf("degree%d/fisheye=%v/antialiased=%v", degree, fisheye, antialiased),
					func(t *testing.T) {
						t.Parallel()
						// The model's own degree is often above the degree evaluated.
						p, v := gradScene(min(degree+1, 3), uint64(degree)), gradView(fisheye, antialiased, degree)
						target := gradTarget(v)
						c := LossConfig[float64]{Lambda: 0.2, Same: antialiased}
						got := LossGradients(p, v, target, c, 2).VParams
						checkGradients(t, p, got, func() float64 {
							_, img := Render(p, v, 1)
							return Loss(img.Render, target, v.Width, v.Height, c).Loss
						})
					})
			}
		}
	}
}

// TestBatchGradients does the same for the mean loss of several views, which see the scene from different places; the
// last one sees none of it.
func TestBatchGradients(t *testing.T) {
	for _, n := range []int{2, 3} {
		p := gradScene(3, 5)
		var views []*View[float64]
		for w := range n {
			v := gradView(w == 1, w == 0, 3)
			v.T[0], v.T[2] = v.T[0]+0.3*float64(w), v.T[2]+0.2*float64(w)
			if w == 2 {
				v.T[2] = -100
			}
			views = append(views, v)
		}
		target, c := gradTarget(views[0]), LossConfig[float64]{Lambda: 0.2}
		var proj []*Projection[float64]
		var grads [][]ProjectedGrad[float64]
		for _, v := range views {
			g := LossGradients(p, v, target, c, 1)
			proj, grads = append(proj, g.Projection), append(grads, g.VProjected)
		}
		checkGradients(t, p, ProjectBwdViews(p, views, proj, grads), func() (sum float64) {
			for _, v := range views {
				_, img := Render(p, v, 1)
				sum += Loss(img.Render, target, v.Width, v.Height, c).Loss / float64(n)
			}
			return sum
		})
	}
}

// TestGradScene checks that the scene holds the cases it is meant to hold.
func TestGradScene(t *testing.T) {
	p, v := gradScene(3, 0), gradView(false, false, 3)
	proj, img := Render(p, v, 1)
	for i := range p.N {
		point := v.rotation().apply(p.mean(i)).add(vec3[float64](v.T))
		_, free := v.slopes(point)
		if free != [2]bool{i != 3, i != 3} {
			t.Errorf("splat %d: slopes free %v", i, free)
		}
	}
	l := NewLists(proj, v.Grid())
	ceiling, used := 0, make([]int, p.N)
	eachPixel(v, l, v.Grid(), func(tile []uint32, at int, c [2]float64) {
		list, rest, _ := blendPixel(nil, proj.Splats, l, tile, c)
		if rest < 2*TransmittanceThreshold {
			t.Errorf("pixel %d: transmittance %g is near the stop", at, rest)
		}
		for _, b := range list {
			used[l.SplatFromSlot[tile[b.index]]]++
			if b.raw > MaxAlpha {
				ceiling++
			}
		}
	})
	if ceiling == 0 || len(img.Render) == 0 {
		t.Error("no pixel is above the alpha ceiling")
	}
	for i, n := range used {
		if n == 0 {
			t.Errorf("splat %d is on no pixel", i)
		}
	}
	if proj.Splats[2].Color[0] != 0 {
		t.Errorf("splat 2 has colour %v, not clamped", proj.Splats[2].Color)
	}
}

// TestAlphaGradients does the same for a weighted sum of all channels and alpha, which reaches the gradient of
// transmittance.
func TestAlphaGradients(t *testing.T) {
	p, v := gradScene(2, 11), gradView(false, true, 2)
	r := rand.New(rand.NewPCG(4, 4))
	up := make([][4]float64, v.Width*v.Height)
	for i := range up {
		up[i] = [4]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
	}
	proj, _ := Render(p, v, 1)
	_, got := Backward(p, v, proj, up, 1)
	checkGradients(t, p, got, func() (sum float64) {
		_, img := Render(p, v, 1)
		for i, c := range img.Render {
			sum += up[i][0]*c[0] + up[i][1]*c[1] + up[i][2]*c[2] + up[i][3]*(1-c[3])
		}
		return sum
	})
}

func gradTarget(v *View[float64]) []float64 {
	r := rand.New(rand.NewPCG(3, 3))
	target := make([]float64, 3*v.Width*v.Height)
	for i := range target {
		target[i] = r.Float64()
	}
	return target
}

// checkGradients moves every element of p both ways and compares. The step is far below the distance of any pixel from
// a threshold of the scene.
func checkGradients(t *testing.T, p, got *Params[float64], loss func() float64) {
	t.Helper()
	const h = 1e-6
	grads := got.Tensors()
	for k, tensor := range p.Tensors() {
		want := make([]float64, len(tensor.Data))
		for i, x := range tensor.Data {
			tensor.Data[i] = x + h
			up := loss()
			tensor.Data[i] = x - h
			want[i] = (up - loss()) / (2 * h)
			tensor.Data[i] = x
		}
		if e := RelNorm(grads[k].Data, want); !(e < 2e-6) {
			t.Errorf("v_%s: relative error %.3g", tensor.Name, e)
		}
	}
}

// TestFisheyeSeries checks that the power series and the closed forms of the fisheye terms meet.
func TestFisheyeSeries(t *testing.T) {
	for _, u := range []float64{0.03999999, 0.04000001} {
		p := vec3[float64]{math.Sqrt(u) * 2, 0, 2}
		f := newFisheyeTerms(p)
		s, z := p[0]*p[0], p[2]
		r, d := math.Sqrt(s), s+z*z
		g := math.Atan2(r, z) / r
		h := (z/d - g) / s
		l := (-2*z/(d*d) - 3*h) / s
		for k, pair := range [][2]float64{{f.g, g}, {f.h, h}, {f.l, l}} {
			if math.Abs(pair[0]/pair[1]-1) > 1e-11 {
				t.Errorf("u %g, term %d: %g, want %g", u, k, pair[0], pair[1])
			}
		}
	}
	if f := newFisheyeTerms(vec3[float64]{0, 0, 2}); f.g != 0.5 || f.h != -1.0/12 {
		t.Errorf("on the axis: %+v", f)
	}
}
