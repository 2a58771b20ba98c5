package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/train"
	"vksplat/pipeline/recipe"
)

var update = flag.Bool("update", false, "write the pages of docs anew")

// trainPageFile is the page about every flag of train.
const trainPageFile = "../../docs/train.md"

// TestTrainPage wants the tables of docs/train.md to say what the program's own say.
func TestTrainPage(t *testing.T) {
	var presets, keys, sources strings.Builder
	for _, name := range train.PresetNames() {
		data := must.Get(train.Presets.ReadFile("presets/" + name + ".toml"))(t)
		fmt.Fprintf(&presets, "\n`--preset %s`\n\n```toml\n%s```\n", name, data)
	}
	for _, e := range []struct {
		event string
		line  any
	}{{meter.EventStep, meter.StepLine{}}, {meter.EventEval, train.EvalLine{}}, {meter.EventStart, train.StartLine{}}} {
		fmt.Fprintf(&keys, "\n| key of `%s` | what |\n|---|---|\n", e.event)
		for _, key := range keysOf(e.line) {
			fmt.Fprintf(&keys, "| `%s` | %s |\n", key, keyTexts[key])
		}
	}
	sources.WriteString("\n| source | what it is |\n|---|---|\n")
	for _, s := range recipe.Sources {
		fmt.Fprintf(&sources, "| %s | %s |\n", s[0], s[1])
	}
	comparePage(t, trainPageFile, map[string]string{"presets": presets.String(), "keys": keys.String(),
		"flags": flagTables(trainTable(newTrainOptions()), "### "), "sources": sources.String()})
}

// comparePage wants each part of a page that is made from a table to be the given one. Such a part stands between two
// comments of Markdown. With -update it is written anew.
func comparePage(t *testing.T, file string, parts map[string]string) {
	t.Helper()
	data := must.Get(os.ReadFile(file))(t)
	page := string(data)
	for name, text := range parts {
		begin := "<!-- " + name + ", made by make docs -->\n"
		before, rest, found := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, "<!-- end of "+name+" -->\n")
		if !found || !ended {
			t.Fatalf("%s has no part %q", file, name)
		}
		page = before + begin + text + "\n<!-- end of " + name + " -->\n" + after
	}
	if *update {
		must.Do(t, os.WriteFile(file, []byte(page), 0o666))
	} else if page != string(data) {
		t.Errorf("%s is not what the program's tables say; write it anew: make docs", file)
	}
}

// flagTables prints a table of options for people, a chapter each. Where no option has a source, nothing is said of
// sources.
func flagTables(table []optionGroup, heading string) string {
	var b strings.Builder
	head := "| flag | default | what |\n|---|---|---|\n"
	sourced := slices.ContainsFunc(table, func(g optionGroup) bool {
		return slices.ContainsFunc(g.options, func(o option) bool { return o.source != "" })
	})
	if sourced {
		head = "| flag | default | what | source |\n|---|---|---|---|\n"
	}
	for _, g := range table {
		if g.title != "" {
			fmt.Fprintf(&b, "\n%s%s\n", heading, g.title)
		}
		b.WriteString("\n" + head)
		for i := range g.options {
			b.WriteString(pageRow(&g.options[i], sourced))
		}
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
	"downscales":  "how often the photos' width and height are halved in this step; left out at full size",
	"steps_per_s": "since the line before", "eta_s": "seconds to go; null while unknown",
	"device_bytes": "device memory in use",
	"device_busy": "share of the time that steps keep the device busy, 0 to 1, from the steps that are timed; " +
		"null while unknown",
	"peak_rss_bytes": "peak resident memory of the process; 0 if the system does not report it",
	"seconds":        "of training, without measuring and saving; continues when a run is resumed",
	"psnr_median":    "dB, over the views", "ssim_median": "over the views",
	"cc_psnr": "after the affine colour map that fits the photo best; left out where appearance is not learnt",
	"cc_ssim": "likewise",
	"lens_psnr": "of the picture darkened away from the centre as the photo's camera does; left out where vignetting " +
		"is not learnt",
	"lens_ssim":    "likewise",
	"aligned_psnr": "of the photo's camera moved to where the photo fits best; left out without --refine-cameras",
	"aligned_ssim": "likewise",
	"views": "a list with `name`, `psnr` and `ssim` of each held-out photo; `cc_psnr`, `cc_ssim`, `lens_psnr`, " +
		"`lens_ssim`, `aligned_psnr` and `aligned_ssim` as below",
	"drawn":   "what decides pixels besides the splats: near plane, background and so on; see docs/eval.md",
	"version": "of vksplat", "device": "its name", "scene": "the capture's folder", "out": "the folder that is written",
	"train_images": "photos to train on", "test_images": "photos held out", "resolution": "of the photos, in pixels",
	"points":        "of the capture",
	"planned_bytes": "device memory that training starts with", "budget_bytes": "device memory that it may take",
}

// keysOf lists the JSON names of a struct's fields, in order.
func keysOf(v any) (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if f.Anonymous { // its fields follow
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	return keys
}

// TestKeyTexts wants every key to be explained.
func TestKeyTexts(t *testing.T) {
	for _, line := range []any{meter.StepLine{}, train.EvalLine{}, train.StartLine{}} {
		for _, key := range keysOf(line) {
			if keyTexts[key] == "" {
				t.Errorf("%T: key %s is not explained", line, key)
			}
		}
	}
}

// pageRow is the line of an option in its table.
func pageRow(o *option, sourced bool) string {
	what := o.plain()
	flag := "`" + strings.TrimSpace(o.flagText()) + "`"
	if o.words != nil && o.kind == kindText && !strings.Contains(what, o.words[len(o.words)-1]) {
		what += " (" + strings.Join(o.words, ", ") + ")"
	}
	if o.flag {
		what += "; only a flag"
	}
	if len(o.aliases) > 0 {
		what += "; also `--" + strings.Join(o.aliases, "`, `--") + "`"
	}
	standard := o.value.String()
	if o.flag && o.kind != kindInt && o.kind != kindFloat {
		standard = ""
	}
	cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
	row := fmt.Sprintf("| %s | %s | %s |", cell(flag), cell(standard), cell(what))
	if sourced {
		row += " " + o.source + " |"
	}
	return row + "\n"
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
