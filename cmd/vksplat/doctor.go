package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/bench"
	"vksplat/internal/run/devicereport"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/pipeline/check"
)

// doctorOptions is everything that doctor is asked for.
type doctorOptions struct {
	bench.Options        // of the steps that a report times
	report        string // the file of --report
	bisect        bool
}

func (o *doctorOptions) deviceID() string {
	return cmp.Or((*deviceFlag)(&o.Device.Select).String(), "auto")
}

func doctorCommand(console *cli.Console) *cobra.Command {
	o := &doctorOptions{Options: *benchOptions(console)}
	o.Rounds = 1
	cmd := &cobra.Command{
		Use:   "doctor [--device ID] [--report FILE | --bisect [FILE]]",
		Short: "Check the Vulkan loader, the drivers and every kernel on a device",
		Long: "Check the Vulkan loader, the drivers, and the device's features, limits and memory, then\n" +
			"compare every kernel on the device with its CPU reference. --report also writes this to a\n" +
			"file to send in, with the time of a training step, without paths and serial numbers.\n" +
			"--bisect makes the first case that fails smaller while it fails, and writes it to\n" +
			bisected + ", which holds all that it needs; with FILE it runs such a file again.",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.bisect && len(args) == 1 {
				return nil
			}
			return none(cmd, args)
		},
	}
	own := []option{
		text(&o.report, "report", "also write the report to `FILE`, with the time of a training step"),
		truth(&o.bisect, "bisect", "write the smallest failing case to "+bisected+"; with FILE, run it again").
			flagOnly(),
		overwriteOption(&o.Overwrite, "an existing file of --report or --bisect"),
	}
	table := []optionGroup{{options: append(deviceOptions(&o.Device)[:1:1], own...)}}
	return newCommand(console, cmd, table, helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		switch {
		case o.bisect && flags.Changed("report"):
			return fault.Usagef("leave out one of the two", "%s contradict each other", fault.Named("report", "bisect"))
		case len(args) == 1:
			return replay(console, o, args[0])
		case o.bisect:
			return bisectDevice(console, o)
		case !flags.Changed("report"):
			_, err := examine(console.Printf, console.Stdout, o)
			return err
		}
		if o.report == "" || output.IsFolder(o.report) || !output.IsFolder(filepath.Dir(o.report)) {
			return fault.Usagef("name a file in a folder that exists, as in --report report.txt",
				"flag --report: %q cannot be written", o.report)
		}
		if err := output.RefuseExisting("report", o.Overwrite, o.report); err != nil {
			return err
		}
		return reportDevice(console, o, flags)
	})
}

// examine prints notes on the machine, then what check.Doctor finds.
func examine(printf func(string, ...any), w io.Writer, o *doctorOptions) (check.Verdict, error) {
	for _, note := range nvidiaNotes(os.DirFS("/"), os.Getenv) {
		printf("machine  %s\n", note)
	}
	v, err := check.Doctor(w, o.deviceID())
	return v, hintKernels(err)
}

func hintKernels(err error) error {
	if !errors.Is(err, check.ErrKernels) {
		return err
	}
	return fault.WithHint(err, "models from this device cannot be trusted: try a newer driver, and report the lines "+
		"marked FAIL with the file of doctor --bisect")
}

// reportDevice examines the device and times steps on it. What fails on the way is in the file, too.
func reportDevice(console *cli.Console, o *doctorOptions, flags *pflag.FlagSet) error {
	var text, passes bytes.Buffer
	both := cli.New(nil, io.MultiWriter(console.Stdout, &text), console.Stderr)
	v, err := examine(both.Printf, both.Stdout, o)
	r := &devicereport.Report{Device: v.Name, Driver: v.Driver, Kernels: v.Kernels, Right: v.Right}
	ctx, stop := console.Interruptible(cli.Always("stopping after this step"))
	defer stop()
	if v.Name != "" && !errors.Is(err, pipeline.ErrDeviceLost) {
		console.Printf("timing training steps\n")
		stepsErr := resolveSettings(&o.Options.Options, flags)
		if stepsErr == nil {
			r.Steps, stepsErr = bench.StandardSteps(ctx, &o.Options, &passes)
		}
		err = errors.Join(err, stepsErr)
	}
	if ctx.Err() != nil {
		return fault.ErrInterrupted
	}
	for _, s := range r.Steps {
		console.Printf("step     %.4g s: %s\n", s.MS/1e3, s.Name)
	}
	r.Text, r.Passes, r.Failure = text.String(), passes.String(), err
	if writeErr := r.Write(o.report); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	console.Printf("row of docs/devices-table.md:\n%s\nreport to send in: %s\n", r.Row(), cli.Quoted(o.report))
	return err
}
