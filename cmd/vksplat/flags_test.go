package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/train"
	"vksplat/pipeline/recipe"
)

// settingsOf runs "vksplat train ARGS --print-config" and returns what it prints.
func settingsOf(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(append(append([]string{"train"}, args...), "--print-config"), &out, &errs); code != fault.ExitOK {
		t.Fatalf("%q: exit code %d: %s", args, code, errs.String())
	}
	return out.String()
}

// refusalOf runs "vksplat train ARGS --print-config" and returns the error that it must print.
func refusalOf(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(append(append([]string{"train"}, args...), "--print-config"), &out, &errs); code != fault.ExitUsage {
		t.Fatalf("%q: exit code %d, want %d: %s%s", args, code, fault.ExitUsage, out.String(), errs.String())
	}
	return errs.String()
}

// writeTemp writes a file of a test.
func writeTemp(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(content), 0o666))
	return path
}

// jsonOf returns the fields of a Config by their JSON names.
func jsonOf(t *testing.T, c recipe.Config) map[string]any {
	t.Helper()
	data := must.Get(json.Marshal(c))(t)
	fields := map[string]any{}
	must.Do(t, json.Unmarshal(data, &fields))
	return fields
}

// TestEveryFieldIsAnOption sets each option of the table to another value and
// wants the field of its name, and no other, to change: no field of Config is
// without a flag, and no flag sets another one's field.
func TestEveryFieldIsAnOption(t *testing.T) {
	fields := jsonOf(t, recipe.Default())
	for key := range fields {
		o := newTrainOptions()
		opt := find(trainTable(o), strings.ReplaceAll(key, "_", "-"))
		if opt == nil {
			t.Errorf("field %s has no flag", key)
			continue
		}
		value := map[kind]string{kindInt: "7", kindFloat: "0.77", kindBool: "true"}[opt.kind]
		if opt.kind == kindText {
			value = map[string]string{"background": "white", "strategy": "mcmc", "precision": "mixed"}[key]
		}
		if err := opt.value.Set(value); err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		for k, v := range jsonOf(t, o.Config) {
			if changed := !reflect.DeepEqual(v, fields[k]); changed != (k == key) {
				t.Errorf("--%s %s: field %s became %v", opt.name, value, k, v)
			}
		}
	}
}

// TestTable wants names and aliases to be one another's of none, every option to
// have a text, and every value to survive being printed and read.
func TestTable(t *testing.T) {
	seen := map[string]string{}
	for _, g := range trainTable(newTrainOptions()) {
		for _, o := range g.options {
			for _, name := range append([]string{o.name}, o.aliases...) {
				if seen[name] != "" {
					t.Errorf("--%s means %s and %s", name, seen[name], o.name)
				}
				seen[name] = o.name
				if strings.ContainsAny(name, "_ ") || strings.ToLower(name) != name {
					t.Errorf("--%s: names have small letters and dashes", name)
				}
			}
			if o.help == "" || strings.HasSuffix(o.help, ".") {
				t.Errorf("--%s: the text %q", o.name, o.help)
			}
			if was := o.value.String(); was != "" {
				if err := o.value.Set(was); err != nil || o.value.String() != was {
					t.Errorf("--%s: the default %q reads back as %q, %v", o.name, was, o.value, err)
				}
			}
		}
	}
}

func TestPresets(t *testing.T) {
	recipes := map[string]recipe.Config{"3dgs": recipe.Default(), "mcmc": recipe.MCMC()}
	for name, want := range recipes {
		o := newTrainOptions()
		o.Preset = name
		must.Do(t, resolveSettings(o, pflag.NewFlagSet("", pflag.ContinueOnError)))
		if o.Config != want {
			t.Errorf("preset %s:\n%+v\nwant\n%+v", name, o.Config, want)
		}
	}
	for _, name := range train.PresetNames() {
		settingsOf(t, "--preset", name)
		if s := presetSummary(name); !strings.HasSuffix(s, ".") || strings.HasPrefix(s, "#") {
			t.Errorf("preset %s: the file begins with %q", name, s)
		}
	}
}

// TestPrecedence wants defaults < preset < configuration file < flags.
func TestPrecedence(t *testing.T) {
	file := writeTemp(t, "c.toml", "init_scale = 0.2\ncap_max = 5000\niterations = 900\n")
	mcmcFile := writeTemp(t, "m.toml", "strategy = \"mcmc\"\nnoise_lr = 1e5\n")
	presetFile := writeTemp(t, "p.toml", "preset = \"mcmc\"\nmax_splats = 7\n")
	gradFile := writeTemp(t, "g.toml", "grow_grad2d = 3e-4\n")
	offFile := writeTemp(t, "o.toml", "absgrad = false\nreset_every = 0\n") // as --print-config writes them
	tests := []struct {
		args []string
		want []string
	}{
		{nil, []string{"init_scale = 0.5", "iterations = 7000", "iterations_factor = 365.0", "splats_factor = 0.6",
			"few_photos = 60", `strategy = "mcmc"`}},
		{[]string{"--preset", "3dgs"}, []string{"init_scale = 1.0", "iterations = 30000", "max_splats = 0",
			"iterations_factor = 0.0", "splats_factor = 0.0", "few_photos = 0", `strategy = "3dgs"`}},
		{[]string{"--strategy", "3dgs"}, []string{"iterations = 30000", `strategy = "3dgs"`}},
		{[]string{"--iterations", "3500"}, []string{"iterations = 3500", "iterations_factor = 0.0",
			"refine_stop = 2916", "splats_factor = 0.6"}},
		{[]string{"--preset", "mcmc"}, []string{"init_scale = 0.1", "max_splats = 1000000", `strategy = "mcmc"`}},
		{[]string{"--strategy", "mcmc"}, []string{"init_scale = 0.1", "refine_stop = 25000", "opacity_reg = 0.01"}},
		{[]string{"--preset", "mcmc", "--config", file},
			[]string{"init_scale = 0.2", "init_opacity = 0.5", "max_splats = 5000", "iterations = 900"}},
		{[]string{"--preset", "mcmc", "--config", file, "--init-scale=0.3", "--cap_max", "6000"},
			[]string{"init_scale = 0.3", "max_splats = 6000", "iterations = 900"}},
		{[]string{"--config", mcmcFile}, []string{"noise_lr = 100000.0", "init_opacity = 0.5"}},
		{[]string{"--config", presetFile}, []string{"max_splats = 7", "init_opacity = 0.5"}},
		{[]string{"--config", presetFile, "--preset", "3dgs"}, []string{"max_splats = 7", "init_opacity = 0.1"}},
		{[]string{"--absgrad"}, []string{"grow_grad2d = 0.0008", `strategy = "3dgs"`, "iterations = 30000"}},
		{[]string{"--absgrad=false", "--reset-every", "0"}, []string{"iterations = 7000", `strategy = "mcmc"`}},
		{[]string{"--reset-every", "2000"}, []string{"reset_every = 2000", `strategy = "3dgs"`}},
		{[]string{"--absgrad", "--grow-grad2d", "2e-4"}, []string{"grow_grad2d = 0.0002"}},
		{[]string{"--config", gradFile}, []string{"grow_grad2d = 0.0003", `strategy = "3dgs"`, "iterations = 30000"}},
		{[]string{"--config", offFile}, []string{"iterations = 7000", `strategy = "mcmc"`}},
		{[]string{"--absgrad", "--config", gradFile}, []string{"grow_grad2d = 0.0003"}},
		{[]string{"--preset", "mcmc", "--splats", "2000000"}, []string{"splats = 2000000", "max_splats = 2000000"}},
		{[]string{"--splats", "50000"}, []string{"splats = 50000", "max_splats = 50000"}},
		{[]string{"--preset", "mcmc", "--splats", "50000", "--max-splats", "60000"},
			[]string{"splats = 50000", "max_splats = 60000"}},
		{[]string{"--preset", "default"},
			[]string{"iterations = 7000", "refine_stop = 5833", "splats = 0", "splats_factor = 0.6"}},
		{[]string{"--preset", "default", "--iterations", "3500", "--refine-every", "20"},
			[]string{"iterations = 3500", "refine_stop = 2916", "refine_every = 20", "resolution_schedule = 700",
				"max_splats = 3000000", "num_downscales = 3"}},
		{[]string{"--preset", "default", "--config", file}, []string{"iterations = 900", "max_splats = 5000"}},
		{[]string{"--preset", "default", "--steps-scaler", "0.1"},
			[]string{"iterations = 700", "iterations_factor = 36.5", "resolution_schedule = 140"}},
		{[]string{"--preset", "3dgs", "--steps-scaler", "0.25", "--eval", "--eval-at", "30000,7000"},
			[]string{"iterations = 7500", "refine_stop = 3750", "eval_at = [1750, 7500]", "steps_scaler = 1.0"}},
		{[]string{"--max-gaussians", "9", "-r", "4", "--lambda_dssim", "0.5"},
			[]string{"max_splats = 9", `downscale = "4"`, "ssim_lambda = 0.5"}},
	}
	for _, tt := range tests {
		got := "\n" + settingsOf(t, tt.args...)
		for _, line := range tt.want {
			if !strings.Contains(got, "\n"+line+"\n") {
				t.Errorf("%q: no line %q in\n%s", tt.args, line, got)
			}
		}
	}
}

// TestPrintConfigReadsBack wants the printed settings to make the same settings.
func TestPrintConfigReadsBack(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--preset", "3dgs"},
		{"--steps-scaler", "0.1"},
		{"--preset", "default", "--iterations", "3000"},
		{"--preset", "mcmc", "--steps-scaler", "0.1", "--eval", "--eval-at", "7000,12000"},
		{"--strategy=mcmc", "--splats", "2000000", "--seed", "18446744073709551615", "--images", "a \"b\"\\c\n"},
		{"--absgrad", "--background", "0.1,0.25,0.3333333", "--model", "3", "--max-vram", "1.5GiB",
			"--device", "00112233-4455", "--origin", "1,2.5,-3"},
		{"--progress", "json", "--metrics-every=7", "--report=false", "--tensorboard", "--lr-means", "1e-300"},
	} {
		first := settingsOf(t, args...)
		file := writeTemp(t, "c.toml", first)
		second := settingsOf(t, "--config", file)
		if a, b := withoutComments(first), withoutComments(second); a != b {
			t.Errorf("%q printed\n%s\nand read back\n%s", args, a, b)
		}
	}
}

func withoutComments(toml string) string {
	var kept strings.Builder
	for line := range strings.Lines(toml) {
		if !strings.HasPrefix(line, "#") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func TestConfigFileErrors(t *testing.T) {
	tests := []struct {
		file  string
		wants []string // in the message and hint
	}{
		{"iteratons = 5", []string{"c.toml:1: unknown key iteratons", "hint: did you mean iterations?"}},
		{"seed = 1\n\nlr_mean = 5", []string{"c.toml:3: unknown key lr_mean", "did you mean lr_means?"}},
		{"MAX-SPLAT = 5", []string{"unknown key MAX-SPLAT", "did you mean max_splats?"}},
		{"sclae_reg = 1.0", []string{"did you mean scale_reg?"}},
		{"zzzzzz = 1", []string{"unknown key zzzzzz", "--print-config lists all keys"}},
		{"# x\niterations = 7.5",
			[]string{"c.toml:2: key iterations: expected a whole number, got a number with a fraction",
				"as in: iterations = 30000"}},
		{"iterations = \"many\"", []string{"got a text"}},
		{"eval = 1", []string{"key eval: expected true or false, got a whole number", "as in: eval = false"}},
		{"eval_at = 7000", []string{"expected a list of whole numbers"}},
		{"eval_at = [7000, \"x\"]", []string{"one of these is a text"}},
		{"eval_at = \"1,2\"", []string{"got a text", "hint: as in: eval_at = [7000, 30000]\n"}},
		{"save_at = 3", []string{"hint: as in: save_at = [7000, 30000]\n"}},
		{"max_ram = true", []string{"got true or false", "hint: as in: max_ram = \"6G\"\n"}},
		{"max_vram = true", []string{"hint: as in: max_vram = \"80%\"\n"}},
		{"test_list = 3", []string{"c.toml:1: key test_list: expected a quoted string, got a whole number",
			"hint: as in: test_list = \"file.txt\"\n"}},
		{"images = [3]", []string{"got a list", "hint: as in: images = \"folder\"\n"}},
		{"eval_at = [0]", []string{"is not a list of steps"}},
		{"background = [0, 0, 300]", []string{"key background: \"0,0,300\" is not a colour"}},
		{"downscale = 3", []string{"key downscale: \"3\" is not a downscale factor"}},
		{"strategy = \"mcmcm\"", []string{"did you mean mcmc?"}},
		{"[training]\niterations = 5", []string{"c.toml:1: training is a table, which this file cannot have"}},
		{"iterations = {a = 1}", []string{"a table, which this file cannot have"}},
		{"iterations = 2020-01-01", []string{"got a date"}},
		{"max_splats = 1\ncap_max = 2", []string{"c.toml:2: max_splats is set already, by another name"}},
		{"seed = 1\nseed = 2", []string{"c.toml:2: key 'seed' has already been defined\n"}},
		{"seed = -1", []string{"key seed: \"-1\" is not a whole number from 0 up"}},
		{"model_path = \"out\"", []string{"this is a flag, not a setting", "--model-path"}},
		{"iterations = ", []string{"c.toml:1"}},
		{"images = \"\xff\"", []string{"line 1 is not UTF-8 text"}},
		{"seed = 1\niterations = 0",
			[]string{"c.toml:2: iterations is 0; it must be from 1 to 2147483647", "as in: iterations = 30000"}},
		{"lr-means = nan", []string{"c.toml:1: lr-means is NaN; it must be from 0 to 10", "as in: lr_means = 0.00016"}},
		{"splats_factor = -1", []string{"c.toml:1: splats_factor is -1; it must be from 0 to 100"}},
	}
	for _, tt := range tests {
		got := refusalOf(t, "--config", writeTemp(t, "c.toml", tt.file))
		for _, want := range tt.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%q: no %q in %s", tt.file, want, got)
			}
		}
	}
	for bytes, want := range map[string]string{
		"\xff\xfe": "UTF-16", "\xfe\xffi": "UTF-16", "\xef\xbb\xbf": "only a byte order mark",
		"seed = 1\n# caf\xe9": "line 2 is not UTF-8 text",
	} {
		if got := refusalOf(t, "--config", writeTemp(t, "c.toml", bytes)); !strings.Contains(got, want) {
			t.Errorf("%q: no %q in %s", bytes, want, got)
		}
	}
	marked := writeTemp(t, "c.toml", "\xef\xbb\xbfseed = 77\n")
	if got := settingsOf(t, "--config", marked); !strings.Contains(got, "seed = 77") {
		t.Errorf("a mark before the text: %s", got)
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none.toml"), t.TempDir()} {
		if got := refusalOf(t, "--config", file); !strings.Contains(got, "read configuration "+file) {
			t.Errorf("%s: %s", file, got)
		}
	}
}

func TestContradictions(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--splats", "20", "--max-splats", "10"}, "20 splats to end with, the ceiling is 10"},
		{[]string{"--preset", "mcmc", "--strategy", "3dgs"},
			"preset mcmc has the strategy mcmc, but 3dgs was requested"},
		{[]string{"--strategy", "mcmc", "--absgrad"}, "mcmc does not grow by gradients"},
		{[]string{"--strategy", "mcmc", "--reset-every", "3000"}, "mcmc resets no opacities"},
		{[]string{"--strategy", "mcmc", "--max-splats", "0"}, "grows to a fixed number"},
		{[]string{"--splats", "20", "--refine-every", "0"}, "without refinement"},
		{[]string{"--eval-at", "7000"}, "no photo is held out"},
		{[]string{"--eval", "--test-every", "1"}, "leaves no photo to train on"},
		{[]string{"--iterations", "4294967296"}, "--iterations is 4294967296; it must be from 1 to 2147483647"},
		{[]string{"--lr-means", "inf"}, "--lr-means is +Inf"},
		{[]string{"--lr-means", "1e300"}, "--lr-means is 1e+300"},
		{[]string{"--lr-means", "1e30"}, "--lr-means is 1e+30; it must be from 0 to 10"},
		{[]string{"--lr-quats", "10.5"}, "--lr-quats is 10.5; it must be from 0 to 10"},
		{[]string{"--lr-shn", "-1e-9"}, "--lr-shn is -1e-09; it must be from 0 to 10"},
		{[]string{"--noise-lr", "inf", "--strategy", "mcmc"}, "--noise-lr is +Inf"},
		{[]string{"--prune-scale", "-1"}, "--prune-scale is -1"},
		{[]string{"--steps-scaler", "0"}, "0 is not a factor of steps"},
		{[]string{"--steps-scaler", "NaN"}, "NaN is not a factor of steps"},
		{[]string{"--metrics-every", "0"}, "flag --metrics-every"},
		{[]string{"--preset", "slow"}, "is not one of 3dgs, default, mcmc"},
		{[]string{"--splats-factor", "0.5", "--refine-every", "0"}, "without refinement"},
		{[]string{"--splats-factor", "-1"}, "--splats-factor is -1; it must be from 0 to 100"},
		{[]string{"--num-downscales", "11"}, "--num-downscales is 11; it must be from 0 to 10"},
		{[]string{"--resolution-schedule", "0"}, "--resolution-schedule is 0; it must be at least 1"},
		{[]string{"--near", "inf"}, "--near is +Inf; it must be above 0 and at most 3.4e+38"},
		{[]string{"--init-opacity", "1"}, "--init-opacity is 1; it must be above 0 and below 1"},
		{[]string{"--sh-degree", "4", "--carve", "2"}, "--carve is 2; it must be from 0 to 1\n"},
		{[]string{"--steps-scaler", "1000", "--iterations", "2147483647"}, "--iterations is 2147483648;"},
		{[]string{"--origin", "1e16,0,0"}, "is not an origin"},
		{[]string{"--scale-reg", "abc"}, "hint: as in --scale-reg 0; see: vksplat train --help-all"},
		{[]string{"--iterations", "0"}, "hint: as in --iterations 30000; see: vksplat train --help-all"},
		{[]string{"--seed", "-1"}, "hint: as in --seed 42; see: vksplat train --help-all"},
		{[]string{"--eval=maybe"}, "hint: as in --eval=false; see: vksplat train --help-all"},
		{[]string{"--iteratons", "5"}, "did you mean --iterations? see: vksplat train --help"},
	} {
		if got := refusalOf(t, tt.args...); !strings.Contains(got, tt.want) {
			t.Errorf("%q: no %q in %s", tt.args, tt.want, got)
		}
	}
}

// TestAcceptChanges wants --accept-changes without --resume to be refused before anything is written.
func TestAcceptChanges(t *testing.T) {
	var out, errs bytes.Buffer
	to := filepath.Join(t.TempDir(), "out")
	code := run([]string{"train", "scene", "-m", to, "--accept-changes"}, &out, &errs)
	if code != fault.ExitUsage || !strings.Contains(errs.String(), "flag --accept-changes needs --resume") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a training that was refused has made its folder")
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"iterations", "init_scale", "init_opacity", "eval", "seed", "max_splats", "lr_sh0", "lr_shn"}
	for word, want := range map[string]string{
		"iteratons": "iterations", "itertaions": "iterations", "init_scal": "init_scale", "evla": "eval",
		"sed": "seed", "maxsplats": "max_splats",
		"lr_sh1": "lr_sh0", "iter": "iterations", "": "", "q": "", "photographs": "", "sceed": "seed",
	} {
		got := cli.DidYouMean(word, known, "")
		if want != "" {
			want = "did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// FuzzSettings wants any file to be read or refused with a line, and what was read to be valid values.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{"iterations = 5", "a.b = 1", "[x]\ny=1", "eval_at = [1, 2]", "seed = \"9\"",
		"background = \"white\"", "iterations = 0x10", "x = [[1], {a = 2}]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		got, err := parseSettings("f.toml", data)
		if err != nil {
			if fault.ExitCode(err) != fault.ExitUsage || fault.Hint(err) == "" {
				t.Fatalf("%v: exit code %d, hint %q", err, fault.ExitCode(err), fault.Hint(err))
			}
			return
		}
		table := trainTable(newTrainOptions())
		for name, text := range got {
			if err := find(table, name).value.Set(text); err != nil {
				t.Fatalf("%s = %q was accepted: %v", name, text, err)
			}
		}
	})
}
