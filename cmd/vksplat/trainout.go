package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"vksplat/pipeline"
	"vksplat/scene"
)

// stats is stats.json: how good, how large, how long, and what made it.
type stats struct {
	Version     string `json:"version"`
	Device      string `json:"device"`
	Scene       string `json:"scene"`
	Step        int    `json:"step"`        // steps done
	Interrupted bool   `json:"interrupted"` // stopped by the user before the last step

	TrainImages int    `json:"train_images"`
	TestImages  int    `json:"test_images"`
	Resolution  string `json:"resolution"`
	Points      int    `json:"points"`
	Splats      int    `json:"splats"`

	*Scores // absent without held-out photos

	LoopSeconds     float64 `json:"loop_seconds"`      // the steps alone
	ProcessSeconds  float64 `json:"process_seconds"`   // from the process's start to this file
	PeakDeviceBytes int64   `json:"peak_device_bytes"` // device memory taken at most
	Allocations     int     `json:"allocations"`       // vkAllocateMemory calls
	LastGrowthStep  int     `json:"last_growth_step"`  // step at which the last of them happened
	PeakRSSBytes    int64   `json:"peak_rss_bytes"`    // resident memory of the process at most

	Seed   uint64          `json:"seed"`
	Config pipeline.Config `json:"config"`
}

// Scores are the quality over the held-out photos: PSNR in dB, SSIM over the valid
// region. The name is exported for encoding/json, which otherwise cannot fill it.
type Scores struct {
	PSNR       float64 `json:"psnr"`
	SSIM       float64 `json:"ssim"`
	PSNRMedian float64 `json:"psnr_median"`
	SSIMMedian float64 `json:"ssim_median"`
}

// probeBytes is how much claimFolder writes to see whether the disk has room at all.
const probeBytes = 1 << 20

// claimFolder makes dir and proves that files can be written in it, so that a
// long run does not find out at its end.
func claimFolder(dir string) error {
	fail := func(err error) error {
		err = fmt.Errorf("write to folder %s: %w", dir, err)
		if errors.Is(err, syscall.ENOTDIR) {
			return &usageError{err: err, hint: "a file has that name, or that of a folder above: choose another folder"}
		}
		return &hintedError{err: err, hint: "choose another folder, or make room and give write permission there"}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fail(pathless(err))
	}
	f, err := os.CreateTemp(dir, ".probe*")
	if err != nil {
		return fail(pathless(err))
	}
	_, err = f.Write(make([]byte, probeBytes))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return fail(pathless(err))
	}
	return nil
}

// pathless strips the path, which the message around it names already.
func pathless(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// writeBefore writes what is known before the first step: the points, the
// cameras, INRIA's arguments and the origin. The capture is still in its own frame.
func (r *trainRun) writeBefore() error {
	cams, points := moved(r.capture, r.origin)
	errs := []error{
		scene.WritePoints(filepath.Join(r.out, "input.ply"), points),
		scene.WriteCameras(filepath.Join(r.out, "cameras.json"), cams),
		scene.WriteCfgArgs(filepath.Join(r.out, "cfg_args"), r.cfgArgs()),
	}
	if r.origin != [3]float64{} {
		errs = append(errs, writeJSON(filepath.Join(r.out, originFile), originRecord{Origin: r.origin}))
	} else if err := os.Remove(filepath.Join(r.out, originFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		// One of an earlier run would move this run's model.
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// writeModel writes the model in the capture's frame, less the origin.
func (r *trainRun) writeModel(s *scene.Splats, step int) error {
	dir := filepath.Join(r.out, "point_cloud", "iteration_"+strconv.Itoa(step))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	meta := scene.PLYMeta{Generator: "vksplat " + programVersion(), Step: step, Seed: r.config.Seed, Antialiased: r.config.Antialiased}
	if r.origin != [3]float64{} {
		meta.Origin = &r.origin
	}
	return scene.WritePLY(filepath.Join(dir, "point_cloud.ply"), s.ToCapture(r.capture.Frame, r.origin), meta)
}

// finish saves the model, measures the held-out photos and writes all results.
func (r *trainRun) finish(interrupted bool, seen func(scene.Image, []float32)) (*stats, error) {
	step, began := r.trainer.Step(), time.Now()
	s, err := r.trainer.Splats()
	if err != nil {
		return nil, err
	}
	if err := r.writeModel(s, step); err != nil {
		return nil, err
	}
	memory := r.trainer.MemoryStats()
	st := &stats{
		Version: programVersion(), Device: r.device.Name(), Scene: r.scene, Step: step, Interrupted: interrupted,
		TrainImages: len(r.train), TestImages: len(r.test), Resolution: resolution(r.capture.Cameras), Points: len(r.capture.Points), Splats: s.N,
		LoopSeconds: r.trainer.Seconds(), Seed: r.config.Seed, Config: r.config,
	}
	if len(r.test) > 0 {
		views, err := r.measure(s, step, seen)
		if err != nil {
			return nil, err
		}
		if err := scene.WriteResults(r.out, []scene.StepScores{{Step: step, Views: views}}); err != nil {
			return nil, err
		}
		st.Scores = summarise(views)
		memory = r.trainer.MemoryStats()
	}
	st.PeakDeviceBytes, st.Allocations, st.LastGrowthStep, st.PeakRSSBytes = memory.PeakDeviceBytes, memory.Allocations, memory.LastGrowth, peakRSS()
	st.ProcessSeconds = time.Since(processStart).Seconds()
	if err := writeJSON(filepath.Join(r.out, "stats.json"), st); err != nil {
		return nil, err
	}
	r.app.printSummary(r, st, time.Since(began).Seconds())
	if n := r.trainer.CeilingHits(); n > 0 && r.config.MaxSplats == 0 {
		r.app.warn(fmt.Sprintf("memory is full of splats: %d times one wanted to grow and could not; raise --max-vram for more detail", n))
	}
	return st, nil
}

// printSummary prints the results and where they are.
func (a *app) printSummary(r *trainRun, st *stats, after float64) {
	a.printf("trained %d steps in %s, saved and measured in %s: %d splats, %s of device memory at most\n",
		st.Step, durationText(st.LoopSeconds), durationText(after), st.Splats, bytesText(st.PeakDeviceBytes))
	if st.Scores != nil {
		a.printf("held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d; medians %.2f dB, %.4f)\n", st.PSNR, st.SSIM, st.TestImages, st.PSNRMedian, st.SSIMMedian)
		a.printf("pictures: %s\n", r.picturesFolder(st.Step))
	}
	a.printf("model: %s\n", filepath.Join(r.out, "point_cloud", "iteration_"+strconv.Itoa(st.Step), "point_cloud.ply"))
}

// summarise takes means and medians over the views.
func summarise(views []scene.ViewScore) *Scores {
	psnr, ssim := make([]float64, len(views)), make([]float64, len(views))
	for i, v := range views {
		psnr[i], ssim[i] = v.PSNR, v.SSIM
	}
	return &Scores{PSNR: mean(psnr), SSIM: mean(ssim), PSNRMedian: median(psnr), SSIMMedian: median(ssim)}
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// median returns the middle value, or the mean of the two middle ones.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// writeJSON writes v to path as one whole file.
func writeJSON(path string, v any) error {
	return scene.WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	})
}
