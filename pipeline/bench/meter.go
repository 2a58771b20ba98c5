package bench

import (
	"slices"
	"strings"
	"time"

	"vksplat/scene"
	"vksplat/vk"
)

// Meter takes the times of the steps of a round.
type Meter struct {
	steps   int
	began   time.Time
	waited  time.Duration // for the device, and with taking times
	passes  []passSeries
	timed   int // steps whose passes were timed
	visible []int
	isects  []int
	times   []vk.PassTime
}

// passSeries is one pass in the steps of a round.
type passSeries struct {
	name       string
	dispatches int
	ms         []float64
}

func newMeter(steps int) *Meter { return &Meter{steps: steps, began: time.Now()} }

// Wait notes that the host waited for the device.
func (m *Meter) Wait(d time.Duration) {
	if m != nil {
		m.waited += d
	}
}

// Observe takes in a finished step, whose view shows so many splats and (tile, splat) pairs.
func (m *Meter) Observe(prog *vk.Program, visible, isects int) {
	if m == nil {
		return
	}
	started := time.Now()
	m.take(prog, visible, isects)
	m.Wait(time.Since(started))
}

// take adds a step to the round.
func (m *Meter) take(prog *vk.Program, visible, isects int) {
	m.visible, m.isects = append(m.visible, visible), append(m.isects, isects)
	m.times = prog.Timings(m.times[:0])
	if len(m.times) == 0 {
		return
	}
	for i, label := range passLabels(m.times) {
		ms := float64(m.times[i].Nanoseconds) / 1e6
		at := slices.IndexFunc(m.passes, func(s passSeries) bool { return s.name == label })
		if at < 0 {
			at = len(m.passes)
			m.passes = append(m.passes, passSeries{name: label, ms: make([]float64, 0, m.steps)})
		}
		s := &m.passes[at]
		for len(s.ms) <= m.timed { // zero in steps that did without it
			s.ms, s.dispatches = append(s.ms, 0), 0
		}
		s.ms[m.timed] += ms
		s.dispatches++
	}
	m.timed++
}

// round sums the steps up.
func (m *Meter) round() Round {
	wall := time.Since(m.began)
	r := Round{WallSeconds: wall.Seconds(), HostSeconds: max(wall-m.waited, 0).Seconds(),
		Visible: scene.Median(m.visible), Isects: scene.Median(m.isects)}
	for _, s := range m.passes {
		mean := 0.0
		for _, ms := range s.ms {
			mean += ms / float64(m.timed)
		}
		r.Passes = append(r.Passes, PassSample{Name: s.name, MS: scene.Median(s.ms), MeanMS: mean,
			Dispatches: s.dispatches})
	}
	return r
}

// passLabels returns names that tell the two sorts of a step apart: kernels of one name before the first pass on isects
// sort by depth, those after it by tile.
func passLabels(times []vk.PassTime) []string {
	labels := make([]string, len(times))
	sorts := sortsDepth
	for i, t := range times {
		if t.Name == "count_tiles" || t.Name == "scan_tiles" {
			sorts = sortsTiles
		}
		labels[i] = t.Name
		if strings.HasPrefix(t.Name, "sort_") {
			labels[i] += sorts
		}
	}
	return labels
}

// What follows the names of the kernels that sort.
const (
	sortsDepth = " (depth)"
	sortsTiles = " (tiles)"
)
