package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/spec"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/render"
	"vksplat/internal/run/train"
)

// farmOptionsFile lists the options of the commands that tasks of the farm run.
const farmOptionsFile = "../../farm/spec/options.json"

// notOfJobs are settings that a job document cannot give: they name files of the worker's machine, or are the worker's
// to decide.
var notOfJobs = []string{"images", "masks", "test-list", "image-cache", "image-cache-size", "device", "max-vram",
	"max-ram", "checkpoint-every", "save-at", "keep-checkpoints", "progress", "preset"}

// taskOptions are the options of the commands that tasks run, by command.
func taskOptions(t *testing.T) map[string][]*option {
	list := map[string][]*option{}
	root := rootCommand(cli.New(nil, io.Discard, io.Discard))
	for _, k := range spec.Kinds() {
		if k.Command == "" || list[k.Command] != nil {
			continue
		}
		cmd, _, err := root.Find([]string{k.Command})
		must.Do(t, err)
		cmd.Flags().SortFlags = false
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if o := f.Value.(flagValue).option; !strings.HasPrefix(o.name, "help") {
				list[k.Command] = append(list[k.Command], o)
			}
		})
	}
	return list
}

// TestFarmSettings wants farm/spec/options.json to say what the tables of options say.
func TestFarmSettings(t *testing.T) {
	want := farmOptions(t)
	if *update {
		must.Do(t, os.WriteFile(farmOptionsFile, want, 0o666))
	}
	got := must.Get(os.ReadFile(farmOptionsFile))(t)
	if string(got) != string(want) {
		t.Errorf("%s is not what the tables of flags say; write it anew: make docs", farmOptionsFile)
	}
}

// farmOptions makes the file from the tables, an option a line.
func farmOptions(t *testing.T) []byte {
	var b bytes.Buffer
	b.WriteString("{")
	all := taskOptions(t)
	for i, command := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + strconv.Quote(command) + ": [")
		between := "\n "
		for _, o := range all[command] {
			if !o.flag {
				b.WriteString(between + string(must.Get(json.Marshal(farmOption(command, o)))(t)))
				between = ",\n "
			}
		}
		b.WriteString("]")
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

// farmOption is an option as jobs know it.
func farmOption(command string, opt *option) spec.Option {
	types := [...]string{kindText: "text", kindInt: "int", kindFloat: "float", kindBool: "bool", kindNumbers: "ints"}
	help, _, _ := strings.Cut(opt.help, " (default")
	one := spec.Option{Name: opt.key(), Type: types[opt.kind], Help: strings.ReplaceAll(help, "`", ""),
		Set: command == "train" && !slices.Contains(notOfJobs, opt.name)}
	if job := opt.job; job.kind != kindText {
		one.Type, one.Min, one.Max, one.Count = types[job.kind], job.least, job.most, job.count
		if job.count > 0 {
			one.Type += "s"
		}
	} else if opt.folder && !one.Set {
		one.Type = "folder"
		one.Help, _, _ = strings.Cut(one.Help, ";") // what follows is of a command line
	}
	for _, a := range opt.aliases {
		one.Aliases = append(one.Aliases, strings.ReplaceAll(a, "-", "_"))
	}
	switch opt.value.(type) {
	case *choice, cli.Value[string], *captured.DownscaleFlag: // words of others are examples
		one.Words = opt.words
	case *train.InitFlag: // a file is of the worker's machine
		one.Words = []string{"auto", "points", "random"}
	case cli.Value[uint64]:
		one.Seed, one.Max = true, 1<<53
	}
	if command == "render" && opt.name == "format" { // without none, which leaves no results
		one.Words = slices.DeleteFunc(slices.Clone(opt.words), func(w string) bool { return w == render.FormatNone })
	}
	return one
}

// TestJobValues wants flags to take the least and the most that jobs may give, and each of the words.
func TestJobValues(t *testing.T) {
	for command, options := range taskOptions(t) {
		for _, o := range options {
			one := farmOption(command, o)
			values := one.Words
			if one.Max > 0 {
				between := map[string]string{"size": "x"}[o.name]
				for _, x := range []float64{one.Min, one.Max} {
					list := slices.Repeat([]string{strconv.FormatFloat(x, 'f', -1, 64)}, max(one.Count, 1))
					values = append(values, strings.Join(list, cmp.Or(between, ",")))
				}
			}
			for _, v := range values {
				if err := o.value.Set(v); err != nil {
					t.Errorf("%s --%s=%s: %v", command, o.name, v, err)
				}
			}
		}
	}
}

// TestRanges wants numbers beyond the ranges of the options of all commands refused, and NaN.
func TestRanges(t *testing.T) {
	eachCommand(func(cmd *cobra.Command, _ []string) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			v, _ := f.Value.(flagValue)
			o := v.option
			if o == nil || o.job.most == 0 || o.job.kind != o.kind {
				return
			}
			values := map[string]bool{strconv.FormatFloat(o.job.least, 'f', -1, 64): true,
				strconv.FormatFloat(o.job.most, 'f', -1, 64):     true,
				strconv.FormatFloat(o.job.least-1, 'f', -1, 64):  false,
				strconv.FormatFloat(2*o.job.most+1, 'f', -1, 64): false}
			if o.kind == kindFloat {
				values["NaN"] = false
			}
			for value, fits := range values {
				fs := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
				register(fs, []optionGroup{{options: []option{*o}}})
				err := fs.Parse([]string{"--" + o.name + "=" + value})
				if err == nil {
					err = checkRanges(fs, cmd.CommandPath())
				}
				if (err == nil) != fits || !fits && !errors.Is(err, fault.ErrUsage) {
					t.Errorf("%s --%s=%s: %v", cmd.Name(), o.name, value, err)
				}
			}
		})
	})
}
