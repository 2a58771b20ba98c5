package train

import (
	"errors"
	"io"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/scene/calibrate"
	"vksplat/scene/results"
)

// Event is something that happened in a run: a pointer to one of the types below, which holds until Observe returns.
type Event any

type (
	// Started is the first event: everything is read and opened.
	Started struct {
		*Options
		Console     *cli.Console
		Out         io.Writer // standard output, which --progress json has alone
		Line        StartLine
		Capture     *scene.Capture // in the training frame
		Train, Test []int          // its cameras that are trained on, and that are held out
		// At is where a file of OUT is written, which changes between the two events Replacing.
		At      func(path string) string
		Nearest func() map[string]scene.Nearest
		// Calibrated is nil where no calibration was asked for, and of runs that are resumed.
		Calibrated *calibrate.Result
		Splats     int
		Driver     string
		Past       *history
		Control    Control
	}
	// Begun comes before the first step or file of the run.
	Begun struct{}
	// Stretch encloses steps: training begins, or halts to measure or to save.
	Stretch struct{ Begins bool }
	// Stepped comes after every step.
	Stepped struct{ pipeline.Progress }
	// Trained comes after the last step, on the goroutine that trained.
	Trained struct{}
	// Logged sums up the steps since the last line.
	Logged struct{ *meter.StepLine }
	// Saved says what became of the checkpoint that a viewer asked for: Write if it is being written in the background,
	// otherwise that of a step, or Err.
	Saved struct {
		Write *checkpoint.Write
		Path  string
		Step  int
		Err   error
	}
	// Compared is a held-out photo and its render. It comes from several goroutines at once.
	Compared struct {
		Step, Index int
		Photo       scene.Image
		Render      []float32 // [Height][Width][3], 0 to 1
		View        results.ViewScore
	}
	// Measured comes after all held-out photos of a step.
	Measured struct{ *EvalLine }
	// Scored comes with the scores of a step before the last one.
	Scored struct{ *output.Stats }
	// Finished comes when the model and all that belongs to it are written.
	Finished struct {
		*output.Stats
		From       int     // the step that this process began after
		Seconds    float64 // since the last step
		Model      string
		Checkpoint string // "": none is kept
		Report     string // "": none is written
	}
	// Replacing encloses the move of the run's files to the place of an earlier run. Who has one open closes it before,
	// because Windows moves no file that is open, and opens it again after.
	Replacing struct{ Done bool }
	// Ended is the last event.
	Ended struct {
		Err   error
		Model string // that was written last, "" for none
		Then  string // how to continue a run that its time limit ended
	}
)

// Observer shows or records a run by its events. Its errors are the run's.
type Observer interface {
	Observe(e Event) error
	Close() error
}

// Control is the requests that an observer may make to a run, from any goroutine.
type Control interface {
	Stage() Stage
	SaveNow() // after the step
	Stop()    // as Ctrl-C does
	// Between has functions called between two steps, where Show draws.
	Between() *pipeline.Interludes
	Show(memory []float32, c scene.Camera, look pipeline.Look) (rgb []float32, drawn scene.Camera, err error)
	Use() meter.DeviceUse // of the device by training
	Spent() float64       // seconds of training, in earlier processes too
}

// observers make what shows and records a run. Each may refuse its options, and is nil where it is not asked for. They
// get events in this order.
var observers = []func(o *Options, console *cli.Console) (Observer, error){
	newMetricsFile, newBoard, newReport, newProgress, newPreview,
}

// observe makes the observers of a run, with the one that the options bring.
func (r *Run) observe() error {
	for _, make := range append(observers[:len(observers):len(observers)], r.Observers...) {
		o, err := make(r.Options, r.Console)
		if err != nil {
			return err
		}
		if o != nil {
			r.observers = append(r.observers, o)
		}
	}
	return nil
}

// emit tells all observers of an event.
func (r *Run) emit(e Event) error {
	var errs []error
	for _, o := range r.observers {
		errs = append(errs, o.Observe(e))
	}
	return errors.Join(errs...)
}

// Observe makes an observer of a function.
type Observe func(e Event) error

func (f Observe) Observe(e Event) error { return f(e) }
func (f Observe) Close() error          { return nil }
