package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"vksplat/pipeline"
	"vksplat/scene"
)

// benchFormat is the form of the file. Readers refuse others.
const benchFormat = 1

// benchFile is what bench writes as JSON.
type benchFile struct {
	Format  int           `json:"format"`
	Version string        `json:"version"`
	Commit  string        `json:"commit,omitempty"`
	Device  benchDevice   `json:"device"`
	Steps   int           `json:"steps"`  // of a round
	Rounds  int           `json:"rounds"` // measured one after the other
	Scenes  []*benchScene `json:"scenes"`
}

// benchDevice is what was measured on.
type benchDevice struct {
	Name         string `json:"name"`
	Type         string `json:"type"`
	Driver       string `json:"driver"`
	API          string `json:"api"`
	SubgroupSize uint32 `json:"subgroup_size"`
}

// spread is a number as the rounds had it.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// benchScene is one model with its views. Times are of one step, in milliseconds.
type benchScene struct {
	Name        string      `json:"name"`
	Strategy    string      `json:"strategy"`
	Precision   string      `json:"precision"`
	SHDegree    int         `json:"sh_degree"`
	Trained     int         `json:"trained_steps"`
	Photos      int         `json:"photos"`
	Resolution  string      `json:"resolution"`
	Splats      int         `json:"splats"`
	Visible     int         `json:"visible"` // in the median view
	Isects      int         `json:"isects"`  // likewise
	StepsPerS   spread      `json:"steps_per_second"`
	WallMS      spread      `json:"wall_ms"`      // by the host's clock
	HostMS      spread      `json:"host_ms"`      // when the host did not wait for the device
	PassesMS    spread      `json:"passes_ms"`    // sum of the passes by the device's clock
	GapMS       spread      `json:"gap_ms"`       // wall less passes
	PeakBytes   int64       `json:"peak_bytes"`   // of device memory: sum of vkAllocateMemory
	DeviceBytes int64       `json:"device_bytes"` // of device memory while measuring
	Passes      []benchPass `json:"passes"`
}

// benchPass is one pass of a step.
type benchPass struct {
	Name       string  `json:"name"`
	MS         spread  `json:"ms"`      // medians over a round's steps
	MeanMS     float64 `json:"mean_ms"` // over the steps of all rounds
	Share      float64 `json:"share"`   // of the sum of all passes
	Dispatches int     `json:"dispatches"`
}

// spreadOf sums the rounds up.
func spreadOf(values []float64) spread {
	m := pipeline.Median(values) // which leaves them in order
	if len(values) == 0 {
		return spread{}
	}
	return spread{m, values[0], values[len(values)-1]}
}

// each returns a number of every round.
func each(rounds []pipeline.Round, f func(r *pipeline.Round) float64) spread {
	var list []float64
	for i := range rounds {
		list = append(list, f(&rounds[i]))
	}
	return spreadOf(list)
}

// name returns name, with a number where a scene is called so already.
func (f *benchFile) name(name string) string {
	free := name
	for n := 2; slices.ContainsFunc(f.Scenes, func(s *benchScene) bool { return s.Name == free }); n++ {
		free = fmt.Sprintf("%s (%d)", name, n)
	}
	return free
}

// scene sums up what was measured.
func (b *benchRun) scene(rounds []pipeline.Round) *benchScene {
	memory, n := b.trainer.MemoryStats(), float64(b.o.steps)
	s := &benchScene{
		Name: b.file.name(filepath.Base(absolute(b.trainRun.scene))), Strategy: b.config.Strategy, Precision: b.config.Precision, SHDegree: b.config.SHDegree, Trained: b.o.trainSteps,
		Photos: len(b.train), Resolution: resolution(b.capture.Cameras), Splats: b.trainer.NSplats(),
		PeakBytes: memory.PeakDeviceBytes, DeviceBytes: memory.DeviceBytes,
		StepsPerS: each(rounds, func(r *pipeline.Round) float64 { return n / r.WallSeconds }),
		WallMS:    each(rounds, func(r *pipeline.Round) float64 { return 1e3 * r.WallSeconds / n }),
		HostMS:    each(rounds, func(r *pipeline.Round) float64 { return 1e3 * r.HostSeconds / n }),
	}
	var visible, isects []int
	for _, r := range rounds {
		visible, isects = append(visible, r.Visible), append(isects, r.Isects)
	}
	s.Visible, s.Isects = pipeline.Median(visible), pipeline.Median(isects)
	s.addPasses(rounds, n)
	return s
}

// addPasses sums up the passes, where the device has timestamps.
func (s *benchScene) addPasses(rounds []pipeline.Round, steps float64) {
	if len(rounds) == 0 || len(rounds[0].Passes) == 0 {
		return
	}
	mean := func(r *pipeline.Round) (sum float64) {
		for _, p := range r.Passes {
			sum += p.MeanMS
		}
		return sum
	}
	s.PassesMS = each(rounds, mean)
	s.GapMS = each(rounds, func(r *pipeline.Round) float64 { return 1e3*r.WallSeconds/steps - mean(r) })
	for _, first := range rounds[0].Passes {
		find := func(r *pipeline.Round) (p pipeline.PassSample) {
			if i := slices.IndexFunc(r.Passes, func(p pipeline.PassSample) bool { return p.Name == first.Name }); i >= 0 {
				p = r.Passes[i]
			}
			return p
		}
		all := each(rounds, func(r *pipeline.Round) float64 { return find(r).MeanMS })
		s.Passes = append(s.Passes, benchPass{Name: first.Name, MS: each(rounds, func(r *pipeline.Round) float64 { return find(r).MS }),
			MeanMS: all.Median, Share: all.Median / s.PassesMS.Median, Dispatches: first.Dispatches})
	}
}

func benchDeviceOf(d *pipeline.Device) benchDevice {
	s := d.Summary()
	return benchDevice{Name: s.Name, Type: s.Type, Driver: s.Driver, API: s.API, SubgroupSize: s.Limits.SubgroupSize}
}

func writeBench(path string, f *benchFile) error {
	return scene.WriteFile(path, func(w io.Writer) error { return printJSON(w, f) })
}

// maxBenchFile bounds the bytes of a file of results: a scene takes about 10 kB.
const maxBenchFile = 64 << 20

// readBench reads what writeBench wrote.
func readBench(path string) (*benchFile, error) {
	const hint = "name a file that vksplat bench --json wrote"
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxBenchFile) {
		err = errors.New("this is no file of results")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, usagef(hint, "read results %s: %w", path, pathless(err))
	}
	f := &benchFile{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, usagef(hint, "read results %s: %w", path, err)
	}
	if f.Format != benchFormat {
		return nil, usagef(hint, "read results %s: format %d, this program reads %d", path, f.Format, benchFormat)
	}
	for _, s := range f.Scenes {
		if s == nil {
			return nil, usagef(hint, "read results %s: a scene is empty", path)
		}
	}
	return f, nil
}

// slower is the error of a step that takes too long.
func slower(name string, ratio, most float64) error {
	return &hintedError{err: fmt.Errorf("%s: a step takes %.3f times as long as before, at most %g are allowed (--max-slowdown)", name, ratio, most),
		hint: "see which pass it is in the table above; measure again when nothing else uses the device"}
}
