package pipeline

import (
	"vksplat/internal/philox"
	"vksplat/pipeline/photos"
)

// viewOrder chooses the view that a step trains on: all views once an epoch, in an order of its own. A view without
// pixels is replaced, in all its steps, by the view after it in the epoch's order. It depends on the seed and on which
// photos can be decoded, never on caches.
type viewOrder struct {
	seed   uint64
	n      int
	world  world // a step has a view for each rank: those of an epoch are dealt out one after the other
	bad    []bool
	nBad   int
	epochs [4]epochOrder // the last ones, by the last bits of their number
	// shuffle returns the views of an epoch in their order
	shuffle func(seed uint64, epoch, n int) []int
}

// epochOrder is the order of one epoch, from view to position and back.
type epochOrder struct {
	made     bool
	epoch    int
	order    []int // views
	position []int // of each view in order
}

func newViewOrder(seed uint64, n int, at world) viewOrder {
	return viewOrder{seed: seed, n: n, world: at, bad: make([]bool, n), shuffle: philox.ViewOrder}
}

// turn returns the number of a step's view among all views of the run.
func (o *viewOrder) turn(step int) int { return step*o.world.size + o.world.rank }

// epochSteps returns about how many steps an epoch has.
func (o *viewOrder) epochSteps() int { return max(1, o.n/o.world.size) }

// of returns the order of an epoch.
func (o *viewOrder) of(epoch int) *epochOrder {
	e := &o.epochs[epoch&3]
	if !e.made || e.epoch != epoch {
		e.made, e.epoch, e.order = true, epoch, o.shuffle(o.seed, epoch, o.n)
		if e.position == nil {
			e.position = make([]int, o.n)
		}
		for p, v := range e.order {
			e.position[v] = p
		}
	}
	return e
}

// at returns the view of a step.
func (o *viewOrder) at(step int) int {
	turn := o.turn(step)
	e, p := o.of(turn/o.n), turn%o.n
	for range o.n {
		if v := e.order[p]; !o.bad[v] {
			return v
		}
		if p++; p == o.n {
			p = 0
		}
	}
	return e.order[turn%o.n]
}

// nextUse returns the first step after step in which the device trains on view within the epoch of step and the two
// after it; else never. With one device it is always within the next epoch.
func (o *viewOrder) nextUse(view, step int) int {
	now, n := o.turn(step), o.world.size
	for epoch := now / o.n; epoch <= now/o.n+2; epoch++ {
		if turn := epoch*o.n + o.of(epoch).position[view]; turn > now && turn%n == o.world.rank {
			return turn / n
		}
	}
	return photos.Never
}

// drop notes that a view has no pixels and returns how many views have some.
func (o *viewOrder) drop(view int) (left int) {
	if !o.bad[view] {
		o.bad[view] = true
		o.nBad++
	}
	return o.n - o.nBad
}
