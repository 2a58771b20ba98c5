package desk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
)

// runSummary is what a run's own files say of it.
type runSummary struct {
	Path        string  `json:"path"`
	Name        string  `json:"name"`
	Scene       string  `json:"scene"` // last name of the capture's folder
	Preset      string  `json:"preset,omitempty"`
	Device      string  `json:"device,omitempty"`
	Resolution  string  `json:"resolution,omitempty"`
	Photos      int     `json:"photos,omitempty"`
	Step        int     `json:"step"`
	Total       int     `json:"total"`
	Splats      int     `json:"splats,omitempty"`
	PSNR        float64 `json:"psnr,omitempty"` // dB, mean of the held-out photos; 0: none were measured
	SSIM        float64 `json:"ssim,omitempty"`
	Seconds     float64 `json:"seconds,omitempty"` // of training
	DeviceBytes int64   `json:"device_bytes,omitempty"`
	ModelBytes  int64   `json:"model_bytes,omitempty"`
	Resumable   bool    `json:"resumable"`
	HasModel    bool    `json:"has_model"`
	Picture     int64   `json:"picture,omitempty"` // when its picture was made, seconds since 1970; 0: none
	Changed     int64   `json:"changed"`           // when its records were, likewise
}

// runsFor is how long a list of runs is good: pages ask every second.
const runsFor = 2 * time.Second

// forgetRuns has the list of runs made anew. d.mu is held.
func (d *Desk) forgetRuns() { d.listed = time.Time{} }

// runs lists the runs that were trained from the page, those in the root itself and those that were visited, newest
// first.
func (d *Desk) runs() []runSummary {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.listed) < runsFor {
		return d.known
	}
	found := map[string]bool{}
	for _, dir := range []string{d.root, d.data(runsFolder)} {
		entries, _ := os.ReadDir(dir) // a folder that cannot be read holds no run that could be
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); e.IsDir() && isRun(path) {
				found[path] = true
			}
		}
	}
	for path := range d.visited {
		if isRun(path) {
			found[path] = true
		}
	}
	list := make([]runSummary, 0, len(found))
	for path := range found {
		list = append(list, d.summarise(path))
	}
	slices.SortFunc(list, func(a, b runSummary) int {
		if a.Changed != b.Changed {
			return int(b.Changed - a.Changed)
		}
		return slices.Compare([]string{a.Path}, []string{b.Path})
	})
	d.known, d.listed = list, time.Now()
	return list
}

// readFile reads the JSON of a file as far as it fits v. What a run did not write yet is not known.
func readFile(path string, v any) (changed time.Time) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxRecord {
		return time.Time{}
	}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, v) != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// maxRecord bounds files that are read, in bytes.
const maxRecord = 64 << 20

// sceneOf is the capture that a run trains on. What the run was begun with says it before it has saved anything else:
// the record of its capture comes with its results, which a run that was killed lacks.
func sceneOf(dir string) (string, error) {
	var begun struct {
		Source captured.Source `json:"source"`
	}
	readFile(filepath.Join(dir, output.CheckpointFolder, output.BegunFile), &begun)
	if begun.Source.Scene != "" {
		return begun.Source.Scene, nil
	}
	record, err := captured.ReadRecord(dir)
	if err != nil {
		return "", err
	}
	if record == nil {
		return "", fault.Usagef("train it anew", "resume: %s does not say what it was trained on", filepath.Base(dir))
	}
	return record.Scene, nil
}

// summarise reads the records of a run.
func (d *Desk) summarise(dir string) runSummary {
	s := runSummary{Path: d.relative(dir), Name: filepath.Base(dir)}
	var begun struct {
		Preset string `json:"preset"`
		Config struct {
			Iterations int `json:"iterations"`
		} `json:"config"`
	}
	changed := readFile(filepath.Join(dir, output.CheckpointFolder, output.BegunFile), &begun)
	s.Preset, s.Total = begun.Preset, begun.Config.Iterations
	var st output.Stats
	if at := readFile(filepath.Join(dir, output.StatsFile), &st); !at.IsZero() {
		changed = at
		s.Step, s.Total, s.Splats, s.Device, s.Resolution = st.Step, st.Config.Iterations, st.Splats, st.Device,
			st.Resolution
		s.Photos, s.Seconds, s.DeviceBytes = st.TrainImages+st.TestImages, st.TrainSeconds, st.PeakDeviceBytes
		if st.Scores != nil {
			s.PSNR, s.SSIM = st.PSNR, st.SSIM
		}
	}
	if list, err := output.ListCheckpoints(filepath.Join(dir, output.CheckpointFolder)); err == nil {
		for _, c := range list {
			if c.Step > s.Step {
				s.Step, s.PSNR, s.SSIM = c.Step, 0, 0 // the scores are those of an earlier step
			}
		}
	}
	s.Resumable = begun.Config.Iterations > 0 && s.Step < s.Total
	if trained, err := sceneOf(dir); err == nil {
		s.Scene = filepath.Base(trained)
	} else {
		s.Resumable = false
	}
	if models := output.FormerModels(dir); len(models) > 0 {
		s.HasModel = true
		if info, err := os.Stat(filepath.Join(models[len(models)-1], output.ModelName)); err == nil {
			s.ModelBytes = info.Size()
		}
	}
	if _, at := pictureOf(dir); !at.IsZero() {
		s.Picture = at.Unix()
	}
	if !changed.IsZero() {
		s.Changed = changed.Unix()
	}
	return s
}

// curve is a run's course, for the page.
type curve struct {
	Steps  []int     `json:"steps"`
	Loss   []float64 `json:"loss"`
	PSNR   []float64 `json:"psnr"` // dB, of photos that were trained on
	Splats []int     `json:"splats"`
}

// mostPoints is about how many points a curve has.
const mostPoints = 200

// curveOf reads the course of a run from its log.
func curveOf(dir string) *curve {
	c := &curve{Steps: []int{}, Loss: []float64{}, PSNR: []float64{}, Splats: []int{}}
	f, err := os.Open(filepath.Join(dir, output.MetricsFile))
	if err != nil {
		return c // there is none yet
	}
	defer f.Close() // only read from
	for _, l := range meter.ReadSteps(f, mostPoints) {
		loss, psnr := float64(l.Loss), float64(l.PSNR)
		if loss-loss != 0 || psnr-psnr != 0 {
			continue
		}
		c.Steps, c.Splats = append(c.Steps, l.Step), append(c.Splats, l.Splats)
		c.Loss, c.PSNR = append(c.Loss, loss), append(c.PSNR, psnr)
	}
	return c
}
