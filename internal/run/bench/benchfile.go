package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline/bench"
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
	Rates   bench.Rates   `json:"rates"`  // that the device was measured to have
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
	Name       string       `json:"name"`
	Strategy   string       `json:"strategy"`
	Precision  string       `json:"precision"`
	Trained    int          `json:"trained_steps"` // before
	Photos     int          `json:"photos"`
	Resolution string       `json:"resolution"`
	Steps      int          `json:"steps"` // of a round
	Counts     bench.Counts `json:"counts"`

	StepsPerS   spread  `json:"steps_per_second"`
	WallMS      spread  `json:"wall_ms"`      // by the host's clock
	HostMS      spread  `json:"host_ms"`      // of that, when the host did not wait for the device
	PassesMS    spread  `json:"passes_ms"`    // sum of the passes by the device's clock
	GapMS       spread  `json:"gap_ms"`       // wall less passes
	FloorMS     float64 `json:"floor_ms"`     // sum of the passes' floors
	PeakBytes   int64   `json:"peak_bytes"`   // of device memory: sum of vkAllocateMemory
	DeviceBytes int64   `json:"device_bytes"` // likewise, while steps were measured

	Passes []benchPass `json:"passes"`
}

// benchPass is one pass of a step. What is counted (bench.Cost) is zero where nobody has counted it.
type benchPass struct {
	Name         string  `json:"name"`
	MS           spread  `json:"ms"`      // medians over a round's steps
	MeanMS       float64 `json:"mean_ms"` // over the steps of the median round
	Share        float64 `json:"share"`   // of the sum of all passes
	Dispatches   int     `json:"dispatches"`
	Bytes        float64 `json:"bytes,omitempty"`
	Instructions float64 `json:"instructions,omitempty"`
	BytesPerS    float64 `json:"bytes_per_second,omitempty"`
	OfCopy       float64 `json:"share_of_copy_rate,omitempty"`
	FloorMS      float64 `json:"floor_ms,omitempty"`
	OverFloor    float64 `json:"times_floor,omitempty"`
}

// spreadOf sums the rounds up.
func spreadOf(values []float64) spread {
	m := scene.Median(values) // which leaves them in order
	if len(values) == 0 {
		return spread{}
	}
	return spread{m, values[0], values[len(values)-1]}
}

// each returns a number of every round.
func each(rounds []bench.Round, f func(r *bench.Round) float64) spread {
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

// newScene sums up what was measured in rounds of so many steps.
func newScene(s subject, steps int, m bench.Measurement, rates bench.Rates) *benchScene {
	memory, n := s.trainer.MemoryStats(), float64(steps)
	out := &benchScene{
		Name: s.name, Strategy: s.config.Strategy, Precision: s.config.Precision, Trained: s.trained,
		Photos: len(s.cameras), Resolution: captured.Resolution(s.cameras),
		Steps: steps, Counts: m.Counts, PeakBytes: memory.PeakDeviceBytes, DeviceBytes: memory.DeviceBytes,
		WallMS: each(m.Rounds, func(r *bench.Round) float64 { return 1e3 * r.WallSeconds / n }),
		HostMS: each(m.Rounds, func(r *bench.Round) float64 { return 1e3 * r.HostSeconds / n }),
	}
	out.StepsPerS = spread{1e3 / out.WallMS.Median, 1e3 / out.WallMS.Max, 1e3 / out.WallMS.Min}
	if len(m.Rounds) > 0 && len(m.Rounds[0].Passes) > 0 { // the device has timestamps
		out.addPasses(m.Rounds, n)
		out.addFloors(rates)
	}
	return out
}

// addPasses sums up the passes.
func (s *benchScene) addPasses(rounds []bench.Round, steps float64) {
	s.PassesMS = each(rounds, (*bench.Round).MeanMS)
	s.GapMS = each(rounds, func(r *bench.Round) float64 { return 1e3*r.WallSeconds/steps - r.MeanMS() })
	for _, first := range rounds[0].Passes {
		mean := each(rounds, func(r *bench.Round) float64 { return r.Pass(first.Name).MeanMS }).Median
		s.Passes = append(s.Passes, benchPass{
			Name: first.Name, MS: each(rounds, func(r *bench.Round) float64 { return r.Pass(first.Name).MS }),
			MeanMS: mean, Share: mean / s.PassesMS.Median, Dispatches: first.Dispatches,
		})
	}
}

// addFloors adds what is counted of each pass, and what that says.
func (s *benchScene) addFloors(rates bench.Rates) {
	for i := range s.Passes {
		p := &s.Passes[i]
		cost, known := s.Counts.Cost(p.Name)
		if !known || p.MS.Median <= 0 {
			continue
		}
		p.Bytes, p.Instructions, p.FloorMS = cost.Bytes, cost.Instructions, 1e3*cost.Seconds(rates)
		p.BytesPerS = cost.Bytes / (p.MS.Median / 1e3)
		p.OfCopy, p.OverFloor = p.BytesPerS/rates.CopyBytes, p.MS.Median/p.FloorMS
		s.FloorMS += p.FloorMS
	}
}

func writeBench(path string, f *benchFile) error {
	return atomicfile.Write(path, func(w io.Writer) error { return cli.WriteJSON(w, f) })
}

// isOther reports whether path is a device, a pipe or a link: writing would replace it by a file.
func isOther(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && !st.Mode().IsRegular() && !st.IsDir()
}

// maxBenchFile bounds the bytes of a file of results: a scene takes about 10 kB.
const maxBenchFile = 64 << 20

// readBench reads what writeBench wrote.
func readBench(path string) (*benchFile, error) {
	hint := "name a file that " + fault.Command("bench --json") + " wrote"
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxBenchFile) {
		err = errors.New("this is no file of results")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fault.Usagef(hint, "read results %s: %w", path, fault.Pathless(err))
	}
	f := &benchFile{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fault.Usagef(hint, "read results %s: %w", path, err)
	}
	if f.Format != benchFormat {
		return nil, fault.Usagef(hint, "read results %s: format %d, this program reads %d", path, f.Format, benchFormat)
	}
	for _, s := range f.Scenes {
		if s == nil || s.Name == "" || !(s.WallMS.Median > 0) {
			return nil, fault.Usagef(hint, "read results %s: a scene has no name or no time", path)
		}
	}
	return f, nil
}

// slower is the error of a step that takes too long.
func slower(name string, ratio, most float64) error {
	return fault.WithHint(fmt.Errorf("%s: a step takes %.3f times as long as before, at most %g are allowed "+
		"(%s)", name, ratio, most, fault.Setting("max-slowdown")),
		"see which pass it is in the table above; measure again when nothing else uses the device")
}
