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

// scored are the scores of a view by their names in files: INRIA's own, after colour correction those of gsplat. LPIPS,
// INRIA's third, is absent because training does not measure it.
var scored = []struct {
	psnr, ssim string
	of         func(v *ViewScore) *Corrected // nil: not measured
}{
	{psnrKey, "SSIM", func(v *ViewScore) *Corrected { return &Corrected{v.PSNR, v.SSIM} }},
	{"cc_psnr", "cc_ssim", func(v *ViewScore) *Corrected { return v.Corrected }},
	{lensPSNRKey, lensSSIMKey, func(v *ViewScore) *Corrected { return v.Lens }},
	{alignedPSNRKey, alignedSSIMKey, func(v *ViewScore) *Corrected { return v.Aligned }},
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
		mean, views := map[string]any{protocolKey: protocol}, map[string]any{protocolKey: protocol}
		if s.Drawn != nil {
			mean[drawnKey], views[drawnKey] = s.Drawn, s.Drawn
		}
		degrees, distances := map[string]float64{}, map[string]float64{}
		for _, v := range s.Views {
			if math.IsNaN(v.PSNR) || math.IsNaN(v.SSIM) {
				return fmt.Errorf("write results: step %d: %q: PSNR %v, SSIM %v: %w", s.Step, v.Name, v.PSNR, v.SSIM,
					scene.ErrNotFinite)
			}
			if n, known := s.Nearest[v.Name]; known {
				degrees[v.Name], distances[v.Name] = n.Degrees, n.Distance
			}
		}
		if len(degrees) > 0 {
			views[NearestDegrees], views[NearestDistance] = degrees, distances
		}
		for _, k := range scored {
			psnr, ssim := map[string]float64{}, map[string]float64{}
			for i := range s.Views {
				if c := k.of(&s.Views[i]); c != nil {
					psnr[s.Views[i].Name], ssim[s.Views[i].Name] = math.Min(c.PSNR, maxPSNR), c.SSIM
				}
			}
			if len(psnr) > 0 {
				views[k.psnr], views[k.ssim] = psnr, ssim
			}
			if c := meanOf(s.Views, k.of); c != nil {
				mean[k.psnr], mean[k.ssim] = c.PSNR, c.SSIM
			}
		}
		key := MethodName(s.Step)
		mean[psnrKey], mean["SSIM"] = s.Mean()
		means[key], perView[key] = mean, views
	}
	return writeResults(dir, means, perView)
}
