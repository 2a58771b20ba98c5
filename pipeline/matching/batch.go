package matching

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// Sizes of a batch: tiles of one photo by tiles of the other, pairs, and descriptors of both photos of each pair.
const (
	mostTiles   = 1 << 15
	mostPairs   = 1 << 11
	mostMatches = 1 << 20
	keyBytes    = 2 * tileRows * 8 // what match_tiles leaves of a tile
)

// Batches take between these two, so that a device answers others and the host soon, and no batch is too small to fill
// it. Results do not depend on it.
const (
	leastTime = 50 * time.Millisecond
	mostTime  = 200 * time.Millisecond
)

// batch is some pairs that are matched together.
type batch struct {
	pairs    []layout.MatchJob         // in flight; none: it is free
	first    int                       // number of the first of them
	jobs     vk.Slice[layout.MatchJob] // [mostPairs] the same for the device
	grids    vk.Slice[[3]uint32]       // of match_tiles and match_nearest
	matches  vk.Slice[uint32]          // [mostMatches] by pair
	programs [2]*vk.Program            // without and with guides

	ticket vk.Ticket
	began  time.Time
}

// request is what run does.
type request struct {
	pairs  [][2]int
	guides []Guide // nil: none
	tiles  int     // of a photo that count
	emit   func(pair int, a, b []uint32) error
}

func (m *Matcher) allocate() (err error) {
	for i := range m.batches {
		b := &m.batches[i]
		if b.jobs, err = vk.Make[layout.MatchJob](m.dev, vk.Upload, mostPairs, "match jobs"); err != nil {
			return err
		}
		if b.grids, err = vk.Make[[3]uint32](m.dev, vk.Upload, 2, "match grids"); err != nil {
			return err
		}
		if b.matches, err = vk.Make[uint32](m.dev, vk.Readback, mostMatches, "matches"); err != nil {
			return err
		}
	}
	return nil
}

// program returns the recorded passes of a batch.
func (m *Matcher) program(b *batch, guided int) (*vk.Program, error) {
	if b.programs[guided] != nil {
		return b.programs[guided], nil
	}
	r := vk.NewRecorder(m.dev)
	keys := vk.ScratchOf[[2]uint32](r, "nearest keys", 2*tileRows*m.most)
	r.Dispatch(&shaders.MatchTiles{
		Jobs: b.jobs, Descriptors: vk.Cast[[4]uint32](m.store.descriptors), Places: vk.Cast[[2]float32](m.store.places),
		NearestKeys: keys, Packed: m.packed, Spec: shaders.MatchTilesSpec{WorkgroupSize: m.lanes, Guided: guided == 1},
	}, vk.Indirect(b.grids.At(0, 1).View))
	r.Dispatch(&shaders.MatchNearest{Jobs: b.jobs, NearestKeys: keys, LeastProducts: m.least, Matches: b.matches},
		vk.Indirect(b.grids.At(1, 1).View))
	p, err := r.Build("match", m.pool, vk.BuildOptions{NoTimings: true})
	b.programs[guided] = p
	return p, err
}

// run matches pairs batch by batch. What is in flight after an error is waited for.
func (m *Matcher) run(ctx context.Context, r *request) (err error) {
	defer func() {
		for i := range m.batches {
			if b := &m.batches[i]; len(b.pairs) > 0 {
				b.pairs, err = b.pairs[:0], errors.Join(err, m.dev.Wait(b.ticket))
			}
		}
		if err != nil {
			err = fmt.Errorf("match photos: %w", err)
		}
	}()
	for next := 0; next < len(r.pairs) || len(m.batches[0].pairs)+len(m.batches[1].pairs) > 0; {
		m.number++
		b := &m.batches[m.number%2]
		if err := m.finish(b, r); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if next < len(r.pairs) {
			if err := m.begin(b, r, next); err != nil {
				return err
			}
			next += len(b.pairs)
		}
	}
	return nil
}

// begin fills a batch with pairs and submits it.
func (m *Matcher) begin(b *batch, r *request, first int) error {
	var keys, words uint32
	var grids [2][3]uint32
	b.first = first
	for n := 0; first+n < len(r.pairs) && n < mostPairs; n++ {
		j, ok := m.job(r, first+n)
		if n > 0 && keys+j.TilesA*j.TilesB > uint32(min(m.size, m.most)) ||
			words+(j.TilesA+j.TilesB)*tileRows > mostMatches || !ok {
			break
		}
		j.FirstKeys, j.FirstMatch = keys, words
		keys, words = keys+j.TilesA*j.TilesB, words+(j.TilesA+j.TilesB)*tileRows
		grids[0] = [3]uint32{max(grids[0][0], j.TilesA), max(grids[0][1], j.TilesB), uint32(n + 1)}
		grids[1] = [3]uint32{max(grids[1][0], j.TilesA+j.TilesB), uint32(n + 1), 1}
		b.pairs = append(b.pairs, j)
	}
	copy(vk.Host(b.jobs), b.pairs)
	copy(vk.Host(b.grids), grids[:])
	if err := m.store.load(); err != nil {
		return err
	}
	guided := 0
	if r.guides != nil {
		guided = 1
	}
	p, err := m.program(b, guided)
	if err != nil {
		return err
	}
	s := m.dev.NewSubmission()
	s.Add(p)
	b.began = time.Now()
	b.ticket, err = m.dev.Submit(s)
	return err
}

// job describes a pair, whose photos are on the device when the batch runs. It reports false if there is no room.
func (m *Matcher) job(r *request, pair int) (j layout.MatchJob, ok bool) {
	a, b, s := r.pairs[pair][0], r.pairs[pair][1], m.store
	if !s.want(a, m.number) || !s.want(b, m.number) {
		return j, false
	}
	j = layout.MatchJob{FirstA: uint32(s.slotOf[a] * s.tiles), FirstB: uint32(s.slotOf[b] * s.tiles),
		TilesA: uint32(min(m.photos[a].tiles(), r.tiles)), TilesB: uint32(min(m.photos[b].tiles(), r.tiles))}
	if r.guides == nil {
		return j, true
	}
	g, most := &r.guides[pair], 0.0
	for _, x := range g.Matrix {
		most = max(most, math.Abs(x))
	}
	for k, x := range g.Matrix {
		j.Guide[k] = float32(x / most)
	}
	j.Limit = float32(g.Pixels * g.Pixels)
	if g.Planar {
		j.Planar = 1
	}
	return j, true
}

// finish waits for a batch and hands on what it found.
func (m *Matcher) finish(b *batch, r *request) error {
	if len(b.pairs) == 0 {
		return nil
	}
	defer func() { b.pairs = b.pairs[:0] }()
	if err := m.dev.Wait(b.ticket); err != nil {
		return err
	}
	now := time.Now()
	since := b.began
	if m.last.After(since) {
		since = m.last
	}
	m.last = now
	switch took := now.Sub(since); {
	case took > mostTime:
		m.size = max(1, m.size/2)
	case took < leastTime:
		m.size = min(m.most, 2*m.size)
	}
	matches := vk.Host(b.matches)
	for i := range b.pairs {
		j := &b.pairs[i]
		of := matches[j.FirstMatch:][:(j.TilesA+j.TilesB)*tileRows]
		at := j.TilesA * tileRows
		if err := r.emit(b.first+i, of[:at], of[at:]); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) close(d *vk.Device) (err error) {
	for _, p := range b.programs {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return errors.Join(err, d.Free(b.jobs.View), d.Free(b.grids.View), d.Free(b.matches.View))
}
