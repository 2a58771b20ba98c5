package ref

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLossGradient compares the gradient of the loss alone with central differences, images smaller than the window
// included, with differences that count by their square and without.
func TestLossGradient(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {5, 13}, {11, 11}, {13, 17}} {
		for _, same := range []bool{false, true} {
			for _, huber := range []float64{0, 0.3} {
				c := LossConfig[float64]{Lambda: 0.2, Same: same, Huber: huber}
				if e := lossGradientError(size[0], size[1], c); !(e < 1e-7) {
					t.Errorf("size %v, same %v, huber %g: relative error %.3g", size, same, huber, e)
				}
			}
		}
	}
}

// lossGradientError is the relative error of the gradient for a random picture and photo.
func lossGradientError(width, height int, c LossConfig[float64]) float64 {
	r := rand.New(rand.NewPCG(uint64(width), 5))
	render, target := make([][4]float64, width*height), make([]float64, 3*width*height)
	for i := range target {
		render[i/3][i%3], target[i] = r.Float64(), r.Float64()
	}
	loss := func() float64 { return Loss(render, target, width, height, c).Loss }
	got := Loss(render, target, width, height, c).VRender
	var g, want []float64
	for i := range target {
		g, want = append(g, got[i/3][i%3]), append(want, centralDifference(&render[i/3][i%3], loss))
	}
	return RelNorm(g, want)
}

// lossTrial is a rendering, its photo and how they are compared.
type lossTrial struct {
	width, height int
	render        [][4]float64
	target        []float64
	config        LossConfig[float64]
}

// newLossTrial has a random mask with share of the pixels and a photo with random alpha.
func newLossTrial(width, height int, share float64, seed uint64) *lossTrial {
	r := rand.New(rand.NewPCG(seed, 9))
	n := width * height
	l := &lossTrial{width: width, height: height, target: make([]float64, 3*n), render: make([][4]float64, n)}
	l.config = LossConfig[float64]{Lambda: 0.2, AlphaLoss: 0.7, Alpha: make([]float64, n),
		Mask: make([]uint32, (n+31)/32)}
	for p := range n {
		for ch := range 4 {
			l.render[p][ch] = r.Float64()
		}
		for ch := range 3 {
			l.target[3*p+ch] = r.Float64()
		}
		l.config.Alpha[p] = r.Float64()
		if r.Float64() < share {
			l.config.Mask[p/32] |= 1 << (p % 32)
		}
	}
	return l
}

func (l *lossTrial) loss() *LossResult[float64] {
	return Loss(l.render, l.target, l.width, l.height, l.config)
}

// centralDifference returns the derivative of f by x.
func centralDifference(x *float64, f func() float64) float64 {
	const h = 1e-6
	was := *x
	defer func() { *x = was }()
	*x = was + h
	up := f()
	*x = was - h
	return (up - f()) / (2 * h)
}

// TestMaskedLossGradient compares the gradient by colours and alpha with central differences, under masks that hold
// all, some and none of the pixels.
func TestMaskedLossGradient(t *testing.T) {
	for k, size := range [][2]int{{1, 1}, {11, 11}, {13, 17}} {
		for _, same := range []bool{false, true} {
			for _, share := range []float64{0, 0.5, 0.9, 1} {
				l := newLossTrial(size[0], size[1], share, uint64(k))
				l.config.Same = same
				got := l.loss().VRender
				var g, want []float64
				for p := range l.render {
					for ch := range 4 {
						d := centralDifference(&l.render[p][ch], func() float64 { return l.loss().Loss })
						if ch == 3 {
							d = -d // alpha is 1 less the transmittance
						}
						if !l.config.counts(p) && got[p][ch] != 0 {
							t.Errorf("size %v: gradient %g at pixel %d, which does not count", size, got[p][ch], p)
						}
						g, want = append(g, got[p][ch]), append(want, d)
					}
				}
				if e := RelNorm(g, want); !(e < 1e-7) {
					t.Errorf("size %v, same %v, share %g: relative error %.3g", size, same, share, e)
				}
			}
		}
	}
}

// TestMaskedLossValue pins the rules of masks down.
func TestMaskedLossValue(t *testing.T) {
	// All pixels count: as without a mask.
	l := newLossTrial(20, 15, 1, 1)
	all := l.loss()
	l.config.Mask = nil
	if none := l.loss(); all.Counted != 300 || math.Abs(all.Loss-none.Loss) > 1e-15 || all.SSIM != none.SSIM ||
		relNorm4(all.VRender, none.VRender) != 0 {
		t.Errorf("a full mask: loss %g, without mask %g", all.Loss, none.Loss)
	}
	// What does not count has no influence, and L1 is a sum over what counts divided by all pixels.
	l = newLossTrial(20, 15, 0.6, 2)
	before := l.loss()
	var sum, alpha float64
	for p := range l.render {
		if l.config.counts(p) {
			for ch := range 3 {
				sum += math.Abs(l.render[p][ch] - l.target[3*p+ch])
			}
			alpha += math.Abs(1 - l.render[p][3] - l.config.Alpha[p])
			continue
		}
		l.render[p], l.target[3*p], l.config.Alpha[p] = [4]float64{9, 9, 9, 9}, -9, 9
	}
	if after := l.loss(); after.Loss != before.Loss || after.SSIM != before.SSIM || after.MSE != before.MSE ||
		relNorm4(after.VRender, before.VRender) != 0 {
		t.Error("a pixel that does not count changes the loss")
	}
	l.config.Lambda = 0
	if got, want := l.loss().Loss, (sum/3+0.7*alpha)/300; math.Abs(got-want) > 1e-15 {
		t.Errorf("loss %g, want %g", got, want)
	}
	// Nothing counts.
	l = newLossTrial(20, 15, 0, 3)
	if r := l.loss(); r.Loss != 0 || r.Counted != 0 || r.Windows != 0 || r.MSE != 0 {
		t.Errorf("without pixels: %+v", r)
	}
}

// relNorm4 is RelNorm of pixels.
func relNorm4(got, want [][4]float64) float64 {
	var g, w []float64
	for p := range want {
		g, w = append(g, got[p][:]...), append(w, want[p][:]...)
	}
	return RelNorm(g, w)
}
