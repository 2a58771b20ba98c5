package pipeline

import (
	"errors"
	"fmt"
	"math"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// memory fits the buffers for splats and (tile, splat) pairs to the device's budget.
type memory struct {
	setup     *setup
	programs  *programs
	isectPlan int // pairs that were planned (Plan.Isects); 0: there is no plan
	isectMost int // pairs just below a number that did not fit; 0: all have fit
}

const (
	// minIsects is the fewest (tile, splat) pairs that a band has room for.
	minIsects = 1 << 14
	// moreIsects is how many pairs buffers grow by beyond the need, about 8 MB. Growth stops the queue.
	moreIsects = 1 << 17
)

// firstIsects returns the number of pairs to start with for n splats, no more than were planned.
func (m *memory) firstIsects(n int) int {
	if m.isectPlan > 0 {
		return min(m.setup.firstIsects(n), m.isectPlan)
	}
	return m.setup.firstIsects(n)
}

// isectLimit returns how many pairs the device can hold in a number of bands: by what one binding spans, by what the
// budget leaves once the pool is emptied, and by isectMost. A step in bands keeps gradients from band to band, so that
// fewer pairs fit than without.
func (m *memory) isectLimit(bands int) int {
	return layout.MostBucket * largestThat(m.isectBound()/layout.MostBucket,
		func(buckets int) bool { return m.isectsFit(buckets*layout.MostBucket, bands) })
}

// isectBound returns an upper bound of isectLimit.
func (m *memory) isectBound() int {
	most := int(min(m.setup.isectSpan(), 1<<31-1, m.setup.dev.Budget()/40))
	if m.isectMost > 0 {
		most = min(most, m.isectMost)
	}
	return most
}

// isectsFit reports whether the budget has room for n pairs, at most isectBound, once the pool is emptied.
func (m *memory) isectsFit(n, bands int) bool {
	model := m.setup.model
	regions, err := m.setup.scratchRegions(model.units(model.capacity()), n, bands)
	return err == nil && m.programs.pool.Fits(regions)
}

// fewerIsects returns n or, where these do not fit, as many as do, in whole buckets.
func (m *memory) fewerIsects(n int) int {
	if n <= m.isectBound() && m.isectsFit(n, m.setup.bands) {
		return n &^ (layout.MostBucket - 1)
	}
	return min(n, m.isectLimit(m.setup.bands)) &^ (layout.MostBucket - 1)
}

// fitIsects sets the capacity to n pairs, or to as many as fit; ok is false if none do.
func (m *memory) fitIsects(n int) (ok bool) {
	m.setup.isectCapacity = m.fewerIsects(n)
	return m.setup.isectCapacity > 0
}

// roomForBands reports whether there is room for any view, if need be in bands.
func (m *memory) roomForBands() bool { return m.isectLimit(2) >= minIsects }

// growIsects makes room for n pairs in a band, and for some more: by larger buffers or, where those do not fit, by as
// many bands as necessary.
func (m *memory) growIsects(n uint32, more int) error {
	s := m.setup
	want := min(int(n)+more+layout.MostBucket-1, 1<<31-1) &^ (layout.MostBucket - 1)
	limit := m.fewerIsects(want)
	if limit >= int(n) {
		s.isectCapacity = max(limit, s.isectCapacity)
		return m.programs.free()
	}
	if s.bands >= s.mostBands() {
		return fmt.Errorf("grow isects: %w: one row of tiles needs %d (tile, splat) pairs, %d fit", ErrTooSmall, n,
			limit)
	}
	s.bands = min(max(s.bands+1, moreBands(s.bands, int(n), limit)), s.mostBands())
	if !m.fitIsects(limit) {
		return fmt.Errorf("grow isects: %w: nothing is left for views", ErrTooSmall)
	}
	return m.programs.free()
}

// moreBands returns how many bands bring a band's pairs from n to the limit, with a margin: pairs are not spread
// evenly.
func moreBands(bands, n, limit int) int {
	if limit <= 0 {
		return math.MaxInt
	}
	return int(math.Ceil(float64(bands) * float64(n) * 1.125 / float64(limit)))
}

// growModel makes room for n splats, and for more if that fits: every growth stops the queue. Scratch memory is freed
// first.
func (m *memory) growModel(n, ceiling int) error {
	if err := m.programs.free(); err != nil {
		return err
	}
	model := m.setup.model
	err := model.extend(min(ceiling, model.ample(n, model.growBy(m.setup.strategy.knowsFinalSize()))), false)
	if errors.Is(err, vk.ErrOutOfMemory) {
		err = model.reserve(n)
	}
	if err == nil && !m.fitIsects(m.setup.isectCapacity) {
		err = fmt.Errorf("grow model: %w: %d splats leave no memory for their views", ErrTooSmall, n)
	}
	return err
}

// divide doubles the number of bands; divided is false where too few pairs fit then. Nothing may be in flight.
func (m *memory) divide() (divided bool, err error) {
	m.programs.beforeAlloc()
	s := m.setup
	bands := min(2*s.bands, s.mostBands())
	limit := m.isectLimit(bands)
	if limit < minIsects {
		return false, nil
	}
	s.bands, s.isectCapacity = bands, min(s.isectCapacity, limit)
	return true, m.programs.free()
}

// buildToFit builds the programs with fewer isects if necessary: the device may have less memory than the budget says.
// Views that then have too many ask for bands.
func (m *memory) buildToFit() error {
	s, err := m.setup, m.programs.build()
	for errors.Is(err, vk.ErrOutOfMemory) && s.isectCapacity > layout.MostBucket {
		s.isectCapacity = max(layout.MostBucket, s.isectCapacity/4*3&^(layout.MostBucket-1))
		m.isectMost = s.isectCapacity
		if err := m.programs.free(); err != nil {
			return err
		}
		err = m.programs.build()
	}
	return err
}
