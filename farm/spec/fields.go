package spec

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
)

// Every key of a document stands in one of the tables below or in that of its kind, with its type and bounds. Parser
// and JSON Schema (job.schema.json) are both made from them.

// options.json lists the options of the commands that tasks run. A test of the command writes it from the tables of
// flags.
//
//go:embed options.json
var optionsFile []byte

// Option is a key of a document; in options.json an option of a command, whose flag it is in a job.
type Option struct {
	Name    string   `json:"name"` // with underscores
	Type    string   `json:"type"` // below; of a command text, folder, int, float, bool, ints or floats
	Help    string   `json:"help,omitempty"`
	Min     float64  `json:"min,omitempty"` // of numbers, and of the elements of lists; both 0: any
	Max     float64  `json:"max,omitempty"`
	Count   int      `json:"count,omitempty"` // of a list's elements, exactly; 0: 1 to most
	Aliases []string `json:"aliases,omitempty"`
	Words   []string `json:"words,omitempty"` // that a text is one of
	Seed    bool     `json:"seed,omitempty"`  // an integer up to 2^64 - 1: large ones stand in quotes
	Set     bool     `json:"set,omitempty"`   // a setting of train: a key of the table set
}

// Types of values.
const (
	typeInt    = "int"
	typeFloat  = "float" // a whole number is one, too
	typeBool   = "bool"
	typeText   = "text"   // by words or a pattern; of a setting also a number or a list of numbers
	typeName   = "name"   // of jobs and tasks, see badName
	typeWord   = "word"   // of roots and pools, see wordForm
	typeSpan   = "span"   // a time as in 10m
	typeInput  = "input"  // a key below the root of inputs, or @id: the output of a task
	typeFolder = "folder" // a key below another
	typeFrames = "frames" // A, A-B or A-BxN
	typeCamera = "camera" // a trajectory's word, or a key
	typeInts   = "ints"   // lists
	typeFloats = "floats"
	typeInputs = "inputs"
	typeNames  = "names"
	typeTable  = "table"
	typeMatrix = "matrix"
	typeTables = "tables"
)

// elements are the types of what lists have.
var elements = map[string]string{typeInts: typeInt, typeFloats: typeFloat, typeInputs: typeInput, typeNames: typeName}

// field is a key of a table.
type field struct {
	Option
	required bool
	most     int     // of a list's elements at most
	fields   []field // of a table
	flag     string  // of the command that gets the value, "" where the planner uses it
}

// named gives an option another key.
func (f field) named(name string) field { f.Name = name; return f }

func (f field) need() field { f.required = true; return f }

// list bounds the number of elements: to count, or else to 1 to most.
func (f field) list(count, most int) field { f.Count, f.most = count, most; return f }

func plain(name, kind, help string) field {
	return field{Option: Option{Name: name, Type: kind, Help: help}}
}

func number(name, kind string, lo, hi float64, help string) field {
	return field{Option: Option{Name: name, Type: kind, Help: help, Min: lo, Max: hi}}
}

func oneOf(name, help string, words ...string) field {
	return field{Option: Option{Name: name, Type: typeText, Help: help, Words: words}}
}

func table(name, help string, fields []field) field {
	f := plain(name, typeTable, help)
	f.fields = fields
	return f
}

// options are those of each command, and settings those of train that are keys of the table set.
var (
	options = func() (all map[string][]Option) {
		if err := json.Unmarshal(optionsFile, &all); err != nil {
			panic(err) // the file is part of the program
		}
		return all
	}()
	settings = func() (fields []field) {
		for _, o := range options["train"] {
			if o.Set {
				f := option("train", o.Name)
				f.Set, f.most = true, maxSettingList
				fields = append(fields, f)
			}
		}
		return fields
	}()
)

// option is the key of a command's option. Of one that options.json lacks it is the name alone, so that the test that
// writes the file can run; TestOptions reports it.
func option(command, name string) field {
	for _, o := range options[command] {
		if o.Name == name {
			o.Set = false // it is a key of its own
			return field{Option: o, flag: strings.ReplaceAll(name, "_", "-")}
		}
	}
	return plain(name, "", "")
}

// keys lists the keys of a kind: fields, and the names of options of its command.
func keys(command string, parts ...any) (fields []field) {
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			fields = append(fields, option(command, p))
		case field:
			fields = append(fields, p)
		}
	}
	return fields
}

// find returns the field of a key, nil if there is none. Settings have several names, with dashes or underscores.
func find(fields []field, key string) *field {
	plain := strings.ReplaceAll(key, "-", "_")
	for i := range fields {
		if f := &fields[i]; f.Name == key || f.Set && (f.Name == plain || slices.Contains(f.Aliases, plain)) {
			return f
		}
	}
	return nil
}

// names are those of fields.
func names(fields []field) (list []string) {
	for _, f := range fields {
		list = append(list, f.Name)
	}
	return list
}

// set is the table of train's settings.
func set(help string) field { return table("set", help, settings) }

// Bounds.
const (
	maxFrame       = 999_999_999
	maxInspect     = 16   // frames of `first`
	maxEntries     = 1000 // of lists of names
	maxSettingList = 1000 // numbers of a setting
	maxAttempts    = 1000
	maxBlocks      = 4096
	maxText        = 200 // characters
)

var retryFields = []field{
	number("max_attempts", typeInt, 1, maxAttempts, "attempts until the task has failed"),
	plain("backoff", typeSpan, "pause before the second attempt; it doubles from then on"),
	plain("backoff_max", typeSpan, "longest pause"),
	plain("keep_going", typeBool, "run other tasks after one has failed"),
}

var limitFields = []field{
	plain("lease", typeSpan, "of farms with a server: without effect"),
	plain("task_timeout", typeSpan, "longest attempt"),
	plain("stall_timeout", typeSpan, "longest time without progress"),
	plain("checkpoint_every", typeSpan, "longest time between uploads of checkpoints"),
	number("vram_min_mb", typeInt, 0, 1<<24, "memory that the device must have"),
	number("disk_min_gb", typeInt, 0, 1<<20, "room that the work folder must have"),
}

var pinFields = []field{
	plain("device", typeText, "name or UUID of the device"),
	plain("driver", typeText, "version of the driver"),
}

var storeFields = []field{
	plain("inputs", typeWord, "root that input keys are relative to"),
	plain("outputs", typeWord, "root that results go to"),
}

// handling are the keys of a job that a task may override.
func handling(what string) []field {
	return []field{
		oneOf("priority", "priority of the tasks", "high", "normal", "low"),
		plain("pool", typeWord, "machines that may run "+what+", for schedulers and farms"),
		table("retry", "what to do after a failure", retryFields),
		table("limits", "limits of an attempt", limitFields),
		table("pin", "devices that may run "+what, pinFields),
	}
}

// commonFields are those of every task, and jobFields of the document.
var (
	commonFields = slices.Concat([]field{
		oneOf("kind", "what the task does", writtenKinds()...).need(),
		plain("id", typeName, "name of the task and of its folder"),
		plain("needs", typeNames, "tasks that must finish first, in addition to those that inputs name").
			list(0, maxEntries),
		plain("matrix", typeMatrix, "keys with lists of values: a task for every combination"),
	}, handling("it"))
	jobFields = slices.Concat([]field{
		number("version", typeInt, version, version, "version of this document's format").need(),
		plain("name", typeName, "name of the job and of its folder").need(),
	}, handling("its tasks"), []field{
		table("store", "roots of keys", storeFields),
		plain("task", typeTables, "the tasks").list(0, maxWritten).need(),
	})
)
