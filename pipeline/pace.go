package pipeline

import (
	"slices"

	"vksplat/vk"
)

// Desktop drivers reset a device that is busy with one submit for too long. No submit should take more than this;
// nanoseconds.
const longestSubmit = 200e6

// banded are the passes that work on one band of a view at a time: more bands make them shorter. The others take their
// time from the number of splats or pixels alone, and stay far below the limit on any GPU.
var banded = map[string]bool{
	"count_tiles": true, "scan_tiles": true, "emit_isects": true, "rasterize": true, "rasterize_bwd": true,
	"reduce_slots": true,
}

// pace keeps submits short: it measures steps and says where to split them, and when a single pass is so long that the
// view needs more bands. What it decides changes no byte of the result.
type pace struct {
	off       bool // software Vulkan: nobody watches the CPU
	timed     int  // steps with timestamps
	since     int  // chances to time a step since the last one
	slow      int  // slow steps measured one after the other
	times     []vk.PassTime
	split     []int // ops after which a submit ends
	moreBands bool  // split alone cannot keep submits short
	undivided bool  // there was no memory for more bands
}

// How many of the first frame's steps have timestamps: one of so many. The first frame has every third step.
const (
	timedOneOf     = 21
	timedFirstOnes = 6
)

// due reports whether the first frame's next step should have timestamps: the first ones, and then some.
func (p *pace) due() bool {
	p.since++
	if p.timed >= timedFirstOnes && p.since < timedOneOf {
		return false
	}
	p.timed++
	p.since = 0
	return true
}

// observe takes in a finished step that had timestamps and reports whether the programs should be rebuilt. canBand says
// that the view can be cut into more bands.
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
	// One slow step may be somebody else's doing.
	p.slow++
	return p.slow >= 2 && p.plan(canBand)
}

// reset forgets what was measured: the list of passes is another one now.
func (p *pace) reset() { *p = pace{off: p.off, times: p.times[:0]} }

// anew lets the next steps be measured: they take another time than those before.
func (p *pace) anew() { p.timed, p.slow = 0, 0 }

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
