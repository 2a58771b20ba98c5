package results

import (
	"fmt"
	"math"
	"path/filepath"

	"vksplat/scene"
)

// ViewScore is the quality of one held-out view.
type ViewScore struct {
	Name            string  // of the photo
	PSNR            float64 // dB
	SSIM            float64
	Extra[*float64] // nil: not measured
}

// Extra are scores of the same views after a correction, in files without those that were not measured.
type Extra[N any] struct {
	// of the rendering after the affine colour map that fits the photo best; where appearance is learnt
	CCPSNR N `json:"cc_psnr,omitempty"`
	CCSSIM N `json:"cc_ssim,omitempty"`
	// of the rendering as the photo's camera would have taken it, which darkens photos away from the centre as it was
	// learnt of others; where vignetting is learnt
	LensPSNR N `json:"lens_psnr,omitempty"`
	LensSSIM N `json:"lens_ssim,omitempty"`
	// of the camera after it was moved to where the photo fits best; where poses are refined
	AlignedPSNR N `json:"aligned_psnr,omitempty"`
	AlignedSSIM N `json:"aligned_ssim,omitempty"`
}

// All lists them.
func (e *Extra[N]) All() [6]*N {
	return [...]*N{&e.CCPSNR, &e.CCSSIM, &e.LensPSNR, &e.LensSSIM, &e.AlignedPSNR, &e.AlignedSSIM}
}

// Convert gives the scores another type.
func Convert[A, B any](e Extra[A], convert func(A) B) (c Extra[B]) {
	to := c.All()
	for k, x := range e.All() {
		*to[k] = convert(*x)
	}
	return c
}

// StepScores are the held-out views at one training step.
type StepScores struct {
	Step  int
	Views []ViewScore
	Drawn *Drawn // nil: an earlier version measured it

	Nearest map[string]scene.Nearest // of the views, by name
}

// maxPSNR replaces the infinite PSNR of equal images in files, in dB: JSON has
// no infinity. It belongs to a mean squared error of 1e-10.
const maxPSNR = 100

// inriaMean and inriaViews are the values of results.json and per_view.json.
// LPIPS, INRIA's third key, is absent because it is not measured; scores
// after colour correction have gsplat's names. The protocol is added, and how the model was drawn.
type inriaMean struct {
	SSIM float64
	PSNR float64
	Extra[*float64]

	Protocol string `json:"protocol"`
	Drawn    *Drawn `json:"drawn,omitempty"`
}

type inriaViews struct {
	SSIM map[string]float64
	PSNR map[string]float64
	Extra[map[string]float64]

	NearestDegrees  map[string]float64 `json:"nearest_degrees,omitempty"`
	NearestDistance map[string]float64 `json:"nearest_distance,omitempty"`

	Protocol string `json:"protocol"`
	Drawn    *Drawn `json:"drawn,omitempty"`
}

// Mean returns the mean PSNR and SSIM over the views, each PSNR capped at 100 dB.
func (s StepScores) Mean() (psnr, ssim float64) {
	for _, v := range s.Views {
		psnr += math.Min(v.PSNR, maxPSNR)
		ssim += v.SSIM
	}
	n := float64(len(s.Views))
	return psnr / n, ssim / n
}

// MeanExtra returns the means of the scores that all views have.
func MeanExtra(views []ViewScore) (means Extra[*float64]) {
	for k, mean := range means.All() {
		sum := new(float64)
		for i := range views {
			x := *views[i].All()[k]
			if x == nil {
				sum = nil
				break
			}
			*sum += math.Min(*x, maxPSNR) / float64(len(views))
		}
		*mean = sum
	}
	return means
}

// WriteResults writes results.json and per_view.json into dir with INRIA's keys: ours_<step> -> SSIM, PSNR, of a
// protocol. All steps that the files shall show are given together. With goesOn what the files hold of other methods
// than steps by that protocol stays. A view whose score is NaN is an error.
func WriteResults(dir, protocol string, steps []StepScores, goesOn bool) error {
	means, perView := map[string]any{}, map[string]any{}
	if goesOn {
		means, perView = foreignResults(filepath.Join(dir, resultsFile), protocol),
			foreignResults(filepath.Join(dir, perViewFile), protocol)
	}
	for _, s := range steps {
		if len(s.Views) == 0 {
			return fmt.Errorf("write results: step %d: no view was measured", s.Step)
		}
		views := inriaViews{SSIM: map[string]float64{}, PSNR: map[string]float64{},
			NearestDegrees: map[string]float64{}, NearestDistance: map[string]float64{},
			Protocol: protocol, Drawn: s.Drawn}
		for _, v := range s.Views {
			if math.IsNaN(v.PSNR) || math.IsNaN(v.SSIM) {
				return fmt.Errorf("write results: step %d: %q: PSNR %v, SSIM %v: %w", s.Step, v.Name, v.PSNR, v.SSIM,
					scene.ErrNotFinite)
			}
			views.PSNR[v.Name] = math.Min(v.PSNR, maxPSNR)
			views.SSIM[v.Name] = v.SSIM
			for k, x := range v.All() {
				if scores := views.All()[k]; *x != nil {
					if *scores == nil {
						*scores = map[string]float64{}
					}
					(*scores)[v.Name] = math.Min(**x, maxPSNR)
				}
			}
			if n, known := s.Nearest[v.Name]; known {
				views.NearestDegrees[v.Name], views.NearestDistance[v.Name] = n.Degrees, n.Distance
			}
		}
		key := MethodName(s.Step)
		psnr, ssim := s.Mean()
		means[key] = inriaMean{SSIM: ssim, PSNR: psnr, Extra: MeanExtra(s.Views), Protocol: protocol, Drawn: s.Drawn}
		perView[key] = views
	}
	return writeResults(dir, means, perView)
}
