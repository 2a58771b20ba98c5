package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/suite"
)

// TestSuitePresets wants every preset to be one that can be run, with the captures and means that papers have.
func TestSuitePresets(t *testing.T) {
	for name, captures := range map[string]int{"mipnerf360": 9, "tanks-and-temples": 2, "deep-blending": 2,
		"nerf-synthetic": 8} {
		file := filepath.Join(t.TempDir(), "suite.toml")
		must.Do(t, os.WriteFile(file,
			[]byte("out = \"runs\"\ndata = \"data\"\npreset = \""+name+
				"\"\nsettings = { iterations = 7000 }\n[recipe.default]\n[recipe.big]\npreset = \"mcmc\"\n"),
			0o666))
		plan, err := suite.Read(file, settingsForSuite())
		if err != nil {
			t.Fatal(err)
		}
		runs, err := plan.Runs(&suite.Options{})
		if err != nil || len(plan.Captures) != captures || len(runs) != 2*3*captures {
			t.Errorf("%s: %d captures, %d runs, %v", name, len(plan.Captures), len(runs), err)
		}
		if last := plan.Means[len(plan.Means)-1]; len(last.Captures) != captures {
			t.Errorf("%s: the mean %q is of %d captures", name, last.Name, len(last.Captures))
		}
		if text := strings.Join(runs[len(runs)-1].Train(), " "); !strings.Contains(text, "--seed=44 ") ||
			!strings.Contains(text, "--preset=mcmc") || !strings.Contains(text, "--iterations=7000") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if got := len(suite.PresetNames()); got != 4 {
		t.Errorf("%d presets, this test knows 4", got)
	}
}

func FuzzSuiteFile(f *testing.F) {
	f.Add("out = \"runs\"\npreset = \"mipnerf360\"\ndata = \"d\"\nonly = [\"garden\"]\n")
	f.Add("out = \"runs\"\n[capture.a]\npath = \"a\"\ndownscale = 2\n[recipe.r]\niterations = 7\n[mean]\nm = [\"a\"]\n")
	f.Add("settings = 3\n[sources]\nx = { seed = 1 }\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "suite.toml")
		must.Do(t, os.WriteFile(file, []byte(text), 0o666))
		plan, err := suite.Read(file, settingsForSuite())
		if err == nil {
			_, err = plan.Runs(&suite.Options{})
		}
		if err != nil && !errors.Is(err, fault.ErrUsage) {
			t.Errorf("no usage error: %v", err)
		}
	})
}

// TestSuiteOfThePage wants the suite that docs/eval.md shows to be one that is understood.
func TestSuiteOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/eval.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```toml\n")
	text, _, found := strings.Cut(text, "```")
	file := filepath.Join(t.TempDir(), "suite.toml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil || !found {
		t.Fatalf("%v; an example is there: %v", err, found)
	}
	plan := must.Get(suite.Read(file, settingsForSuite()))(t)
	runs, err := plan.Runs(&suite.Options{})
	if err != nil || len(runs) != 3*3*3 || len(plan.Means) != 1 {
		t.Errorf("%d runs, means %v, %v", len(runs), plan.Means, err)
	}
	for _, name := range suite.PresetNames() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name the preset %s", name)
		}
	}
}
