package results

import (
	"fmt"
	"math"
	"path/filepath"

	"vksplat/scene"
)

// ViewScore is the quality of one held-out view.
type ViewScore struct {
	Name string  // of the photo
	PSNR float64 // dB
	SSIM float64
	// of the rendering after the affine colour map that fits the photo best; nil: not measured
	Corrected *Corrected
	// of the rendering as the photo's camera would have taken it, which darkens photos away from the centre as it was
	// learnt of others; nil: not measured
	Lens *Corrected
	// of the rendering of the camera after it was moved to where the photo fits best; nil: poses are not refined
	Aligned *Corrected
}

// Corrected is the quality of a view after a correction of its colours, or of its camera.
type Corrected struct{ PSNR, SSIM float64 }

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
	SSIM     float64
	PSNR     float64
	CCPSNR   *float64 `json:"cc_psnr,omitempty"`
	CCSSIM   *float64 `json:"cc_ssim,omitempty"`
	LensPSNR *float64 `json:"lens_psnr,omitempty"`
	LensSSIM *float64 `json:"lens_ssim,omitempty"`

	AlignedPSNR *float64 `json:"aligned_psnr,omitempty"`
	AlignedSSIM *float64 `json:"aligned_ssim,omitempty"`

	Protocol string `json:"protocol"`
	Drawn    *Drawn `json:"drawn,omitempty"`
}

type inriaViews struct {
	SSIM     map[string]float64
	PSNR     map[string]float64
	CCPSNR   map[string]float64 `json:"cc_psnr,omitempty"`
	CCSSIM   map[string]float64 `json:"cc_ssim,omitempty"`
	LensPSNR map[string]float64 `json:"lens_psnr,omitempty"`
	LensSSIM map[string]float64 `json:"lens_ssim,omitempty"`

	AlignedPSNR map[string]float64 `json:"aligned_psnr,omitempty"`
	AlignedSSIM map[string]float64 `json:"aligned_ssim,omitempty"`

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

// CorrectedMean returns the means of the scores after colour correction; nil: not all views have them.
func CorrectedMean(views []ViewScore) *Corrected {
	return meanOf(views, func(v *ViewScore) *Corrected { return v.Corrected })
}

// LensMean returns the means of the scores through the cameras' vignetting; nil: not all views have them.
func LensMean(views []ViewScore) *Corrected {
	return meanOf(views, func(v *ViewScore) *Corrected { return v.Lens })
}

// AlignedMean returns the means of the scores with aligned cameras; nil: not all views have them.
func AlignedMean(views []ViewScore) *Corrected {
	return meanOf(views, func(v *ViewScore) *Corrected { return v.Aligned })
}

func meanOf(views []ViewScore, score func(v *ViewScore) *Corrected) *Corrected {
	var sum Corrected
	for i := range views {
		c := score(&views[i])
		if c == nil {
			return nil
		}
		sum.PSNR += math.Min(c.PSNR, maxPSNR) / float64(len(views))
		sum.SSIM += c.SSIM / float64(len(views))
	}
	return &sum
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
		views := inriaViews{SSIM: map[string]float64{}, PSNR: map[string]float64{}, CCPSNR: map[string]float64{},
			CCSSIM: map[string]float64{}, LensPSNR: map[string]float64{}, LensSSIM: map[string]float64{},
			AlignedPSNR: map[string]float64{}, AlignedSSIM: map[string]float64{},
			NearestDegrees: map[string]float64{}, NearestDistance: map[string]float64{},
			Protocol: protocol, Drawn: s.Drawn}
		for _, v := range s.Views {
			if math.IsNaN(v.PSNR) || math.IsNaN(v.SSIM) {
				return fmt.Errorf("write results: step %d: %q: PSNR %v, SSIM %v: %w", s.Step, v.Name, v.PSNR, v.SSIM,
					scene.ErrNotFinite)
			}
			views.PSNR[v.Name] = math.Min(v.PSNR, maxPSNR)
			views.SSIM[v.Name] = v.SSIM
			if c := v.Corrected; c != nil {
				views.CCPSNR[v.Name], views.CCSSIM[v.Name] = math.Min(c.PSNR, maxPSNR), c.SSIM
			}
			if c := v.Lens; c != nil {
				views.LensPSNR[v.Name], views.LensSSIM[v.Name] = math.Min(c.PSNR, maxPSNR), c.SSIM
			}
			if c := v.Aligned; c != nil {
				views.AlignedPSNR[v.Name], views.AlignedSSIM[v.Name] = math.Min(c.PSNR, maxPSNR), c.SSIM
			}
			if n, known := s.Nearest[v.Name]; known {
				views.NearestDegrees[v.Name], views.NearestDistance[v.Name] = n.Degrees, n.Distance
			}
		}
		key := MethodName(s.Step)
		psnr, ssim := s.Mean()
		mean := inriaMean{SSIM: ssim, PSNR: psnr, Protocol: protocol, Drawn: s.Drawn}
		if c := CorrectedMean(s.Views); c != nil {
			mean.CCPSNR, mean.CCSSIM = &c.PSNR, &c.SSIM
		}
		if c := LensMean(s.Views); c != nil {
			mean.LensPSNR, mean.LensSSIM = &c.PSNR, &c.SSIM
		}
		if c := AlignedMean(s.Views); c != nil {
			mean.AlignedPSNR, mean.AlignedSSIM = &c.PSNR, &c.SSIM
		}
		means[key], perView[key] = mean, views
	}
	return writeResults(dir, means, perView)
}
