package vk

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// arenaModel drives an arena with random calls and checks every answer against a list of what lives.
type arenaModel struct {
	t    *testing.T
	rng  *rand.Rand
	src  *fakeSource
	a    *arena
	live []modelBuffer
	used int64 // sum of the living sizes in whole pages
	peak int64 // largest used so far
}

type modelBuffer struct {
	span
	kind MemoryKind
}

func newArenaModel(t *testing.T, seed uint64, budget, room int64) *arenaModel {
	src := newFakeSource(room)
	return &arenaModel{t: t, rng: rand.New(rand.NewPCG(seed, 5)), src: src, a: newArena(src, budget)}
}

// alloc asks for one buffer and checks that it lies alone in a block of its kind. It returns false when the arena
// refused.
func (m *arenaModel) alloc(kind MemoryKind, size int64) bool {
	m.t.Helper()
	s, err := m.a.alloc(kind, size, "x")
	if err != nil {
		if !errors.Is(err, ErrOutOfMemory) {
			m.t.Fatal(err)
		}
		m.checkStats()
		return false
	}
	if s.size != size || s.off < 0 || s.off%memoryAlign != 0 || s.off+size > m.src.sizes[s.block] ||
		m.src.kinds[s.block] != kind {
		m.t.Fatalf("%d bytes of %v memory: got %+v in a block of %d", size, kind, s, m.src.sizes[s.block])
	}
	for _, o := range m.live {
		if o.block == s.block && o.off < s.off+s.size && s.off < o.off+o.size {
			m.t.Fatalf("%+v overlaps %+v", s, o)
		}
	}
	m.live = append(m.live, modelBuffer{s, kind})
	m.used += wholePages(size)
	m.peak = max(m.peak, m.used)
	m.checkStats()
	return true
}

// freeAny frees a random buffer, and tries to free it twice now and then.
func (m *arenaModel) freeAny() {
	m.t.Helper()
	if len(m.live) == 0 {
		return
	}
	i := m.rng.IntN(len(m.live))
	s := m.live[i].span
	m.live[i] = m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	m.used -= wholePages(s.size)
	if err := m.a.free(s); err != nil {
		m.t.Fatal(err)
	}
	if m.rng.IntN(4) == 0 && m.a.free(s) == nil {
		m.t.Fatalf("%+v was freed twice", s)
	}
	m.checkStats()
}

func (m *arenaModel) checkStats() {
	m.t.Helper()
	st := m.a.stats()
	if st.InUse != m.used || st.Buffers != len(m.live) || st.Allocated != m.src.given ||
		st.Blocks != len(m.src.sizes) || st.AllocCalls != m.src.calls {
		m.t.Fatalf("stats %+v; %d bytes live in %d buffers, %d given in %d blocks, %d calls", st, m.used, len(m.live),
			m.src.given, len(m.src.sizes), m.src.calls)
	}
	if st.Allocated > st.Budget || st.PeakAllocated > st.Budget || st.PeakAllocated < st.Allocated ||
		st.InUse > st.Allocated {
		m.t.Fatalf("stats %+v", st)
	}
	if len(m.src.wrong) > 0 {
		m.t.Fatal(m.src.wrong)
	}
}

// drain frees everything and checks that at most one block per kind stays.
func (m *arenaModel) drain() {
	m.t.Helper()
	for len(m.live) > 0 {
		m.freeAny()
	}
	if st := m.a.stats(); st.Blocks > int(memoryKinds) {
		m.t.Fatalf("%d blocks kept", st.Blocks)
	}
	if m.a.close(); len(m.src.sizes) > 0 {
		m.t.Fatalf("blocks %v are left", m.src.sizes)
	}
}

// size returns a random number of bytes, uniform in the logarithm from 16 B to the given top.
func (m *arenaModel) size(top int64) int64 {
	return int64(math.Exp2(4 + m.rng.Float64()*(math.Log2(float64(top))-4)))
}

func wholePages(size int64) int64 { return (size + pageSize - 1) / pageSize * pageSize }

// TestArenaRandom runs phases of growth and shrinkage in which the arena often has to refuse.
func TestArenaRandom(t *testing.T) {
	refused, calls := 0, 0
	for seed := range uint64(40) {
		budget := mib << (seed % 12)
		m := newArenaModel(t, seed, budget, budget-budget/8*int64(seed%3))
		for range 6 {
			growing := 2 + m.rng.IntN(7) // of ten calls
			for range 150 {
				calls++
				if m.rng.IntN(10) >= growing {
					m.freeAny()
				} else if !m.alloc(MemoryKind(m.rng.IntN(3)), m.size(budget/2)) {
					refused++
				}
			}
		}
		m.drain()
	}
	t.Logf("%d calls, %d refused for want of memory", calls, refused)
}

// TestArenaFragmentation bounds what blocks cost. Under a random workload without a tight budget the bytes taken from
// the driver stay below 1.5 times the peak of the bytes in use and 64 MiB a kind more; with a tight one the arena does
// not refuse before 70 % of the budget is in use.
func TestArenaFragmentation(t *testing.T) {
	const peakBound, slack, fullBound = 1.5, 64 << 20, 0.70
	worst, mean, least, meanFull := 0.0, 0.0, 1.0, 0.0
	const seeds = 20
	for seed := range uint64(seeds) {
		m := newArenaModel(t, seed, 64*gib, 64*gib)
		for i := range 1500 { // towards some 300 buffers, then a steady coming and going
			if len(m.live) > 0 && m.rng.IntN(600) < len(m.live) {
				m.freeAny()
			} else {
				m.alloc(MemoryKind(i%8%3), m.size(128*mib))
			}
		}
		st := m.a.stats()
		ratio := float64(st.PeakAllocated) / float64(m.peak)
		worst, mean = max(worst, ratio), mean+ratio/seeds
		if float64(st.PeakAllocated) > peakBound*float64(m.peak)+slack*3 {
			t.Errorf("seed %d: %s allocated for a peak of %s in use", seed, BytesText(st.PeakAllocated),
				BytesText(m.peak))
		}
		m.drain()

		m = newArenaModel(t, seed, gib, gib)
		for m.alloc(DeviceLocal, m.size(64*mib)) {
			if m.rng.IntN(3) == 0 {
				m.freeAny()
			}
		}
		full := float64(m.used) / float64(gib)
		least, meanFull = min(least, full), meanFull+full/seeds
		if full < fullBound {
			t.Errorf("seed %d: refused with %.0f %% of the budget in use", seed, 100*full)
		}
		m.drain()
	}
	t.Logf("peak allocated / peak in use: mean %.3f, worst %.3f; in use at the first refusal: mean %.1f %%, least "+
		"%.1f %%", mean, worst, 100*meanFull, 100*least)
}
