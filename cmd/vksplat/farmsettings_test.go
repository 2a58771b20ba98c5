package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"vksplat/farm/spec"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/train"
)

// farmSettingsFile lists the settings of train that tasks of the farm may give.
const farmSettingsFile = "../../farm/spec/settings.json"

// notOfJobs are settings that a job document cannot give: they name files of the worker's machine, or are the worker's
// to decide.
var notOfJobs = []string{"images", "masks", "test-list", "image-cache", "image-cache-size", "device", "max-vram",
	"max-ram", "checkpoint-every", "save-at", "keep-checkpoints", "progress", "preset"}

// TestFarmSettings wants farm/spec/settings.json to say what the table of options says.
func TestFarmSettings(t *testing.T) {
	want, err := json.MarshalIndent(farmSettings(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(farmSettingsFile, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(farmSettingsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what the table of flags says; write it anew: make docs", farmSettingsFile)
	}
}

// farmSettings makes the list from the table.
func farmSettings() (s spec.Settings) {
	o := newTrainOptions()
	types := [...]string{kindText: "text", kindInt: "int", kindFloat: "float", kindBool: "bool", kindNumbers: "ints"}
	for _, g := range trainTable(o) {
		for _, opt := range g.options {
			if opt.flag || slices.Contains(notOfJobs, opt.name) {
				continue
			}
			one := spec.Setting{Name: opt.key(), Type: types[opt.kind]}
			for _, a := range opt.aliases {
				one.Aliases = append(one.Aliases, strings.ReplaceAll(a, "-", "_"))
			}
			switch v := opt.value.(type) {
			case *choice:
				one.Words = v.words
			case *captured.DownscaleFlag:
				one.Words = opt.words
			case *train.InitFlag: // a file is of the worker's machine
				one.Words = []string{"auto", "points", "random"}
			case *uintValue:
				one.Seed = true
			}
			s.Settings = append(s.Settings, one)
		}
	}
	s.Presets = presetNames()
	return s
}
