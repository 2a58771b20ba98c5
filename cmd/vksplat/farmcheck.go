package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"vksplat/farm/spec"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// checkTasks refuses tasks whose settings train would refuse, before anything runs. Those that many tasks share are
// looked at once.
func checkTasks(tasks []spec.Task) error {
	seen := map[string]bool{}
	for i := range tasks {
		t := &tasks[i]
		if !t.Kind.Trains {
			continue
		}
		var b strings.Builder
		for _, f := range t.Flags {
			fmt.Fprintf(&b, "%s=%q ", f.Name, f.Value)
		}
		if key := b.String(); !seen[key] {
			seen[key] = true
			if err := checkTraining(t.Flags); err != nil {
				return fault.Usagef(fault.Hint(err), "check task %s: %w", t.Name, err)
			}
		}
	}
	return nil
}

// checkTraining gives flags to train as far as it checks them.
func checkTraining(flags []spec.Flag) error {
	o := newTrainOptions()
	fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
	register(fs, trainTable(o))
	o.Given = fs.Changed
	for _, f := range flags {
		if err := fs.Set(f.Name, f.Value); err != nil {
			return usageErrorOf(err, trainCommand((&cli.Console{})))
		}
	}
	return resolveSettings(o, fs.Changed)
}
