package metric

import (
	"fmt"
	"math"
	"runtime"

	"vksplat/internal/atomicfile"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Padding says which windows an SSIM averages over.
type Padding int

const (
	// PaddingValid averages over the pixels whose 11x11 window lies inside the
	// image, as gsplat's loss does.
	PaddingValid Padding = iota
	// PaddingSame averages over every pixel; what a window reaches outside the
	// image counts as zero, as in INRIA's code.
	PaddingSame
)

// Constants of Wang et al. 2004, "Image Quality Assessment: From Error
// Visibility to Structural Similarity", for values in 0..1.
const (
	SSIMWindow = 11 // pixels of a side; the smallest side of a picture that is measured
	ssimRadius = SSIMWindow / 2
	ssimSigma  = 1.5
	ssimC1     = 0.01 * 0.01
	ssimC2     = 0.03 * 0.03
)

// comparingWorkers is how many cores one picture is compared on at most: where there are more, several pictures are
// worked on at once.
const comparingWorkers = 8

// CompareBytes returns about what Compare takes of memory beside a picture and its photo, a tile for each worker, and
// then WriteSheet: the buffer of a file and its encoder.
func CompareBytes() int64 {
	const tile = 1 << 19 // see ssimTile
	return max(atomicfile.WriteBuffer+encodeMost, tile*int64(min(comparingWorkers, runtime.GOMAXPROCS(0))))
}

// encodeMost is the most that encoding a picture as PNG takes of memory: compress/flate keeps 1.2 MB, twice, and there
// are two plain rows, and one band filtered and packed, of sheets whose photos are up to 32768 pixels wide.
const encodeMost = 4 << 20

// meanSSIM returns the mean structural similarity of two RGB images [height*width*3], values in 0..1: an 11x11 Gaussian
// window of sigma 1.5, per channel, moments in float64. Valid padding needs at least 11x11 pixels. With a mask, as in
// Image.Mask, pixels that do not count are zero in both images, and a window counts when its middle does.
func meanSSIM(a, b colours, width, height int, padding Padding, mask []uint32) (float64, error) {
	margin := 0
	if padding == PaddingValid {
		margin = ssimRadius
		if width < SSIMWindow || height < SSIMWindow {
			return 0, fmt.Errorf("compare images: %dx%d pixels hold no %dx%d window: %w", width, height, SSIMWindow,
				SSIMWindow, scene.ErrShape)
		}
	}
	// The sum of each tile has its place: the order of additions depends on the size alone.
	across, down := (width-2*margin+tileWide-1)/tileWide, (height-2*margin+tileHigh-1)/tileHigh
	sums, used := make([]float64, across*down), make([]int, across*down)
	parallel.Workers(len(sums), comparingWorkers, func() func(i int) {
		t := &ssimTile{a: a, b: b, width: width, height: height, mask: mask}
		return func(i int) {
			x, y := margin+i%across*tileWide, margin+i/across*tileHigh
			sums[i], used[i] = t.sum(x, y, min(tileWide, width-margin-x), min(tileHigh, height-margin-y))
		}
	})
	return meanOf(sums, used)
}

// ssimWeights are the window's along one side, from its edge to its middle, normalised: it is symmetric.
var ssimWeights = func() (w [ssimRadius + 1]float64) {
	var sum float64
	for i := -ssimRadius; i <= ssimRadius; i++ {
		sum += math.Exp(-float64(i*i) / (2 * ssimSigma * ssimSigma))
	}
	for i := range w {
		d := float64(i - ssimRadius)
		w[i] = math.Exp(-d*d/(2*ssimSigma*ssimSigma)) / sum
	}
	return w
}()

// Windows are worked on by tiles, so that everything about one stays in a core's own cache.
const (
	tileWide   = 96                            // windows across
	tileHigh   = 32                            // and down
	tileValues = 3 * (tileWide + 2*ssimRadius) // in a row of pixels that they see
	tileSpan   = 3*2*ssimRadius + 1            // values from one end of a window to the other, of one channel
	nMoments   = 4                             // see plane
	tileRows   = tileHigh + 2*ssimRadius       // rows of pixels that they see
)

// ssimTile computes tiles of the SSIM map of one pair of images.
type ssimTile struct {
	a, b          colours
	width, height int
	mask          []uint32 // as in Image.Mask

	// What the windows take the means of: a, b, a*a + b*b and a*b, which is all that equation 13 asks for. By row and
	// value.
	plane [nMoments][tileRows][tileValues]float64
	// Their means along columns, of one row of windows.
	mean [nMoments][tileValues]float64
}

// sum returns the sum of the SSIM map, all channels, over the wide*high windows from x, y on whose middle counts, and
// their number.
func (t *ssimTile) sum(x, y, wide, high int) (total float64, n int) {
	for r := range high + 2*ssimRadius {
		t.load(r, x-ssimRadius, y-ssimRadius+r)
	}
	for r := range high {
		for m := range t.plane {
			vertical(&t.mean[m], (*[SSIMWindow][tileValues]float64)(t.plane[m][r:]))
		}
		for i := range wide {
			if !photo.Counts(t.mask, (y+r)*t.width+x+i) {
				continue
			}
			n++
			for c := 3 * i; c < 3*i+3; c++ {
				a, b := horizontal((*[tileSpan]float64)(t.mean[0][c:])), horizontal((*[tileSpan]float64)(t.mean[1][c:]))
				squares, ab := horizontal((*[tileSpan]float64)(t.mean[2][c:])),
					horizontal((*[tileSpan]float64)(t.mean[3][c:]))
				means := a*a + b*b
				total += (2*a*b + ssimC1) * (2*(ab-a*b) + ssimC2) / ((means + ssimC1) * (squares - means + ssimC2))
			}
		}
	}
	return total, n
}

// load fills row r of the planes with the pixels from x, y on, zeros outside the image.
func (t *ssimTile) load(r, x, y int) {
	a, b, squares, ab := &t.plane[0][r], &t.plane[1][r], &t.plane[2][r], &t.plane[3][r]
	*a, *b = [tileValues]float64{}, [tileValues]float64{}
	if lo, hi := max(x, 0), min(x+tileValues/3, t.width); y >= 0 && y < t.height && lo < hi {
		t.a.read(a[3*(lo-x):3*(hi-x)], y*t.width+lo, t.mask)
		t.b.read(b[3*(lo-x):3*(hi-x)], y*t.width+lo, t.mask)
	}
	for i, p := range a {
		q := b[i]
		squares[i], ab[i] = p*p+q*q, p*q
	}
}

// vertical takes the weighted mean of eleven rows.
func vertical(out *[tileValues]float64, rows *[SSIMWindow][tileValues]float64) {
	w := &ssimWeights
	for i := range out {
		out[i] = w[0]*(rows[0][i]+rows[10][i]) + w[1]*(rows[1][i]+rows[9][i]) + w[2]*(rows[2][i]+rows[8][i]) +
			w[3]*(rows[3][i]+rows[7][i]) + w[4]*(rows[4][i]+rows[6][i]) + w[5]*rows[5][i]
	}
}

// horizontal takes the weighted mean of eleven pixels of a row, one channel.
func horizontal(v *[tileSpan]float64) float64 {
	w := &ssimWeights
	return w[0]*(v[0]+v[30]) + w[1]*(v[3]+v[27]) + w[2]*(v[6]+v[24]) + w[3]*(v[9]+v[21]) + w[4]*(v[12]+v[18]) +
		w[5]*v[15]
}
