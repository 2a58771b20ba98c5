package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/philox"
	"vksplat/pipeline/photos"
)

// TestViewOrder compares the order with philox.ViewOrder, next uses with a search, and the views that take the place of
// one without pixels.
func TestViewOrder(t *testing.T) {
	const n, seed = 7, 5
	o := newViewOrder(seed, n, oneDevice)
	var plain []int
	for e := range 6 {
		plain = append(plain, philox.ViewOrder(seed, e, n)...)
	}
	for s := range 4 * n {
		if o.at(s) != plain[s] {
			t.Fatalf("step %d trains on %d, want %d", s, o.at(s), plain[s])
		}
		for v := range n {
			if want := s + 1 + slices.Index(plain[s+1:], v); o.nextUse(v, s) != want {
				t.Fatalf("after step %d view %d is needed at %d, want %d", s, v, o.nextUse(v, s), want)
			}
		}
	}
	bad := plain[2]
	if left := o.drop(bad); left != n-1 || o.drop(bad) != n-1 {
		t.Errorf("%d views are left", left)
	}
	for s := range 3 * n {
		want := plain[s]
		if want == bad {
			want = plain[s/n*n+(s+1)%n]
		}
		if o.at(s) != want {
			t.Errorf("step %d trains on %d, want %d", s, o.at(s), want)
		}
	}
}

// TestViewOrderOfTeams wants every view once an epoch from the devices together, and next uses by the device that asks.
func TestViewOrderOfTeams(t *testing.T) {
	const n, seed, devices, steps = 7, 5, 3, 70
	var plain, dealt []int
	for e := range devices*steps/n + 4 {
		plain = append(plain, philox.ViewOrder(seed, e, n)...)
	}
	orders := make([]viewOrder, devices)
	for d := range orders {
		orders[d] = newViewOrder(seed, n, world{d, devices})
	}
	for s := range steps {
		for d := range orders {
			o := &orders[d]
			dealt = append(dealt, o.at(s))
			for v := range n {
				want := photos.Never
				for turn := devices*(s+1) + d; turn/n <= (devices*s+d)/n+2; turn += devices {
					if plain[turn] == v {
						want = turn / devices
						break
					}
				}
				if got := o.nextUse(v, s); got != want {
					t.Fatalf("after step %d device %d needs view %d at %d, want %d", s, d, v, got, want)
				}
			}
		}
	}
	if !slices.Equal(dealt, plain[:len(dealt)]) {
		t.Errorf("views %v, want %v", dealt, plain[:len(dealt)])
	}
}

// TestWithoutPhotos takes photos away until too few are left.
func TestWithoutPhotos(t *testing.T) {
	var said []string
	p := &devicePhotos{photoSlots: photoSlots{cams: planCameras(4, 8, 8)}, order: newViewOrder(1, 4, oneDevice),
		warn: func(text string) { said = append(said, text) }}
	bad := fmt.Errorf("no pixels: %w", fault.ErrData)
	ctx := context.Background()
	if err := p.without(ctx, 2, bad); err != nil || len(said) != 1 {
		t.Errorf("got %v, and %q was said", err, said)
	}
	if err := p.without(ctx, 0, bad); !errors.Is(err, bad) || len(said) != 1 {
		t.Errorf("two photos are left: got %v, and %q was said", err, said)
	}
	for _, other := range []error{fmt.Errorf("busy: %w", fault.ErrTryAgain), errors.New("a defect")} {
		if err := p.without(ctx, 1, other); !errors.Is(err, other) || p.order.bad[1] {
			t.Errorf("got %v, want %v", err, other)
		}
	}
}
