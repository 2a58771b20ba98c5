package bench

import (
	"context"
	"math"

	"vksplat/scene"
)

type Options struct {
	Warm   int // steps before the first that counts
	Steps  int // of each half of a round: with timestamps, then without
	Rounds int
}

// Total returns the steps of all rounds together, with those before, and those that count pairs.
func (o Options) Total() int { return o.Warm + 2*o.Steps*o.Rounds + countedViews }

// countedViews is how many views are looked at pair by pair.
const countedViews = 8

type Measurement struct {
	Rounds []Round
	Counts Counts
}

// Round is what two runs of as many steps took, each one step after the other. The first run has timestamps between
// passes and says what passes take. Timestamps slow steps down, so the second has none: it says what a step takes.
type Round struct {
	Steps        int          // of each run
	WallSeconds  float64      // of the second, from before its first submit to nothing in flight, by the host's clock
	HostSeconds  float64      // of these, when the host did not wait for the device
	TimedSeconds float64      // of the first, likewise
	Passes       []PassSample // in the order of a step
	Visible      int          // median of the splats that a view shows
	Isects       int          // median of its (tile, splat) pairs
	PhotoBytes   float64      // mean of the bytes of a step's photo that are copied, as the passes' times are means
}

// PassSample is what one pass of a step took: means over the steps, so that passes add up to a step. Not every step has
// every pass.
type PassSample struct {
	Name       string
	MS         float64
	Dispatches float64
	Launches   float64 // dispatches that wait for the ones before them
}

// PassesMS returns what the passes of a step take together.
func (r *Round) PassesMS() (sum float64) {
	for _, p := range r.Passes {
		sum += p.MS
	}
	return sum
}

// WallMS returns what a step without timestamps takes, TimedMS one with.
func (r *Round) WallMS() float64  { return 1e3 * r.WallSeconds / float64(r.Steps) }
func (r *Round) TimedMS() float64 { return 1e3 * r.TimedSeconds / float64(r.Steps) }

// HostMS returns how long of a step the host did not wait for the device.
func (r *Round) HostMS() float64 { return 1e3 * r.HostSeconds / float64(r.Steps) }

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
	// times, between its Start and its Stop; they have timestamps if it is Timed, and none otherwise.
	Train(ctx context.Context, steps int, m *Meter) error
	// Counts says what steps work on. What rounds and CountPairs say is left out.
	Counts() Counts
	// CountPairs goes some steps that count pairs, and returns the sums over them.
	CountPairs(ctx context.Context, steps int) (Pairs, error)
}

// Pairs are sums over some steps, of what Counts has of a view.
type Pairs struct {
	Seen, Blended, SeenIsects, Isects, Visits, PatchesBwd, VisitsBwd float64

	Reported float64 // isects as steps report them: of a view in bands, those of the largest band
}

// Measure times the steps of s.
func Measure(ctx context.Context, s Subject, o Options) (m Measurement, err error) {
	err = s.Train(ctx, o.Warm, nil)
	for range o.Rounds {
		if err != nil {
			return m, err
		}
		timed, judge := newMeter(o.Steps, true), newMeter(o.Steps, false)
		if err = s.Train(ctx, o.Steps, timed); err == nil {
			err = s.Train(ctx, o.Steps, judge)
		}
		m.Rounds = append(m.Rounds, roundOf(timed, judge))
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
	var photos []float64
	for _, r := range rounds {
		visible, isects, photos = append(visible, r.Visible), append(isects, r.Isects), append(photos, r.PhotoBytes)
	}
	c.Visible, c.Isects = scene.Median(visible), scene.Median(isects)
	c.PhotoBytes = int(math.Round(scene.Median(photos)))
	sums, err := s.CountPairs(ctx, countedViews)
	if sums.Reported > 0 { // as many for each isect that was reported as in the views that were looked at
		each := float64(c.Isects) / sums.Reported
		c.SeenPairs, c.BlendedPairs = int(sums.Seen*each), int(sums.Blended*each)
		c.Visits, c.VisitsBwd = int(sums.Visits*each), int(sums.VisitsBwd*each)
		c.PatchesBwd = int(sums.PatchesBwd * each)
		c.SeenIsects, c.Isects = int(sums.SeenIsects*each), int(sums.Isects*each)
	}
	return c, err
}
