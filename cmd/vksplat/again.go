package main

import (
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/train"
)

// trainingFor returns the defaults of a training that the command line of console asks for.
func trainingFor(console *cli.Console) *train.Options {
	o := newTrainOptions()
	o.CommandLine = train.CommandLine{
		Chapters: settingChapters,
		Again:    func(changes ...train.Change) string { return commandAgain(console.Args, changes) },
		Resumed:  resumedBy,
	}
	return o
}

// resumedBy is the command that resumes a run. Blocks of a plan differ by their numbers.
func resumedBy(o *train.Options) string {
	if o.Divided != nil {
		return "the same command and --resume"
	}
	return fault.Command("resume " + cli.Quoted(o.Out))
}

// commandAgain returns the command line of args with changes to the flags of train, as a shell takes it.
func commandAgain(args []string, changes []train.Change) string {
	var rest, added []string
	if end := slices.Index(args, "--"); end >= 0 {
		args, rest = args[:end], args[end:]
	}
	table := trainTable(train.NewOptions())
	for _, c := range changes {
		o := find(table, c.Setting)
		args = without(args, o)
		switch {
		case c.LeftOut:
		case c.Value == "":
			added = append(added, cli.Switch(o.name))
		case o.bare != "":
			added = append(added, cli.Flag(o.name, c.Value))
		default:
			added = append(added, cli.Switch(o.name), c.Value)
		}
	}
	return fault.Command(strings.Join(cli.QuotedAll(slices.Concat(args, added, rest)), " "))
}

// without removes a flag by all of its names.
func without(args []string, o *option) []string {
	names := append([]string{o.name}, o.aliases...)
	var kept []string
	for i := 0; i < len(args); i++ {
		name, long := strings.CutPrefix(args[i], "--")
		key, _, joined := strings.Cut(name, "=")
		alone := o.short != "" && args[i] == "-"+o.short
		switch {
		case long && slices.Contains(names, strings.ReplaceAll(key, "_", "-")), alone:
			if !joined && o.bare == "" { // its value is the next word
				i++
			}
		case o.short != "" && !long && strings.HasPrefix(args[i], "-"+o.short):
		default:
			kept = append(kept, args[i])
		}
	}
	return kept
}
