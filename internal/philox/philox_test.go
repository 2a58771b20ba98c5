package philox

import (
	"slices"
	"testing"
)

// The vectors are those of kat_vectors in Random123, "philox 4x32 10".
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, test := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Block(test.counter, test.key); got != test.want {
			t.Errorf("philox of %08x, %08x: %08x, want %08x", test.counter, test.key, got, test.want)
		}
	}
}

func TestPhiloxKeyHoldsTheWholeSeed(t *testing.T) {
	if got, want := Key(0x0123456789abcdef), [2]uint32{0x89abcdef, 0x01234567}; got != want {
		t.Errorf("key %08x, want %08x", got, want)
	}
}

func TestUniformStaysBelowOne(t *testing.T) {
	if got := Uniform(0); got != 0 {
		t.Errorf("uniform of 0: %v", got)
	}
	if got := Uniform(0xffffffff); got >= 1 || float32(got) >= 1 || got < 0.9999999 {
		t.Errorf("uniform of all ones: %v", got)
	}
}

func TestViewOrderIsAPermutation(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 43, 1000} {
		order := ViewOrder(42, 3, n)
		sorted := slices.Sorted(slices.Values(order))
		if len(order) != n {
			t.Fatalf("%d views of %d", len(order), n)
		}
		for i, v := range sorted {
			if i != v {
				t.Fatalf("n = %d: view %d is missing", n, i)
			}
		}
	}
}

func TestViewOrderDependsOnSeedAndEpoch(t *testing.T) {
	base := ViewOrder(42, 0, 50)
	if !slices.Equal(base, ViewOrder(42, 0, 50)) {
		t.Error("the same arguments give another order")
	}
	for name, other := range map[string][]int{
		"epoch": ViewOrder(42, 1, 50), "seed": ViewOrder(43, 0, 50),
		"high word of the seed": ViewOrder(42+1<<32, 0, 50),
	} {
		if slices.Equal(base, other) {
			t.Errorf("another %s gives the same order", name)
		}
	}
}

// The order is part of what a seed promises: a change of it changes every model.
func TestViewOrderStays(t *testing.T) {
	if got, want := ViewOrder(42, 0, 8), []int{7, 4, 5, 3, 1, 6, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// Every view comes first about equally often: 8 views in 8000 epochs, six
// standard deviations of 30.
func TestViewOrderIsFair(t *testing.T) {
	var first [8]int
	for epoch := range 8000 {
		first[ViewOrder(1, epoch, len(first))[0]]++
	}
	for view, n := range first {
		if n < 820 || n > 1180 {
			t.Errorf("view %d comes first %d times of 8000", view, n)
		}
	}
}
