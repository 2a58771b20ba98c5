package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/scene/results"
)

// Files of a suite's run, in its OUT.
const (
	suiteRecordFile = "suite_run.json"
	suiteLogFile    = "suite.log"
)

// suiteRecord is the content of suiteRecordFile: how far a run is, across calls of suite.
type suiteRecord struct {
	Scene    string   `json:"scene"`    // absolute
	Settings []string `json:"settings"` // flags of train; those of a suite that was changed differ
	Attempts int      `json:"attempts"`
	// of the processes that trained, as far as they ended before the suite did
	WallSeconds float64 `json:"wall_seconds"`
	Trained     bool    `json:"trained"`
	Protocol    string  `json:"protocol,omitempty"` // it was measured by, "" before that
	Correct     string  `json:"color_correct,omitempty"`
	Weights     string  `json:"lpips_weights_sha256,omitempty"`
	TestList    string  `json:"test_list_sha256,omitempty"` // of the list of held-out photos, "" without one
}

func (r *suiteRun) logFile() string { return filepath.Join(r.Out, suiteLogFile) }

// recall reads the results of earlier calls. A run with other settings is errOtherSettings.
func (r *suiteRun) recall() error {
	if found, err := readOwn(filepath.Join(r.Out, suiteRecordFile), &r.record,
		"remove the folder to do the run again"); !found {
		return err
	}
	if r.record.TestList != "" && r.listHash != "" && r.record.TestList != r.listHash {
		return fmt.Errorf("%s %w: the list of held-out photos has changed", r.Out, errOtherSettings)
	}
	if r.record.Scene != output.Absolute(r.scene) || !slices.Equal(r.record.Settings, r.settings) {
		words := cli.QuotedAll(append([]string{"train", r.record.Scene}, r.record.Settings...))
		return fmt.Errorf("%s %w (%s)", r.Out, errOtherSettings, fault.Command(strings.Join(words, " ")))
	}
	return nil
}

// errOtherSettings is the error of a run's folder that another run has written.
var errOtherSettings = errors.New("holds a run with other settings")

// done reports whether earlier calls have left nothing to do.
func (r *suiteRun) done() bool {
	rec, p := &r.record, r.plan
	return rec.Trained && rec.Protocol == p.Protocol && rec.Correct == p.Correct && rec.Weights == p.weightsHash
}

// read takes in the results of a run.
func (r *suiteRun) read() error {
	st := output.ReadStats(r.Out)
	if st == nil {
		return fault.Data("read results", filepath.Join(r.Out, output.StatsFile), "remove "+
			filepath.Join(r.Out, suiteRecordFile)+" to have it measured again", "it is missing or damaged")
	}
	means, protocol, err := results.ReadMeans(r.Out, results.MethodName(st.Step))
	if err != nil {
		return err
	}
	if protocol != r.plan.Protocol {
		return fmt.Errorf("%s: the scores of step %d are of the protocol %q: the model was measured again; remove "+
			"%s to have it measured again",
			r.Out, st.Step, protocol, filepath.Join(r.Out, suiteRecordFile))
	}
	r.Numbers = numbers{"loop_seconds": st.TrainSeconds, "wall_seconds": r.record.WallSeconds,
		"peak_device_bytes": float64(st.PeakDeviceBytes), "splats": float64(st.Splats)}
	for _, name := range scoreNames {
		if value, known := means[name]; known {
			r.Numbers[name] = value
		}
	}
	r.Device, r.Resumed = st.Device, st.Run != nil && st.Run.ResumedFrom > 0
	r.Drawn, err = results.ReadDrawn(r.Out, results.MethodName(st.Step))
	return err
}

// do trains and measures. The record says at any time how far that is.
func (r *suiteRun) do(ctx context.Context, program string) error {
	if err := os.MkdirAll(r.Out, 0o777); err != nil {
		return err
	}
	r.record.Scene, r.record.Settings, r.record.TestList = output.Absolute(r.scene), r.settings, r.listHash
	r.record.Attempts++
	if err := r.save(); err != nil {
		return err
	}
	if !r.record.Trained {
		began := time.Now()
		again := []string{cli.Switch("resume"), cli.Flag("progress", meter.Plain)}
		err := r.child(ctx, program, slices.Concat(r.Train(), r.device, again))
		r.record.WallSeconds += time.Since(began).Seconds()
		r.record.Trained = err == nil
		if err := errors.Join(err, r.save()); err != nil {
			return err
		}
	}
	measure := []string{"eval", r.Out, cli.Flag("protocol", r.plan.Protocol), cli.Flag("color-correct", r.plan.Correct)}
	if r.plan.Weights != "" {
		measure = append(measure, cli.Flag("lpips-weights", r.plan.Weights))
	}
	if err := r.child(ctx, program, slices.Concat(measure, r.device)); err != nil {
		return err
	}
	r.record.Protocol, r.record.Correct, r.record.Weights = r.plan.Protocol, r.plan.Correct, r.plan.weightsHash
	if err := r.save(); err != nil {
		return err
	}
	return r.read()
}

func (r *suiteRun) save() error {
	return output.WriteJSON(filepath.Join(r.Out, suiteRecordFile), &r.record)
}

// child runs this program with arguments until it ends. Its output goes to the run's log. See child.Run.
func (r *suiteRun) child(ctx context.Context, program string, args []string) error {
	log, err := os.OpenFile(r.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close() // the child writes to it
	if _, err := fmt.Fprintf(log, "\n$ vksplat %s\n", strings.Join(cli.QuotedAll(args), " ")); err != nil {
		return err
	}
	err = child.Run(ctx, program, args, child.Options{Stdout: log, Stderr: log, OnEvent: func(*child.Event) {}})
	var failed *child.Failure
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed) && failed.Text == "":
		return fmt.Errorf("%s: %w; its output is in %s", args[0], err, r.logFile())
	}
	return err
}

// summary says what came of a run in a few words.
func (r *suiteRun) summary() string {
	words := []string{}
	for _, name := range evaluate.PlainNames {
		if _, known := r.Numbers[name]; known {
			words = append(words, name+" "+r.Numbers.text(name))
		}
	}
	return fmt.Sprintf("%s (%s), %s in %s", strings.Join(words, ", "), r.plan.Protocol,
		cli.Count(int(r.Numbers["splats"]), "splat"), cli.Duration(r.record.WallSeconds))
}
