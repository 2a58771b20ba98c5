package vk

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	must "vksplat/internal/musttest"
)

// TestGateHoldsBack waits at a gate for longer than it is closed, and lets the host write meanwhile.
func TestGateHoldsBack(t *testing.T) {
	d := testDevice(t)
	const n = 1000
	one, y := must.Get(Make[float32](d, Upload, n, "one"))(t), must.Get(Make[float32](d, Readback, n, "y"))(t)
	for i := range n {
		Host(one)[i], Host(y)[i] = 1, 0
	}
	g := must.Get(d.NewGate())(t)
	r := NewRecorder(d)
	r.Dispatch(saxpy(one, y, 1, 0), Items(n, 64))
	r.Await(g)
	r.Dispatch(saxpy(one, y, 10, 0), Items(n, 64))
	p := build(t, r, BuildOptions{})
	s := d.NewSubmission()
	s.AddGated(p, 5)
	last := must.Get(d.Submit(s))(t)
	must.Do(t, d.Wait(p.PhaseTicket(0)))
	if done := must.Get(d.Done(last))(t); done || Host(y)[n-1] != 1 || p.PhaseTicket(1) != last {
		t.Fatalf("before opening: done %v, y %v, ticket %d of %d", done, Host(y)[n-1], p.PhaseTicket(1), last)
	}
	must.Do(t, g.Open(4))
	time.Sleep(20 * time.Millisecond)
	if done := must.Get(d.Done(last))(t); done {
		t.Fatal("opened to 4, what waits for 5 ran")
	}
	Host(one)[n-1] = 2 // the host writes before it opens
	must.Do(t, g.Open(7))
	if err := d.Wait(last); err != nil || Host(y)[0] != 11 || Host(y)[n-1] != 21 {
		t.Fatalf("y %v and %v, want 11 and 21: %v", Host(y)[0], Host(y)[n-1], err)
	}
	if got := p.Timings(nil); len(got) != 3 || got[1].Name != "await" || got[1].Nanoseconds < 10e6 {
		t.Errorf("timings %v, want an await of 10 ms at least", got)
	}
}

func TestGatesRefuse(t *testing.T) {
	d := testDevice(t)
	y := must.Get(Make[float32](d, Readback, 64, "y"))(t)
	g, other := must.Get(d.NewGate())(t), must.Get(d.NewGate())(t)
	r := NewRecorder(d)
	r.Await(g)
	r.Fill(y.View, 1)
	p := build(t, r, BuildOptions{})
	r.Await(other)
	two := build(t, r, BuildOptions{})
	if got := p.PhaseTicket(0); got != 0 {
		t.Errorf("ticket %d before the first submit", got)
	}
	s := d.NewSubmission()
	refused := func(what, want string, add func()) {
		t.Helper()
		s.Reset()
		add()
		if _, err := d.Submit(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", what, err, want)
		}
	}
	refused("no values", "waits at gates 1 times, 0 values were given", func() { s.Add(p) })
	refused("two values", "waits at gates 1 times, 2 values", func() { s.AddGated(p, 1, 2) })
	refused("too far", "at most 2147483647 further", func() { s.AddGated(p, 1<<31) })
	refused("twice", "twice", func() { s.AddGated(p, 1); s.AddGated(p, 2) })
	if err := g.Open(1 << 31); err == nil {
		t.Error("opened too far")
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	refused("closed gate", "closed", func() { s.AddGated(two, 1, 1) })
	if err := other.Open(1); err == nil {
		t.Error("a closed gate was opened")
	}
	r = NewRecorder(d)
	for range maxBatches {
		r.Await(g)
	}
	if _, err := r.Build("long", d.NewScratchPool(), BuildOptions{}); err == nil ||
		!strings.Contains(err.Error(), "65 command buffers") {
		t.Errorf("a program of too many parts: error %v", err)
	}
	s.Reset()
	s.AddGated(p, 3)
	must.Get(d.Submit(s))(t)
	for _, n := range []uint64{2, 1, 3, 3, 0} {
		if err := g.Open(n); err != nil {
			t.Errorf("open %d: %v", n, err)
		}
	}
	if err := d.Wait(p.PhaseTicket(1)); err != nil {
		t.Error(err)
	}
	for _, k := range []int{-1, 2} {
		if err := d.Wait(p.PhaseTicket(k)); err == nil {
			t.Errorf("waited for phase %d of a program with one await", k)
		}
	}
}

// TestGateClosesInSubmit closes a gate of a device that is lost while a submission, which has the gate's semaphore in
// its batches, is on its way to the driver: the semaphore lives until the device is closed, and the validation layer
// has nothing to say.
func TestGateClosesInSubmit(t *testing.T) {
	in := testInstance(t)
	info, _, err := in.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	d := must.Get(in.NewDevice(info, DeviceOptions{Budget: 64 << 20}))(t)
	g, idle := must.Get(d.NewGate())(t), must.Get(d.NewGate())(t)
	y := must.Get(Make[float32](d, Readback, 64, "y"))(t)
	r := NewRecorder(d)
	r.Await(g)
	r.Fill(y.View, 1)
	p, s := must.Get(r.Build("gated", d.NewScratchPool(), BuildOptions{}))(t), d.NewSubmission()
	s.AddGated(p, 1)
	first := d.timeline.submitted.Load() + 1
	s.sort(first) // as Submit does, from here on
	if err := d.check("vkWaitSemaphores", "timeline", deviceLost); err == nil || !d.Lost() {
		t.Fatalf("%v, lost %v", err, d.Lost())
	}
	if err := g.Close(); err == nil || g.semaphore == 0 {
		t.Fatalf("closed on a device that is lost: error %v, semaphore %x", err, g.semaphore)
	}
	last, result := d.shim.submit(d.queue, &s.batches, d.timeline.semaphore, first)
	if result < 0 || last != first+1 {
		t.Fatalf("tickets %d to %d: %d", first, last, result)
	}
	d.timeline.submitted.Store(last)
	p.submitted(Ticket(first))
	if err := idle.Close(); err != nil || idle.semaphore != 0 {
		t.Errorf("a gate that nothing ever waited at: error %v, semaphore %x", err, idle.semaphore)
	}
	if err := d.Close(); !errors.Is(err, ErrDeviceLost) || g.semaphore != 0 {
		t.Errorf("the device was closed: error %v, semaphore %x", err, g.semaphore)
	}
	if err := g.Close(); g.semaphore != 0 {
		t.Errorf("closed once more: error %v, semaphore %x", err, g.semaphore)
	}
}

// TestManyBatches has two programs that are 65 batches together, and then 64.
func TestManyBatches(t *testing.T) {
	d := testDevice(t)
	y := must.Get(Make[float32](d, Readback, 64, "y"))(t)
	g := must.Get(d.NewGate())(t)
	gated := func(n int) *Program {
		r := NewRecorder(d)
		for range n {
			r.Await(g)
			r.Fill(y.View, math.Float32bits(float32(n)))
		}
		return build(t, r, BuildOptions{})
	}
	until := make([]uint64, 40)
	s := d.NewSubmission()
	a, b, c := gated(40), gated(24), gated(23)
	s.AddGated(a, until...)
	s.AddGated(b, until[:24]...)
	if _, err := d.Submit(s); err == nil || !strings.Contains(err.Error(), "65 batches, at most 64") {
		t.Errorf("error %v", err)
	}
	s.Reset()
	s.AddGated(a, until...)
	s.AddGated(c, until[:23]...)
	if err := d.Wait(must.Get(d.Submit(s))(t)); err != nil || Host(y)[0] != 23 ||
		a.PhaseTicket(40) != c.PhaseTicket(0) || c.PhaseTicket(23)-c.PhaseTicket(0) != 23 {
		t.Errorf("y %v, tickets %d, %d and %d: %v", Host(y)[0], a.PhaseTicket(40), c.PhaseTicket(0), c.PhaseTicket(23),
			err)
	}
}

// TestAwaitsChangeNothing runs random lists with awaits and splits at random places, opened by several goroutines, in
// normal and in serial mode: the results are those of the list without any.
func TestAwaitsChangeNothing(t *testing.T) {
	d := testDevice(t)
	const n = 1000
	in, out := must.Get(Make[float32](d, Upload, n, "in"))(t), must.Get(Make[float32](d, Readback, n, "out"))(t)
	for i := range Host(in) {
		Host(in)[i] = float32(i % 31)
	}
	pool := d.NewScratchPool()
	g := must.Get(d.NewGate())(t)
	opened := uint64(0)
	for trial := range 12 {
		var first []float32
		for variant := range 4 {
			rng := rand.New(rand.NewPCG(8, uint64(trial)))
			chance := rand.New(rand.NewPCG(uint64(trial), uint64(variant)))
			r := NewRecorder(d)
			awaits := 0
			maybe := func() {
				if variant > 0 && chance.IntN(4) == 0 {
					r.Await(g)
					awaits++
				}
			}
			from := in
			for range 4 + rng.IntN(8) {
				maybe()
				next := ScratchOf[float32](r, "next", n)
				r.Fill(next.View, math.Float32bits(float32(rng.IntN(9))))
				maybe()
				r.Dispatch(saxpy(from, next, 0.5, 1), Items(n, 64))
				from = next
			}
			r.Copy(out.View, from.View)
			maybe()
			var after []int
			for i := range r.Len() {
				if chance.IntN(4) == 0 {
					after = append(after, i)
				}
			}
			p := must.Get(r.Build("random", pool, BuildOptions{Serial: variant == 2, SplitAfter: after}))(t)
			until := make([]uint64, awaits)
			for i := range until {
				until[i] = opened + uint64(i+1)
			}
			s := d.NewSubmission()
			s.AddGated(p, until...)
			last := must.Get(d.Submit(s))(t)
			var wg sync.WaitGroup
			for k := range until {
				wg.Go(func() {
					if err := d.Wait(p.PhaseTicket(k)); err != nil {
						t.Error(err)
					}
					if err := g.Open(until[k]); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			must.Do(t, d.Wait(last))
			opened += uint64(awaits)
			if variant == 0 {
				first = slices.Clone(Host(out))
			}
			if !slices.Equal(Host(out), first) {
				t.Fatalf("trial %d, variant %d differs with\n%v", trial, variant, r)
			}
			must.Do(t, p.Close())
		}
	}
}

// TestWaitAwake waits without sleeping for work that is done, for work that is let through meanwhile, before and after
// it falls asleep, and for none.
func TestWaitAwake(t *testing.T) {
	d := openDevice(t, testInstance(t), DeviceOptions{Budget: 64 << 20})
	gate := must.Get(d.NewGate())(t)
	y := must.Get(Make[float32](d, Readback, 64, "y"))(t)
	r := NewRecorder(d)
	r.Await(gate)
	r.Fill(y.View, math.Float32bits(3))
	p, s := build(t, r, BuildOptions{}), d.NewSubmission()
	for round, most := range []time.Duration{0, time.Millisecond, time.Minute} {
		clear(Host(y))
		s.Reset()
		s.AddGated(p, uint64(round+1))
		ticket := must.Get(d.Submit(s))(t)
		go func() {
			time.Sleep(20 * time.Millisecond)
			if err := gate.Open(uint64(round + 1)); err != nil {
				t.Error(err)
			}
		}()
		for range 2 {
			if err := d.WaitAwake(ticket, most); err != nil || Host(y)[63] != 3 {
				t.Errorf("awake for %v: %v, %v", most, Host(y)[63], err)
			}
		}
	}
	if err := d.WaitAwake(1000, time.Millisecond); err == nil {
		t.Error("a ticket that was never given out was waited for")
	}
}
