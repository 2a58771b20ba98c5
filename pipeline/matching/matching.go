// Package matching finds features that two photos share, on a device. Features are descriptors of 128 bytes as SIFT has
// them: roots of parts of their sum, times 512, so that the dot product of two is 512^2 times the cosine of their angle
// (Arandjelović and Zisserman 2012, Three things everyone should know to improve object retrieval). Two features match
// if each is nearest to the other, near enough, and nearer than the second by a ratio (Lowe 2004).
//
// Products are whole numbers and thresholds a table, so that matches are the same on every device. Of equally near
// features the first counts, and what ties with the second matches nothing.
//
// match_tiles compares 128 features of one photo with 128 of another, for many pairs of photos in a dispatch;
// match_nearest joins what it found. A store (store.go) has the photos' descriptors on the device, as many as fit. Two
// batches of pairs are in flight (batch.go): the host reads the results of one while the device works on the other.
package matching

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/pipeline/failure"
	"vksplat/vk"
)

// MostFeatures is the largest number of features of a photo.
const MostFeatures = 1 << 14

const (
	descriptorBytes = 128
	tileRows        = 128       // descriptors of a tile: MATCH_TILE of the kernels
	productOfOne    = 512 * 512 // of a descriptor with itself: MATCH_ONE
	noMatch         = math.MaxUint32
)

// Photo is what is matched of a photo.
type Photo struct {
	Descriptors []byte       // 128 bytes each, the largest features first
	Places      [][2]float32 // of each feature, in pixels; for guides alone
	// Load, if set, reads the descriptors of Features features when they are needed, for several photos at a time and
	// perhaps more than once.
	Load     func() ([]byte, error)
	Features int
}

func (p *Photo) features() int {
	if p.Load != nil {
		return p.Features
	}
	return len(p.Descriptors) / descriptorBytes
}

// descriptors returns the features' descriptors.
func (p *Photo) descriptors() ([]byte, error) {
	if p.Load == nil {
		return p.Descriptors, nil
	}
	list, err := p.Load()
	if err == nil && len(list) != p.Features*descriptorBytes {
		err = fmt.Errorf("read descriptors: %d bytes of %d features", len(list), p.Features)
	}
	return list, err
}

// tiles returns the number of whole tiles that the features need.
func (p *Photo) tiles() int { return (p.features() + tileRows - 1) / tileRows }

// Options say how to match.
type Options struct {
	MaxBytes int64 // most device memory, on which no match depends; 0: half of what the device's budget leaves
}

// mostRatio is the most that the nearest's angle is of the second's, and mostAngle the most that it is, in radians.
const mostRatio, mostAngle = 0.8, 0.7

// Guide says where in the second photo of a pair a feature of the first may be.
type Guide struct {
	Planar bool       // Matrix is a homography, else a fundamental matrix
	Matrix [9]float64 // row by row, from pixels of the first photo to those of the second
	Pixels float64    // most by Sampson's distance, or from where the homography takes a place
}

// Matcher matches photos. It is for one goroutine.
type Matcher struct {
	dev     *vk.Device
	photos  []Photo
	packed  bool   // the device multiplies four bytes at a time
	lanes   uint32 // of match_tiles
	store   *store
	least   vk.Slice[uint32]
	pool    *vk.ScratchPool
	most    int // tiles of a batch that there is room for
	size    int // tiles of the next batch
	batches [2]batch
	number  int       // of the last batch
	last    time.Time // when a batch was done
}

// New prepares matching of photos, which must not change while it is used.
func New(d *vk.Device, photos []Photo, o Options) (m *Matcher, err error) {
	info := d.Info()
	m = &Matcher{dev: d, photos: photos, packed: info.Features.PackedDotFast, lanes: 256, pool: d.NewScratchPool(),
		size: 1024}
	if info.ShapedForCPU() {
		m.packed, m.lanes = info.Features.PackedDot, 64
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("match photos: %w", err), m.Close())
			m = nil
		}
	}()
	tiles := 1
	for i := range photos {
		p, n := &photos[i], photos[i].features()
		if n > MostFeatures || len(p.Descriptors)%descriptorBytes != 0 || len(p.Places) != 0 && len(p.Places) != n {
			return m, fmt.Errorf("%d bytes of descriptors with %d places of photo %d: at most %d features of %d bytes "+
				"are allowed", len(p.Descriptors), len(p.Places), i, MostFeatures, descriptorBytes)
		}
		tiles = max(tiles, p.tiles())
	}
	budget := o.MaxBytes
	if budget == 0 {
		budget = (d.Budget() - d.Stats().InUse) / 2
	}
	binding := info.Limits.MaxStorageBufferRange
	m.most = max(tiles*tiles, int(min(mostTiles, budget/4/keyBytes, binding/keyBytes)))
	const table = 4 * productOfOne
	left := budget - int64(m.most)*keyBytes - table
	slots := min(len(photos), int(min(left, binding)/slotBytes(tiles)))
	if slots < min(2, len(photos)) || int64(m.most)*keyBytes > binding {
		need := table + 2*slotBytes(tiles)
		need += max(int64(tiles*tiles)*keyBytes, need/3+1) // a quarter of all is for keys
		return m, fault.WithHint(fmt.Errorf("%w: two photos of %d features do not fit the %s that they may take; "+
			"%s are enough", failure.ErrTooSmall, tiles*tileRows, vk.BytesText(max(budget, 0)),
			vk.BytesText(need)), failure.AnyOf(failure.RaiseMemory(), "find fewer features"))
	}
	if m.store, err = newStore(d, photos, tiles, slots); err == nil {
		if err = m.loadLeast(); err == nil {
			err = m.allocate()
		}
	}
	return m, err
}

// leastProducts returns for each second largest product the least that the largest must be for a match.
func leastProducts() []uint32 {
	angle := func(product uint32) float64 { return math.Acos(float64(product) / productOfOne) }
	least := make([]uint32, productOfOne)
	parallel.For(64, func(part int) {
		for second := uint32(part); second < productOfOne; second += 64 {
			below := mostRatio * angle(second)
			matches := func(product uint32) bool { return angle(product) <= mostAngle && angle(product) < below }
			p := uint32(math.Ceil(productOfOne * math.Cos(min(mostAngle, below, math.Pi/2))))
			for p < productOfOne && !matches(p) {
				p++
			}
			for p > 1 && matches(p-1) {
				p--
			}
			least[second] = max(p, 1)
		}
	})
	return least
}

// loadLeast takes the table of thresholds to the device.
func (m *Matcher) loadLeast() (err error) {
	least := leastProducts()
	if m.least, err = vk.Make[uint32](m.dev, vk.DeviceLocal, len(least), "least products"); err != nil {
		return err
	}
	staging, err := vk.Make[uint32](m.dev, vk.Upload, len(least), "least products staging")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.dev.Free(staging.View)) }()
	copy(vk.Host(staging), least)
	r := vk.NewRecorder(m.dev)
	r.Copy(m.least.View, staging.View)
	return m.dev.RunOnce(r, "load least products")
}

// Match calls emit for each pair of photos, in order, with the features of the first and second photo that match, in
// the order of the first's. Guides, one a pair, restrict matches; nil does not. The device works on while emit runs, on
// as much as two batches hold, so emit should hand on what takes long. The first error ends it.
func (m *Matcher) Match(ctx context.Context, pairs [][2]int, guides []Guide,
	emit func(pair int, matches [][2]int32) error) error {
	if guides != nil && len(guides) != len(pairs) {
		return fmt.Errorf("match photos: %d guides of %d pairs", len(guides), len(pairs))
	}
	return m.run(ctx, &request{pairs: pairs, guides: guides, tiles: MostFeatures / tileRows,
		emit: func(pair int, a, b []uint32) error { return emit(pair, mutual(a, b, nil)) }})
}

// Score returns for each pair how many of the largest features of both photos match, a multiple of 128 of each: a
// cheap measure of whether a pair is worth matching.
func (m *Matcher) Score(ctx context.Context, pairs [][2]int, features int) ([]int, error) {
	scores := make([]int, len(pairs))
	var room [][2]int32
	err := m.run(ctx, &request{pairs: pairs, tiles: max(1, features/tileRows),
		emit: func(pair int, a, b []uint32) error {
			room = mutual(a, b, room[:0])
			scores[pair] = len(room)
			return nil
		}})
	return scores, err
}

// mutual appends the pairs of features of which each has the other as its match.
func mutual(a, b []uint32, matches [][2]int32) [][2]int32 {
	for i, j := range a {
		if j != noMatch && b[j] == uint32(i) {
			matches = append(matches, [2]int32{int32(i), int32(j)})
		}
	}
	return matches
}

// Close frees the device memory.
func (m *Matcher) Close() (err error) {
	for i := range m.batches {
		err = errors.Join(err, m.batches[i].close(m.dev))
	}
	return errors.Join(err, m.pool.Close(), m.store.close(), m.dev.Free(m.least.View))
}
