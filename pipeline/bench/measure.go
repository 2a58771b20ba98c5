package bench

import (
	"context"

	"vksplat/scene"
)

// Options say how Measure measures.
type Options struct {
	Warm   int // steps before the first that counts
	Steps  int // that count, in each round
	Rounds int
}

// Total returns the steps of all rounds together, with those before, and those that count pairs.
func (o Options) Total() int { return o.Warm + o.Steps*o.Rounds + countedViews }

// countedViews is how many views are looked at pair by pair.
const countedViews = 8

// Measurement is what Measure finds.
type Measurement struct {
	Rounds []Round
	Counts Counts
}

// Round is what some steps took, one after the other. Medians are over its steps.
type Round struct {
	WallSeconds float64      // from before the first is submitted to nothing that is in flight, as the host saw it
	HostSeconds float64      // of these, when the host did not wait for the device
	Passes      []PassSample // in the order of a step
	Visible     int          // median of the splats that a view shows
	Isects      int          // median of its (tile, splat) pairs
}

// PassSample is what one pass of a step took.
type PassSample struct {
	Name       string
	MS         float64 // median
	MeanMS     float64
	Dispatches int // of a step
}

// MeanMS returns the mean of the sum of a step's passes.
func (r *Round) MeanMS() (sum float64) {
	for _, p := range r.Passes {
		sum += p.MeanMS
	}
	return sum
}

// Pass returns the pass of a name, all zero where there is none.
func (r *Round) Pass(name string) PassSample {
	for _, p := range r.Passes {
		if p.Name == name {
			return p
		}
	}
	return PassSample{}
}

// Subject is a run whose model is held: every step does the same work.
type Subject interface {
	// Train goes some steps. Nothing is in flight before them and after them. A meter, unless it is nil, takes their
	// times; then some steps have timestamps, the first one in any case.
	Train(ctx context.Context, steps int, m *Meter) error
	// Counts says what steps work on. What rounds and CountPairs say is left out.
	Counts() Counts
	// CountPairs goes some steps that count pairs, and returns the sums over them.
	CountPairs(ctx context.Context, steps int) (Pairs, error)
}

// Pairs are sums over some steps. The first four are those of Counts.
type Pairs struct {
	Seen, Blended, SeenIsects, Isects float64

	Reported float64 // isects as steps report them: of a view in bands, those of the largest band
}

// Measure times the steps of s.
func Measure(ctx context.Context, s Subject, o Options) (m Measurement, err error) {
	err = s.Train(ctx, o.Warm, nil)
	for range o.Rounds {
		if err != nil {
			return m, err
		}
		meter := newMeter(o.Steps)
		r := Round{}
		if err = s.Train(ctx, o.Steps, meter); err == nil {
			r = meter.round()
		}
		m.Rounds = append(m.Rounds, r)
	}
	if err != nil {
		return m, err
	}
	m.Counts, err = count(ctx, s, m.Rounds)
	return m, err
}

// count takes the counts of the rounds, and those of pairs from a few more steps that look for them.
func count(ctx context.Context, s Subject, rounds []Round) (Counts, error) {
	c := s.Counts()
	var visible, isects []int
	for _, r := range rounds {
		visible, isects = append(visible, r.Visible), append(isects, r.Isects)
	}
	c.Visible, c.Isects = scene.Median(visible), scene.Median(isects)
	sums, err := s.CountPairs(ctx, countedViews)
	if sums.Reported > 0 { // as many for each isect that was reported as in the views that were looked at
		each := float64(c.Isects) / sums.Reported
		c.SeenPairs, c.BlendedPairs = int(sums.Seen*each), int(sums.Blended*each)
		c.SeenIsects, c.Isects = int(sums.SeenIsects*each), int(sums.Isects*each)
	}
	return c, err
}
