package vksplat

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/train"
)

// TrainOptions say how a model is trained. The zero value is the recipe of the command vksplat train, which chooses the
// numbers of steps and splats by the capture.
type TrainOptions struct {
	Preset     string // "3dgs" or "mcmc"; "": "default"
	Iterations int    // training steps; 0: the recipe's
	Seed       uint64 // of every random number; 0: 42
	// TimeLimit chooses as many steps as this call has time for, by their speed in a rehearsal, and no more than the
	// recipe has. With Iterations, and in Resume, it only ends the training. Where it does, the error is
	// context.DeadlineExceeded, and what is written is as after a cancelled context. 0: none.
	TimeLimit time.Duration
	// Settings are all others, by the keys of configuration files, as in "sh_degree": "2". `vksplat train
	// --print-config` prints them and docs/train.md describes them.
	Settings map[string]string

	HoldOut int    // measure on every HoldOut-th photo and train on the others; 0: train on all
	Replace bool   // a training that is in the folder already; it is kept until the new one has a checkpoint
	Export  string // also write the model to this file, in the format of its name

	// Progress is called after every step, by the goroutine that called Train. The training waits for it, so it must
	// not call the training's device: Device.Render, Device.Close and the like would wait for ever.
	Progress func(Progress)
	Warn     func(text string) // called with what is worth knowing and no error, from any goroutine
}

// Progress says how far a training is.
type Progress struct {
	Step, Steps int // done, and in all
	Splats      int
	Loss        float64 // of the photo of this step, without regularisers
}

// Train trains a model of the capture and writes it into the folder out, with checkpoints, a report and, with HoldOut,
// scores and pictures of the photos held out. docs/output.md says what out holds.
//
// Where ctx is cancelled, training ends within a few steps, those that the device has been given: a checkpoint and the
// model so far are written, and the error is that of ctx; there is none where all steps are done by then. Resume goes
// on from there, or from the last checkpoint of a process that was killed.
func Train(ctx context.Context, d *Device, c *Capture, out string, o TrainOptions) (*Model, error) {
	return d.train(ctx, c, out, o, "")
}

// Resume continues the training in the folder out, or starts it if nothing is there. The capture and the photos held
// out must be those that Train was given. Options that are left out are the training's own; others must agree with it.
// The model has the bytes of a training that was never stopped.
func Resume(ctx context.Context, d *Device, c *Capture, out string, o TrainOptions) (*Model, error) {
	return d.train(ctx, c, out, o, train.ResumeAuto)
}

func (d *Device) train(ctx context.Context, c *Capture, out string, o TrainOptions, resume string) (*Model, error) {
	if err := errors.Join(d.check(), c.check()); err != nil {
		return nil, err
	}
	if out == "" {
		return nil, fault.Usagef("name a folder to write", "no output folder")
	}
	options, err := o.resolve()
	if err != nil {
		return nil, classified(err)
	}
	options.Scene, options.Load, options.Out = c.dir, c.options, out
	options.Device, options.Opened = d.options, d.gpu
	options.CommandLine = train.CommandLine{Again: callAgain,
		Resumed: func(*train.Options) string { return "Resume" }}
	options.Checkpoints.Resume = resume
	if o.Progress != nil {
		report := train.Observe(func(e train.Event) error {
			if p, is := e.(*train.Stepped); is {
				steps := options.Config.Iterations // which the run has chosen, or adopted, by now
				o.Progress(Progress{Step: p.Step, Steps: steps, Splats: p.Splats, Loss: float64(p.Loss)})
			}
			return nil
		})
		options.Observers = append(options.Observers,
			func(*train.Options, *cli.Console) (train.Observer, error) { return report, nil })
	}
	var st *output.Stats
	err = d.use(ctx, func() (err error) {
		if st, err = train.Do(console(ctx, o.Warn), options); err == nil && st.Interrupted {
			err = fault.WithHint(train.ErrTimeLimit, "Resume continues it")
		}
		return err
	})
	if err != nil {
		return nil, ended(ctx, err)
	}
	return ReadModel(filepath.Join(out, output.ModelFolder+strconv.Itoa(st.Step), output.ModelName))
}

// callAgain names the call that makes a run again with changes.
func callAgain(changes ...train.Change) string {
	words := make([]string, len(changes))
	for i, c := range changes {
		switch {
		case c.Setting == "resume" && c.LeftOut:
			words[i] = "the same call"
		case c.Setting == "resume":
			words[i] = "Resume"
		case c.LeftOut:
			words[i] = "without " + fault.Setting(c.Setting)
		default:
			words[i] = fault.Setting(c.Setting) + " " + c.Value
		}
	}
	return strings.Join(words, ", ")
}

// resolve completes the options of a run.
func (o *TrainOptions) resolve() (*train.Options, error) {
	texts, err := o.texts()
	if err != nil {
		return nil, err
	}
	r := train.NewOptions()
	r.Progress, r.Preset = meter.None, o.Preset
	r.Checkpoints.Overwrite, r.TimeLimit = o.Replace, train.LimitFlag(o.TimeLimit)
	if o.HoldOut != 0 {
		if o.HoldOut < 2 {
			return nil, fault.Usagef("give 2 or more, or 0 to hold none out", "TrainOptions.HoldOut is %d", o.HoldOut)
		}
		r.Eval, r.TestEvery = true, o.HoldOut
	}
	if o.Export != "" {
		if err := r.Exports.Set(o.Export); err != nil {
			return nil, err
		}
	}
	names := settingNames(r)
	for key, text := range texts {
		name := dashed(key)
		s := settingOf(r, name)
		if s == nil || strings.Contains(key, "-") {
			return nil, fault.Usagef(unknownHint(key, names), "unknown key %q", key)
		}
		if err := s.Set(text); err != nil {
			return nil, fault.Usagef("", "key %s: %w", key, err)
		}
	}
	given := append(slices.Collect(maps.Keys(texts)), train.WholeSource)
	if o.HoldOut != 0 {
		given = append(given, "eval")
	}
	if o.Preset != "" {
		given = append(given, "preset")
	}
	return r, r.Resolve(train.Vocabulary{Setting: settingOf, Preset: readPreset}, nil, given)
}

// texts are all settings that are given, by their keys.
func (o *TrainOptions) texts() (map[string]string, error) {
	texts := map[string]string{}
	maps.Copy(texts, o.Settings)
	put := func(key, text string) error {
		if _, twice := o.Settings[key]; twice {
			return fault.Usagef("leave out one of the two", "%s is given as a field and as a setting", key)
		}
		texts[key] = text
		return nil
	}
	if o.Iterations != 0 {
		if err := put("iterations", strconv.Itoa(o.Iterations)); err != nil {
			return nil, err
		}
	}
	if o.Seed != 0 {
		if err := put("seed", strconv.FormatUint(o.Seed, 10)); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
