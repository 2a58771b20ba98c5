package pipeline

import "vksplat/vk"

// Desktop drivers reset a device that is busy with one submit for too long. No submit should take more than this; nanoseconds.
const longestSubmit = 200e6

// pace keeps submits short: it measures steps and says where to split them, and when a single pass is so long that the view needs more bands. What it
// decides changes no byte of the result.
type pace struct {
	steps     int
	times     []vk.PassTime
	split     []int // ops after which a submit ends
	longest   int64 // of the parts that split makes, when it was made
	moreBands bool  // split alone cannot keep submits short
}

// observe takes in a finished step and reports whether the programs should be rebuilt. Every early step is measured, later ones now and then.
func (p *pace) observe(prog *vk.Program) bool {
	p.steps++
	if p.steps > 16 && p.steps%64 != 0 {
		return false
	}
	p.times = prog.Timings(p.times[:0])
	if !p.tooLong() {
		return false
	}
	split := vk.SplitPoints(p.times, longestSubmit*3/4)
	p.moreBands = false
	for _, t := range p.times {
		p.moreBands = p.moreBands || t.Nanoseconds > longestSubmit
	}
	if !p.moreBands && equal(split, p.split) {
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

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
