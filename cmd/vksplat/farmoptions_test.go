package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"vksplat/farm/spec"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/bench"
	"vksplat/internal/run/capture"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/demo"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/mesh"
	"vksplat/internal/run/partition"
	"vksplat/internal/run/render"
	"vksplat/internal/run/show"
	"vksplat/internal/run/train"
)

// farmOptionsFile lists the options of the commands that tasks of the farm run.
const farmOptionsFile = "../../farm/spec/options.json"

// notOfJobs are settings that a job document cannot give: they name files of the worker's machine, or are the worker's
// to decide.
var notOfJobs = []string{"images", "masks", "test-list", "image-cache", "image-cache-size", "device", "max-vram",
	"max-ram", "checkpoint-every", "save-at", "keep-checkpoints", "progress", "preset"}

// taskTables are the tables of the commands that tasks run.
func taskTables() map[string][]optionGroup {
	p := &partition.Options{}
	return map[string][]optionGroup{
		"capture":   captureTable(capture.NewOptions()),
		"convert":   convertTable(&convert.Options{}),
		"demo":      demoTable(&demo.Options{}),
		"encode":    encodeTable(render.NewOptions()),
		"eval":      evalTable(evaluate.NewOptions()),
		"partition": {{options: append(partitionTable(p), loadTable(&p.Load)...)}},
		"render":    renderTable(render.NewOptions()),
		"train":     trainTable(newTrainOptions()),
	}
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
	for i, command := range slices.Sorted(maps.Keys(taskTables())) {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + strconv.Quote(command) + ": [")
		between := "\n "
		for _, g := range taskTables()[command] {
			for i := range g.options {
				if g.options[i].flag {
					continue
				}
				line := must.Get(json.Marshal(farmOption(command, &g.options[i])))(t)
				b.WriteString(between + string(line))
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
	for command, groups := range taskTables() {
		for _, g := range groups {
			for i := range g.options {
				o := &g.options[i]
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
}

// TestRanges wants numbers beyond the ranges of all options refused, and NaN.
func TestRanges(t *testing.T) {
	tables := taskTables()
	tables["mesh"], tables["view"] = meshTable(mesh.NewOptions()), viewTable(&show.Options{})
	tables["bench"] = []optionGroup{{options: benchTable(&bench.Options{})}}
	for name, table := range tables {
		for _, g := range table {
			for _, o := range g.options {
				if o.job.most == 0 || o.job.kind != o.kind {
					continue
				}
				values := map[string]bool{strconv.FormatFloat(o.job.least, 'f', -1, 64): true,
					strconv.FormatFloat(o.job.most, 'f', -1, 64):     true,
					strconv.FormatFloat(o.job.least-1, 'f', -1, 64):  false,
					strconv.FormatFloat(2*o.job.most+1, 'f', -1, 64): false}
				if o.kind == kindFloat {
					values["NaN"] = false
				}
				for value, fits := range values {
					fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
					register(fs, table)
					err := fs.Parse([]string{"--" + o.name + "=" + value})
					if err == nil {
						err = checkRanges(fs, table)
					}
					if (err == nil) != fits || !fits && !errors.Is(err, fault.ErrUsage) {
						t.Errorf("%s --%s=%s: %v", name, o.name, value, err)
					}
				}
			}
		}
	}
}
