package bench

import (
	"slices"

	"vksplat/vk"
)

// PassTime is the device time of one pass of a training step, mean over the steps that were measured.
type PassTime struct {
	Name         string
	Milliseconds float64
}

// PassTimes sums the device times of the steps that had timestamps. It allocates nothing once it has seen every pass.
type PassTimes struct {
	n      int // steps
	sums   []vk.PassTime
	times  []vk.PassTime
	recent float64 // of a whole step, nanoseconds, mostly of the last steps that had timestamps
}

// recentWeight is that of the newest step in PassTimes.recent.
const recentWeight = 0.3

// Observe takes in a finished step that had timestamps.
func (p *PassTimes) Observe(prog *vk.Program) {
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

// StepSeconds returns the time of a step, mostly of the last ones that had timestamps; 0 where none had.
func (p *PassTimes) StepSeconds() float64 { return p.recent / 1e9 }

// List returns the mean times of the passes, in their order.
func (p *PassTimes) List() []PassTime {
	list := make([]PassTime, len(p.sums))
	for i, s := range p.sums {
		list[i] = PassTime{s.Name, float64(s.Nanoseconds) / 1e6 / float64(p.n)}
	}
	return list
}
