package vk

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestHazardTable(t *testing.T) {
	const all = math.MaxInt64
	type op []touch
	tests := []struct {
		name string
		ops  []op
		want string // a letter per op: B for a barrier before it, . for none
	}{
		{"nothing", []op{{}, {}}, ".."},
		{"read after read", []op{{{1, 0, 64, Read}}, {{1, 0, 64, Read}}}, ".."},
		{"read after write", []op{{{1, 0, 64, Write}}, {{1, 0, 64, Read}}}, ".B"},
		{"write after read", []op{{{1, 0, 64, Read}}, {{1, 0, 64, Write}}}, ".B"},
		{"write after write", []op{{{1, 0, 64, Write}}, {{1, 0, 64, Write}}}, ".B"},
		{"update after update", []op{{{1, 0, 64, ReadWrite}}, {{1, 0, 64, ReadWrite}}}, ".B"},
		{"other buffer", []op{{{1, 0, 64, Write}}, {{2, 0, 64, Read}}}, ".."},
		{"neighbouring ranges", []op{{{1, 0, 64, Write}}, {{1, 64, 64, Write}}, {{1, 128, 4, Read}}}, "..."},
		{"last byte shared", []op{{{1, 0, 64, Write}}, {{1, 63, 64, Read}}}, ".B"},
		{"first byte shared", []op{{{1, 63, 64, Write}}, {{1, 0, 64, Read}}}, ".B"},
		{"inside", []op{{{1, 0, 64, Write}}, {{1, 20, 4, Read}}}, ".B"},
		{"around", []op{{{1, 20, 4, Write}}, {{1, 0, 64, Read}}}, ".B"},
		{"between two", []op{{{1, 0, 10, Write}, {1, 20, 10, Write}}, {{1, 10, 10, Write}}}, ".."},
		{"within one op", []op{{{1, 0, 64, Read}, {1, 0, 64, Write}}}, "."},
		{"barrier forgets", []op{{{1, 0, 64, Write}, {2, 0, 64, Write}}, {{1, 0, 64, Read}}, {{2, 0, 64, Read}}},
			".B."},
		{"op after the barrier counts", []op{{{1, 0, 64, Write}}, {{1, 0, 64, ReadWrite}}, {{1, 0, 64, Read}}}, ".BB"},
		{"older than the last op", []op{{{1, 0, 64, Write}}, {{2, 0, 4, Write}}, {{3, 0, 4, Write}}, {{1, 0, 1, Read}}},
			"...B"},
		{"empty ranges", []op{{{1, 5, 0, Write}}, {{1, 0, 64, Write}}, {{1, 5, 0, Read}}, {{1, 5, -9, Read}}}, "...."},
		{"no access", []op{{{1, 0, 64, 0}}, {{1, 0, 64, Write}}, {{1, 0, 64, 0}}}, "..."},
		{"whole buffer", []op{{{1, 1 << 40, all, Write}}, {{1, 0, 1 << 40, Write}}, {{1, all - 1, all, Read}}}, "..B"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var h hazards
			got := ""
			for _, o := range c.ops {
				if h.step(o) {
					got += "B"
				} else {
					got += "."
				}
			}
			if got != c.want {
				t.Errorf("barriers %q, want %q", got, c.want)
			}
		})
	}
}

func TestHazardReset(t *testing.T) {
	var h hazards
	h.step([]touch{{1, 0, 64, Write}})
	h.reset()
	if h.step([]touch{{1, 0, 64, Read}}) {
		t.Error("barrier for a write before the reset")
	}
	if !h.step([]touch{{1, 0, 64, Write}}) {
		t.Error("no barrier for a read after the reset")
	}
}

// TestHazardAgainstBytes compares hazards with a model that keeps the access of each single byte since the last
// barrier.
func TestHazardAgainstBytes(t *testing.T) {
	const seeds, ops, buffers, bytes = 300, 200, 3, 96
	barriers, total := 0, 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		longest := int64(1 + rng.IntN(24)) // short ranges make long stretches without a barrier
		var h hazards
		var model [buffers][bytes]Access
		for op := range ops {
			list := make([]touch, rng.IntN(4))
			for i := range list {
				off := rng.Int64N(bytes)
				list[i] = touch{uint64(rng.IntN(buffers)), off, min(rng.Int64N(longest+1), bytes-off),
					Access(rng.IntN(4))}
			}
			want := false
			for _, x := range list {
				for _, had := range model[x.buf][x.off : x.off+x.size] {
					want = want || x.acc&Write != 0 && had != 0 || x.acc&Read != 0 && had&Write != 0
				}
			}
			if want {
				model = [buffers][bytes]Access{}
				barriers++
			}
			for _, x := range list {
				for b := x.off; b < x.off+x.size; b++ {
					model[x.buf][b] |= x.acc
				}
			}
			if got := h.step(list); got != want {
				t.Fatalf("seed %d op %d touching %v: barrier %v, want %v", seed, op, list, got, want)
			}
			total++
		}
	}
	t.Logf("%d ops, %d barriers, all as in the model", total, barriers)
}

// TestHazardRangesStayJoined sees to it that the memory of hazards is bounded by the bytes touched and not by the
// number of ops.
func TestHazardRangesStayJoined(t *testing.T) {
	for _, stride := range []int64{1, -1, 7} { // upwards, downwards, and the gaps filled late
		var h hazards
		for i := range int64(1000) {
			at := (i*stride%1000 + 1000) % 1000
			if h.step([]touch{{7, at * 16, 16, Write}, {8, 0, 4, Read}}) {
				t.Fatalf("stride %d: barrier before op %d", stride, i)
			}
		}
		if s := h.seen[7]; len(s.written) != 1 || s.written[0] != (byteRange{0, 16000}) {
			t.Errorf("stride %d: ranges written %v", stride, s.written)
		}
	}
}

func TestAccessString(t *testing.T) {
	for a, want := range map[Access]string{0: "none", Read: "read", Write: "write", ReadWrite: "read+write"} {
		if a.String() != want {
			t.Errorf("%d: %q, want %q", a, a.String(), want)
		}
	}
}

// TestHazardsOfGrids reads a grid's size at once after it was written, past a barrier, and again.
func TestHazardsOfGrids(t *testing.T) {
	var h hazards
	size := touch{buf: 1, off: 16, size: 12, acc: Read}
	write, other := touch{buf: 1, off: 16, size: 12, acc: Write}, touch{buf: 2, size: 4, acc: ReadWrite}
	for i, c := range []struct {
		touches           []touch
		reads             bool
		barrier, indirect bool
	}{
		{touches: []touch{write}},
		{touches: []touch{size}, reads: true, barrier: true, indirect: true},
		{touches: []touch{size}, reads: true},
		{touches: []touch{write, other}, barrier: true},
		{touches: []touch{other}, barrier: true},
		{touches: []touch{size}, reads: true, indirect: true},
		{touches: []touch{size, other}, reads: true, barrier: true},
	} {
		if got := h.step(c.touches); got != c.barrier {
			t.Errorf("op %d: barrier %v, want %v", i, got, c.barrier)
		}
		if got := c.reads && h.stepIndirect(size); got != c.indirect {
			t.Errorf("op %d: for grids too %v, want %v", i, got, c.indirect)
		}
	}
	h.step([]touch{write})
	h.reset()
	if h.stepIndirect(size) {
		t.Error("a full barrier is forgotten")
	}
}
