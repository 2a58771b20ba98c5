package metric

import (
	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Photos that were not trained on have no colour map of their own. To measure them all the same, one is fitted on the
// left half of the photo and the error is taken on the right half, so that what is measured was not fitted: the
// protocol of NeRF in the Wild (Martin-Brualla et al. 2021, section 4.1), whose halves INRIA's code uses for its
// exposure maps too.

// identityAffine is the colour map, row-major [3][4], that changes nothing.
var identityAffine = [12]float64{0: 1, 5: 1, 10: 1}

// RightHalf returns the mask of those pixels that count in mask (nil: all) and have x >= width/2, which FitExposure
// does not look at.
func RightHalf(mask []uint32, width, height int) []uint32 {
	half := make([]uint32, (width*height+31)/32)
	for y := range height {
		for x := width / 2; x < width; x++ {
			if i := y*width + x; photo.Counts(mask, i) {
				half[i/32] |= 1 << (i % 32)
			}
		}
	}
	return half
}

// FitExposure returns the 3x4 colour map A, row-major, for which A[:, :3] c + A[:, 3] of the rendered colours c
// [height*width*3] comes closest to those of the photo in the least squares sense, over the pixels with x < width/2
// that count in mask (nil: all). Where the rendering varies in fewer than three directions of colour, the map is the
// identity along the others: a rendering of one colour gives the identity and an offset. Without pixels, and for sizes
// that do not agree, it is the identity.
func FitExposure(render, photo []float32, width, height int, mask []uint32) [12]float64 {
	n := width * height
	if width <= 0 || height <= 0 || len(render) != 3*n || len(photo) != 3*n || mask != nil && len(mask) != (n+31)/32 {
		return identityAffine
	}
	f := exposureFit{render: render, photo: photo, width: width, height: height, mask: mask}
	if !f.means() {
		return identityAffine
	}
	f.covariances()
	a := f.solve()
	for _, x := range a {
		if !scene.Finite64(x) {
			return identityAffine
		}
	}
	return a
}

// exposureFit fits photo - render as an affine function of render. Everything is taken about the means, which keeps the
// normal equations well conditioned: their matrix is the covariance of the rendered colours.
type exposureFit struct {
	render, photo []float32
	width, height int
	mask          []uint32
	mean, diff    [3]float64 // of the rendered colours, and of photo - render
	// of the rendered colours, and [i][j] of photo - render in channel i with render in channel j
	cov, cross [3][3]float64
}

// each calls do for the first value of every pixel of the left half that counts.
func (f *exposureFit) each(do func(i int)) {
	for y := range f.height {
		for x := range f.width / 2 {
			if i := y*f.width + x; photo.Counts(f.mask, i) {
				do(3 * i)
			}
		}
	}
}

// means reports whether there are pixels at all.
func (f *exposureFit) means() bool {
	n := 0
	f.each(func(i int) {
		n++
		for k := range 3 {
			r := float64(f.render[i+k])
			f.mean[k] += r
			f.diff[k] += float64(f.photo[i+k]) - r
		}
	})
	for k := range 3 {
		f.mean[k] /= float64(max(n, 1))
		f.diff[k] /= float64(max(n, 1))
	}
	return n > 0
}

func (f *exposureFit) covariances() {
	f.each(func(i int) {
		var c, d [3]float64
		for k := range 3 {
			r := float64(f.render[i+k])
			c[k] = r - f.mean[k]
			d[k] = float64(f.photo[i+k]) - r - f.diff[k]
		}
		for j := range 3 {
			for k := range 3 {
				f.cov[j][k] += c[j] * c[k]
				f.cross[j][k] += d[j] * c[k]
			}
		}
	})
}

// flatDirection is the share of the largest variance below which a direction of colour says nothing.
const flatDirection = 1e-7

// solve inverts the covariance along the directions of colour that the rendering shows.
func (f *exposureFit) solve() [12]float64 {
	values, vectors := geom.SymmetricEigen(f.cov)
	largest := max(values[0], values[1], values[2])
	a := identityAffine
	for e, value := range values {
		if !(value > flatDirection*largest) {
			continue
		}
		for i := range 3 {
			along := 0.0
			for k := range 3 {
				along += f.cross[i][k] * vectors[k][e]
			}
			for j := range 3 {
				a[4*i+j] += along / value * vectors[j][e]
			}
		}
	}
	for i := range 3 {
		a[4*i+3] = f.mean[i] + f.diff[i]
		for j := range 3 {
			a[4*i+3] -= a[4*i+j] * f.mean[j]
		}
	}
	return a
}

// ApplyExposure returns the colours [pixels*3] after the 3x4 colour map a.
func ApplyExposure(a [12]float64, render []float32) []float32 {
	out := make([]float32, len(render))
	for i := 0; i+2 < len(render); i += 3 {
		r, g, b := float64(render[i]), float64(render[i+1]), float64(render[i+2])
		for k := range 3 {
			out[i+k] = float32(a[4*k]*r + a[4*k+1]*g + a[4*k+2]*b + a[4*k+3])
		}
	}
	return out
}
