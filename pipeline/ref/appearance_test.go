package ref

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// someAppearance is one with something of everything.
func someAppearance(r *rand.Rand) (a Appearance[float64]) {
	for i := range a {
		a[i] = 0.5 * r.NormFloat64()
	}
	for ch := range 3 {
		at := vignetting + channelTerms*ch
		a[at], a[at+1] = 0.1*r.NormFloat64(), 0.1*r.NormFloat64()
	}
	return a
}

// TestAppearanceGradient compares the gradients by rendering and by what a photo has learnt, through the mean over all
// photos and with the penalty of vignetting, with central differences.
func TestAppearanceGradient(t *testing.T) {
	for bits := range 4 {
		c := Camera{13, 17, bits&1 != 0, bits&2 != 0}
		l := newLossTrial(13, 17, 0.8, 5)
		l.config.Same = true
		a := someAppearance(rand.New(rand.NewPCG(5, 6)))
		const reg = 0.4
		render := l.render
		loss := func() float64 {
			l.render = ApplyAppearance(render, &a, c)
			penalty, _ := VignettingPenalty(&a, reg)
			return l.loss().Loss + penalty
		}
		loss()
		vRender, vA := ApplyAppearanceBwd(render, l.loss().VRender, &a, c)
		_, penalty := VignettingPenalty(&a, reg)
		for i := range a {
			vA[i] += penalty[i]
		}
		var g, want []float64
		for p := range render {
			for ch := range 4 {
				d := centralDifference(&render[p][ch], loss)
				if ch == 3 {
					d = -d
				}
				g, want = append(g, vRender[p][ch]), append(want, d)
			}
		}
		if e := RelNorm(g, want); !(e < 1e-7) {
			t.Errorf("%+v: v_render: relative error %.3g", c, e)
		}
		for i := range a {
			if want := centralDifference(&a[i], loss); math.Abs(vA[i]-want) > 1e-8+1e-6*math.Abs(want) {
				t.Errorf("%+v: by number %d: %g, want %g", c, i, vA[i], want)
			}
		}
	}
}

// ppispColour is a pixel after the white balance as PPISP states it: the homography by the null vector of [tN]x T, the
// longest cross product of its rows.
func ppispColour(a *Appearance[float64], rgb [3]float64) [3]float64 {
	var t [4]vec3[float64]
	for i := range t {
		t[i], _ = a.target(i, 0)
	}
	n := t[3]
	skew := mat3[float64]{{0, -n[2], n[1]}, {n[2], 0, -n[0]}, {-n[1], n[0], 0}}
	var rows [3]vec3[float64]
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				rows[i][j] += skew[i][k] * t[j][k]
			}
		}
	}
	var null vec3[float64]
	longest := 0.0
	for i := range 3 {
		v := rows[i].cross(rows[(i+1)%3])
		if l := v.dot(v); l > longest {
			longest, null = l, v
		}
	}
	inverse := mat3[float64]{{-1, -1, 1}, {1, 0, 0}, {0, 1, 0}}
	var h mat3[float64]
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				h[i][j] += t[k][i] * null[k] * inverse[k][j]
			}
		}
	}
	brightness := rgb[0] + rgb[1] + rgb[2]
	var out vec3[float64]
	for i := range 3 {
		out[i] = (h[i][0]*rgb[0] + h[i][1]*rgb[1] + h[i][2]*brightness) / h[2][2]
	}
	for i, s := 0, brightness/out[2]; i < 3; i++ {
		out[i] *= s
	}
	return [3]float64{out[0], out[1], out[2] - out[0] - out[1]}
}

// TestWhiteBalance compares the white balance with PPISP's statement of it, wants the brightness kept, and latents of
// zero to change nothing.
func TestWhiteBalance(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 100 {
		a := Appearance[float64]{}
		for k := whiteBalance; k < vignetting && i > 0; k++ {
			a[k] = r.NormFloat64()
		}
		rgb := [3]float64{r.Float64(), r.Float64(), r.Float64()}
		got := ApplyAppearance([][4]float64{{rgb[0], rgb[1], rgb[2], 0}}, &a, Camera{1, 1, true, false})[0]
		want := ppispColour(&a, rgb)
		if i == 0 {
			want = rgb
		}
		for ch := range 3 {
			if math.Abs(got[ch]-want[ch]) > 1e-12 {
				t.Fatalf("latents %v make %v of %v, want %v", a[whiteBalance:vignetting], got, rgb, want)
			}
		}
		if sum := got[0] + got[1] + got[2]; math.Abs(sum-rgb[0]-rgb[1]-rgb[2]) > 1e-12 {
			t.Errorf("the brightness of %v is %g", rgb, sum)
		}
	}
}

// TestFindAppearance wants the mean over all photos to be zero and photos of one camera to share their vignetting.
func TestFindAppearance(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	own, cameras := make([]Appearance[float64], 7), []int{0, 1, 0, 2, 1, 1, 0}
	for i := range own {
		own[i] = someAppearance(r)
	}
	var sum Appearance[float64]
	for i := range own {
		a := FindAppearance(own, cameras, i)
		for k := range a {
			sum[k] += a[k]
		}
		b := FindAppearance(own, cameras, 1)
		if cameras[i] == 1 && !slices.Equal(a[vignetting:], b[vignetting:]) {
			t.Errorf("photo %d has another vignetting than photo 1", i)
		}
	}
	for k := range vignetting {
		if math.Abs(sum[k]) > 1e-14 {
			t.Errorf("the mean of number %d is %g", k, sum[k]/7)
		}
	}
}
