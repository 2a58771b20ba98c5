package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// shardSizes are numbers of splats of a shard, or of the whole: to start with and to end with, the configuration's
// ceiling, and that of the run so far.
type shardSizes struct{ splats, ends, most, ceiling int }

// asked returns the ceiling that a plan is to reach, 0 for any.
func (p shardSizes) asked() int {
	if p.ceiling > 0 {
		return p.ceiling
	}
	return p.most
}

// knownSizes are the sizes of the shards by a checkpoint. Nil lists say nothing.
type knownSizes struct{ splats, ceilings []int }

// divides reports whether the ceilings add up to one of the whole.
func (k knownSizes) divides(ceiling int) bool {
	return k.ceilings != nil && ceiling > 0 && sum(k.ceilings) == ceiling
}

// holding raises ceilings of shards to their splats, at the cost of shards that have room to spare.
func holding(splats, ceilings []int) (list []int) {
	over := 0
	for i, n := range splats {
		list = append(list, max(n, ceilings[i]))
		over += list[i] - ceilings[i]
	}
	for i, n := range splats {
		less := min(over, list[i]-n)
		list[i], over = list[i]-less, over-less
	}
	return list
}

// divided returns the sizes of n shards; divide divides a number among them.
func (whole shardSizes) divided(n int, known knownSizes, divide func(total int) []int) []shardSizes {
	list := make([]shardSizes, n)
	splats, ends, most, ceilings := divide(whole.splats), divide(whole.ends), divide(whole.most), divide(whole.ceiling)
	if known.splats != nil {
		splats = known.splats
		if whole.most > 0 {
			most = holding(splats, most)
		}
		if whole.ceiling > 0 {
			ceilings = holding(splats, ceilings)
		}
	}
	if known.divides(whole.ceiling) {
		ceilings = known.ceilings
	}
	for i := range list {
		list[i] = shardSizes{splats[i], ends[i], most[i], ceilings[i]}
	}
	return list
}

// equally divides a number among n devices.
func equally(n int) func(total int) []int {
	return func(total int) (list []int) {
		for i := range n {
			list = append(list, world{i, n}.part(total))
		}
		return list
	}
}

// planShards plans the memory of each device, and returns the sizes of their shards: equal or, if one device has no
// room for that, as equal as the memory of each allows.
func planShards(devices []*Device, cams []scene.Camera, splats int, known knownSizes, cfg recipe.Config,
	o TrainerOptions) ([]*Plan, []shardSizes, error) {
	n, least := len(devices), splats
	if cfg.Splats > 0 {
		least = min(least, cfg.Splats) // a shard of no splats would have no final size
	}
	if n > 1 && least < n {
		return nil, nil, fmt.Errorf("plan training: %w: %d splats for %d devices", errFewSplats, least, n)
	}
	whole := shardSizes{splats, cfg.Splats, cfg.MaxSplats, o.Ceiling}
	list := whole.divided(n, known, equally(n))
	plans, short, err := planSizes(devices, cams, list, cfg, o)
	if n == 1 || !short {
		return plans, list, err
	}
	if known.splats != nil { // of other devices, or of these in another order
		better, equal, betterErr := planShards(devices, cams, splats, knownSizes{}, cfg, o)
		if betterErr == nil && (err != nil || ceilingOf(better) >= whole.asked()) {
			return better, equal, nil
		}
		return plans, list, err
	}
	// the most that each device has room for, at the cost of cached photos
	room := make([]int, n)
	for i, d := range devices {
		one := shardSizes{1, min(1, cfg.Splats), cfg.MaxSplats, o.Ceiling}
		if plan, err := d.planShard(world{i, n}, cams, one, cfg, o); err == nil {
			room[i] = plan.Ceiling
		}
	}
	unequal := whole.divided(n, known, func(total int) []int { return evenSizes(total, room) })
	better, _, betterErr := planSizes(devices, cams, unequal, cfg, o)
	start, ends := 0, 0
	for _, p := range unequal {
		start, ends = start+p.splats, ends+p.ends
	}
	if betterErr != nil || start < splats || ends < cfg.Splats { // no way of dealing them out helps
		return plans, list, err
	}
	return better, unequal, nil
}

func ceilingOf(plans []*Plan) (n int) {
	for _, p := range plans {
		n += p.Ceiling
	}
	return n
}

// planSizes plans devices by their portions; short says that one has too little memory for its own.
func planSizes(devices []*Device, cams []scene.Camera, list []shardSizes, cfg recipe.Config,
	o TrainerOptions) (plans []*Plan, short bool, err error) {
	for i, d := range devices {
		plan, err := d.planShard(world{i, len(devices)}, cams, list[i], cfg, o)
		if err != nil {
			return nil, errors.Is(err, ErrTooSmall), err
		}
		short = short || plan.Ceiling < list[i].asked()
		plans = append(plans, plan)
	}
	return plans, short, nil
}

// shardSplats returns which splats belong to the shard of a rank. They are dealt out one by one, each to the shard that
// is farthest behind its size, so that each has splats from everywhere in the scene, and views are work for all.
func shardSplats(sizes []int, rank int) (ids []int) {
	total := sum(sizes)
	given := make([]int, len(sizes))
	for i := range total {
		to, most := 0, int64(0)
		for k, n := range sizes {
			if behind := int64(n)*int64(i+1) - int64(given[k])*int64(total); behind > most {
				to, most = k, behind
			}
		}
		if given[to]++; to == rank {
			ids = append(ids, i)
		}
	}
	return ids
}
