package ref

import "math"

// twin: find_appearance apply_appearance apply_appearance_bwd appearance_adam

// Appearance is what a photo has of exposure [0], white balance [1..8] and vignetting [9..23]; see
// shared/appearance.glsl.
type Appearance[T Real] [24]T

const (
	whiteBalance = 1
	vignetting   = 9
	channelTerms = 5 // of vignetting
)

// Camera says what of an appearance is applied to a picture of that size. Exposure always is.
type Camera struct {
	Width, Height            int
	WhiteBalance, Vignetting bool
}

// FindAppearance returns that of photo id from what all photos have learnt: exposure and white balance less their mean,
// and the sum of vignetting over the photos of the same camera.
func FindAppearance[T Real](own []Appearance[T], cameras []int, id int) (a Appearance[T]) {
	for i := range own {
		for k := range vignetting {
			a[k] -= own[i][k] / T(len(own))
		}
		for k := vignetting; k < len(a) && cameras[i] == cameras[id]; k++ {
			a[k] += own[i][k]
		}
	}
	for k := range vignetting {
		a[k] += own[id][k]
	}
	return a
}

// chromaticities (r, g) of blue, red, green and neutral, and what takes two latents to the offset of each: PPISP's
// roots of their covariances over photos.
var (
	chromaticities     = [4][2]float64{{0, 0}, {1, 0}, {0, 1}, {1. / 3, 1. / 3}}
	chromaticityScales = [4][2][2]float64{
		{{.0480542, -.0043631}, {-.0043631, .0481283}},
		{{.0580570, -.0179872}, {-.0179872, .0431061}},
		{{.0433336, -.0180537}, {-.0180537, .0580500}},
		{{.0128369, -.0034654}, {-.0034654, .0128158}},
	}
)

// target returns where a chromaticity goes, homogeneous, and its derivative by latent k.
func (a *Appearance[T]) target(i, k int) (t, d vec3[T]) {
	for row := range 2 {
		t[row] = T(chromaticities[i][row])
		for col := range 2 {
			t[row] += T(chromaticityScales[i][row][col]) * a[whiteBalance+2*i+col]
		}
		if k/2 == i {
			d[row] = T(chromaticityScales[i][row][k%2])
		}
	}
	t[2] = 1
	return t, d
}

func determinant[T Real](a, b, c vec3[T]) T {
	return a.dot(b.cross(c))
}

// determinants returns that of three vectors and its derivative where they have the derivatives d.
func determinants[T Real](a, da, b, db, c, dc vec3[T]) (value, derivative T) {
	return determinant(a, b, c), determinant(da, b, c) + determinant(a, db, c) + determinant(a, b, dc)
}

// Colour is the matrix of the white balance on (r, g, b), which leaves the brightness to be restored, and its
// derivative by latent k. It is the homography of the chromaticities: its columns are the targets of red, green and
// blue, times what takes neutral to its own target, by Cramer's rule.
func (a *Appearance[T]) Colour(k int) (m, dm mat3[T]) {
	blue, dBlue := a.target(0, k)
	red, dRed := a.target(1, k)
	green, dGreen := a.target(2, k)
	neutral, dNeutral := a.target(3, k)
	wr, dwr := determinants(blue, dBlue, neutral, dNeutral, green, dGreen)
	wg, dwg := determinants(blue, dBlue, red, dRed, neutral, dNeutral)
	wb, dwb := determinants(neutral, dNeutral, red, dRed, green, dGreen)
	if !(wb > 1e-3) {
		return mat3[T]{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, dm
	}
	set := func(col int, t, dt vec3[T], w, dw T) {
		s := w / wb
		ds := (dw - s*dwb) / wb
		for row, x := range [3]T{t[0], t[1], t[2] - t[0] - t[1]} {
			m[row][col], dm[row][col] = s*x, ds*x
		}
		for row, x := range [3]T{dt[0], dt[1], -dt[0] - dt[1]} {
			dm[row][col] += s * x
		}
	}
	set(0, red, dRed, wr, dwr)
	set(1, green, dGreen, wg, dwg)
	set(2, blue, dBlue, wb, dwb)
	return m, dm
}

// vignette returns the factor of a channel at a pixel, and its derivatives by the channel's five numbers.
func (a *Appearance[T]) vignette(c Camera, p, channel int) (factor T, by [channelTerms]T) {
	at := vignetting + channelTerms*channel
	longer := T(max(c.Width, c.Height))
	x := (T(p%c.Width)+0.5-0.5*T(c.Width))/longer - a[at]
	y := (T(p/c.Width)+0.5-0.5*T(c.Height))/longer - a[at+1]
	q := x*x + y*y
	a1, a2, a3 := a[at+2], a[at+3], a[at+4]
	if factor = 1 + q*(a1+q*(a2+q*a3)); factor <= 0 {
		return 0, by
	}
	slope := a1 + q*(2*a2+3*q*a3)
	return factor, [channelTerms]T{-2 * slope * x, -2 * slope * y, q, q * q, q * q * q}
}

// leastBrightness is the sum of channels below which a pixel has no chromaticity to change.
const leastBrightness = 1e-5

// pixel is a pixel's state between the corrections.
type pixel[T Real] struct {
	exposed, factor, seen, turned, colour vec3[T]
	by                                    [3][channelTerms]T
	scale                                 T // 0: it has no chromaticity
}

func (a *Appearance[T]) pixel(c Camera, p int, rgb [4]T, m *mat3[T]) (x pixel[T]) {
	gain := T(math.Exp2(float64(a[0])))
	sum := T(0)
	for i := range 3 {
		x.exposed[i], x.factor[i] = gain*rgb[i], 1
		if c.Vignetting {
			x.factor[i], x.by[i] = a.vignette(c, p, i)
		}
		x.seen[i] = x.exposed[i] * x.factor[i]
		sum += x.seen[i]
	}
	x.colour = x.seen
	if !c.WhiteBalance {
		return x
	}
	x.turned = m.apply(x.seen)
	if turned := x.turned[0] + x.turned[1] + x.turned[2]; turned > leastBrightness {
		x.scale = sum / turned
		x.colour = x.turned.scale(x.scale)
	}
	return x
}

// ApplyAppearance makes of a rendering [P] what the camera saw: exposure, vignetting, white balance. Transmittance
// stays.
func ApplyAppearance[T Real](render [][4]T, a *Appearance[T], c Camera) [][4]T {
	out := make([][4]T, len(render))
	m, _ := a.Colour(0)
	for p, rgb := range render {
		x := a.pixel(c, p, rgb, &m)
		out[p] = [4]T{x.colour[0], x.colour[1], x.colour[2], rgb[3]}
	}
	return out
}

// ApplyAppearanceBwd takes dL/d(what the camera saw, alpha) to dL/d(rendered colours, alpha) and to dL/d(appearance).
func ApplyAppearanceBwd[T Real](render, vSeen [][4]T, a *Appearance[T],
	c Camera) (vRender [][4]T, vA Appearance[T]) {
	vRender = make([][4]T, len(render))
	m, _ := a.Colour(0)
	var vColour mat3[T]
	gain := T(math.Exp2(float64(a[0])))
	for p := range render {
		x := a.pixel(c, p, render[p], &m)
		g := vec3[T](vSeen[p][:3])
		if x.scale != 0 {
			g = x.colourBwd(g, &m, &vColour)
		}
		for i := range 3 {
			if c.Vignetting {
				for k, by := range x.by[i] {
					vA[vignetting+channelTerms*i+k] += g[i] * x.exposed[i] * by
				}
			}
			g[i] *= x.factor[i]
			vA[0] += math.Ln2 * g[i] * x.exposed[i]
			vRender[p][i] = g[i] * gain
		}
		vRender[p][3] = vSeen[p][3]
	}
	for k := range 8 {
		_, dm := a.Colour(k)
		for i := range 3 {
			for j := range 3 {
				vA[whiteBalance+k] += dm[i][j] * vColour[i][j]
			}
		}
	}
	return vRender, vA
}

// colourBwd takes the gradient back through colour = turned * sum(seen) / sum(turned), turned = m seen.
func (x *pixel[T]) colourBwd(g vec3[T], m, vColour *mat3[T]) (back vec3[T]) {
	along := g.dot(x.turned) / (x.turned[0] + x.turned[1] + x.turned[2])
	for j := range 3 {
		back[j] = along
	}
	for i := range 3 {
		v := x.scale * (g[i] - along)
		for j := range 3 {
			vColour[i][j] += v * x.seen[j]
			back[j] += m[i][j] * v
		}
	}
	return back
}

// VignettingPenalty is reg times the squared distance of vignetting's centre, mean over channels, and its gradient.
func VignettingPenalty[T Real](a *Appearance[T], reg T) (value T, grad Appearance[T]) {
	for channel := range 3 {
		for k := vignetting + channelTerms*channel; k < vignetting+channelTerms*channel+2; k++ {
			value += reg * a[k] * a[k] / 3
			grad[k] = reg * 2 * a[k] / 3
		}
	}
	return value, grad
}

// AppearanceRates are the learning rates of exposure and white balance, and of vignetting.
type AppearanceRates struct{ Photo, Vignetting float64 }

// Seconds are sums over the other photos of a camera: second moments of what they learnt of vignetting, and Adam's bias
// corrections of these, 1 - beta2^t.
type Seconds[T Real] struct {
	V    Appearance[T]
	Bias T
}

// AppearanceAdam steps what a photo has learnt, own, where a is its appearance, with the gradient of the loss and the
// penalty; step counts from 1 how often the photo was trained on. Exposure is always learnt, the others where
// c has them. Steps of vignetting are by the second moment over all photos of the camera.
func AppearanceAdam[T Real](own, m, v, a, vA *Appearance[T], c Camera, rates AppearanceRates, reg T, adam AdamConfig,
	step int, others *Seconds[T]) {
	g := Appearance[T]{}
	if c.Vignetting {
		_, g = VignettingPenalty(a, reg)
	}
	for i := range g {
		g[i] += vA[i]
	}
	for _, part := range []struct {
		from, to int
		on       bool
		rate     float64
	}{
		{0, whiteBalance, true, rates.Photo},
		{whiteBalance, vignetting, c.WhiteBalance, rates.Photo},
		{vignetting, len(own), c.Vignetting, rates.Vignetting},
	} {
		if part.on {
			i, j := part.from, part.to
			before := *own
			Adam(own[i:j], m[i:j], v[i:j], g[i:j], part.rate, adam, step)
			if i < vignetting {
				continue
			}
			bias1, bias2 := 1-math.Pow(adam.Beta1, float64(step)), T(1-math.Pow(adam.Beta2, float64(step)))
			for k := i; k < j; k++ {
				second := (others.V[k] + v[k]) / (others.Bias + bias2)
				own[k] = before[k] - T(part.rate)*m[k]/T(bias1)/(T(math.Sqrt(float64(second)))+T(adam.Eps))
			}
		}
	}
}
