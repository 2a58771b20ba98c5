package desk

import (
	"vksplat/internal/child"
	"vksplat/internal/run/meter"
)

// numbers are how far a job is. Those that are not known are 0.
type numbers struct {
	Began       int64   `json:"began,omitempty"` // seconds since 1970
	Ended       int64   `json:"ended,omitempty"`
	Doing       string  `json:"doing,omitempty"`
	Step        int     `json:"step"`
	Total       int     `json:"total"`
	Splats      int     `json:"splats,omitempty"`
	Loss        float64 `json:"loss,omitempty"`
	Rate        float64 `json:"rate,omitempty"`     // steps a second
	ETA         float64 `json:"eta,omitempty"`      // seconds that are left
	Seconds     float64 `json:"seconds,omitempty"`  // of training
	DeviceBytes int64   `json:"device,omitempty"`   //
	HeldPSNR    float64 `json:"heldPsnr,omitempty"` // dB, of held-out photos
}

const mostWarnings = 20

// apply applies what a job's process reports. The lock of the queue is held.
func (j *job) apply(e *child.Event) {
	switch e.Event {
	case child.EventWarning:
		if len(j.Warnings) < mostWarnings {
			j.Warnings = append(j.Warnings, forPage(e.Text))
		}
	case child.EventViewer:
		if j.viewer.address == "" {
			j.viewer.address, j.Watch = e.URL, true
			close(j.ready)
		}
	case meter.EventStart:
		j.Step, j.Total, j.Doing = e.Step, e.Total, ""
	case meter.EventStep:
		j.Step, j.Total, j.Splats, j.DeviceBytes = e.Step, e.Total, e.Splats, e.DeviceBytes
		j.Loss, j.Rate, j.ETA, j.Seconds = e.Loss, e.Rate, e.ETA, e.Seconds
		if j.Doing = e.Text; e.Stage != "" {
			j.Doing = e.Stage + ": " + e.Text
		}
		if j.Kind == kindTrain && j.Step == j.Total {
			j.Doing = "evaluating and writing the model"
		}
	case meter.EventEval:
		j.HeldPSNR = e.PSNR
	}
}
