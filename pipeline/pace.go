package pipeline

import (
	"slices"

	"vksplat/vk"
)

// longestSubmit is how long a submit should take at most, in nanoseconds: desktop drivers reset a device that is busy
// with one for too long.
const longestSubmit = 200e6

// banded are the passes that work on one band of a view at a time: more bands make them shorter. The time of the others
// depends on the number of splats or pixels alone, and is far below the limit on any GPU.
var banded = map[string]bool{
	"count_tiles": true, "scan_tiles": true, "emit_isects": true, "rasterize": true, "rasterize_bwd": true,
	"reduce_slots": true,
}

// pace keeps submits short: it measures steps and decides where to split them, and whether a single pass is so long
// that the view needs more bands. It changes no byte of the result.
type pace struct {
	off       bool // software Vulkan: no watchdog limits a submit
	timed     int  // steps with timestamps
	since     int  // steps that could have been timed since the last one that was
	slow      int  // slow steps measured one after the other
	times     []vk.PassTime
	split     []int // ops after which a submit ends
	moreBands bool  // split alone cannot keep submits short
	undivided bool  // there was no memory for more bands
}

// Of the first frame's steps the first timedFirstOnes have timestamps, then one of timedOneOf. The first frame has
// every third step.
const (
	timedOneOf     = 21
	timedFirstOnes = 6
)

// wantsTimes reports whether the first frame's next step should have timestamps: the first ones do, and then some.
func (p *pace) wantsTimes() bool {
	p.since++
	if p.timed >= timedFirstOnes && p.since < timedOneOf {
		return false
	}
	p.timed++
	p.since = 0
	return true
}

// observe reads the timestamps of a finished step and reports whether the programs should be rebuilt. canBand says that
// the view can be cut into more bands.
func (p *pace) observe(prog *vk.Program, canBand bool) bool {
	if p.off {
		return false
	}
	p.times = prog.Timings(p.times[:0])
	for i := range p.times {
		if p.times[i].Name == "await" { // another device's work
			p.times[i].Nanoseconds = 0
		}
	}
	if !p.tooLong() {
		p.slow = 0
		return false
	}
	// One slow step may be the fault of another program.
	p.slow++
	return p.slow >= 2 && p.plan(canBand)
}

// reset discards the measurements, which are of other passes.
func (p *pace) reset() { *p = pace{off: p.off, times: p.times[:0]} }

// measureAgain lets the next steps be measured: they take longer or shorter than those before.
func (p *pace) measureAgain() { p.timed, p.slow = 0, 0 }

// plan decides where to split steps that take as long as those measured, and reports whether that is new.
func (p *pace) plan(canBand bool) bool {
	split := vk.SplitPoints(p.times, longestSubmit*3/4)
	p.moreBands = false
	for _, t := range p.times {
		p.moreBands = p.moreBands || canBand && t.Nanoseconds > longestSubmit && banded[t.Name]
	}
	if !p.moreBands && slices.Equal(split, p.split) {
		return false
	}
	p.split = split
	return true
}

// tooLong reports whether a part between two splits is over the limit.
func (p *pace) tooLong() bool {
	var sum int64
	next := 0
	for i, t := range p.times {
		sum += t.Nanoseconds
		if sum > longestSubmit {
			return true
		}
		if next < len(p.split) && p.split[next] == i {
			sum = 0
			next++
		}
	}
	return false
}
