package bench

import (
	"slices"
	"strings"
	"time"

	"vksplat/scene"
	"vksplat/vk"
)

// PhotoCopy is the name of the pass that copies a step's photo to where the loss reads it, in a command buffer of its
// own.
const PhotoCopy = "photo copy"

// Meter takes the times of the steps of half a round.
type Meter struct {
	steps   int
	timed   bool
	began   time.Time
	wall    time.Duration
	waited  time.Duration // for the device, and with taking times
	passes  []passSeries
	sampled int // steps whose passes were timed
	visible []int
	isects  []int
	photos  int // bytes of all photos that were copied
	times   []vk.PassTime
}

// passSeries is one pass in the steps of half a round, whose sums these are.
type passSeries struct {
	name                 string
	dispatches, launches int
	nanoseconds          int64
}

type Step struct {
	Program         *vk.Program // that it ran as
	Visible, Isects int         // of its view
	PhotoBytes      int         // that were copied
	PhotoCopies     []vk.PassTime
}

func newMeter(steps int, timed bool) *Meter { return &Meter{steps: steps, timed: timed} }

// Timed reports whether steps should have timestamps. Without a meter they have none.
func (m *Meter) Timed() bool { return m != nil && m.timed }

// Start notes that the first step is about to be submitted, Stop that nothing is in flight any more.
func (m *Meter) Start() {
	if m != nil {
		m.began = time.Now()
	}
}

func (m *Meter) Stop() {
	if m != nil {
		m.wall = time.Since(m.began)
	}
}

// Wait notes that the host waited for the device.
func (m *Meter) Wait(d time.Duration) {
	if m != nil {
		m.waited += d
	}
}

// Observe takes in a finished step.
func (m *Meter) Observe(s Step) {
	if m == nil {
		return
	}
	started := time.Now()
	m.note(s)
	if m.timed {
		m.times = s.Program.Timings(append(m.times[:0], s.PhotoCopies...))
		if len(m.times) > len(s.PhotoCopies) { // else the device has no timestamps
			m.take(m.times)
		}
	}
	m.Wait(time.Since(started))
}

// note adds what a step worked on.
func (m *Meter) note(s Step) {
	m.visible, m.isects = append(m.visible, s.Visible), append(m.isects, s.Isects)
	m.photos += s.PhotoBytes
}

// take adds the passes of a step.
func (m *Meter) take(times []vk.PassTime) {
	for i, label := range passLabels(times) {
		at := slices.IndexFunc(m.passes, func(s passSeries) bool { return s.name == label })
		if at < 0 {
			at = len(m.passes)
			m.passes = append(m.passes, passSeries{name: label})
		}
		p := &m.passes[at]
		p.nanoseconds += times[i].Nanoseconds
		p.dispatches++
		if !times[i].Beside {
			p.launches++
		}
	}
	m.sampled++
}

// roundOf sums up steps with timestamps, and as many without.
func roundOf(timed, judge *Meter) Round {
	r := Round{Steps: judge.steps, WallSeconds: judge.wall.Seconds(),
		HostSeconds: max(judge.wall-judge.waited, 0).Seconds(), TimedSeconds: timed.wall.Seconds(),
		Visible: scene.Median(timed.visible), Isects: scene.Median(timed.isects),
		PhotoBytes: float64(timed.photos) / float64(max(len(timed.visible), 1))}
	n := float64(timed.sampled)
	for _, p := range timed.passes {
		r.Passes = append(r.Passes, PassSample{Name: p.name, MS: float64(p.nanoseconds) / 1e6 / n,
			Dispatches: float64(p.dispatches) / n, Launches: float64(p.launches) / n})
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
