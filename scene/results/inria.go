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

// MeanExtra returns the means of the scores that all views have.
func MeanExtra(views []ViewScore) (means Extra[*float64]) {
	for k, mean := range means.All() {
		sum := 0.0
		for i := range views {
			x := *views[i].All()[k]
			if x == nil {
				sum = math.NaN()
				break
			}
			sum += math.Min(*x, maxPSNR)
		}
		if sum /= float64(len(views)); !math.IsNaN(sum) {
			*mean = &sum
		}
	}
	return means
}

// WriteResults writes results.json and per_view.json into dir with INRIA's keys: ours_<step> -> SSIM, PSNR, of a
// protocol. LPIPS, INRIA's third key, is absent because it is not measured. All steps that the files shall show are
// given together. With goesOn what the files hold of other methods than steps by that protocol stays. A view whose
// score is NaN is an error.
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
		r := s.result(protocol)
		var err error
		if means[r.Method], perView[r.Method], err = r.entries(); err != nil {
			return err
		}
	}
	return writeResults(dir, means, perView)
}

// extraKeys are what files call the scores that Extra.All lists.
var extraKeys = [...]string{"cc_psnr", "cc_ssim", lensPSNRKey, lensSSIMKey, alignedPSNRKey, alignedSSIMKey}

// result makes a Result of the scores of the step.
func (s *StepScores) result(protocol string) *Result {
	r := &Result{Method: MethodName(s.Step), Protocol: protocol, Drawn: s.Drawn, Nearest: s.Nearest}
	for _, v := range s.Views {
		scores := []Score{{"SSIM", v.SSIM, true}, {psnrKey, math.Min(v.PSNR, maxPSNR), true}}
		for k, x := range v.All() {
			score := Score{Name: extraKeys[k], Known: *x != nil}
			if score.Known {
				score.Value = math.Min(**x, maxPSNR)
			}
			scores = append(scores, score)
		}
		r.Views = append(r.Views, ViewScores{v.Name, scores})
	}
	return r
}
