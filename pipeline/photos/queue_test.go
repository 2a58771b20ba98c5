package photos

import (
	"testing"
)

// TestQueue follows next uses through takes and additions.
func TestQueue(t *testing.T) {
	q := newQueue(4)
	q.add([]int{0, 1, 0, 9, -1, 2})
	if q.first[0] != 0 || q.first[1] != 1 || q.first[2] != 3 || q.first[3] != Never {
		t.Fatalf("first uses %v", q.first)
	}
	q.take(1) // out of turn
	q.take(0)
	if q.first[0] != 2 || q.head != 1 {
		t.Fatalf("first uses %v from %d on", q.first, q.head)
	}
	q.add([]int{1, 3})
	q.take(1)
	if q.first[1] != 4 || q.first[3] != 5 || q.tail() != 6 {
		t.Fatalf("first uses %v up to %d", q.first, q.tail())
	}
	q.clear()
	q.add([]int{2})
	if q.first[2] != q.head || q.first[0] != Never {
		t.Fatalf("first uses %v from %d on", q.first, q.head)
	}
}
