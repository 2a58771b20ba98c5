package output

import (
	"path/filepath"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/strictjson"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/results"
)

type CheckpointLog struct {
	Step         int     `json:"step"`
	Bytes        int64   `json:"bytes"`
	Copied       bool    `json:"copied"`        // training paused for a copy in device memory alone
	PauseSeconds float64 `json:"pause_seconds"` // that training stood still
	Seconds      float64 `json:"seconds"`       // until the file was whole
}

type RunLog struct {
	ResumedFrom int                    `json:"resumed_from,omitempty"` // steps that were done before this process
	Deviations  []checkpoint.Deviation `json:"deviations,omitempty"`   // why an undisturbed run may have other bytes
	Checkpoints []CheckpointLog        `json:"checkpoints,omitempty"`  // of this process
}

// Stats is stats.json: how good, how large, how long, and what made it.
type Stats struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // the program was built from; "+dirty": and from changes
	Device  string `json:"device"`
	Scene   string `json:"scene"`
	Step    int    `json:"step"` // steps done
	// stopped by the user before the last step, or before all held-out photos were measured
	Interrupted bool `json:"interrupted"`

	TrainImages int       `json:"train_images"`
	TestImages  int       `json:"test_images"`
	EvalAt      cli.Steps `json:"eval_at,omitempty"` // steps on the way at which held-out photos were to be measured
	Resolution  string    `json:"resolution"`
	Points      int       `json:"points"`
	Splats      int       `json:"splats"`

	*Scores // absent without held-out photos

	LoopSeconds float64 `json:"loop_seconds"` // the steps of this process alone
	// with those of the processes before, as far as metrics.jsonl has them
	TrainSeconds   float64 `json:"train_seconds"`
	StartSeconds   float64 `json:"start_seconds"`   // from the process's start to the first step
	ProcessSeconds float64 `json:"process_seconds"` // from the process's start to this file
	// of ProcessSeconds, to compile kernels; some drivers do that with the first step
	PipelineSeconds float64 `json:"pipelines_seconds"`
	PipelinesCached bool    `json:"pipelines_cached"`  // those of an earlier run were there
	PeakDeviceBytes int64   `json:"peak_device_bytes"` // device memory taken at most
	Allocations     int     `json:"allocations"`       // vkAllocateMemory calls
	LastGrowthStep  int     `json:"last_growth_step"`  // step at which the last of them happened
	PeakRSSBytes    int64   `json:"peak_rss_bytes"`    // resident memory of the process at most

	// device time of a step by kernel; absent where the device has no timestamps
	Passes []PassLine `json:"passes,omitempty"`

	Run    *RunLog       `json:"run,omitempty"` // checkpoints and what the run went on with
	Seed   uint64        `json:"seed"`
	Config recipe.Config `json:"config"`
}

// ReadStats returns how the run in out ended; nil where nothing says so.
func ReadStats(out string) *Stats {
	st := &Stats{}
	if strictjson.ReadFile(filepath.Join(out, StatsFile), st) != nil {
		return nil
	}
	return st
}

// PassLine is the device time of one kernel in a training step, mean over the steps that were measured.
type PassLine struct {
	Name string        `json:"name"`
	MS   meter.Rounded `json:"ms"`
}

// Scores are the quality over the held-out photos: PSNR in dB, SSIM over the valid
// region. The name is exported for encoding/json, which otherwise cannot fill it.
type Scores struct {
	Measured   int     `json:"measured_images"` // held-out photos that could be
	PSNR       float64 `json:"psnr"`
	SSIM       float64 `json:"ssim"`
	PSNRMedian float64 `json:"psnr_median"`
	SSIMMedian float64 `json:"ssim_median"`
	results.Extra[*float64]
}

// Summarise takes means and medians over the views.
func Summarise(views []results.ViewScore) *Scores {
	psnr, ssim := make([]float64, len(views)), make([]float64, len(views))
	for i, v := range views {
		psnr[i], ssim[i] = v.PSNR, v.SSIM
	}
	return &Scores{Measured: len(views), PSNR: mean(psnr), SSIM: mean(ssim), PSNRMedian: scene.Median(psnr),
		SSIMMedian: scene.Median(ssim), Extra: results.MeanExtra(views)}
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
