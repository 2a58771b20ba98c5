package train

import (
	"fmt"
	"io"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
)

// StartLine is the first JSON line on standard output.
type StartLine struct {
	Event        string `json:"event"`
	Version      string `json:"version"`
	Device       string `json:"device"`
	Scene        string `json:"scene"`
	Out          string `json:"out"`
	Step         int    `json:"step"` // steps done before, in the run that is resumed
	Total        int    `json:"total"`
	TrainImages  int    `json:"train_images"`
	TestImages   int    `json:"test_images"`
	Resolution   string `json:"resolution"`
	Points       int    `json:"points"`
	PlannedBytes int64  `json:"planned_bytes"`
	BudgetBytes  int64  `json:"budget_bytes"`
}

// doneLine is the last.
type doneLine struct {
	Event string `json:"event"`
	*output.Stats
}

// progress shows a run on the console, as lines, a bar or JSON.
type progress struct {
	o       *Options
	console *cli.Console
	events  io.Writer // JSON lines go here, nil without --progress json
	show    *meter.Meter
	started *Started
	advised bool
}

func newProgress(o *Options, console *cli.Console) (Observer, error) {
	return &progress{o: o, console: console}, nil
}

// Observe prints what happened.
func (p *progress) Observe(e Event) error {
	switch e := e.(type) {
	case *Started:
		p.start(e)
	case *Stretch:
		if e.Begins {
			p.show.Resume()
		} else {
			p.show.Interrupt()
		}
	case *Stepped:
		p.show.Update(e.Progress)
		if from := p.started.Line.Step; !p.advised && e.Step-from >= adviceAfter {
			p.advised = true
			p.advise(p.show)
		}
	case *Measured:
		p.say(e.EvalLine)
	case *Scored:
		p.console.Sayf("step %d: held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d)\n", e.Step, e.PSNR, e.SSIM,
			e.Measured)
	case *Finished:
		p.summarise(e)
		p.say(doneLine{meter.EventDone, e.Stats})
	}
	return nil
}

// Close does nothing.
func (p *progress) Close() error { return nil }

func (p *progress) start(e *Started) {
	p.started = e
	p.show = meter.New(e.Out, p.o.Progress, e.Line.Step, e.Line.Total)
	p.show.Text, p.show.Use, p.show.Spent = p.console.Follow(p.show), e.Control.Use, e.Control.Spent
	if p.o.Progress == meter.JSON {
		p.events = e.Out
	}
	if p.events != nil || child.Reports() {
		p.say(e.Line)
	}
}

// say writes a JSON line to standard output, if that is asked for, and to a parent process that listens. A reader that
// is gone is no reason to stop training.
func (p *progress) say(v any) {
	child.Report(v)
	if p.events != nil {
		_ = cli.WriteLine(p.events, v)
	}
}

// summarise prints the results and where they are.
func (p *progress) summarise(e *Finished) {
	say, st := p.console.Sayf, e.Stats
	steps := cli.Count(st.Step-e.From, "step")
	if e.From > 0 {
		steps = fmt.Sprintf("%s after the first %d", steps, e.From)
	}
	say("trained %s in %s, saved and measured in %s: %s, %s of device memory at most\n", steps,
		cli.Duration(st.LoopSeconds), cli.Duration(e.Seconds), cli.Count(st.Splats, "splat"),
		pipeline.BytesText(st.PeakDeviceBytes))
	if c := st.Scores; c != nil {
		say("held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d; medians %.2f dB, %.4f)\n", st.PSNR, st.SSIM,
			st.Measured, st.PSNRMedian, st.SSIMMedian)
		if c.CCPSNR != nil {
			say("the same after the affine colour map that fits the photo best: PSNR %.2f dB, SSIM %.4f\n", *c.CCPSNR,
				*c.CCSSIM)
		}
		if c.LensPSNR != nil {
			say("as the cameras would have taken it, darker away from the centre: PSNR %.2f dB, SSIM %.4f\n",
				*c.LensPSNR, *c.LensSSIM)
		}
		if c.AlignedPSNR != nil {
			say("aligned, which is with cameras moved to where their photos fit best: PSNR %.2f dB, SSIM %.4f\n",
				*c.AlignedPSNR, *c.AlignedSSIM)
		}
		say("(measured with %s)\n", drawnBy(p.o, p.started.Capture, p.started.Test))
		say("pictures: %s\n", picturesFolder(p.o.Out, st.Step))
	}
	if e.Checkpoint != "" {
		say("checkpoint: %s\n", e.Checkpoint)
	}
	if e.Report != "" {
		say("report: %s\n", e.Report)
	}
	say("model: %s\n", e.Model)
}
