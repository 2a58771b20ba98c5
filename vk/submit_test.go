package vk

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	must "vksplat/internal/musttest"
)

func TestTimings(t *testing.T) {
	d := testDevice(t)
	const n = 1 << 20
	x, y := must.Get(Make[float32](d, Upload, n, "x"))(t), must.Get(Make[float32](d, DeviceLocal, n, "y"))(t)
	r := NewRecorder(d)
	r.Fill(y.View, 0)
	r.Dispatch(saxpy(x, y, 1, 0), Groups(0))
	r.Dispatch(saxpy(x, y, 1, 0), Items(n, 64))
	for _, o := range []BuildOptions{{}, {SplitAfter: []int{0, 1}}} {
		p := build(t, r, o)
		if got := p.Timings(nil); len(got) != 0 {
			t.Errorf("timings before the first submit: %v", got)
		}
		run(t, d, p)
		got := p.Timings(nil)
		if len(got) != 3 || got[2].Name != "saxpy" || got[2].Nanoseconds <= 0 || got[2].Nanoseconds > 10e9 ||
			got[1].Nanoseconds > got[2].Nanoseconds {
			t.Errorf("timings %v", got)
		}
	}
	if p := build(t, r, BuildOptions{NoTimings: true}); len(p.Timings(nil)) != 0 {
		t.Error("timings without timestamps")
	}
}

// TestTimingsTogether has dispatches of one kernel that need not wait for each other, and one that must.
func TestTimingsTogether(t *testing.T) {
	d := testDevice(t)
	const n = 1 << 16
	x := must.Get(Make[float32](d, Upload, n, "x"))(t)
	r := NewRecorder(d)
	var last Slice[float32]
	for range 3 {
		last = must.Get(Make[float32](d, DeviceLocal, n, "y"))(t)
		r.Dispatch(saxpy(x, last, 1, 0), Items(n, 64))
	}
	r.Dispatch(saxpy(x, last, 1, 0), Items(n, 64))
	p := build(t, r, BuildOptions{})
	run(t, d, p)
	got := p.Timings(nil)
	if len(got) != 4 || len(p.ticks) != 3 || got[0].Nanoseconds != got[1].Nanoseconds || got[1] != got[2] ||
		got[3].Nanoseconds <= 0 || got[0].Beside || !got[1].Beside || got[3].Beside {
		t.Errorf("timings %v of %d timestamps", got, len(p.ticks))
	}
}

// TestCopierTook wants a copier's time where it was asked for, and the copy in any case.
func TestCopierTook(t *testing.T) {
	d := openDevice(t, plainInstance(t), DeviceOptions{Budget: 64 << 20})
	const n = 1 << 16
	from, to := must.Get(Make[uint32](d, Upload, n, "from"))(t), must.Get(Make[uint32](d, Readback, n, "to"))(t)
	c := must.Get(d.NewCopier())(t)
	copyOnce := func(timed bool, value uint32) {
		t.Helper()
		Host(from)[n-1] = value
		s := d.NewSubmission()
		s.Add(c)
		err := errors.Join(c.SetTimed(timed), c.Record(to.View, from.View))
		if err == nil {
			err = d.Wait(must.Get(d.Submit(s))(t))
		}
		if err != nil || Host(to)[n-1] != value {
			t.Fatalf("copied %d, %v", Host(to)[n-1], err)
		}
		if ns, ok := c.Took(); ok != timed || timed && ns <= 0 || ns > 1e9 {
			t.Errorf("timed %t: took %d ns, %t", timed, ns, ok)
		}
	}
	if _, ok := c.Took(); ok {
		t.Error("a copy that never was has a time")
	}
	copyOnce(false, 3)
	copyOnce(true, 4)
	copyOnce(true, 5)
	copyOnce(false, 6)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.SetTimed(true); err != nil {
		t.Error(err)
	}
}

func TestSplitPoints(t *testing.T) {
	times := []PassTime{{Name: "a", Nanoseconds: 50}, {Name: "b", Nanoseconds: 60}, {Name: "c", Nanoseconds: 300},
		{Name: "d", Nanoseconds: 40}, {Name: "e", Nanoseconds: 40}}
	if got := SplitPoints(times, 100); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("split after %v, want after 0, 1 and 2", got)
	}
}

func TestSubmitDoesNotAllocate(t *testing.T) {
	d := openDevice(t, plainInstance(t), DeviceOptions{Budget: 256 << 20})
	const n = 1000
	x, y := must.Get(Make[float32](d, Upload, n, "x"))(t), must.Get(Make[float32](d, DeviceLocal, n, "y"))(t)
	var programs []*Program
	var copiers []*Copier
	for range 3 {
		r := NewRecorder(d)
		r.Dispatch(saxpy(x, y, 1, 0), Items(n, 64))
		r.Fill(y.View, 0)
		programs = append(programs, build(t, r, BuildOptions{SplitAfter: []int{0}}))
		copiers = append(copiers, must.Get(d.NewCopier())(t))
	}
	gate := must.Get(d.NewGate())(t)
	var gated []*Program
	for range 3 {
		r := NewRecorder(d)
		r.Await(gate)
		r.Fill(y.View, 1)
		r.Await(gate)
		gated = append(gated, build(t, r, BuildOptions{}))
	}
	tickets := make([]Ticket, 3)
	times := make([]PassTime, 0, 8)
	s := d.NewSubmission()
	step := 0
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	allocs := testing.AllocsPerRun(200, func() {
		slot := step % 3
		step++
		fail(d.Wait(tickets[slot]))
		_, err := d.Done(tickets[(slot+1)%3])
		fail(err)
		times = programs[slot].Timings(times[:0])
		fail(copiers[slot].Record(y.View, x.View))
		s.Reset()
		s.Add(copiers[slot])
		s.Add(programs[slot])
		s.AddGated(gated[slot], uint64(2*step), uint64(2*step+1))
		tickets[slot], err = d.Submit(s)
		fail(err)
		fail(gate.Open(uint64(2 * step)))
		fail(d.Wait(gated[slot].PhaseTicket(1)))
		fail(gate.Open(uint64(2*step + 1)))
	})
	if allocs != 0 {
		t.Errorf("%v Go heap allocations per step, want 0", allocs)
	}
	if len(times) != 2 {
		t.Errorf("timings %v", times)
	}
}

func TestSubmitRefuses(t *testing.T) {
	d := testDevice(t)
	x, y := must.Get(Make[float32](d, Upload, 100, "x"))(t), must.Get(Make[float32](d, DeviceLocal, 100, "y"))(t)
	r := NewRecorder(d)
	r.Copy(y.View, x.View)
	p := build(t, r, BuildOptions{})
	s := d.NewSubmission()
	s.Add(p)
	s.Add(p)
	if _, err := d.Submit(s); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a program twice in a submission: error %v", err)
	}
	c := must.Get(d.NewCopier())(t)
	s.Reset()
	s.Add(c)
	if _, err := d.Submit(s); err == nil {
		t.Error("an empty copier was submitted")
	}
	if err := c.Record(y.View, x.At(0, 5).View); err == nil {
		t.Error("a copy of 20 bytes into 400 was recorded")
	}
	if err := d.Wait(1 << 40); err == nil {
		t.Error("waited for a ticket that was never given out")
	}
	s.Reset()
	if _, err := d.Submit(s); err != nil {
		t.Errorf("empty submission: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	s.Add(p)
	if _, err := d.Submit(s); err == nil {
		t.Error("a closed program was submitted")
	}
}

// soup runs a sequence of dependent submissions on d and returns what comes out.
func soup(t *testing.T, d *Device, seed uint64) []float32 {
	const n, slots, steps = 5000, 3, 60
	state := must.Get(Make[float32](d, DeviceLocal, n, "state"))(t)
	const stride = (n + 63) / 64 * 64 // floats, so that every input begins at a multiple of 256 bytes
	input := must.Get(Make[float32](d, Upload, stride*slots, "inputs"))(t)
	out := must.Get(Make[float32](d, Readback, n, "out"))(t)
	pool := d.NewScratchPool()
	var programs []*Program
	for i := range slots {
		r := NewRecorder(d)
		tmp := ScratchOf[float32](r, "tmp", n)
		r.Copy(tmp.View, state.View)
		r.Dispatch(saxpy(input.At(i*stride, n), tmp, 0.5, 0.25), Items(n, 64))
		r.Copy(state.View, tmp.View)
		r.Copy(out.View, state.View)
		programs = append(programs, must.Get(r.Build("soup", pool, BuildOptions{}))(t))
	}
	r := NewRecorder(d)
	r.Fill(state.View, 0)
	run(t, d, build(t, r, BuildOptions{}))
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range Host(input) {
		Host(input)[i] = rng.Float32()
	}
	tickets := make([]Ticket, slots)
	s := d.NewSubmission()
	for step := range steps {
		i := step % slots
		if err := d.Wait(tickets[i]); err != nil {
			t.Error(err)
			return nil
		}
		s.Reset()
		s.Add(programs[i])
		var err error
		if tickets[i], err = d.Submit(s); err != nil {
			t.Error(err)
			return nil
		}
	}
	if err := d.WaitIdle(); err != nil {
		t.Error(err)
	}
	return slices.Clone(Host(out))
}

func TestTwoDevicesAtOnce(t *testing.T) {
	in := testInstance(t)
	var alone [2][]float32
	for i := range alone {
		alone[i] = soup(t, openDevice(t, in, DeviceOptions{Budget: 64 << 20}), uint64(i))
	}
	var together [2][]float32
	var wg sync.WaitGroup
	for i := range together {
		d := openDevice(t, in, DeviceOptions{Budget: 64 << 20})
		wg.Go(func() { together[i] = soup(t, d, uint64(i)) })
	}
	wg.Wait()
	for i := range alone {
		if len(alone[i]) == 0 || !slices.Equal(alone[i], together[i]) {
			t.Errorf("device %d gives other results beside another device", i)
		}
	}
}

// TestPipelinesWhileAllocating is about the bindings' finalizers, which free arguments of a call that is still running
// when the collector is busy.
func TestPipelinesWhileAllocating(t *testing.T) {
	t.Setenv("MESA_SHADER_CACHE_DISABLE", "true")
	d := openDevice(t, plainInstance(t), DeviceOptions{Budget: 64 << 20})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var keep [64][]byte
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				keep[i%len(keep)] = make([]byte, 64<<10)
			}
		}
	})
	const n = 400
	for i := range n {
		must.Get(d.kernels.pipeline(saxpyKernel, []uint32{64, uint32(i)}))(t)
	}
	close(stop)
	wg.Wait()
	if d.Pipelines().N != n {
		t.Errorf("%d pipelines, want %d", d.Pipelines().N, n)
	}
}

// TestCompile compiles what two lists need, each form of a kernel once, and says that it took time; building them takes
// none.
func TestCompile(t *testing.T) {
	d := testDevice(t)
	x, y := must.Get(Make[float32](d, DeviceLocal, 64, "x"))(t), must.Get(Make[float32](d, DeviceLocal, 64, "y"))(t)
	var lists [2]*Recorder
	for i := range lists {
		lists[i] = NewRecorder(d)
		lists[i].Fill(x.View, 0)
		for _, bias := range []float32{float32(i), 2, float32(i), 2} {
			lists[i].Dispatch(saxpy(x, y, 2, bias), Items(64, 64))
		}
	}
	before := d.Pipelines()
	must.Do(t, d.Compile(lists[:]...))
	after := d.Pipelines()
	if after.N != before.N+3 || after.Seconds <= before.Seconds {
		t.Errorf("%+v, before it was %+v", after, before)
	}
	pool := d.NewScratchPool()
	defer pool.Close()
	for _, r := range lists {
		must.Get(r.Build("x", pool, BuildOptions{}))(t).Close()
	}
	if now := d.Pipelines(); now != after {
		t.Errorf("building makes %+v of %+v", now, after)
	}
}

func BenchmarkSubmitAndWait(b *testing.B) {
	d := openDevice(b, plainInstance(b), DeviceOptions{Budget: 64 << 20})
	y := must.Get(Make[float32](d, DeviceLocal, 64, "y"))(b)
	r := NewRecorder(d)
	r.Fill(y.View, 0)
	p := build(b, r, BuildOptions{})
	s := d.NewSubmission()
	s.Add(p)
	b.ReportAllocs()
	for b.Loop() {
		t, err := d.Submit(s)
		if err == nil {
			err = d.Wait(t)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuild100Passes(b *testing.B) {
	d := openDevice(b, plainInstance(b), DeviceOptions{Budget: 64 << 20})
	x, y := must.Get(Make[float32](d, Upload, 64, "x"))(b), must.Get(Make[float32](d, DeviceLocal, 64, "y"))(b)
	pool := d.NewScratchPool()
	for b.Loop() {
		r := NewRecorder(d)
		for range 100 {
			r.Dispatch(saxpy(x, y, 1, 0), Groups(1))
		}
		p, err := r.Build("bench", pool, BuildOptions{})
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
