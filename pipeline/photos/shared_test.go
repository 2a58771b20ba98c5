package photos

import (
	"context"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// TestSharedMerges has two devices say what they will ask for, one of them much less often: the source hears of it
// by step and device, as far as both have said so, and again where one starts anew.
func TestSharedMerges(t *testing.T) {
	src := &expectedPhotos{Images: make(Images, 100)}
	shares := Shared(src, 2)
	a, b := shares[0], shares[1]
	heard := func(want ...int) {
		t.Helper()
		if !slices.Equal(src.queue, want) {
			t.Fatalf("the source was told %v, want %v", src.queue, want)
		}
	}
	photo := func(p *Share, view int) {
		t.Helper()
		must.Get(p.Photo(t.Context(), view))(t)
	}
	a.Expect(0, []Ask{{0, 10}, {3, 13}, {5, 15}}, 6)
	heard()
	b.Expect(0, []Ask{{0, 20}, {1, 21}, {2, 22}, {3, 23}}, 4)
	heard(10, 20, 21, 22, 13, 23)
	photo(a, 10)
	photo(b, 20)
	b.Expect(1, []Ask{{4, 24}}, 8)
	heard(21, 22, 13, 23, 24, 15)
	photo(b, 21)
	photo(a, 99) // a step that is done again
	b.Forget()
	heard()
	b.Expect(2, []Ask{{2, 32}, {6, 36}}, 8)
	heard(32, 13, 15)
	photo(b, 32)
	a.Expect(3, nil, Never) // it has all photos but those
	heard(13, 15, 36)
	photo(a, 13)
	photo(a, 15)
	photo(b, 36)
	b.Expect(8, []Ask{{8, 38}, {9, 39}}, 16)
	heard(38, 39)
	if src.unexpected != 1 {
		t.Errorf("%d photos were not announced, 1 was not", src.unexpected)
	}
}

// planned is a Source that has all photos, and wants to know what is asked for.
type planned struct{ Images }

func (planned) Expect([]int) {}
func (planned) Forget()      {}

// TestSharedAllocations wants announcing and asking to allocate nothing, once the list is as long as it gets.
func TestSharedAllocations(t *testing.T) {
	share, step, asks := Shared(planned{make(Images, 1)}, 1)[0], 0, make([]Ask, 1)
	next := func() {
		asks[0].Step = step + 9
		share.Expect(step, asks, step+10)
		if step >= 9 {
			must.Get(share.Photo(t.Context(), 0))(t)
		}
		step++
	}
	for range 50 {
		next()
	}
	if n := testing.AllocsPerRun(1, func() {
		for range 1000 {
			next()
		}
	}); n > 9 { // what else runs may have some
		t.Errorf("%g allocations in 1000 steps", n)
	}
}

// expectedPhotos is a Source that compares what is asked for with what was announced.
type expectedPhotos struct {
	Images
	queue      []int
	unexpected int
}

func (p *expectedPhotos) Expect(views []int) { p.queue = append(p.queue, views...) }
func (p *expectedPhotos) Forget()            { p.queue = nil }

func (p *expectedPhotos) Photo(ctx context.Context, view int) (scene.Image, error) {
	if len(p.queue) > 0 && p.queue[0] == view {
		p.queue = p.queue[1:]
	} else {
		p.unexpected++
	}
	return p.Images.Photo(ctx, view)
}
