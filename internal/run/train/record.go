package train

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene/results"
)

// record is everything that a run tells while it goes: progress, metrics.jsonl,
// TensorBoard's events. What cannot be written is warned of once and left out:
// it is no reason to lose a run.
type record struct {
	run     *Run
	events  io.Writer // JSON lines go here, nil without --progress json
	show    *meter.Meter
	metrics *metricsLog
	board   *eventFile // nil without --tensorboard
	failed  bool
	advised bool
	unseen  int          // steps in a row in whose view no splat was visible
	lost    bool         // that has been told
	visited map[int]bool // views trained on while none of them has shown a splat; nil once one has
	blind   error        // no view shows a splat: the run ends
	from    int          // step that the run began after
	first   time.Time    // of the process's first stretch of training
	started time.Time    // of the present one
	before  float64      // seconds of training in the stretches before
}

// openRecord begins the record of a run whose trainer stands at its first step.
func openRecord(r *Run, events io.Writer) (*record, error) {
	rec := &record{run: r, from: r.Trainer.Step(), visited: map[int]bool{}}
	rec.show = meter.New(events, r.Progress, rec.from, r.Config.Iterations)
	rec.show.Text = r.Console.Follow(rec.show)
	rec.show.Use = r.use
	rec.show.Spent = func() float64 { return rec.metrics.secondsBefore + rec.seconds() }
	var since interval
	if from := r.saver.from; from != nil {
		since = parseInterval(from.Aside(), rec.from)
	}
	var err error
	if rec.metrics, err = openMetrics(r.at(filepath.Join(r.Out, output.MetricsFile)), rec.from, r.MetricsEvery, since,
		r.saver.ownPast()); err != nil {
		return nil, output.FolderError(r.Out, err)
	}
	if r.Tensorboard {
		if rec.board, err = openEvents(r.at(filepath.Join(r.Out, output.TensorboardFolder)), rec.from); err != nil {
			return nil, errors.Join(output.FolderError(r.Out, err), rec.metrics.close())
		}
	}
	if r.Progress == meter.JSON {
		rec.events = events
	}
	if rec.events != nil || child.Reports() {
		rec.say(StartLine{Event: meter.EventStart, Version: cli.Version(), Device: r.deviceNames(), Scene: r.Scene,
			Out: r.Out, Step: rec.from, Total: r.Config.Iterations,
			TrainImages: len(r.Train), TestImages: len(r.Test), Resolution: captured.Resolution(r.Capture.Cameras),
			Points:       r.nPoints,
			PlannedBytes: r.Trainer.MemoryStats().TotalBytes, BudgetBytes: r.deviceBudget()})
	}
	return rec, nil
}

// use is what training takes of the device now.
func (r *Run) use() meter.DeviceUse {
	return meter.DeviceUse{Bytes: r.Trainer.MemoryStats().DeviceBytes, Seconds: r.Trainer.PassTimes().StepSeconds()}
}

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

// say writes a JSON line to standard output, if that is asked for, and to a parent process that listens. A reader that
// is gone is no reason to stop training.
func (rec *record) say(v any) {
	child.Report(v)
	if rec.events != nil {
		_ = cli.WriteLine(rec.events, v)
	}
}

// begin and end enclose a stretch of training.
func (rec *record) begin() {
	rec.started = time.Now()
	if rec.first.IsZero() {
		rec.first = rec.started
	}
	rec.show.Resume()
}

func (rec *record) end() {
	rec.before = rec.seconds()
	rec.started = time.Time{}
	rec.show.Interrupt()
}

// seconds is the time of training in this process.
func (rec *record) seconds() float64 {
	if rec.started.IsZero() {
		return rec.before
	}
	return rec.before + time.Since(rec.started).Seconds()
}

// step is called after every step.
func (rec *record) step(p pipeline.Progress) {
	rec.show.Update(p)
	total := rec.run.Config.Iterations
	rec.metrics.add(p)
	rec.watch(p)
	if !p.More && rec.metrics.due(p.Step, total) {
		l, err := rec.metrics.step(p, total, rec.seconds(), rec.run.use())
		rec.check(err)
		if rec.board != nil {
			rec.check(rec.board.step(l))
		}
	}
	if !rec.advised && p.Step-rec.from >= adviceAfter {
		rec.advised = true
		rec.run.advise(rec.show)
	}
}

// watch looks for a model that no photo sees, which learns nothing. If no photo has ever seen it, the run ends; if the
// model was lost later, it warns once.
func (rec *record) watch(p pipeline.Progress) {
	if p.Visible > 0 {
		rec.unseen, rec.visited = 0, nil
		return
	}
	rec.unseen++
	r := rec.run
	// So many steps in a row contain a whole round of the photos, whichever step they begin with and whichever photos
	// cannot be decoded.
	round := rec.unseen >= 2*len(r.Train)
	causes := fmt.Sprintf("check %s (it is %g, the median camera distance 1), %s, and with "+
		"vksplat inspect whether poses and points belong together", fault.Setting("near"), r.Config.Near,
		fault.Setting("init"))
	if rec.visited != nil {
		if rec.visited[p.View] = true; round || len(rec.visited) == len(r.Train) {
			rec.blind = &fault.Error{Op: "train", Path: r.Scene, Hint: causes,
				Err: fmt.Errorf("no splat is visible in any of the %s trained on: nothing can be learnt",
					cli.Count(len(r.Train), "photo"))}
			return
		}
	}
	if rec.lost || !round && !(p.Step == r.Config.Iterations && rec.unseen == p.Step-rec.from) {
		return
	}
	rec.lost = true
	r.Console.Warn(fmt.Sprintf("no splat is visible in any photo, for %s now: nothing is learnt; %s",
		cli.Count(rec.unseen, "step"), causes))
}

// boards reports whether TensorBoard gets a picture of the i-th held-out photo. It may be called from any goroutine.
func (rec *record) boards(i int) bool { return rec.board != nil && i < tensorboardViews }

// view is called for every held-out photo, with its picture for TensorBoard if it gets one.
func (rec *record) view(step int, name string, p *boardPicture) {
	if p != nil {
		rec.check(rec.board.sheet(step, name, p))
	}
}

// eval is called after all held-out photos.
func (rec *record) eval(step int, views []results.ViewScore) {
	e, err := rec.metrics.eval(step, rec.run.Trainer.NSplats(), rec.seconds(), views, rec.run.drawn())
	rec.check(err)
	if rec.board != nil {
		rec.check(rec.board.eval(e))
	}
	rec.say(e)
}

// done is called when everything is written.
func (rec *record) done(st *output.Stats) { rec.say(doneLine{meter.EventDone, st}) }

// check warns of the first failure.
func (rec *record) check(err error) {
	if err != nil && !rec.failed {
		rec.failed = true
		rec.run.Console.Warn(fmt.Sprintf("%s or %s cannot be written, training continues without: %v",
			output.MetricsFile, output.TensorboardFolder, err))
	}
}

// startOver is called before the run's first step or write, and may be called again.
func (rec *record) startOver() { rec.check(rec.metrics.begin()) }

func (rec *record) close() error {
	err := rec.metrics.close()
	if rec.board == nil {
		return err
	}
	err = errors.Join(err, rec.board.close())
	if !rec.metrics.begun { // nor was anything written there
		path := rec.board.f.Name()
		err = errors.Join(err, os.Remove(path))
		_ = os.Remove(filepath.Dir(path)) // refused unless empty
	}
	return err
}
