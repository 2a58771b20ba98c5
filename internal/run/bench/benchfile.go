package bench

import (
	"fmt"
	"os"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/strictjson"
	"vksplat/pipeline/bench"
	"vksplat/scene"
)

// benchFormat is the form of the file. Readers refuse others.
const benchFormat = 1

// benchFile is the JSON of bench.
type benchFile struct {
	Format  int           `json:"format"`
	Version string        `json:"version"`
	Commit  string        `json:"commit,omitempty"`
	Device  benchDevice   `json:"device"`
	Rates   bench.Rates   `json:"rates"`  // that the device was measured to have
	Rounds  int           `json:"rounds"` // measured one after the other
	Scenes  []*benchScene `json:"scenes"`
}

// benchDevice is the device of a measurement.
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

// benchScene is one model with its views. Times are of one step, in milliseconds. wall_ms is passes_ms and gap_ms
// together.
type benchScene struct {
	Name       string       `json:"name"`
	Strategy   string       `json:"strategy"`
	Precision  string       `json:"precision"`
	Trained    int          `json:"trained_steps"` // before
	Photos     int          `json:"photos"`
	Resolution string       `json:"resolution"`
	Steps      int          `json:"steps"` // of a round, with timestamps and once more without
	Counts     bench.Counts `json:"counts"`

	StepsPerS   spread  `json:"steps_per_second"`
	WallMS      spread  `json:"wall_ms"`      // of steps without timestamps, by the host's clock
	HostMS      spread  `json:"host_ms"`      // of that, when the host did not wait for the device
	PassesMS    spread  `json:"passes_ms"`    // sum of the passes by the device's clock; median: of their medians
	GapMS       spread  `json:"gap_ms"`       // wall less passes; median: of the medians
	TimedMS     spread  `json:"timed_ms"`     // as wall, of steps with timestamps; 0 in earlier files
	FloorMS     float64 `json:"floor_ms"`     // sum of the passes' floors
	PeakBytes   int64   `json:"peak_bytes"`   // of device memory: sum of vkAllocateMemory
	DeviceBytes int64   `json:"device_bytes"` // likewise, while steps were measured

	Passes []benchPass `json:"passes"`
}

// benchPass is one pass of a step. What bench.Cost counts is zero for passes without a count, whose floor is
// their launches.
type benchPass struct {
	Name         string  `json:"name"`
	MS           spread  `json:"ms"`         // means over a round's steps; in earlier files medians
	MeanMS       float64 `json:"mean_ms"`    // the median of the rounds' means
	Share        float64 `json:"share"`      // of wall_ms; in earlier files of passes_ms
	Dispatches   float64 `json:"dispatches"` // of a step, in the mean
	Launches     float64 `json:"launches"`   // dispatches that wait for the ones before them
	Bytes        float64 `json:"bytes,omitempty"`
	Instructions float64 `json:"instructions,omitempty"`
	SharedWords  float64 `json:"shared_words,omitempty"`
	Shuffles     float64 `json:"shuffles,omitempty"`
	BytesPerS    float64 `json:"bytes_per_second,omitempty"`
	OfCopy       float64 `json:"share_of_copy_rate,omitempty"`
	FloorMS      float64 `json:"floor_ms,omitempty"`
	OverFloor    float64 `json:"times_floor,omitempty"`
	Bound        string  `json:"bound,omitempty"` // what takes most of the floor: memory, arithmetic, shared, launch
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
	memory := s.trainer.MemoryStats()
	out := &benchScene{
		Name: s.name, Strategy: s.config.Strategy, Precision: s.config.Precision, Trained: s.trained,
		Photos: len(s.cameras), Resolution: captured.Resolution(s.cameras),
		Steps: steps, Counts: m.Counts, PeakBytes: memory.PeakDeviceBytes, DeviceBytes: memory.DeviceBytes,
		WallMS: each(m.Rounds, (*bench.Round).WallMS), HostMS: each(m.Rounds, (*bench.Round).HostMS),
	}
	out.StepsPerS = spread{1e3 / out.WallMS.Median, 1e3 / out.WallMS.Max, 1e3 / out.WallMS.Min}
	if len(m.Rounds) > 0 && len(m.Rounds[0].Passes) > 0 { // the device has timestamps
		out.addPasses(m.Rounds)
		out.addFloors(rates)
	}
	return out
}

// addPasses sums up the passes, so that they and what is left of a step without timestamps make up that step.
func (s *benchScene) addPasses(rounds []bench.Round) {
	for _, first := range rounds[0].Passes {
		ms := each(rounds, func(r *bench.Round) float64 { return r.Pass(first.Name).MS })
		s.Passes = append(s.Passes, benchPass{Name: first.Name, MS: ms, MeanMS: ms.Median,
			Share:      ms.Median / s.WallMS.Median,
			Dispatches: each(rounds, func(r *bench.Round) float64 { return r.Pass(first.Name).Dispatches }).Median,
			Launches:   each(rounds, func(r *bench.Round) float64 { return r.Pass(first.Name).Launches }).Median})
	}
	s.TimedMS = each(rounds, (*bench.Round).TimedMS)
	s.PassesMS = each(rounds, (*bench.Round).PassesMS)
	s.GapMS = each(rounds, func(r *bench.Round) float64 { return r.WallMS() - r.PassesMS() })
	s.PassesMS.Median = 0 // the sum of the medians, which need not be the median of the sums
	for _, p := range s.Passes {
		s.PassesMS.Median += p.MeanMS
	}
	s.GapMS.Median = s.WallMS.Median - s.PassesMS.Median
}

// addFloors adds what is counted of each pass, and what that says.
func (s *benchScene) addFloors(rates bench.Rates) {
	for i := range s.Passes {
		p := &s.Passes[i]
		cost, _ := s.Counts.Cost(p.Name)
		floor, bound := cost.Floor(rates, p.Launches)
		if p.MeanMS <= 0 || floor <= 0 {
			continue
		}
		p.Bytes, p.Instructions, p.SharedWords, p.Shuffles = cost.Bytes, cost.Instructions, cost.SharedWords,
			cost.Shuffles
		p.BytesPerS = cost.Bytes / (p.MeanMS / 1e3)
		p.FloorMS, p.Bound = 1e3*floor, bound
		p.OfCopy, p.OverFloor = p.BytesPerS/rates.CopyBytes, p.MeanMS/p.FloorMS
		s.FloorMS += p.FloorMS
	}
}

// isOther reports whether path is a device, a pipe or a link: writing would replace it by a file.
func isOther(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && !st.Mode().IsRegular() && !st.IsDir()
}

// readBench reads what --json wrote.
func readBench(path string) (*benchFile, error) {
	hint := "name a file that " + fault.Command("bench --json") + " wrote"
	f := &benchFile{}
	if err := strictjson.ReadFile(path, f); err != nil {
		return nil, fault.Usagef(hint, "read results %s: %w", path, fault.Pathless(err))
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
