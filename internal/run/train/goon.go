package train

import (
	"errors"
	"path/filepath"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/output"
	"vksplat/scene/initial"
)

// asked is what a run was asked for beside the recipe and the photos. It says nothing of the machine, and of what only
// shows the run: each call chooses that.
type asked struct {
	Exports         []string  `json:"exports"` // absolute, or relative to OUT, which may be moved
	EvalAt          cli.Steps `json:"eval_at"`
	SaveAt          cli.Steps `json:"save_at"`
	CheckpointEvery string    `json:"checkpoint_every"`
	KeepCheckpoints int       `json:"keep_checkpoints"`
	MetricsEvery    int       `json:"metrics_every"`
	Tensorboard     bool      `json:"tensorboard"`
	Report          bool      `json:"report"`

	Init initial.Options `json:"init"`
}

// askedOf is what of that the options say.
func askedOf(o *Options) *asked {
	a := &asked{EvalAt: o.EvalAt, SaveAt: o.Checkpoints.SaveAt, CheckpointEvery: o.Checkpoints.Every.String(),
		KeepCheckpoints: int(o.Checkpoints.Keep), MetricsEvery: o.MetricsEvery, Tensorboard: o.Tensorboard,
		Report: o.Report, Init: o.Init}
	for _, path := range o.Exports {
		path = output.Absolute(path)
		if rel, err := filepath.Rel(output.Absolute(o.Out), path); err == nil && filepath.IsLocal(rel) {
			path = filepath.ToSlash(rel)
		}
		a.Exports = append(a.Exports, path)
	}
	if o.Init.File != "" {
		a.Init.File = output.Absolute(o.Init.File)
	}
	return a
}

// GoOn makes o, which is resolved, the options of the run in out, to continue it as it was started. What the call gives
// stays. scene is where the photos are now, "" where they were. The recipe and the choice of the photos follow once the
// folder is locked: see adopt.
func (o *Options) GoOn(out, scene string) error {
	if err := refuseNoRun(out); err != nil {
		return err
	}
	o.Out, o.Checkpoints.Resume, o.goesOn = out, ResumeAuto, true
	at := output.Current(out)
	if err := refuseDamagedBegun(filepath.Join(at, output.CheckpointFolder)); err != nil {
		return err
	}
	b := readBegun(filepath.Join(at, output.CheckpointFolder))
	var source *captured.Source
	switch {
	case b != nil && b.Block:
		return fault.Usagef("give the plan, and the other flags that it was started with: "+
			fault.Command("train PLAN --block K --resume"), "%s is a block of a plan", out)
	case b != nil:
		source = &b.Source
	default: // an earlier version began it
		rec, err := captured.ReadRecord(at)
		if err != nil {
			return err
		}
		if rec == nil {
			return noRun(out)
		}
		source = &rec.Source
		rec.Options(&o.Load, at, o.Asked)
		o.Eval = o.Eval || len(rec.HeldOut) > 0 && !o.Asked("eval")
	}
	if o.Scene = scene; scene == "" {
		place, err := source.Place(out)
		if err != nil {
			return err
		}
		o.Scene = place
	}
	if b == nil || b.Asked == nil {
		return nil
	}
	return goOnAsked(o, b.Asked)
}

// goOnAsked takes over what the run was asked for, where the call says nothing of it.
func goOnAsked(o *Options, a *asked) error {
	c := &o.Checkpoints
	every := c.Every
	if err := every.Set(a.CheckpointEvery); err != nil {
		return fault.Data("resume", o.Out, "remove checkpoints/"+output.BegunFile+" and resume with the run's flags",
			"%v", err)
	}
	var exports convert.Exports
	for _, path := range a.Exports {
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Out, filepath.FromSlash(path))
		}
		if err := exports.Set(path); err != nil {
			return err
		}
	}
	captured.Adopt(o.Asked, "export", &o.Exports, exports)
	captured.Adopt(o.Asked, "eval-at", &o.EvalAt, a.EvalAt)
	captured.Adopt(o.Asked, "save-at", &c.SaveAt, a.SaveAt)
	captured.Adopt(o.Asked, "checkpoint-every", &c.Every, every)
	captured.Adopt(o.Asked, "keep-checkpoints", &c.Keep, keepFlag(a.KeepCheckpoints))
	captured.Adopt(o.Asked, "metrics-every", &o.MetricsEvery, a.MetricsEvery)
	captured.Adopt(o.Asked, "tensorboard", &o.Tensorboard, a.Tensorboard)
	captured.Adopt(o.Asked, "report", &o.Report, a.Report)
	captured.Adopt(o.Asked, "init", &o.Init.Kind, a.Init.Kind)
	captured.Adopt(o.Asked, "init", &o.Init.File, a.Init.File)
	captured.Adopt(o.Asked, "init-points", &o.Init.Points, a.Init.Points)
	captured.Adopt(o.Asked, "init-grid", &o.Init.Grid, a.Init.Grid)
	return nil
}

// refuseNoRun refuses a place where no run can be.
func refuseNoRun(out string) error {
	switch {
	case output.IsFile(out):
		return fault.Usagef("name the folder of the run; an earlier checkpoint is continued by "+
			fault.Command("train SCENE -m OUT --resume=FILE"), "%s is a file and no run", out)
	case !output.IsFolder(out):
		return &fault.Error{Op: "resume", Path: out, Err: errors.New("no such folder"),
			Hint: "check the spelling; a run is a folder that " + fault.Command("train SCENE -m OUT") + " wrote"}
	}
	return nil
}

// noRun says that a folder holds none.
func noRun(out string) error {
	err, hint := errors.New("no run was started in this folder"), "name a folder that "+
		fault.Command("train SCENE -m OUT")+" wrote"
	by := output.ReadWritten(out).By
	switch {
	case output.IsFolder(filepath.Join(out, captured.OwnFolder)):
		hint = "its scene is not complete: run the command that started it again"
	case by == output.ByTrain, by == output.ByDemo, output.IsFile(filepath.Join(out, output.LockName)):
		err, hint = errors.New("the run there has not begun its first step"), "run the command that started it again"
	}
	return &fault.Error{Op: "resume", Path: out, Err: err, Hint: hint}
}
