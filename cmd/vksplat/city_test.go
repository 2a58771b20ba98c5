package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vksplat/pipeline"
	"vksplat/scene"
)

// citySize is a city and how it is trained: splats of the whole and of a block, and device memory that the whole does not fit.
type citySize struct {
	scene.SynthOptions
	steps         int
	splats, block int
	memory        string
}

// command runs the program in this process, and wants it to succeed.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var out, err strings.Builder
	if code := run(args, &out, &err); code != exitOK {
		t.Fatalf("vksplat %s: exit code %d\n%s%s", strings.Join(args, " "), code, out.String(), err.String())
	}
	return out.String()
}

// TestCity trains a city as a whole, and in four blocks with memory that the whole does not fit: as good within 0.3 dB on photos that no block trained on.
// VKSPLAT_LONG=1 does it with 400 photos, half an hour on two cores.
func TestCity(t *testing.T) {
	if list, err := pipeline.ListDevices(); err != nil || len(list) == 0 {
		t.Skip("no Vulkan device on this machine")
	}
	size := citySize{scene.SynthOptions{City: true, Images: 40, Width: 64, Height: 48, Points: 3000}, 300, 9000, 4000, "10M"}
	if os.Getenv("VKSPLAT_LONG") != "" {
		size = citySize{scene.SynthOptions{City: true, Images: 400, Width: 128, Height: 96, Points: 30000}, 2000, 40000, 18000, "34M"}
	}
	dir := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	if err := scene.WriteSynth(in("city"), size.SynthOptions); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--iterations=" + strconv.Itoa(size.steps), "--refine-start=" + strconv.Itoa(size.steps/8), "--refine-stop=" + strconv.Itoa(size.steps*3/4),
		"--refine-every=" + strconv.Itoa(max(10, size.steps/60)), "--reset-every=0", "--report=false", "--progress=none"}
	whole := append([]string{"train", in("city"), "-m", in("whole"), "--eval", "--splats=" + strconv.Itoa(size.splats)}, flags...)
	if code := run(append(whole, "--max-vram="+size.memory), io.Discard, io.Discard); code != exitRetry {
		t.Fatalf("the whole does fit %s, or fails otherwise: exit code %d", size.memory, code)
	}
	command(t, whole...)
	command(t, "partition", in("city"), "-o", in("plan"), "--blocks=2x2", "--eval")
	limit, err := pipeline.ParseBytes(size.memory)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 4 {
		command(t, append([]string{"train", in("plan"), fmt.Sprintf("--block=%d", k), "--splats=" + strconv.Itoa(size.block), "--max-vram=" + size.memory}, flags...)...)
		var st stats
		readTestJSON(t, in("plan", fmt.Sprintf("block_%d", k), "stats.json"), &st)
		if st.PeakDeviceBytes > limit || st.Splats != size.block {
			t.Errorf("block %d: %d splats in %d bytes, want %d in %d", k, st.Splats, st.PeakDeviceBytes, size.block, limit)
		}
	}
	command(t, "merge", in("plan"), "--max-vram="+size.memory)
	var st stats
	readTestJSON(t, in("whole", "stats.json"), &st)
	var merged mergeReport
	readTestJSON(t, in("plan", "merge.json"), &merged)
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
	t.Logf("PSNR %.2f dB of the whole (%d splats), %.2f dB merged (%d splats), %.2f dB lost at borders against the blocks", st.PSNR, st.Splats, merged.PSNR, merged.Splats, merged.BorderLoss)
	if math.IsNaN(merged.PSNR) || merged.PSNR < st.PSNR-0.3 {
		t.Errorf("PSNR %.2f dB in blocks, %.2f dB as a whole", merged.PSNR, st.PSNR)
	}
}

func readTestJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
