package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"vksplat/farm/spec"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// checkTasks refuses tasks of a job whose settings train would refuse, before anything runs. Those that many tasks
// share are looked at once.
func checkTasks(job *spec.Job, tasks []spec.Task) error {
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
			if flag, err := checkTraining(t.Flags); err != nil {
				return job.WrongTask(t, flag, err)
			}
		}
	}
	return nil
}

// checkTraining gives flags to train as far as it checks them. It names the flag that is wrong where it is one alone.
func checkTraining(flags []spec.Flag) (flag string, err error) {
	o := newTrainOptions()
	fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
	table := trainTable(o)
	register(fs, table)
	o.Given = fs.Changed
	for _, f := range flags {
		option, example := find(table, f.Name), ""
		if option != nil {
			example = option.example() // of the default
		}
		if err := fs.Set(f.Name, f.Value); err != nil {
			return f.Name, usageErrorOf(err, trainCommand((&cli.Console{})))
		}
		if option.check != nil {
			if err := option.check(option.key()); err != nil {
				return f.Name, fault.Usagef(example, "%w", err)
			}
		}
	}
	return "", resolveSettings(o, fs.Changed)
}
