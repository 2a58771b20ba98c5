package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"vksplat/farm/spec"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// mostCombinations is how many sets of settings are looked at whole: each takes some milliseconds. A matrix can have
// 100,000.
const mostCombinations = 200

// checkTasks refuses tasks of a job whose settings train would refuse, before anything runs. Settings that many tasks
// share are looked at once. Of more sets than mostCombinations those are looked at that have a value which none before
// had: two values that do not go together may then be found by the task itself.
func checkTasks(job *spec.Job, tasks []spec.Task) error {
	sets, values := map[string]bool{}, map[spec.Flag]bool{}
	for i := range tasks {
		t := &tasks[i]
		if !t.Kind.Trains {
			continue
		}
		var b strings.Builder
		news := len(sets) < mostCombinations
		for _, f := range t.Flags {
			fmt.Fprintf(&b, "%s=%q ", f.Name, f.Value)
			news = news || !values[f]
			values[f] = true
		}
		if key := b.String(); news && !sets[key] {
			sets[key] = true
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
	return "", resolveSettings(o, fs)
}
