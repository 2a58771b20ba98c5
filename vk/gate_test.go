package vk

import (
	"testing"
	"time"
)

// TestGateHoldsBack waits at a gate for longer than it is closed, and lets the host write meanwhile.
func TestGateHoldsBack(t *testing.T) {
	d := testDevice(t)
	const n = 1000
	one, y := must(Make[float32](d, Upload, n, "one"))(t), must(Make[float32](d, Readback, n, "y"))(t)
	for i := range n {
		Host(one)[i], Host(y)[i] = 1, 0
	}
	g := must(d.NewGate())(t)
	r := NewRecorder(d)
	r.Dispatch(saxpy(one, y, 1, 0), Items(n, 64))
	r.Await(g)
	r.Dispatch(saxpy(one, y, 10, 0), Items(n, 64))
	p := build(t, r, BuildOptions{})
	s := d.NewSubmission()
	s.AddGated(p, 5)
	last := must(d.Submit(s))(t)
	if err := d.Wait(p.PhaseTicket(0)); err != nil {
		t.Fatal(err)
	}
	if done := must(d.Done(last))(t); done || Host(y)[n-1] != 1 || p.PhaseTicket(1) != last {
		t.Fatalf("before opening: done %v, y %v, ticket %d of %d", done, Host(y)[n-1], p.PhaseTicket(1), last)
	}
	if err := g.Open(4); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if done := must(d.Done(last))(t); done {
		t.Fatal("opened to 4, what waits for 5 ran")
	}
	Host(one)[n-1] = 2 // the host writes before it opens
	if err := g.Open(7); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(last); err != nil || Host(y)[0] != 11 || Host(y)[n-1] != 21 {
		t.Fatalf("y %v and %v, want 11 and 21: %v", Host(y)[0], Host(y)[n-1], err)
	}
	if got := p.Timings(nil); len(got) != 3 || got[1].Name != "await" || got[1].Nanoseconds < 10e6 {
		t.Errorf("timings %v, want an await of 10 ms at least", got)
	}
}
