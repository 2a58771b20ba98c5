package vk

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	must "vksplat/internal/musttest"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// fakeSource is a device of which only the sizes exist.
type fakeSource struct {
	room  int64 // bytes that it can give; an honest device may have less than the budget
	fail  error // what every allocation fails with, when set
	next  int
	kinds map[int]MemoryKind
	sizes map[int]int64
	given int64
	calls int
	wrong []string // what the arena should not have done
}

func newFakeSource(room int64) *fakeSource {
	return &fakeSource{room: room, kinds: map[int]MemoryKind{}, sizes: map[int]int64{}}
}

func (f *fakeSource) newBlock(kind MemoryKind, size int64) (int, error) {
	f.calls++
	if size <= 0 || size%pageSize != 0 {
		f.wrong = append(f.wrong, fmt.Sprintf("block of %d bytes", size))
	}
	if f.fail != nil {
		return 0, f.fail
	}
	if size > f.room-f.given {
		return 0, fmt.Errorf("fake device: %w", ErrOutOfMemory)
	}
	f.next++
	id := f.next * 7 // ids need not be dense
	f.kinds[id], f.sizes[id] = kind, size
	f.given += size
	return id, nil
}

func (f *fakeSource) freeBlock(id int) {
	if _, ok := f.sizes[id]; !ok {
		f.wrong = append(f.wrong, fmt.Sprintf("free of unknown block %d", id))
	}
	f.given -= f.sizes[id]
	delete(f.sizes, id)
	delete(f.kinds, id)
}

// mustAlloc allocates and fails the test when that fails.
func mustAlloc(t *testing.T, a *arena, kind MemoryKind, size int64) span {
	t.Helper()
	s := must.Get(a.alloc(kind, size, "buffer"))(t)
	return s
}

// mustFree frees and fails the test when that fails.
func mustFree(t *testing.T, a *arena, s ...span) {
	t.Helper()
	for _, s := range s {
		must.Do(t, a.free(s))
	}
}

func TestArenaBlockSizes(t *testing.T) {
	tests := []struct {
		name  string
		sizes []int64 // of the requests, in order
		want  []int64 // sizes of the blocks, in order
	}{
		{"small job", []int64{4, 100, 64 * kib}, []int64{4 * mib}},
		{"exactly full", []int64{mib, mib, mib, mib}, []int64{4 * mib}},
		{"one page over", []int64{mib, mib, mib, mib, 1}, []int64{4 * mib, 4 * mib}},
		{"growing", slices.Repeat([]int64{mib}, 17), []int64{4 * mib, 4 * mib, 4 * mib, 4 * mib, 8 * mib}},
		{"alone", []int64{mib + 5, 9*mib + 5, 1}, []int64{mib + pageSize, 9*mib + pageSize, 4 * mib}},
		{"large", []int64{500*mib + 1}, []int64{500*mib + pageSize}},
		{"in gigabytes", []int64{7 * gib, 100 * mib, 14 * mib, 60 * mib},
			[]int64{7 * gib, 100 * mib, 16 * mib, 60 * mib}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			src := newFakeSource(8 * gib)
			a := newArena(src, 8*gib)
			for _, size := range c.sizes {
				mustAlloc(t, a, DeviceLocal, size)
			}
			var got []int64
			for _, b := range a.blocks[DeviceLocal] {
				got = append(got, b.size)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("blocks %v, want %v", got, c.want)
			}
		})
	}
}

func TestArenaKindsDoNotMix(t *testing.T) {
	src := newFakeSource(gib)
	a := newArena(src, gib)
	for _, kind := range []MemoryKind{DeviceLocal, Upload, Readback} {
		if s := mustAlloc(t, a, kind, 1000); src.kinds[s.block] != kind {
			t.Errorf("%v buffer in a block of %v memory", kind, src.kinds[s.block])
		}
	}
}

func TestArenaKeepsOneEmptyBlock(t *testing.T) {
	src := newFakeSource(gib)
	a := newArena(src, gib)
	for range 100 {
		mustFree(t, a, mustAlloc(t, a, DeviceLocal, mib))
	}
	if n := a.stats().AllocCalls; n != 1 {
		t.Errorf("a buffer that comes and goes took %d allocations, want 1", n)
	}
	var s []span
	for range 17 {
		s = append(s, mustAlloc(t, a, DeviceLocal, mib))
	}
	mustFree(t, a, s...)
	if st := a.stats(); st.Blocks != 1 || st.Allocated != 8*mib || st.InUse != 0 {
		t.Errorf("after freeing everything: %+v, want the one block of 8 MiB", st)
	}
	large := mustAlloc(t, a, DeviceLocal, 9*mib)
	if st := a.stats(); st.Allocated != 9*mib {
		t.Errorf("with a large buffer: %+v, want a block of its own and none that is empty", st)
	}
	mustFree(t, a, large)
	if st := a.stats(); st.Blocks != 0 {
		t.Errorf("a large buffer's block was kept: %+v", st)
	}
}

// TestArenaTakesFewBlocks fills a large device with buffers just above the size from which they have blocks of their
// own: drivers give some thousand blocks.
func TestArenaTakesFewBlocks(t *testing.T) {
	a := newArena(newFakeSource(256*gib), 256*gib)
	for a.stats().Allocated < 120*gib {
		size := pageSize * (a.stats().Allocated/mostAlone/pageSize + 1)
		mustAlloc(t, a, DeviceLocal, max(size, mib+pageSize))
	}
	if n := a.stats().Blocks; n > 4000 {
		t.Errorf("%d blocks", n)
	}
}

func TestArenaBudget(t *testing.T) {
	src := newFakeSource(gib)
	a := newArena(src, 100*mib)
	mustFree(t, a, mustAlloc(t, a, Upload, 50*kib)) // stays as an empty block of 4 MiB
	s := mustAlloc(t, a, DeviceLocal, 90*mib)       // drives it out
	if st := a.stats(); st.Allocated != 90*mib {
		t.Errorf("allocated %d, want 90 MiB", st.Allocated)
	}
	mustAlloc(t, a, Readback, 7*mib)
	mustAlloc(t, a, DeviceLocal, 2*mib)
	_, err := a.alloc(DeviceLocal, 3*mib, "sort keys")
	if !errors.Is(err, ErrOutOfMemory) {
		t.Fatalf("error %v does not wrap ErrOutOfMemory", err)
	}
	for _, part := range []string{"allocate sort keys: ", "3.0 MiB", "99.0 MiB in use", "budget 100 MiB",
		"device-local"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	mustFree(t, a, s)
	mustAlloc(t, a, DeviceLocal, 80*mib)
	if st := a.stats(); st.PeakAllocated > 100*mib {
		t.Errorf("peak of %d bytes is above the budget", st.PeakAllocated)
	}
}

// TestArenaHopelessRequest sees to it that what can never fit does not cost the empty blocks at hand.
func TestArenaHopelessRequest(t *testing.T) {
	a := newArena(newFakeSource(gib), 100*mib)
	mustFree(t, a, mustAlloc(t, a, Upload, 50*kib)) // leaves an empty block
	before := a.stats()
	if _, err := a.alloc(DeviceLocal, 100*mib+1, "x"); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("error %v, want ErrOutOfMemory", err)
	}
	if a.stats() != before {
		t.Errorf("the refusal changed %+v to %+v", before, a.stats())
	}
}

// TestArenaPrefersTightThenOld fixes the choice between blocks: the tightest run of pages, the oldest block among
// equals.
func TestArenaPrefersTightThenOld(t *testing.T) {
	a := newArena(newFakeSource(gib), gib)
	var s []span
	for range 8 {
		s = append(s, mustAlloc(t, a, DeviceLocal, mib))
	}
	first, second := s[3], s[7]
	if s[0].block != first.block || s[4].block != second.block || first.block == second.block {
		t.Fatal("blocks of 4 MiB do not hold four buffers of 1 MiB each")
	}
	mustFree(t, a, second, first)
	if got := mustAlloc(t, a, DeviceLocal, mib); got.block != first.block {
		t.Errorf("1 MiB in block %d, want the older of two equal runs in %d", got.block, first.block)
	}
	if got := mustAlloc(t, a, DeviceLocal, mib/2); got.block != second.block {
		t.Errorf("0.5 MiB in block %d, want the only run left in %d", got.block, second.block)
	}
	if got := mustAlloc(t, a, DeviceLocal, mib/4); got.block != second.block {
		t.Errorf("0.25 MiB in block %d, want the tightest run in %d", got.block, second.block)
	}
}

func TestArenaTakesTheLastPage(t *testing.T) {
	a := newArena(newFakeSource(gib), 10*mib)
	for range 10 * mib / pageSize {
		mustAlloc(t, a, DeviceLocal, pageSize)
	}
	if st := a.stats(); st.InUse != 10*mib || st.Allocated != 10*mib {
		t.Errorf("%+v, want all of 10 MiB in use", st)
	}
	if _, err := a.alloc(DeviceLocal, 1, "one more"); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("error %v, want ErrOutOfMemory", err)
	}
}

func TestArenaDeviceSmallerThanBudget(t *testing.T) {
	src := newFakeSource(20 * mib)
	a := newArena(src, gib)
	mustAlloc(t, a, DeviceLocal, 16*mib) // a block of its own
	mustAlloc(t, a, Upload, 50*kib)      // the first block, 4 MiB
	if _, err := a.alloc(Readback, 1, "x"); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("error %v, want ErrOutOfMemory", err)
	}
	src.fail = errors.New("device lost")
	calls := src.calls
	if _, err := a.alloc(Readback, 1, "x"); !errors.Is(err, src.fail) || src.calls != calls+1 {
		t.Errorf("error %v after %d calls, want the source's after one", err, src.calls-calls)
	}
	if got := a.stats().AllocCalls; got != src.calls {
		t.Errorf("%d allocation calls counted, the source saw %d", got, src.calls)
	}
}

func TestArenaRefusesNonsense(t *testing.T) {
	a := newArena(newFakeSource(gib), gib)
	tests := []struct {
		kind   MemoryKind
		size   int64
		memory bool // whether the error is about memory
	}{
		{DeviceLocal, 0, false},
		{DeviceLocal, -1, false},
		{DeviceLocal, math.MaxInt64, true},
		{DeviceLocal, math.MaxInt64 - pageSize, true},
		{memoryKinds, 1, false},
		{-1, 1, false},
	}
	for _, c := range tests {
		_, err := a.alloc(c.kind, c.size, "x")
		if err == nil || errors.Is(err, ErrOutOfMemory) != c.memory {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	if st := a.stats(); st != (Stats{Budget: gib}) {
		t.Errorf("refusals left %+v", st)
	}
	unlimited := newArena(newFakeSource(0), math.MaxInt64)
	if _, err := unlimited.alloc(DeviceLocal, math.MaxInt64, "x"); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("error %v, want ErrOutOfMemory", err)
	}
}

func TestArenaRefusesUnknownSpans(t *testing.T) {
	a := newArena(newFakeSource(gib), gib)
	s, keep := mustAlloc(t, a, DeviceLocal, 10000), mustAlloc(t, a, DeviceLocal, 10000)
	mustFree(t, a, s)
	before := a.stats()
	for _, bad := range []span{
		s, {}, {keep.block + 1, keep.off, keep.size}, {keep.block, keep.off + 1, keep.size},
		{keep.block, keep.off, keep.size - 1},
		{keep.block, keep.off + pageSize, keep.size - pageSize}, {keep.block, -pageSize, 1},
	} {
		if err := a.free(bad); err == nil || !strings.HasPrefix(err.Error(), "free ") {
			t.Errorf("free of %+v: error %v", bad, err)
		}
	}
	if a.stats() != before {
		t.Errorf("refused frees changed %+v to %+v", before, a.stats())
	}
}

func TestArenaClose(t *testing.T) {
	src := newFakeSource(gib)
	a := newArena(src, gib)
	for range 2 {
		mustAlloc(t, a, Upload, 40*mib)
	}
	a.close()
	if st := a.stats(); len(src.sizes) != 0 || st.Allocated != 0 || st.InUse != 0 || st.Buffers != 0 || st.Blocks != 0 {
		t.Errorf("blocks left after close: %v, %+v", src.sizes, st)
	}
}

func TestArenaConcurrent(t *testing.T) {
	src := newFakeSource(gib)
	a := newArena(src, gib)
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(g, 3))
			for range 300 {
				s, err := a.alloc(MemoryKind(rng.IntN(3)), 1+rng.Int64N(2*mib), "x")
				if err == nil {
					err = a.free(s)
				}
				if err != nil {
					t.Error(err)
					return
				}
				a.stats()
			}
		})
	}
	wg.Wait()
	if st := a.stats(); st.InUse != 0 || st.Buffers != 0 || len(src.wrong) != 0 {
		t.Errorf("%+v, %v", st, src.wrong)
	}
}

func TestPageMapAgainstBools(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 60 {
		n := 1 + rng.IntN(300)
		m, model := newPageMap(n), make([]bool, n)
		for range 100 {
			want := 1 + rng.IntN(40)
			at, excess, ok := m.bestFit(want)
			wantAt, wantExcess, wantOK := bestFitOfBools(model, want)
			if at != wantAt || excess != wantExcess || ok != wantOK {
				t.Fatalf("best fit of %d pages: %d %d %v, want %d %d %v", want, at, excess, ok, wantAt, wantExcess,
					wantOK)
			}
			if ok {
				m.take(at, want)
				for p := at; p < at+want; p++ {
					model[p] = true
				}
			}
			if p := rng.IntN(n); model[p] {
				end := p
				for end < n && model[end] && end < p+30 {
					model[end] = false
					end++
				}
				m.release(p, end-p)
			}
			taken := 0
			for p, b := range model {
				if m.taken.Contains(uint32(p)) != b {
					t.Fatalf("page %d taken: %v", p, !b)
				}
				if b {
					taken++
				}
			}
			if m.free != n-taken || m.taken.Count() != taken {
				t.Fatalf("%d pages free and %d taken of %d, want %d taken", m.free, m.taken.Count(), n, taken)
			}
		}
	}
}

// bestFitOfBools is bestFit page by page.
func bestFitOfBools(taken []bool, want int) (start, excess int, ok bool) {
	for p := 0; p < len(taken); {
		end := p
		for end < len(taken) && !taken[end] {
			end++
		}
		if p+want <= end && (!ok || end-p-want < excess) {
			start, excess, ok = p, end-p-want, true
		}
		p = end + 1
	}
	return start, excess, ok
}

// TestArenaLeavesLittleOver allocates as training does: small buffers, a model that grows piece by piece, and scratch
// memory that is freed and comes again, larger, after each piece. At no time is much more taken than is in use.
func TestArenaLeavesLittleOver(t *testing.T) {
	a := newArena(newFakeSource(100*gib), 100*gib)
	for _, size := range []int64{64, 156, 2 * mib, 65 * mib, 24 * mib, 300 * kib, 10 * kib} {
		mustAlloc(t, a, DeviceLocal, size)
	}
	var scratch []span
	for grown := range int64(30) {
		mustFree(t, a, scratch...)
		scratch = scratch[:0]
		mustAlloc(t, a, DeviceLocal, 12*mib+grown*mib*5/2)
		for _, part := range []int64{40, 22, 21, 11, 1} {
			scratch = append(scratch, mustAlloc(t, a, DeviceLocal, part*(grown+1)*100*kib))
		}
		if st := a.stats(); st.Allocated > st.InUse+8*mib || st.PeakAllocated > st.Allocated {
			t.Fatalf("after %d pieces: %d MiB in use, %d taken, %d at the peak", grown+1, st.InUse/mib,
				st.Allocated/mib, st.PeakAllocated/mib)
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{900: "900 B", 1536: "1.5 KiB", 512 << 20: "512 MiB"} {
		if got := BytesText(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
