package train

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

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

	results.Extra[*meter.Rounded] // means

	Drawn *results.Drawn `json:"drawn,omitempty"` // absent of measurements by earlier versions
}

// history is everything a run has logged and measured so far, in earlier processes too.
type history struct {
	end   int64 // of the lines of metrics.jsonl that are the run's past
	every int   // steps between lines
	evals []EvalLine
	since interval
	// Of the last line in this process, or where it began.
	lastStep      int
	lastSeconds   float64
	secondsBefore float64 // of training before a resume
}

// interval is the sums over the steps since the last line. Checkpoints take them along: the next line is of the same
// steps when the run is resumed.
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

// readHistory reads that of a run that begins after step. since is of the steps before that have no line yet. Where the
// run is resumed, the lines of metrics.jsonl up to step are its past.
func readHistory(path string, step, every int, since interval, resumed bool) (*history, error) {
	h := &history{every: every, lastStep: step, since: since}
	if !resumed {
		return h, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	if err := h.read(f, step); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, fault.Pathless(err))
	}
	return h, nil
}

// read reads the lines up to step and finds where they end.
func (h *history) read(f io.Reader, step int) error {
	r := bufio.NewReader(f)
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
		h.secondsBefore = float64(e.Seconds)
		if e.Event == meter.EventEval {
			h.keep(e)
		}
		h.end += int64(len(line))
	}
}

// keep adds a measurement, in place of an earlier one of the same step.
func (h *history) keep(e EvalLine) {
	if n := len(h.evals); n > 0 && h.evals[n-1].Step == e.Step {
		h.evals = h.evals[:n-1]
	}
	h.evals = append(h.evals, e)
}

// add adds a step, after seconds of training in this process. It returns a line of the steps since the last one when
// that is due, or else nil.
func (h *history) add(p *pipeline.Progress, total int, seconds float64, use func() meter.DeviceUse) *meter.StepLine {
	v := &h.since
	v.N++
	v.Loss, v.L1, v.SSIM, v.MSE = v.Loss+float64(p.Loss), v.L1+float64(p.L1), v.SSIM+float64(p.SSIM),
		v.MSE+float64(p.MSE)
	if p.More || p.Step%h.every != 0 && p.Step != total {
		return nil
	}
	n, device := float64(v.N), use()
	rate := float64(p.Step-h.lastStep) / (seconds - h.lastSeconds)
	l := &meter.StepLine{Event: meter.EventStep, Step: p.Step, Total: total, Loss: meter.Rounded(v.Loss / n),
		L1: meter.Rounded(v.L1 / n), SSIM: meter.Rounded(v.SSIM / n), PSNR: meter.Rounded(meter.PsnrOf(v.MSE / n)),
		Splats: p.Splats, Visible: p.Visible, Isects: p.Isects, Downscales: p.Level, Rate: meter.Rounded(rate),
		ETA:         meter.Rounded(float64(total-p.Step) / rate),
		DeviceBytes: device.Bytes, DeviceBusy: device.Busy(rate), RSSBytes: meter.PeakRSS(),
		Seconds: meter.Rounded(h.secondsBefore + seconds)}
	h.since, h.lastStep, h.lastSeconds = interval{}, p.Step, seconds
	return l
}

// eval adds a measurement.
func (h *history) eval(step, splats int, seconds float64, views []results.ViewScore,
	drawn *results.Drawn) *EvalLine {
	s := output.Summarise(views)
	e := EvalLine{Event: meter.EventEval, Step: step, PSNR: meter.Rounded(s.PSNR), SSIM: meter.Rounded(s.SSIM),
		PSNRMedian: meter.Rounded(s.PSNRMedian), SSIMMedian: meter.Rounded(s.SSIMMedian),
		Splats: splats, Seconds: meter.Rounded(h.secondsBefore + seconds), Drawn: drawn}
	e.Extra = results.Convert(s.Extra, func(x *float64) *meter.Rounded { return (*meter.Rounded)(x) })
	for _, v := range views {
		e.Views = append(e.Views, meter.ViewLine{Name: v.Name, PSNR: meter.Exact(v.PSNR), SSIM: meter.Exact(v.SSIM),
			Extra: results.Convert(v.Extra, func(x *float64) *meter.Exact { return (*meter.Exact)(x) })})
	}
	h.keep(e)
	return &e
}

// scores returns the measurements so far as the files of INRIA's layout hold them.
func (h *history) scores() []results.StepScores {
	var list []results.StepScores
	for _, e := range h.evals {
		s := results.StepScores{Step: e.Step, Drawn: e.Drawn}
		for _, v := range e.Views {
			s.Views = append(s.Views, results.ViewScore{Name: v.Name, PSNR: float64(v.PSNR), SSIM: float64(v.SSIM),
				Extra: results.Convert(v.Extra, func(x *meter.Exact) *float64 { return (*float64)(x) })})
		}
		list = append(list, s)
	}
	return list
}

// evaluated returns the measurement of step, nil where the last one is of another step, or was drawn otherwise.
func (h *history) evaluated(step int, drawn *results.Drawn) []results.ViewScore {
	list := h.scores()
	if n := len(list); n > 0 && list[n-1].Step == step && list[n-1].Drawn != nil && *list[n-1].Drawn == *drawn {
		return list[n-1].Views
	}
	return nil
}
