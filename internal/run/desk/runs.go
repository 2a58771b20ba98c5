package desk

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
)

// runSummary describes a run by its own files.
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

const (
	runsFor      = 2 * time.Second        // a list of runs is good: pages ask every second
	runsPatience = 300 * time.Millisecond // that pages wait for a newer one
)

type runList struct {
	places
	summarise func(dir string) runSummary // of a run's records; tests have slow ones

	mu      sync.Mutex      // never held while a disk is read
	visited map[string]bool // folders of runs
	known   []runSummary    // nil: nothing was read yet
	read    time.Time       // when known was
	reading chan struct{}   // closed once a newer list is known; nil: none is read
	changed bool            // since reading began
}

// forget has the list read again.
func (l *runList) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read, l.changed = time.Time{}, true
}

func (l *runList) visit(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.visited[dir] {
		l.visited[dir] = true
		l.read, l.changed = time.Time{}, true
	}
}

// all lists the runs that were trained from the page, those in the root itself and those that were visited, newest
// first. Where a disk is slow, it is an older list.
func (l *runList) all() []runSummary {
	l.mu.Lock()
	if l.reading == nil && time.Since(l.read) >= runsFor {
		l.reading, l.changed = make(chan struct{}), false
		go l.refresh(slices.Collect(maps.Keys(l.visited)), l.reading)
	}
	reading := l.reading
	l.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-time.After(runsPatience):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

func (l *runList) refresh(visited []string, over chan struct{}) {
	paths := slices.DeleteFunc(visited, func(dir string) bool { return !isRun(dir) })
	folders := []string{l.root}
	if dir, err := l.kept(runsFolder); err == nil {
		folders = append(folders, dir)
	}
	for _, dir := range folders {
		entries, _ := os.ReadDir(dir) // a folder that cannot be read holds no run that could be
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); e.IsDir() && isRun(path) {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	list := []runSummary{}
	for _, path := range slices.Compact(paths) {
		list = append(list, l.summarise(path))
	}
	slices.SortStableFunc(list, func(a, b runSummary) int { return cmp.Compare(b.Changed, a.Changed) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.reading = list, nil
	if !l.changed {
		l.read = time.Now()
	}
	close(over)
}

// readRecord reads the JSON of a file as far as it fits v. What a run did not write yet is not known.
func (p places) readRecord(path string, v any) (changed time.Time) {
	path, err := p.file(path)
	if err != nil {
		return time.Time{}
	}
	st, err := os.Stat(path)
	if err != nil || strictjson.ReadFile(path, v) != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// begunRecord is what a run was begun with, which is written before its first step.
type begunRecord struct {
	Preset string `json:"preset"`
	Config struct {
		Iterations int `json:"iterations"`
	} `json:"config"`
	Source captured.Source `json:"source"`
}

func (p places) readBegun(dir string) (b begunRecord, changed time.Time) {
	changed = p.readRecord(filepath.Join(dir, output.CheckpointFolder, output.BegunFile), &b)
	return b, changed
}

// endedEarly reports whether a time limit ended a training.
func (p places) endedEarly(j *job) bool {
	var st output.Stats
	if dir, err := p.absolute(j.Made); err == nil {
		p.readRecord(filepath.Join(dir, output.StatsFile), &st)
	}
	return st.Interrupted
}

func (p places) summariseRun(dir string) runSummary {
	s := runSummary{Path: p.relative(dir), Name: filepath.Base(dir)}
	begun, changed := p.readBegun(dir)
	if begun.Source.Scene != "" {
		s.Scene = filepath.Base(begun.Source.Scene)
	}
	s.Preset, s.Total = begun.Preset, begun.Config.Iterations
	var st output.Stats
	if at := p.readRecord(filepath.Join(dir, output.StatsFile), &st); !at.IsZero() {
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
	s.Resumable = begun.Source.Scene != "" && s.Step < s.Total
	if models := output.FormerModels(dir); len(models) > 0 {
		s.HasModel = true
		if info, err := os.Stat(models[len(models)-1]); err == nil {
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
func (p places) curveOf(dir string) *curve {
	c := &curve{Steps: []int{}, Loss: []float64{}, PSNR: []float64{}, Splats: []int{}}
	path, err := p.file(filepath.Join(dir, output.NextFolder, output.MetricsFile)) // of a run that goes on
	if err != nil {
		path, err = p.file(filepath.Join(dir, output.MetricsFile))
	}
	if err != nil {
		return c // there is none yet
	}
	f, err := os.Open(path)
	if err != nil {
		return c // it has gone
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
