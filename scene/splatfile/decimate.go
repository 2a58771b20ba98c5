package splatfile

import (
	"errors"
	"fmt"
	"slices"

	"vksplat/scene"
	"vksplat/scene/decimate"
)

const (
	// decimateBlock is how many splats are looked at together: a splat's neighbours are those of its block.
	decimateBlock = 1 << 15
	// decimateShare is the most that goes in one round. Pairs of a round are found before any is merged, so the dear
	// ones are left for a round that knows what the cheap ones became.
	decimateShare = 0.25
)

// Decimate merges splats that look alike until n are left: see package decimate. Merges count by their error in
// pictures from around the middle of the scene: what is far costs less. A model that does not fit into memory goes
// through temporary files, twice while it is made. Stop, which may be nil, is asked now and then; its error ends the
// work. Close frees what is returned.
func Decimate(model Source, n int, tempDir string, stop func() error) (Gatherer, error) {
	info := model.Info()
	if n < 1 || n >= info.N {
		return nil, fmt.Errorf("splatfile: decimate: %d splats are to become %d", info.N, n)
	}
	now, free, err := gatherable(model, tempDir)
	if err != nil {
		return nil, err
	}
	for shift := 0; ; shift++ {
		r, err := newRound(now, n, shift, stop)
		if err != nil {
			return nil, errors.Join(err, free())
		}
		next, freeNext, err := gatherable(r, tempDir)
		if err = errors.Join(err, free()); err != nil {
			return nil, err
		}
		now, free = next, freeNext
		if now.Info().N == n {
			return &owned{now, free}, nil
		}
	}
}

// owned is a model that is freed when it is closed.
type owned struct {
	Gatherer
	free func() error
}

func (o *owned) Close() error { return o.free() }

// round is a model with some pairs of splats merged. Its splats follow a Z-order curve.
type round struct {
	from   Gatherer
	info   Info
	stop   func() error // asked before each block; nil: never
	order  []uint32     // splats of from
	blocks []int        // where each begins, and the end
	// by place in order: how far behind is what is merged with it; -1: merged with one before; 0: none
	partner []int32
}

// newRound chooses the pairs. Shift is the number of the round: blocks begin elsewhere in odd ones, so that splats on
// both sides of a border meet.
func newRound(from Gatherer, n, shift int, stop func() error) (*round, error) {
	r := &round{from: from, info: from.Info(), stop: stop}
	var err error
	if r.order, err = mortonOrder(from); err != nil {
		return nil, err
	}
	r.cut(shift%2 == 1)
	r.partner = make([]int32, len(r.order))
	reach, err := newReach(from)
	if err != nil {
		return nil, err
	}
	costs := make([]float32, 0, len(r.order)/2)
	cost := make([]float32, len(r.order)) // by the place of the first of a pair
	err = r.each(func(first int, block *scene.Splats) error {
		for i := range block.N {
			if err := broken(block, i); err != nil {
				return unwritable(int(r.order[first+i]), err)
			}
		}
		for _, p := range decimate.Pairs(block) {
			at := first + int(p.A)
			cost[at] = float32(float64(p.Cost) * reach.share(block.Means[3*p.A:3*p.A+3]))
			r.partner[at], r.partner[first+int(p.B)] = int32(p.B-p.A), -1
			costs = append(costs, cost[at])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(costs)
	merges := min(len(r.order)-n, max(1, int(decimateShare*float64(len(r.order)))), len(costs))
	r.keep(cost, costs[merges-1], merges)
	r.info.N = len(r.order) - merges
	r.info.Format, r.info.Notes = "", nil
	return r, nil
}

// cut divides the order into blocks of about the same size.
func (r *round) cut(between bool) {
	n := len(r.order)
	parts := max(1, n/decimateBlock)
	for i := range parts {
		r.blocks = append(r.blocks, n*i/parts)
	}
	if between && parts > 1 {
		for i := range r.blocks[1:] {
			r.blocks[i+1] -= n / parts / 2
		}
	}
	r.blocks = append(r.blocks, n)
}

// keep leaves the cheapest pairs, merges of them, given the cost of the dearest of these. Of equal ones the first stay.
func (r *round) keep(cost []float32, dearest float32, merges int) {
	ties := merges
	for at, d := range r.partner {
		if d > 0 && cost[at] < dearest {
			ties--
		}
	}
	for at, d := range r.partner {
		if d <= 0 || cost[at] < dearest {
			continue
		}
		if cost[at] == dearest && ties > 0 {
			ties--
			continue
		}
		r.partner[at], r.partner[at+int(d)] = 0, 0
	}
}

// each reads the blocks. First is the place of a block's first splat in the order.
func (r *round) each(do func(first int, block *scene.Splats) error) error {
	for i, first := range r.blocks[:len(r.blocks)-1] {
		if r.stop != nil {
			if err := r.stop(); err != nil {
				return err
			}
		}
		ids := r.order[first:r.blocks[i+1]]
		block := scene.NewSplats(len(ids), r.info.Degree)
		if err := r.from.Gather(ids, block); err != nil {
			return err
		}
		if err := do(first, block); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) Info() Info   { return r.info }
func (r *round) Close() error { return nil }

func (r *round) Read(put func(piece *scene.Splats) error) error {
	return r.each(func(first int, block *scene.Splats) error {
		stay := 0
		for i := range block.N {
			switch d := r.partner[first+i]; {
			case d < 0:
				continue
			case d > 0: // what stands at stay has been read, or is i
				decimate.Merge(block, i, i+int(d), block, stay)
			case stay < i:
				copySplats(block, stay, block, i, 1)
			}
			stay++
		}
		for at := 0; at < stay; at += PieceSplats {
			if err := put(block.Slice(at, min(at+PieceSplats, stay))); err != nil {
				return err
			}
		}
		return nil
	})
}

// reach says how large a thing looks, by its place, to cameras in or around the middle of a scene: see dropSurplus.
type reach struct {
	middle [3]float64
	near   float64 // squared
}

func newReach(model Source) (*reach, error) {
	means, err := readMeans(model)
	if err != nil {
		return nil, err
	}
	return reachOf(len(means)/3, means), nil
}

// reachOf takes positions of n splats, [n*3].
func reachOf(n int, means []float32) *reach {
	r := &reach{}
	for k := range r.middle {
		var at []float64
		for i := 0; i < n; i += stride(n) {
			at = append(at, float64(means[3*i+k]))
		}
		r.middle[k] = scene.Median(at)
	}
	var sample []float64
	for i := 0; i < n; i += stride(n) {
		sample = append(sample, r.distance2(means[3*i:3*i+3]))
	}
	r.near = scene.Median(sample)
	return r
}

func (r *reach) distance2(at []float32) (d2 float64) {
	for k := range r.middle {
		d := float64(at[k]) - r.middle[k]
		d2 += d * d
	}
	return d2
}

// share is about the share of a picture that an area there fills, of that in the middle.
func (r *reach) share(at []float32) float64 {
	if r.near == 0 { // all splats in one place
		return 1
	}
	return r.near / (r.distance2(at) + r.near)
}
