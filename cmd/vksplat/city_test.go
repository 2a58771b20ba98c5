package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/merge"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene/results"
	"vksplat/scene/splatfile"
	"vksplat/scene/synth"
)

// citySize is a city and how it is trained: splats of the whole and of a block, and device memory that the whole does
// not fit.
type citySize struct {
	synth.Options
	steps         int
	splats, block int
	memory        string
	// steps are those of the whole, of which a block gets its photos' share; otherwise each block gets all
	share bool
}

// command runs the program in this process, and wants it to succeed.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var out, err strings.Builder
	if code := run(args, &out, &err); code != fault.ExitOK {
		t.Fatalf("vksplat %s: exit code %d\n%s%s", strings.Join(args, " "), code, out.String(), err.String())
	}
	return out.String()
}

// TestCity trains a city as a whole, and in four blocks with memory that the whole does not fit: as good within 0.3 dB
// on photos that no block trained on, and near borders within 0.3 dB of elsewhere. The long form has 400 photos, each
// of which the blocks train on as often as the whole, half an hour on two cores.
func TestCity(t *testing.T) {
	needDevice(t)
	size := citySize{synth.Options{City: true, Images: 40, Width: 64, Height: 48, Points: 3000}, 60, 9000, 4000, "10M",
		false}
	if filetest.Long() {
		size = citySize{synth.Options{City: true, Images: 400, Width: 128, Height: 96, Points: 30000}, 3000, 40000,
			18000, "34M", true}
	}
	dir := t.TempDir()
	size.train(t, dir)
	var st output.Stats
	filetest.ReadJSON(t, filepath.Join(dir, "whole", "stats.json"), &st)
	var merged merge.Report
	filetest.ReadJSON(t, filepath.Join(dir, "plan", plans.MergeFile), &merged)
	if merged.SeamReport == nil || len(merged.Views) != st.TestImages {
		t.Fatalf("%+v: want the scores of %d photos", merged, st.TestImages)
	}
	kept := 0
	for _, b := range merged.Blocks {
		if kept += b.Kept; b.Kept == 0 || b.Kept >= b.Splats {
			t.Errorf("block %d keeps %d of %d splats", b.Block, b.Kept, b.Splats)
		}
	}
	if kept != merged.Splats {
		t.Errorf("%d splats, the blocks' cores have %d", merged.Splats, kept)
	}
	t.Logf("PSNR %.2f dB, SSIM %.4f of the whole (%d splats), %.2f dB, %.4f merged (%d splats), %.2f dB lost at "+
		"borders against the blocks", st.PSNR, st.SSIM, st.Splats, merged.PSNR, merged.SSIM,
		merged.Splats, merged.BorderLoss)
	if math.IsNaN(merged.PSNR) || merged.PSNR < st.PSNR-0.3 {
		t.Errorf("PSNR %.2f dB in blocks, %.2f dB as a whole", merged.PSNR, st.PSNR)
	}
	checkBorders(t, filepath.Join(dir, "whole"), &st, merged.Views)
	for _, name := range []string{"city.ssog", "tileset.json"} {
		file := filepath.Join(dir, name)
		command(t, "convert", filepath.Join(dir, "plan", "out"), file)
		streamed := must.Get(splatfile.Open(file))(t)
		if n := streamed.Info().N; n != merged.Splats {
			t.Errorf("%s: %d splats, %d are merged", name, n, merged.Splats)
		}
		_ = streamed.Close() // only read
	}
}

// train makes the city in a folder, the whole's model and that of the merged blocks, and looks at their memory.
func (size *citySize) train(t *testing.T, dir string) {
	t.Helper()
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	must.Do(t, synth.Write(in("city"), size.Options))
	scaler := float64(size.steps) / float64(recipe.Default().Iterations)
	flags := []string{"--preset=3dgs", fmt.Sprintf("--steps-scaler=%g", scaler),
		fmt.Sprintf("--refine-every=%.0f", 10/scaler), "--reset-every=0", "--report=false", "--progress=none"}
	whole := append([]string{"train", in("city"), "-m", in("whole"), "--eval", "--splats=" + strconv.Itoa(size.splats)},
		flags...)
	if code := run(append(whole, "--max-vram="+size.memory), io.Discard, io.Discard); code != fault.ExitUsage {
		t.Fatalf("the whole does fit %s, or fails otherwise: exit code %d", size.memory, code)
	}
	command(t, whole...)
	command(t, "partition", in("city"), "-o", in("plan"), "--blocks=2x2", "--eval")
	limit := must.Get(pipeline.ParseBytes(size.memory))(t)
	plan := must.Get(plans.Read(in("plan")))(t)
	for k := range plan.Blocks {
		command(t, append([]string{"train", plan.Dir, fmt.Sprintf("--block=%d", k),
			fmt.Sprintf("--share-steps=%v", size.share), "--splats=" + strconv.Itoa(size.block),
			"--max-vram=" + size.memory}, flags...)...)
		var st output.Stats
		filetest.ReadJSON(t, filepath.Join(plan.BlockFolder(k), "stats.json"), &st)
		steps := size.steps
		if size.share {
			steps = int(plan.Share(k)*float64(steps) + 1e-9)
		}
		if st.PeakDeviceBytes > limit || st.Splats != size.block || st.Step != steps {
			t.Errorf("block %d: %d splats in %d bytes after %d steps, want %d in %d after %d", k, st.Splats,
				st.PeakDeviceBytes, st.Step, size.block, limit, steps)
		}
		t.Logf("block %d: %d steps, %d of %d photos, %.1f MB", k, st.Step, st.TrainImages,
			plan.Photos-len(plan.HeldOut), float64(st.PeakDeviceBytes)/1e6)
	}
	command(t, "merge", in("plan"), "--max-vram="+size.memory)
}

// checkBorders compares what photos that several blocks see lost against the whole with what the others did.
func checkBorders(t *testing.T, whole string, st *output.Stats, views []merge.SeamView) {
	t.Helper()
	was, _, err := results.ReadViews(whole, results.MethodName(st.Step), evaluate.PlainNames[0])
	if err != nil {
		t.Fatal(err)
	}
	var lost [2]float64
	var n [2]int
	for _, v := range views {
		k := 0
		if len(v.Blocks) > 1 {
			k = 1
		}
		lost[k] += was[v.Name] - v.PSNR
		n[k]++
	}
	if n[0] == 0 || n[1] == 0 {
		t.Fatalf("%d photos are of one block, %d of several", n[0], n[1])
	}
	inside, border := lost[0]/float64(n[0]), lost[1]/float64(n[1])
	t.Logf("lost against the whole: %.2f dB in %d photos of one block, %.2f dB in %d of several", inside, n[0], border,
		n[1])
	if min(n[0], n[1]) >= 5 && !(border <= inside+0.3) { // a mean of fewer says little
		t.Errorf("photos near borders lost %.2f dB, others %.2f dB", border, inside)
	}
}
