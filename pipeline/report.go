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

// report collects the progress of a trainer and passes it on.
type report struct {
	progress    Progress
	to          func(Progress) // of RunTo's caller, nil outside it
	reported    int            // step that to was last called for
	ceilingHits int            // how many times a splat could not grow because of the ceiling
	passes      bench.PassTimes
	meter       *bench.Meter // of Measure's steps; nil outside it
	elapsed     time.Duration
}

// add notes a view of a step, which is counted from 0.
func (r *report) add(x *layout.Report, step, view, level int) {
	p := &r.progress
	p.Step, p.View, p.Level = step+1, view, level
	p.Loss, p.L1, p.MSE, p.SSIM = x.Loss, x.L1, x.Mse, x.Ssim
	p.Alpha, p.Counted = x.AlphaL1, int(x.NCounted)
	p.Visible, p.Isects = int(x.NVisible), int(x.NIsects)
}

// observe notes the times of a step that ran on a frame of the first device.
func (r *report) observe(f *frame) {
	if f.ran == f.timed {
		r.passes.Observe(f.ran)
	}
	if r.meter != nil {
		r.meter.Observe(bench.Step{Program: f.ran, Visible: r.progress.Visible, Isects: r.progress.Isects,
			PhotoBytes: f.photo.bytes, PhotoCopies: f.photo.took()})
	}
}

// publish reports the last view, unless its step was reported before. more says that other views of the step follow.
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
