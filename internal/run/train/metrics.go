package train

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene/results"
)

// EvalLine is a measurement on the held-out photos.
type EvalLine struct {
	Event      string           `json:"event"`
	Step       int              `json:"step"`
	PSNR       meter.Rounded    `json:"psnr"` // means
	SSIM       meter.Rounded    `json:"ssim"`
	PSNRMedian meter.Rounded    `json:"psnr_median"`
	SSIMMedian meter.Rounded    `json:"ssim_median"`
	Splats     int              `json:"splats"`
	Seconds    meter.Rounded    `json:"seconds"` // of training
	Views      []meter.ViewLine `json:"views"`

	// means after the affine colour map that fits the photo best; absent where appearance is not learnt
	CCPSNR *meter.Rounded `json:"cc_psnr,omitempty"`
	CCSSIM *meter.Rounded `json:"cc_ssim,omitempty"`
	// means through the cameras' vignetting; absent where that is not learnt
	LensPSNR *meter.Rounded `json:"lens_psnr,omitempty"`
	LensSSIM *meter.Rounded `json:"lens_ssim,omitempty"`
	// means of cameras that were moved to where their photos fit best; absent without refine-poses
	AlignedPSNR *meter.Rounded `json:"aligned_psnr,omitempty"`
	AlignedSSIM *meter.Rounded `json:"aligned_ssim,omitempty"`

	Drawn *results.Drawn `json:"drawn,omitempty"` // absent of measurements by earlier versions
}

// metricsLog is metrics.jsonl.
type metricsLog struct {
	f     *os.File
	end   int64 // of the lines that are this run's past, before begin
	begun bool
	every int
	evals []EvalLine // those in the file, by step
	since interval
	// Of the last line in this process, or where it began.
	lastStep      int
	lastSeconds   float64
	secondsBefore float64 // of training before a resume
}

// interval is the sums over the steps since the last line. Checkpoints take them along: the next line is of the same
// steps when the run goes on.
type interval struct {
	N    int     `json:"n"` // steps
	Loss float64 `json:"loss"`
	L1   float64 `json:"l1"`
	SSIM float64 `json:"ssim"`
	MSE  float64 `json:"mse"`
}

// text words the interval for a checkpoint, "" for no step.
func (v *interval) text() string {
	data, err := json.Marshal(v)
	if err != nil || v.N == 0 { // of numbers that are none
		return ""
	}
	return string(data)
}

// parseInterval reads what text made at a step. What it did not make is no step.
func parseInterval(text string, step int) (v interval) {
	if json.Unmarshal([]byte(text), &v) != nil || v.N < 0 || v.N > step {
		return interval{}
	}
	return v
}

// openMetrics opens metrics.jsonl for a run that begins after step. since is of the steps before that have no line yet.
// Where the run goesOn, the lines up to step are its past.
func openMetrics(path string, step, every int, since interval, goesOn bool) (*metricsLog, error) {
	m := &metricsLog{every: every, lastStep: step, since: since}
	var err error
	if m.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if goesOn {
		err = m.reread(step)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, fault.Pathless(err)), m.f.Close())
	}
	return m, nil
}

// begin cuts off what is in the file beyond the run's past, with the run's first step or write: it did not happen.
// Later calls do nothing.
func (m *metricsLog) begin() error {
	if m.begun {
		return nil
	}
	m.begun = true
	if err := m.f.Truncate(m.end); err != nil {
		return err
	}
	_, err := m.f.Seek(m.end, io.SeekStart)
	return err
}

// reread takes in the lines up to step and finds where they end.
func (m *metricsLog) reread(step int) error {
	r := bufio.NewReader(m.f)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what is left has no end of line
		}
		if err != nil {
			return err
		}
		var e EvalLine
		if json.Unmarshal(line, &e) != nil || e.Step > step {
			return nil
		}
		m.take(e)
		m.end += int64(len(line))
	}
}

func (m *metricsLog) take(e EvalLine) {
	m.secondsBefore = float64(e.Seconds)
	if e.Event == meter.EventEval {
		m.keep(e)
	}
}

// keep adds a measurement, in place of an earlier one of the same step.
func (m *metricsLog) keep(e EvalLine) {
	if n := len(m.evals); n > 0 && m.evals[n-1].Step == e.Step {
		m.evals = m.evals[:n-1]
	}
	m.evals = append(m.evals, e)
}

// add takes in a step.
func (m *metricsLog) add(p pipeline.Progress) {
	v := &m.since
	v.N++
	v.Loss, v.L1, v.SSIM, v.MSE = v.Loss+float64(p.Loss), v.L1+float64(p.L1), v.SSIM+float64(p.SSIM),
		v.MSE+float64(p.MSE)
}

// due reports whether it is time for a line.
func (m *metricsLog) due(step, total int) bool { return step%m.every == 0 || step == total }

// step writes the line of the steps since the last one. seconds is the time of training in this process.
func (m *metricsLog) step(p pipeline.Progress, total int, seconds float64, use meter.DeviceUse) (*meter.StepLine,
	error) {
	v, n := m.since, float64(m.since.N)
	rate := float64(p.Step-m.lastStep) / (seconds - m.lastSeconds)
	l := &meter.StepLine{Event: meter.EventStep, Step: p.Step, Total: total, Loss: meter.Rounded(v.Loss / n),
		L1: meter.Rounded(v.L1 / n), SSIM: meter.Rounded(v.SSIM / n), PSNR: meter.Rounded(meter.PsnrOf(v.MSE / n)),
		Splats: p.Splats, Visible: p.Visible, Isects: p.Isects, Downscales: p.Level, Rate: meter.Rounded(rate),
		ETA:         meter.Rounded(float64(total-p.Step) / rate),
		DeviceBytes: use.Bytes, DeviceBusy: use.Busy(rate), RSSBytes: meter.PeakRSS(),
		Seconds: meter.Rounded(m.secondsBefore + seconds)}
	m.since = interval{}
	m.lastStep, m.lastSeconds = p.Step, seconds
	return l, cli.WriteLine(m.f, l)
}

// eval writes a measurement.
func (m *metricsLog) eval(step, splats int, seconds float64, views []results.ViewScore,
	drawn *results.Drawn) (*EvalLine, error) {
	s := output.Summarise(views)
	e := EvalLine{Event: meter.EventEval, Step: step, PSNR: meter.Rounded(s.PSNR), SSIM: meter.Rounded(s.SSIM),
		PSNRMedian: meter.Rounded(s.PSNRMedian), SSIMMedian: meter.Rounded(s.SSIMMedian),
		Splats: splats, Seconds: meter.Rounded(m.secondsBefore + seconds), Drawn: drawn}
	if s.CCPSNR != nil {
		e.CCPSNR, e.CCSSIM = (*meter.Rounded)(s.CCPSNR), (*meter.Rounded)(s.CCSSIM)
	}
	if s.LensPSNR != nil {
		e.LensPSNR, e.LensSSIM = (*meter.Rounded)(s.LensPSNR), (*meter.Rounded)(s.LensSSIM)
	}
	if s.AlignedPSNR != nil {
		e.AlignedPSNR, e.AlignedSSIM = (*meter.Rounded)(s.AlignedPSNR), (*meter.Rounded)(s.AlignedSSIM)
	}
	for _, v := range views {
		line := meter.ViewLine{Name: v.Name, PSNR: meter.Exact(v.PSNR), SSIM: meter.Exact(v.SSIM)}
		if c := v.Corrected; c != nil {
			line.CCPSNR, line.CCSSIM = (*meter.Exact)(&c.PSNR), (*meter.Exact)(&c.SSIM)
		}
		if c := v.Lens; c != nil {
			line.LensPSNR, line.LensSSIM = (*meter.Exact)(&c.PSNR), (*meter.Exact)(&c.SSIM)
		}
		if c := v.Aligned; c != nil {
			line.AlignedPSNR, line.AlignedSSIM = (*meter.Exact)(&c.PSNR), (*meter.Exact)(&c.SSIM)
		}
		e.Views = append(e.Views, line)
	}
	m.keep(e)
	return &e, cli.WriteLine(m.f, e)
}

// scores returns the measurements so far as the files of INRIA's layout hold them.
func (m *metricsLog) scores() []results.StepScores {
	var list []results.StepScores
	for _, e := range m.evals {
		s := results.StepScores{Step: e.Step, Drawn: e.Drawn}
		for _, v := range e.Views {
			view := results.ViewScore{Name: v.Name, PSNR: float64(v.PSNR), SSIM: float64(v.SSIM)}
			if v.CCPSNR != nil && v.CCSSIM != nil {
				view.Corrected = &results.Corrected{PSNR: float64(*v.CCPSNR), SSIM: float64(*v.CCSSIM)}
			}
			if v.LensPSNR != nil && v.LensSSIM != nil {
				view.Lens = &results.Corrected{PSNR: float64(*v.LensPSNR), SSIM: float64(*v.LensSSIM)}
			}
			if v.AlignedPSNR != nil && v.AlignedSSIM != nil {
				view.Aligned = &results.Corrected{PSNR: float64(*v.AlignedPSNR), SSIM: float64(*v.AlignedSSIM)}
			}
			s.Views = append(s.Views, view)
		}
		list = append(list, s)
	}
	return list
}

// evaluated returns the measurement of step, nil where the last one is of another step, or was drawn otherwise.
func (m *metricsLog) evaluated(step int, drawn *results.Drawn) []results.ViewScore {
	list := m.scores()
	if n := len(list); n > 0 && list[n-1].Step == step && list[n-1].Drawn != nil && *list[n-1].Drawn == *drawn {
		return list[n-1].Views
	}
	return nil
}

// close closes the file. That of a run that never began leaves no empty one.
func (m *metricsLog) close() error {
	info, err := m.f.Stat()
	err = errors.Join(err, m.f.Close())
	if err == nil && !m.begun && info.Size() == 0 {
		err = os.Remove(m.f.Name())
	}
	return err
}
