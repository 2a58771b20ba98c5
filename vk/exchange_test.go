package vk

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	must "vksplat/internal/musttest"
)

// eachWay runs f with 2, 3 and 4 devices, with memory that they import and without, with the validation layer and
// without, which waits in another way.
func eachWay(t *testing.T, f func(t *testing.T, devices []*Device)) {
	for n := 2; n <= 4; n++ {
		for _, imported := range []bool{true, false} {
			for _, validated := range []bool{true, false} {
				t.Run(fmt.Sprintf("%d devices, imported %v, validated %v", n, imported, validated), func(t *testing.T) {
					f(t, devicesToShare(t, validated, n, imported))
				})
			}
		}
	}
}

func devicesToShare(t *testing.T, validated bool, n int, imported bool) (devices []*Device) {
	t.Helper()
	if !imported {
		t.Setenv(limitsVariable, writeFile(t, `{"externalMemoryHost": false}`))
	}
	in := instanceFor(t, validated)
	for range n {
		devices = append(devices, openDevice(t, in, DeviceOptions{Budget: 64 << 20}))
	}
	if f := devices[0].info.Features.ExternalMemoryHost; f != imported {
		t.Skipf("the device has externalMemoryHost: %v", f)
	}
	return devices
}

func instanceFor(t *testing.T, validated bool) *Instance {
	t.Helper()
	if validated {
		return testInstance(t)
	}
	return plainInstance(t)
}

const (
	inFlight = 3   // programs of each device
	rounds   = 100 // submits of each device
)

// relay is what one device has in a test of exchange.
type relay struct {
	dev      *Device
	programs [inFlight]*Program
	tickets  [inFlight]Ticket
	results  [inFlight]Slice[float32]
	work     chan Ticket // of the phase that the relay waits for, per round
}

// drive submits the programs of all devices round by round from one goroutine, three rounds ahead, while one goroutine
// per device waits for a phase of each round and then calls passOn. seen checks the results of a round.
func drive(t *testing.T, list []*relay, phase int, passOn func(i, round int) error,
	seen func(i, round int, result []float32)) {
	var wg sync.WaitGroup
	for i, x := range list {
		x.work = make(chan Ticket, rounds)
		wg.Go(func() {
			round := 0
			for ticket := range x.work {
				err := x.dev.Wait(ticket)
				if err == nil {
					err = passOn(i, round)
				}
				if err != nil {
					t.Errorf("device %d, round %d: %v", i, round, err)
				}
				round++
			}
		})
	}
	s := make([]*Submission, len(list))
	for i, x := range list {
		s[i] = x.dev.NewSubmission()
	}
	until := make([]uint64, 8)
	for round := range rounds + inFlight {
		slot := round % inFlight
		for i, x := range list {
			must.Do(t, x.dev.Wait(x.tickets[slot]))
			if round >= inFlight {
				seen(i, round-inFlight, Host(x.results[slot]))
			}
			if round >= rounds {
				continue
			}
			p := x.programs[slot]
			for j := range until {
				until[j] = uint64(round + 1)
			}
			s[i].Reset()
			s[i].AddGated(p, until[:len(p.waits)]...)
			x.tickets[slot] = must.Get(x.dev.Submit(s[i]))(t)
			x.work <- p.PhaseTicket(phase)
		}
	}
	for _, x := range list {
		close(x.work)
	}
	wg.Wait()
}

// TestPingPong lets devices add to one counter in turn.
func TestPingPong(t *testing.T) {
	eachWay(t, func(t *testing.T, devices []*Device) {
		s := must.Get(NewShared(devices, 256, "counter"))(t)
		gates := make([]*Gate, len(devices))
		list := make([]*relay, len(devices))
		for i, d := range devices {
			gates[i] = must.Get(d.NewGate())(t)
			counter := Cast[float32](s.View(d))
			one := must.Get(Make[float32](d, Upload, counter.N(), "one"))(t)
			for j := range Host(one) {
				Host(one)[j] = 1
			}
			x := &relay{dev: d}
			for slot := range x.programs {
				x.results[slot] = must.Get(Make[float32](d, Readback, counter.N(), "result"))(t)
				r := NewRecorder(d)
				r.Await(gates[i])
				r.Dispatch(saxpy(one, counter, 1, 0), Items(counter.N(), 64))
				r.Copy(x.results[slot].View, counter.View)
				x.programs[slot] = build(t, r, BuildOptions{})
			}
			list[i] = x
		}
		n := len(devices)
		passOn := func(i, round int) error { // the next device, and after the last one the first in its next round
			next := (i + 1) % n
			if err := s.Carry(devices[i], devices[next], 0, 256); err != nil {
				return err
			}
			return gates[next].Open(uint64(round + 1 + (i+1)/n))
		}
		must.Do(t, gates[0].Open(1))
		drive(t, list, 1, passOn, func(i, round int, result []float32) {
			for j, got := range result {
				if want := float32(round*n + i + 1); got != want {
					t.Fatalf("device %d, round %d: counter %d is %v, want %v", i, round, j, got, want)
				}
			}
		})
	})
}

// TestExchange has each device write a block per round, of random size, and sum up those of all.
func TestExchange(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	eachWay(t, func(t *testing.T, devices []*Device) {
		n := len(devices)
		most := 1 + rng.IntN(20_000) // floats of the longest block
		stride := int64(most*4+255) / 256 * 256
		sizes := make([]int, n)
		for i := range sizes {
			sizes[i] = 1 + rng.IntN(most)
		}
		sizes[rng.IntN(n)] = most
		s := must.Get(NewShared(devices, stride*int64(n*inFlight), "blocks"))(t)
		block := func(slot, i int) (off, size int64) { return int64(slot*n+i) * stride, int64(4 * sizes[i]) }
		gates := make([][]*Gate, n) // by device that waits and device that is waited for
		list := make([]*relay, n)
		base := make([][]float32, n)
		for i, d := range devices {
			for range n {
				gates[i] = append(gates[i], must.Get(d.NewGate())(t))
			}
			for range sizes[i] {
				base[i] = append(base[i], float32(rng.IntN(1000)))
			}
			list[i] = exchanger(t, d, s, block, i, gates[i], base[i], most)
		}
		passOn := func(i, round int) error {
			for j := range n {
				if j == i {
					continue
				}
				off, size := block(round%inFlight, i)
				if err := s.Carry(devices[i], devices[j], off, size); err != nil {
					return err
				}
				if err := gates[j][i].Open(uint64(round + 1)); err != nil {
					return err
				}
			}
			return nil
		}
		drive(t, list, 0, passOn, func(i, round int, result []float32) {
			for k, got := range result {
				want := float32(0)
				for j := range n {
					if k < sizes[j] {
						want += float32(j+1) * (base[j][k] + float32(round+1))
					}
				}
				if got != want {
					t.Fatalf("device %d, round %d: element %d is %v, want %v", i, round, k, got, want)
				}
			}
		})
	})
}

// exchanger records what device i does in a round of TestExchange: its state grows by one and goes to its block of the
// slot; then it waits for each of the others and sums up the blocks of all, each times its device's number.
func exchanger(t *testing.T, d *Device, s *Shared, block func(slot, i int) (off, size int64), i int, gates []*Gate,
	base []float32, most int) *relay {
	state, one := must.Get(Make[float32](d, Upload, len(base), "state"))(t),
		must.Get(Make[float32](d, Upload, len(base), "one"))(t)
	copy(Host(state), base)
	for j := range Host(one) {
		Host(one)[j] = 1
	}
	pool, x := d.NewScratchPool(), &relay{dev: d}
	for slot := range x.programs {
		x.results[slot] = must.Get(Make[float32](d, Readback, most, "result"))(t)
		r := NewRecorder(d)
		sum := ScratchOf[float32](r, "sum", most)
		r.Fill(sum.View, 0)
		r.Dispatch(saxpy(one, state, 1, 0), Items(len(base), 64))
		off, size := block(slot, i)
		r.Copy(s.View(d).Slice(off, size), state.View)
		for j, g := range gates {
			if j != i {
				r.Await(g)
			}
		}
		for j := range gates {
			off, size := block(slot, j)
			from := Cast[float32](s.View(d).Slice(off, size))
			r.Dispatch(saxpy(from, sum.At(0, from.N()), float32(j+1), 0), Items(from.N(), 64))
		}
		r.Copy(x.results[slot].View, sum.View)
		x.programs[slot] = must.Get(r.Build("exchange", pool, BuildOptions{SplitAfter: []int{0, 2}}))(t)
	}
	return x
}

// TestCloseAtGates closes devices whose programs wait at gates that nobody opens, with work behind them and a goroutine
// that waits for it.
func TestCloseAtGates(t *testing.T) {
	for i := range 4 {
		in, closeFirst := instanceFor(t, i < 2), i%2 == 0
		d := must.Get(in.NewDevice(in.devices[0], DeviceOptions{Budget: 64 << 20}))(t)
		y := must.Get(Make[float32](d, Readback, 64, "y"))(t)
		a, b := must.Get(d.NewGate())(t), must.Get(d.NewGate())(t)
		s := d.NewSubmission()
		var last Ticket
		for range inFlight {
			r := NewRecorder(d)
			r.Await(a)
			r.Fill(y.View, 1)
			r.Await(b)
			s.Reset()
			s.AddGated(build(t, r, BuildOptions{}), 1000, 1<<31-1)
			last = must.Get(d.Submit(s))(t)
		}
		waited, closed := make(chan error, 1), make(chan error, 1)
		go func() { waited <- d.Wait(last) }()
		go func() {
			if closeFirst {
				if err := a.Close(); err != nil {
					t.Error(err)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
				if err := <-waited; err != nil {
					t.Error(err)
				}
			}
			closed <- d.Close()
		}()
		select {
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("Close hangs")
		}
		if err := a.Open(5000); err == nil {
			t.Error("a gate of a closed device was opened")
		}
	}
}
