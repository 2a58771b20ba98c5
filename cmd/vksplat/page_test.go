package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/report"
	"vksplat/internal/run/train"
	"vksplat/pipeline/recipe"
)

var update = flag.Bool("update", false, "write the pages of docs anew")

// trainPageFile is the page about every flag of train.
const trainPageFile = "../../docs/train.md"

// TestTrainPage wants docs/train.md to say what the table of options says.
func TestTrainPage(t *testing.T) {
	want := trainPage()
	if *update {
		if err := os.WriteFile(trainPageFile, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(trainPageFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table of flags says; write it anew: make docs", trainPageFile)
	}
}

// trainPage prints the table of options for people.
func trainPage() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	say("# Every setting of vksplat train\n\nMade from the program's own table by `make docs`; a test compares " +
		"them.\n\n")
	say("A setting is a flag (`--init-scale 0.5`) and a key of a configuration file (`init_scale = 0.5`). " +
		"Underscores and dashes mean the same in\n")
	say("flags, and the other names are understood too. From weak to strong: defaults, `--preset`, `--config FILE`, " +
		"flags.\n\n")
	say("    vksplat train --preset mcmc --print-config > mine.toml    # all settings in effect, as a file\n")
	say("    vksplat train my_scene -m out --config mine.toml --eval\n\n")
	say("The file is TOML without tables. An unknown key, a wrong type or a value out of range is an error that " +
		"names the line. A few settings follow\n")
	say("others unless they are given: `strategy = \"mcmc\"` without a preset brings the values of the preset " +
		"`mcmc`, because those of one strategy make no\n")
	say("sense with the other; `absgrad` brings `grow_grad2d = 0.0008`; `splats` above a preset's `max_splats` " +
		"raises that. `steps_scaler` multiplies every\n")
	say("number of steps, given or not, and `--print-config` shows the result. Where a preset has `iterations` and " +
		"others are given, its other numbers of\n")
	say("steps are scaled by the same factor, unless they are given too.\n\n## Presets\n")
	for _, name := range presetNames() {
		data, err := presetFiles.ReadFile("presets/" + name + ".toml")
		if err != nil {
			panic(err)
		}
		say("\n`--preset %s`\n\n```toml\n%s```\n", name, data)
	}
	for _, g := range trainTable(newTrainOptions()) {
		say("\n## %s\n\n| flag | default | what | source |\n|---|---|---|---|\n", g.title)
		for i := range g.options {
			say("%s", pageRow(&g.options[i]))
		}
	}
	say("\n## What a run tells\n\n`OUT/metrics.jsonl` has a line of JSON every `metrics_every` steps and one for " +
		"each measurement; losses and scores are means over the steps since\n")
	say("the line before. It goes on when a run is resumed, and holds whole lines whenever a run ends. `--progress " +
		"json` prints such lines every second,\n")
	say("of the last step alone, between a `start` and a `done` that holds the content of `stats.json`; all other " +
		"text goes to standard error then. Keys\n")
	say("may be added; these stay.\n")
	for _, e := range []struct {
		event string
		line  any
	}{{meter.EventStep, meter.StepLine{}}, {meter.EventEval, train.EvalLine{}}, {meter.EventStart, train.StartLine{}}} {
		say("\n| key of `%s` | what |\n|---|---|\n", e.event)
		for _, key := range keysOf(e.line) {
			say("| `%s` | %s |\n", key, keyTexts[key])
		}
	}
	say("\n`--tensorboard` writes the same as curves to `OUT/tensorboard`, with photo, render and four times their "+
		"difference of the first %d held-out\n", train.TensorboardViews)
	say("photos. `OUT/report.html` shows curves, the %d worst and %d best held-out views in pictures, device times "+
		"and settings, and needs no other file.\n", report.Worst, report.Best)
	say("\n## Stopping and starting again\n\nThe first Ctrl-C (or SIGTERM, SIGHUP) ends the run after the step in " +
		"hand: it saves, measures, and exits with code 130. One that comes while\n")
	say("held-out photos are measured gives that up after the picture in hand: the model is saved, its scores are " +
		"not, and the code is 130, too. One that comes\n")
	say("when all steps are done changes nothing: what is left is written, and the code is 0. A second Ctrl-C, at " +
		"least\n")
	say("%d ms after the first (sooner it is the same one, delivered twice), aborts at once: nothing more is saved, "+
		"and the last checkpoint is what\n", cli.AbortAfter.Milliseconds())
	say("`--resume` finds. `OUT/.lock` keeps a second run out while one is going; one that a killed process left " +
		"behind keeps nobody out.\n\n")
	say("A folder that holds checkpoints or models of an earlier run is refused. `--resume` goes on with that run, " +
		"and with\n`--accept-changes` also\n")
	say("where settings or photos have changed since; `--overwrite` replaces it. The earlier run waits in `OUT/%s` "+
		"until the new one has its first\n", output.AsideFolder)
	say("checkpoint or is done. A run that fails or is stopped before that brings it back; after one that was " +
		"killed, the next `vksplat train SCENE -m OUT` does.\n")
	say("`--resume=FILE` with an earlier checkpoint of OUT needs `--overwrite` where OUT holds later steps.\n\n")
	say("`OUT/%s` lists the files that vksplat wrote, with a hash of each. A file of the same name that is not in the "+
		"list, or was changed since, is\n", output.WrittenFile)
	say("yours: it is named and the run is refused, unless you say `--overwrite`. Files of other names are left " +
		"alone, always.\n\n")
	say("All commands follow one rule: **a file that vksplat did not write is never replaced without " +
		"`--overwrite`**, and what is refused is refused at the\n")
	say("start, with exit code 2. A single file that a flag or an argument names (OUT of `convert`, `--video`, " +
		"`--html`, `--export`, `--json` of `bench`) is\n")
	say("refused where it exists, whoever wrote it; a run's folder where it holds a run, unless you say `--resume` " +
		"or `--overwrite`; any other folder where\n")
	say("files of yours are in the way. The folder you are in or one above it, your home and a capture are refused " +
		"as output, unless they are empty or a\n")
	say("run's already.\n")
	say("\n## Sources\n\nA source is whose default it is; settings without one are vksplat's own.\n\n")
	for _, s := range recipe.Sources {
		say("- %s: %s.\n", s[0], s[1])
	}
	return b.String()
}

// keyTexts says what the keys of JSON lines mean.
var keyTexts = map[string]string{
	"event": "kind of line", "step": "steps done", "total": "steps to do", "loss": "of the training photos",
	"l1":   "mean absolute difference, 0 to 1",
	"ssim": "structural similarity, up to 1", "psnr": "dB", "splats": "in the model",
	"visible":     "splats in the step's view",
	"isects":      "pairs of a tile and a splat in the step's view",
	"downscales":  "times that the photos' width and height are halved for the step; left out at full size",
	"steps_per_s": "since the line before", "eta_s": "seconds to go; null while unknown",
	"device_bytes": "device memory taken now",
	"device_busy": "share of the time for which steps keep the device busy, 0 to 1, by the steps that are timed, " +
		"some of them; null while unknown",
	"peak_rss_bytes": "resident memory of the process at most; 0 where the system does not tell",
	"seconds":        "of training, without what is measured and saved; goes on when a run is resumed",
	"psnr_median":    "dB, over the views", "ssim_median": "over the views",
	"views":   "a list with `name`, `psnr` and `ssim` of each held-out photo",
	"drawn":   "what decides pixels beside the splats: near plane, background and so on; see docs/eval.md",
	"version": "of vksplat", "device": "its name", "scene": "the capture's folder", "out": "the folder that is written",
	"train_images": "photos to train on", "test_images": "photos held out", "resolution": "of the photos, in pixels",
	"points":        "of the capture",
	"planned_bytes": "device memory that training starts with", "budget_bytes": "device memory that it may take",
}

// keysOf lists the JSON names of a struct's fields, in order.
func keysOf(v any) (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	return keys
}

// TestKeyTexts wants every key to be explained.
func TestKeyTexts(t *testing.T) {
	for _, line := range []any{meter.StepLine{}, train.EvalLine{}, train.StartLine{}} {
		for _, key := range keysOf(line) {
			if _, found := keyTexts[key]; !found {
				t.Errorf("%T: key %s is not explained", line, key)
			}
		}
	}
}

// pageRow is the line of an option in its table.
func pageRow(o *option) string {
	flag, arg := "`--"+o.name, ""
	what := o.help
	if before, rest, found := strings.Cut(o.help, "`"); found {
		name, after, _ := strings.Cut(rest, "`")
		arg, what = " "+name, before+name+after
	} else if o.kind != kindBool {
		arg = " " + o.value.Type()
	}
	if o.bare != "" && o.kind != kindBool { // its value stands after an equals sign
		flag += "[=" + arg[1:] + "]`"
	} else {
		flag += arg + "`"
	}
	if o.short != "" {
		flag = "`-" + o.short + "`, " + flag
	}
	what = strings.TrimPrefix(what, strings.TrimSpace(arg)+" ")
	if o.words != nil && o.kind == kindText && !strings.Contains(what, o.words[len(o.words)-1]) {
		what += " (" + strings.Join(o.words, ", ") + ")"
	}
	if o.flag {
		what += "; a flag alone"
	}
	if len(o.aliases) > 0 {
		what += "; also `--" + strings.Join(o.aliases, "`, `--") + "`"
	}
	standard := o.value.String()
	if o.flag {
		standard = ""
	}
	cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
	return fmt.Sprintf("| %s | %s | %s | %s |\n", cell(flag), cell(standard), cell(what), o.source)
}

// TestSources wants every source to be explained.
func TestSources(t *testing.T) {
	for _, g := range trainTable(newTrainOptions()) {
		for _, o := range g.options {
			if o.source != "" &&
				!slices.ContainsFunc(recipe.Sources, func(s [2]string) bool { return s[0] == o.source }) {
				t.Errorf("--%s: source %q is not in the list of sources", o.name, o.source)
			}
		}
	}
}
