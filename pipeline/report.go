package pipeline

import (
	"time"

	"vksplat/pipeline/bench"
	"vksplat/shaders/layout"
)

// Progress says how far a run is. Loss is of the step's one view, without the regularisers; L1, MSE and SSIM are means
// over the pixels and windows that count, in the loss each is weighed by the share of the photo that counts.
type Progress struct {
	Step    int // steps done
	Loss    float32
	L1      float32
	MSE     float32
	SSIM    float32
	Alpha   float32 // mean |alpha - photo's alpha| with alpha loss, else 0
	Counted int     // pixels of the photo that count: what its mask leaves of it
	Splats  int
	Visible int  // of Step's view
	Isects  int  // (tile, splat) pairs of Step's view
	View    int  // the photo of Step, among those trained on
	More    bool // other views of Step follow: several devices have one each
	Level   int  // times that width and height of the photos are halved for Step
}

// report is what a trainer knows of its progress, and whom it reports to.
type report struct {
	progress    Progress
	to          func(Progress) // of RunTo's caller, nil outside it
	reported    int            // step that to was last called for
	ceilingHits int            // splats that wanted to grow and found the ceiling, ever
	passes      bench.PassTimes
	meter       *bench.Meter // of Measure's steps; nil outside it
	elapsed     time.Duration
}

// take takes in a view of a step, which is counted from 0.
func (r *report) take(x *layout.Report, step, view, level int) {
	p := &r.progress
	p.Step, p.View, p.Level = step+1, view, level
	p.Loss, p.L1, p.MSE, p.SSIM = x.Loss, x.L1, x.Mse, x.Ssim
	p.Alpha, p.Counted = x.AlphaL1, int(x.NCounted)
	p.Visible, p.Isects = int(x.NVisible), int(x.NIsects)
}

// observe takes the times of a step that ran on a frame of the first device.
func (r *report) observe(f *frame) {
	if f.ran == f.timed {
		r.passes.Observe(f.ran)
	}
	if r.meter != nil {
		r.meter.Observe(bench.Step{Program: f.ran, Visible: r.progress.Visible, Isects: r.progress.Isects,
			PhotoBytes: f.photo.bytes, PhotoCopies: f.photo.took()})
	}
}

// publish reports the view that was taken in last, unless its step was reported before. more says that other views of
// the step follow.
func (r *report) publish(more bool) {
	r.progress.More = more
	if r.to == nil || r.progress.Step <= r.reported {
		return
	}
	if !more {
		r.reported = r.progress.Step
	}
	r.to(r.progress)
}

// Step returns the number of steps done.
func (r *report) Step() int { return r.progress.Step }

// NSplats returns the number of splats after the last step.
func (r *report) NSplats() int { return r.progress.Splats }

// Seconds returns the time that Run took.
func (r *report) Seconds() float64 { return r.elapsed.Seconds() }

// CeilingHits returns how many times a splat wanted to grow and found the model at its ceiling.
func (r *report) CeilingHits() int { return r.ceilingHits }

// StepSeconds returns the device time that a step takes now, by the last ones that had timestamps; 0 where the device
// has none. Of several devices it is the first one's.
func (r *report) StepSeconds() float64 { return r.passes.StepSeconds() }

// PassTimes returns where a step's device time goes, in the order of the passes. Passes of one kernel are taken
// together. It is empty where the device has no timestamps.
func (r *report) PassTimes() []bench.PassTime { return r.passes.List() }
