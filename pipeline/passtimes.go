package pipeline

import (
	"slices"

	"vksplat/vk"
)

// PassTime is the device time of one pass of a training step, mean over the steps that were measured.
type PassTime struct {
	Name         string
	Milliseconds float64
}

// passTimes sums the device times of the steps that had timestamps. It allocates nothing once it has seen every pass.
type passTimes struct {
	n      int // steps
	sums   []vk.PassTime
	times  []vk.PassTime
	recent float64 // of a whole step, nanoseconds, mostly of the last steps that had timestamps
}

// recentWeight is that of the newest step in passTimes.recent.
const recentWeight = 0.3

// observe takes in a finished step that had timestamps.
func (p *passTimes) observe(prog *vk.Program) {
	p.times = prog.Timings(p.times[:0])
	if len(p.times) == 0 {
		return
	}
	p.n++
	var step int64
	for _, t := range p.times {
		step += t.Nanoseconds
		i := slices.IndexFunc(p.sums, func(s vk.PassTime) bool { return s.Name == t.Name })
		if i < 0 {
			i = len(p.sums)
			p.sums = append(p.sums, vk.PassTime{Name: t.Name})
		}
		p.sums[i].Nanoseconds += t.Nanoseconds
	}
	if p.n == 1 {
		p.recent = float64(step)
	}
	p.recent += recentWeight * (float64(step) - p.recent)
}

// StepSeconds returns the device time that a step takes now, by the last ones that had timestamps; 0 where the device has none. Of several devices it is the
// first one's.
func (t *Trainer) StepSeconds() float64 { return t.passes.recent / 1e9 }

// PassTimes returns where a step's device time goes, in the order of the passes. Passes of one kernel are taken together. It is empty where the device
// has no timestamps.
func (t *Trainer) PassTimes() []PassTime {
	list := make([]PassTime, len(t.passes.sums))
	for i, s := range t.passes.sums {
		list[i] = PassTime{s.Name, float64(s.Nanoseconds) / 1e6 / float64(t.passes.n)}
	}
	return list
}
