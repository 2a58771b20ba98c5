package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// portion is what a device has of what is counted for all: the splats to start with and to end with, the
// configuration's ceiling, and that of the run so far.
type portion struct{ splats, ends, most, ceiling int }

// asked is the ceiling that a plan is to reach, 0 for any.
func (p portion) asked() int {
	if p.ceiling > 0 {
		return p.ceiling
	}
	return p.most
}

// deal is how the splats of a run are dealt out to its devices where that is known: by a checkpoint of as many. Nil
// lists say nothing.
type deal struct{ splats, ceilings []int }

// divides reports whether d says what of a ceiling each device has.
func (d deal) divides(ceiling int) bool {
	return d.ceilings != nil && ceiling > 0 && sum(d.ceilings) == ceiling
}

// holding raises parts of a ceiling to the splats that the devices have, at the cost of those that have room to spare.
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

// portions deals out a run's splats by a function that divides a number among devices.
func (whole portion) portions(n int, known deal, divide func(total int) []int) []portion {
	list := make([]portion, n)
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
		list[i] = portion{splats[i], ends[i], most[i], ceilings[i]}
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

// planTeam plans what training takes of each device, and returns what of the splats each has: equal shares or, where
// one has no room for its own, as equal ones as the memory of each allows.
func planTeam(devices []*Device, cams []scene.Camera, splats int, known deal, cfg recipe.Config,
	o TrainerOptions) ([]*Plan, []portion, error) {
	n, least := len(devices), splats
	if cfg.Splats > 0 {
		least = min(least, cfg.Splats) // a share that ends with none would be one without an end
	}
	if n > 1 && least < n {
		return nil, nil, fmt.Errorf("plan training: %w: %d splats for %d devices", errFewSplats, least, n)
	}
	whole := portion{splats, cfg.Splats, cfg.MaxSplats, o.Ceiling}
	list := whole.portions(n, known, equally(n))
	plans, short, err := planPortions(devices, cams, list, cfg, o)
	if n == 1 || !short {
		return plans, list, err
	}
	if known.splats != nil { // of other devices, or of these in another order
		better, anew, betterErr := planTeam(devices, cams, splats, deal{}, cfg, o)
		if betterErr == nil && (err != nil || ceilingOf(better) >= whole.asked()) {
			return better, anew, nil
		}
		return plans, list, err
	}
	// The most that each device has room for, at the cost of cached photos.
	room := make([]int, n)
	for i, d := range devices {
		one := portion{1, min(1, cfg.Splats), cfg.MaxSplats, o.Ceiling}
		if plan, err := d.planShare(world{i, n}, cams, one, cfg, o); err == nil {
			room[i] = plan.Ceiling
		}
	}
	unequal := whole.portions(n, known, func(total int) []int { return dues(total, room) })
	better, _, betterErr := planPortions(devices, cams, unequal, cfg, o)
	start, ends := 0, 0
	for _, p := range unequal {
		start, ends = start+p.splats, ends+p.ends
	}
	if betterErr != nil || start < splats || ends < cfg.Splats { // no way of dealing them out helps
		return plans, list, err
	}
	return better, unequal, nil
}

// ceilingOf is how many splats devices may have together.
func ceilingOf(plans []*Plan) (n int) {
	for _, p := range plans {
		n += p.Ceiling
	}
	return n
}

// planPortions plans devices by their portions; short says that one has too little memory for its own.
func planPortions(devices []*Device, cams []scene.Camera, list []portion, cfg recipe.Config,
	o TrainerOptions) (plans []*Plan, short bool, err error) {
	for i, d := range devices {
		plan, err := d.planShare(world{i, len(devices)}, cams, list[i], cfg, o)
		if err != nil {
			return nil, errors.Is(err, ErrTooSmall), err
		}
		short = short || plan.Ceiling < list[i].asked()
		plans = append(plans, plan)
	}
	return plans, short, nil
}

// dealt returns which splats are a device's where each has a share of them. They are dealt out one by one, each to the
// device that is farthest behind its share, so that each has splats from everywhere in the scene, and views are work
// for all.
func dealt(shares []int, self int) (ids []int) {
	total := sum(shares)
	given := make([]int, len(shares))
	for i := range total {
		to, most := 0, int64(0)
		for k, n := range shares {
			if behind := int64(n)*int64(i+1) - int64(given[k])*int64(total); behind > most {
				to, most = k, behind
			}
		}
		if given[to]++; to == self {
			ids = append(ids, i)
		}
	}
	return ids
}
