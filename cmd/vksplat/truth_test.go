package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/farm/spec"
	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/demo"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/merge"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/scene/results"
	"vksplat/scene/splatfile"
	"vksplat/scene/synth"
)

// What a score of a file may differ by: from the one that train printed, and where the near plane is a tenth as far, in
// dB of any view.
const (
	sameScore = 0.01
	sameNear  = 0.02
)

// truthSize is how much is trained.
type truthSize struct {
	synth.Options
	steps int
}

func truthSizeOf() truthSize {
	if filetest.Long() {
		demo := synth.Options{Images: demo.Photos, Width: demo.Width, Height: demo.Height, Points: demo.Points,
			Wrong: 0.05}
		return truthSize{demo, 1500}
	}
	return truthSize{synth.Options{Images: 17, Width: 96, Height: 72, Points: 800, Wrong: 0.05}, 120}
}

// flags of train that have everything happen within the steps: refinement, a reset of opacities, all degrees of
// spherical harmonics.
func (s truthSize) flags() []string {
	part := func(share int) string { return fmt.Sprint(max(1, s.steps*share/12)) }
	return []string{"--eval", "--iterations=" + fmt.Sprint(s.steps), "--refine-start=" + part(1),
		"--refine-every=" + part(1),
		"--refine-stop=" + part(9), "--reset-every=" + part(4), "--sh-degree-interval=" + part(2),
		fmt.Sprintf("--max-splats=%d", 5*s.Points),
		"--progress=none", "--report=false"}
}

// chosenDevice are the flags that choose VKSPLAT_DEVICE.
func chosenDevice() []string {
	if d := os.Getenv("VKSPLAT_DEVICE"); d != "" {
		return []string{"--device=" + d}
	}
	return nil
}

// truthCapture makes a capture, moved where far says so.
func truthCapture(t *testing.T, far bool) string {
	t.Helper()
	needDevice(t)
	o := truthSizeOf().Options
	if far {
		o.Scale, o.Offset = 1000, [3]float64{5e6, -5e6, 5e6}
	}
	dir := filepath.Join(t.TempDir(), "scene")
	must.Do(t, synth.Write(dir, o))
	return dir
}

// scoresAlone copies a model into an empty folder and measures it there with nothing but the capture.
func scoresAlone(t *testing.T, model, capture string, flags ...string) map[string]float64 {
	t.Helper()
	dir := t.TempDir()
	data := must.Get(os.ReadFile(model))(t)
	file := filepath.Join(dir, "lone"+strings.TrimPrefix(filepath.Base(model), "point_cloud"))
	if hasOthers(filepath.Base(model)) { // with the folders that it names
		file = filepath.Join(dir, filepath.Base(model))
		must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Dir(model))))
	} else if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"eval", file, "--capture=" + capture, "-o", dir, "--color-correct=none"}
	command(t, slices.Concat(args, chosenDevice(), flags)...)
	var all map[string]struct{ PSNR map[string]float64 }
	filetest.ReadJSON(t, filepath.Join(dir, "per_view.json"), &all)
	for _, one := range all { // the only one
		return one.PSNR
	}
	return nil
}

// scoresOfRun are what a run wrote, with its model and the capture that it names.
func scoresOfRun(t *testing.T, out string) (model string, views map[string]float64) {
	t.Helper()
	var st output.Stats
	filetest.ReadJSON(t, filepath.Join(out, "stats.json"), &st)
	views, _, err := results.ReadViews(out, results.MethodName(st.Step), evaluate.PlainNames[0])
	if err != nil || len(views) == 0 {
		t.Fatalf("%s: %d views, %v", out, len(views), err)
	}
	return filepath.Join(out, output.ModelFolder+fmt.Sprint(st.Step), output.ModelName), views
}

// sameScores wants the scores of two lists to agree view by view.
func sameScores(t *testing.T, what string, got, want map[string]float64, bound float64) {
	t.Helper()
	worst := 0.0
	for name, psnr := range want {
		have, there := got[name]
		off := math.Abs(have - psnr)
		if worst = max(worst, off); !there || !(off <= bound) {
			t.Errorf("%s: view %s has %.4f dB, want %.4f within %g", what, name, have, psnr, bound)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d views, want %d", what, len(got), len(want))
	}
	t.Logf("%s: %d views, at most %.6f dB off", what, len(want), worst)
}

// TestScoreIsTheFiles trains in many ways and wants the scores that train printed to be those of the file alone, in an
// empty folder, to whoever has the capture's photos and cameras. What is near to a camera must not hide behind a near
// plane: other renderers have others.
func TestScoreIsTheFiles(t *testing.T) {
	capture := truthCapture(t, false)
	device := os.Getenv("VKSPLAT_DEVICE")
	if device == "" {
		device = "0"
	}
	first := ""
	for _, c := range []struct {
		name  string
		far   bool
		flags []string
		long  bool // TestScoreOfFormats has it, too, or one of the others does
	}{
		{"default", false, nil, false},
		{"begun with a model", false, []string{"--init=ply:FIRST", "--sh-degree-interval=1000", "--iterations=20"},
			false},
		{"mcmc", false, []string{"--preset=mcmc", "--reset-every=0"}, true},
		{"antialiased", false, []string{"--antialiased"}, true},
		{"mixed", false, []string{"--precision=mixed"}, true},
		{"white", false, []string{"--background=white"}, true},
		{"near plane", false, []string{"--near=0.5"}, true},
		{"appearance", false, []string{"--exposure", "--white-balance", "--vignetting", "--appearance-start=5"}, true},
		{"appearance, mcmc, mixed", false, []string{"--exposure", "--white-balance", "--vignetting", "--appearance-start=5",
			"--preset=mcmc", "--reset-every=0", "--precision=mixed"}, false},
		{"with floaters", false, []string{"--carve=0"}, false},
		{"low degree", false, []string{"--sh-degree-interval=1000"}, true},
		{"two devices", false, []string{"--devices=" + device + "," + device, "--seed=1"}, false},
		{"origin", true, nil, true},
		{"origin given", true, []string{"--origin=4999000,-4999500.5,5000000"}, false},
	} {
		if c.long && !filetest.Long() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			capture := capture
			if c.far {
				capture = truthCapture(t, true)
			}
			out := filepath.Join(t.TempDir(), "out")
			args := append([]string{"train", capture, "-m", out}, truthSizeOf().flags()...)
			if !strings.HasPrefix(strings.Join(c.flags, " "), "--devices") {
				args = append(args, chosenDevice()...)
			}
			for _, f := range c.flags {
				args = append(args, strings.Replace(f, "FIRST", first, 1))
			}
			command(t, args...)
			model, printed := scoresOfRun(t, out)
			if first == "" {
				first = filepath.Join(filepath.Dir(capture), "first.ply")
				copyFile(t, model, first)
			}
			sameScores(t, "alone", scoresAlone(t, model, capture), printed, sameScore)
			closer := scoresAlone(t, model, capture, "--near=0.001")
			switch c.name {
			case "near plane":
			case "with floaters":
				// Who keeps points that stand in front of cameras has scores that depend on the near plane, which they
				// name.
				t.Logf("near plane at a tenth: %v, was %v", closer, printed)
			case "two devices":
				// Steps of two views are larger, and take a splat or two to where a held-out photo alone would know
				// space to be empty: of six seeds, 42 moves a view by 0.21 dB, the others none by 0.02.
				sameScores(t, "near plane at a tenth", closer, printed, 10*sameNear)
			default:
				// A nearer plane lets splats in that stand beside a camera, almost in its plane. Large ones reach into
				// the picture of a held-out one: in the long form 0.8 dB in a view by the default recipe, none by mcmc.
				bound := sameNear
				if filetest.Long() && !strings.Contains(c.name, "mcmc") {
					bound = 1
				}
				sameScores(t, "near plane at a tenth", closer, printed, bound)
			}
		})
	}
}

// Files of formats that have others beside them: streamed SOG and 3D Tiles.
const (
	streamedFile = "lod-meta.json"
	tilesFile    = "tileset.json"
)

// hasOthers says whether a file has others beside it.
func hasOthers(name string) bool { return name == streamedFile || name == tilesFile }

// formatBounds are what a view's score may lose by a format in the short and in the long form, in dB, and the flags
// that say what the format cannot. The long form's model has less error of its own beside what is rounded.
var formatBounds = map[string]struct {
	bound, long float64
	flags       []string
}{
	".ply":            {sameScore, sameScore, nil},
	".glb":            {sameScore, sameScore, nil},
	".compressed.ply": {0.3, 0.4, nil},
	".sog":            {0.3, 0.3, nil},
	streamedFile:      {0.3, 0.3, nil},
	tilesFile:         {1, 1.75, nil}, // as SPZ
	// Of 1.66 dB in a view of the long form, 0.98 go with scales of over 380 units, which SPZ cuts and convert counts,
	// and 0.87 with 4 or 5 bits of spherical harmonics; either alone.
	".spz": {1, 1.75, []string{"--background=white", "--near=0.05"}},
	// Of what is left of SH degree 0.
	".splat": {0.3, 0.5, []string{"--background=white", "--near=0.05", "--antialiased"}},
}

// TestScoreOfFormats converts a model to all formats: its scores stay those of the PLY file but for what the format
// rounds. What a format cannot say of how the model is drawn, convert names, and flags say it. The short form has a
// capture far from its origin alone.
func TestScoreOfFormats(t *testing.T) {
	for _, far := range []bool{true, false} {
		if !far && !filetest.Long() {
			continue
		}
		capture := truthCapture(t, far)
		dir := t.TempDir()
		in := func(name string) string { return filepath.Join(dir, name) }
		args := []string{"train", capture, "-m", in("out"), "--antialiased", "--background=white", "--near=0.05"}
		command(t, slices.Concat(args, truthSizeOf().flags(), chosenDevice())...)
		model, printed := scoresOfRun(t, in("out"))
		for ending, c := range formatBounds {
			flags := c.flags
			if len(flags) > 0 && far {
				var rec captured.OriginRecord
				filetest.ReadJSON(t, in("out/"+output.OriginFile), &rec)
				at := rec.Origin
				flags = append(slices.Clone(flags), fmt.Sprintf("--origin=%g,%g,%g", at[0], at[1], at[2]))
			}
			file := in("model" + ending)
			if hasOthers(ending) {
				file = filepath.Join(t.TempDir(), ending)
			}
			var said strings.Builder
			code := run([]string{"convert", model, file}, io.Discard, &said)
			told := strings.Contains(said.String(), "the near plane 0.05")
			if code != fault.ExitOK || told != (len(c.flags) > 0) {
				t.Errorf("%s: convert ended with %d and said of what it loses:\n%s", ending, code, said.String())
			}
			want := printed
			if ending == ".splat" {
				command(t, "convert", model, in("flat.ply"), "--sh-degree=0")
				want = scoresAlone(t, in("flat.ply"), capture)
			}
			bound := c.bound
			if filetest.Long() {
				bound = c.long
			}
			sameScores(t, ending, scoresAlone(t, file, capture, flags...), want, bound)
		}
	}
}

// TestScoreOfBlocks merges blocks of a city: the scores that merge reports are those of the merged file alone.
func TestScoreOfBlocks(t *testing.T) {
	needDevice(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	city := synth.Options{City: true, Images: 24, Width: 64, Height: 48, Points: 1500}
	must.Do(t, synth.Write(in("city"), city))
	command(t, "partition", in("city"), "-o", in("plan"), "--blocks=2x1", "--eval")
	for k := range 2 {
		args := []string{"train", in("plan"), fmt.Sprintf("--block=%d", k), "--near=0.02", "--background=white"}
		command(t, slices.Concat(args, truthSizeOf().flags(), chosenDevice())...)
	}
	command(t, append([]string{"merge", in("plan")}, chosenDevice()...)...)
	var merged merge.Report
	filetest.ReadJSON(t, filepath.Join(in("plan"), plans.MergeFile), &merged)
	printed := map[string]float64{}
	for _, v := range merged.Views {
		printed[v.Name] = v.PSNR
	}
	model := filepath.Join(in("plan"), filepath.FromSlash(merged.Model))
	sameScores(t, "merged", scoresAlone(t, model, in("city")), printed, sameScore)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFarmCapture wants capture tasks of the farm to take the camera models of capture.
func TestFarmCapture(t *testing.T) {
	for _, word := range append([]string{"no such model"}, capture.CameraModels...) {
		doc := fmt.Sprintf("version = 1\nname = \"x\"\n[[task]]\nkind = \"capture\"\nsource = \"p\"\ncamera_model = %q\n", word)
		if _, err := spec.Parse("job.toml", []byte(doc)); (err == nil) != slices.Contains(capture.CameraModels, word) {
			t.Errorf("%s: farm/spec/kind_capture.go says %v", word, err)
		}
	}
}

// TestFarmFormats wants convert tasks of the farm to offer the formats that can be written, and no others, and the test
// of scores to have all of these.
func TestFarmFormats(t *testing.T) {
	for _, f := range splatfile.Formats() {
		doc := fmt.Sprintf("version = 1\nname = \"x\"\n[[task]]\nkind = \"convert\"\nmodel = \"m\"\nto = %q\n", f.Name)
		if _, err := spec.Parse("job.toml", []byte(doc)); (err == nil) != (f.Write != nil) {
			t.Errorf("%s can be written: %t; farm/spec/kind_convert.go says %v", f.Name, f.Write != nil, err)
		}
		judged := slices.ContainsFunc(f.Extensions, func(x string) bool { _, known := formatBounds[x]; return known })
		if judged != (f.Write != nil && f.Open != nil) {
			t.Errorf("%s can be written: %t; formatBounds has it: %t", f.Name, f.Write != nil, judged)
		}
	}
}
