package vk

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

func TestSaxpyOverFoldedGrid(t *testing.T) {
	d := testDevice(t)
	for _, n := range []int{0, 1, 63, 64, 65, 70000 * 64} {
		x := must.Get(Make[float32](d, Upload, n, "x"))(t)
		y := must.Get(Make[float32](d, Readback, n, "y"))(t)
		for i := range n {
			Host(x)[i], Host(y)[i] = float32(i%1000), 1
		}
		r := NewRecorder(d)
		r.Dispatch(saxpy(x, y, 2, 0), Items(n, 64))
		r.Dispatch(saxpy(x, y, 0, 0.5), Items(n, 64))
		p := build(t, r, BuildOptions{})
		run(t, d, p)
		run(t, d, p)
		for i, got := range Host(y) {
			if want := 4*float32(i%1000) + 2; got != want {
				t.Fatalf("n %d: y[%d] = %v, want %v", n, i, got, want)
			}
		}
		for _, err := range []error{p.Close(), d.Free(x.View), d.Free(y.View)} {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// scanOf runs a prefix sum of values on d and returns the result.
func scanOf(t testing.TB, d *Device, values []uint32, o BuildOptions) []uint32 {
	t.Helper()
	n := len(values)
	in := must.Get(Make[uint32](d, Upload, n, "in"))(t)
	out := must.Get(Make[uint32](d, Readback, n, "out"))(t)
	copy(Host(in), values)
	r := NewRecorder(d)
	tmp, sum := ScratchOf[uint32](r, "tmp", n), ScratchOf[uint32](r, "sum", n)
	r.Copy(tmp.View, in.View)
	scanPasses(r, tmp, sum, 0)
	r.Copy(out.View, sum.View)
	run(t, d, build(t, r, o))
	return slices.Clone(Host(out))
}

func TestScanIsTheSameInEveryMode(t *testing.T) {
	d := testDevice(t)
	values := make([]uint32, 70_001)
	want := make([]uint32, len(values))
	sum := uint32(0)
	for i := range values {
		values[i] = uint32(i*2654435761) >> 28
		want[i] = sum
		sum += values[i]
	}
	for _, o := range []BuildOptions{{}, {Serial: true}, {SplitAfter: []int{0, 2, 4}}, {NoTimings: true},
		{Serial: true, SplitAfter: []int{1}}} {
		if got := scanOf(t, d, values, o); !slices.Equal(got, want) {
			t.Errorf("%+v: wrong sums", o)
		}
	}
	t.Setenv(serialVariable, "1")
	if got := scanOf(t, d, values, BuildOptions{}); !slices.Equal(got, want) {
		t.Error("serial by environment: wrong sums")
	}
}

// chain records n passes that each double what the one before made, every one in a scratch buffer of its own.
func chain(r *Recorder, in, out Slice[float32], n int) {
	last := in
	for i := range n {
		next := ScratchOf[float32](r, fmt.Sprint("step ", i), in.N())
		r.Fill(next.View, 0)
		r.Dispatch(saxpy(last, next, 2, 0), Items(in.N(), 64))
		last = next
	}
	r.Copy(out.View, last.View)
}

func TestScratchIsShared(t *testing.T) {
	t.Setenv(serialVariable, "")
	d := testDevice(t)
	const n, steps = 100_000, 9
	in, out := must.Get(Make[float32](d, Upload, n, "in"))(t), must.Get(Make[float32](d, Readback, n, "out"))(t)
	for i := range Host(in) {
		Host(in)[i] = float32(i)
	}
	var results [][]float32
	for _, serial := range []bool{false, true} {
		r := NewRecorder(d)
		chain(r, in, out, steps)
		pool := d.NewScratchPool()
		p := must.Get(r.Build("chain", pool, BuildOptions{Serial: serial}))(t)
		planned, most := int64(0), int64(2*4*n+2*memoryAlign)
		for _, size := range r.ScratchRegions() {
			planned += size
		}
		if !serial && (pool.Size() > most || planned != pool.Size()) {
			t.Errorf("pool of %d bytes, planned %d, want at most %d", pool.Size(), planned, most)
		}
		run(t, d, p)
		results = append(results, slices.Clone(Host(out)))
		clear(Host(out))
	}
	if !slices.Equal(results[0], results[1]) {
		t.Error("shared scratch gives other results than serial mode")
	}
	for i, got := range results[0] {
		if want := float32(i) * 512; got != want {
			t.Fatalf("out[%d] = %v, want %v", i, got, want)
		}
	}
}

func TestGrowingPoolMakesProgramsStale(t *testing.T) {
	d := testDevice(t)
	pool := d.NewScratchPool()
	make1 := func(n int) *Program {
		in, out := must.Get(Make[float32](d, Upload, n, "in"))(t), must.Get(Make[float32](d, Readback, n, "out"))(t)
		r := NewRecorder(d)
		chain(r, in, out, 3)
		return must.Get(r.Build("chain", pool, BuildOptions{}))(t)
	}
	small := make1(1000)
	run(t, d, small)
	large := make1(50_000)
	if !small.Stale() || large.Stale() {
		t.Errorf("stale: small %v, large %v, want true, false", small.Stale(), large.Stale())
	}
	s := d.NewSubmission()
	s.Add(small)
	if _, err := d.Submit(s); err == nil || !strings.Contains(err.Error(), "stale") {
		t.Errorf("submitting a stale program: error %v", err)
	}
	again := make1(1000)
	if large.Stale() || again.Stale() {
		t.Error("a program that fits the pool made another one stale")
	}
	run(t, d, large, again)
}

func TestIndirectDispatch(t *testing.T) {
	d := testDevice(t)
	const n = 1000
	cnt := must.Get(Make[uint32](d, Upload, 1, "count"))(t)
	size := must.Get(Make[uint32](d, DeviceLocal, 5, "size"))(t)
	back := must.Get(Make[uint32](d, Readback, 5, "size read back"))(t)
	x, y := must.Get(Make[float32](d, Upload, n, "x"))(t), must.Get(Make[float32](d, Readback, n, "y"))(t)
	for i := range n {
		Host(x)[i] = 1
	}
	r := NewRecorder(d)
	r.Fill(y.View, 0)
	r.Dispatch(&rawPass{sizeKernel, []View{cnt.View, size.View}, nil, []uint32{0}}, Groups(1))
	r.Dispatch(saxpy(x, y, 3, 0), Indirect(size.View))
	r.Copy(back.View, size.View)
	p := build(t, r, BuildOptions{})
	for _, c := range []uint32{0, 1, 640, n} {
		Host(cnt)[0] = c
		run(t, d, p)
		want := min((int(c)+63)/64*64, n)
		for i, got := range Host(y) {
			if (got == 3) != (i < want) {
				t.Fatalf("count %d: y[%d] = %v, %d elements should be set", c, i, got, want)
			}
		}
	}
	got := Host(back)
	if l := d.info.Limits; got[3] != l.SubgroupSize || got[4] != l.SubgroupSize {
		t.Errorf("subgroup size %d, specialization constant %d, limits say %d", got[3], got[4], l.SubgroupSize)
	}
}

func TestFillsAndCopies(t *testing.T) {
	d := testDevice(t)
	up, down := must.Get(d.Alloc(Upload, 1000, "up"))(t), must.Get(d.Alloc(Readback, 1000, "down"))(t)
	local := must.Get(d.Alloc(DeviceLocal, 1000, "local"))(t)
	for i := range up.Host() {
		up.Host()[i] = byte(i * 7)
	}
	if local.Host() != nil {
		t.Error("device-local memory is mapped")
	}
	r := NewRecorder(d)
	r.Copy(local, up)
	r.Fill(local.Slice(500, 100), 0x01020304)
	r.Copy(local.Slice(3, 50), local.Slice(801, 50))
	r.Copy(down, local)
	run(t, d, build(t, r, BuildOptions{}))
	want := slices.Clone(up.Host())
	copy(want[500:600], bytes.Repeat([]byte{4, 3, 2, 1}, 25))
	copy(want[3:53], want[801:851])
	if !bytes.Equal(down.Host(), want) {
		t.Error("wrong bytes")
	}
}

func TestRecorderRefuses(t *testing.T) {
	d := testDevice(t)
	other := openDevice(t, d.in, DeviceOptions{Budget: 64 << 20})
	x, y := must.Get(Make[float32](d, Upload, 100, "x"))(t), must.Get(Make[float32](d, DeviceLocal, 100, "y"))(t)
	foreign := must.Get(Make[float32](other, DeviceLocal, 100, "foreign"))(t)
	freed := must.Get(Make[float32](d, DeviceLocal, 100, "freed"))(t)
	must.Do(t, d.Free(freed.View))
	if err := d.Free(freed.View); err == nil {
		t.Error("freed twice without an error")
	}
	elsewhere := ScratchOf[float32](NewRecorder(d), "elsewhere", 100)
	d.info.Limits.MinStorageBufferOffsetAlignment = 16
	d.info.Limits.MaxStorageBufferRange = 1000
	large := must.Get(Make[float32](d, DeviceLocal, 300, "large"))(t)
	cases := []struct {
		do   func(r *Recorder)
		want string
	}{
		{func(r *Recorder) { r.Dispatch(saxpy(Slice[float32]{}, y, 1, 0), Groups(1)) },
			"record saxpy binding x: no buffer is bound"},
		{func(r *Recorder) { r.Dispatch(saxpy(x, large, 1, 0), Groups(1)) },
			"record saxpy binding y: large is 1200 bytes, maxStorageBufferRange is 1000"},
		{func(r *Recorder) { r.Dispatch(saxpy(x.At(1, 5), y, 1, 0), Groups(1)) },
			"record saxpy binding x: offset 4 of x is not a multiple of 16"},
		{func(r *Recorder) { r.Dispatch(saxpy(x, foreign, 1, 0), Groups(1)) }, "foreign belongs to another device"},
		{func(r *Recorder) { r.Dispatch(saxpy(x, freed, 1, 0), Groups(1)) }, "freed was freed"},
		{func(r *Recorder) { r.Dispatch(saxpy(x, elsewhere, 1, 0), Groups(1)) },
			"elsewhere is scratch of another recorder"},
		{func(r *Recorder) { r.Dispatch(saxpy(ScratchOf[float32](r, "tmp", 9), y, 1, 0), Groups(1)) },
			"reads scratch buffer tmp, which nothing wrote"},
		{func(r *Recorder) { r.Dispatch(saxpy(x, y, 1, 0), Groups(-1)) }, "-1 workgroups"},
		{func(r *Recorder) { r.Dispatch(saxpy(x, y, 1, 0), Indirect(x.Slice(0, 8))) }, "12 are needed"},
		{func(r *Recorder) { r.Dispatch(&rawPass{k: saxpyKernel}, Groups(1)) }, "0 buffers bound, it has 2 bindings"},
		{func(r *Recorder) { r.Dispatch(&rawPass{saxpyKernel, []View{x.View, y.View}, nil, nil}, Groups(1)) },
			"0 bytes of push constants given, it has 8"},
		{func(r *Recorder) {
			r.Dispatch(&rawPass{saxpyKernel, []View{x.View, y.View}, make([]byte, 8), []uint32{1 << 20, 0}}, Groups(1))
		}, "workgroup of [1048576 1 1] invocations"},
		{func(r *Recorder) {
			r.Dispatch(&rawPass{sizeKernel, []View{x.View, y.View}, nil, []uint32{3}}, Groups(1))
		}, "compile size: subgroups of 3 asked for"},
		{func(r *Recorder) { r.Fill(x.Slice(0, 3), 0) }, "3 bytes are no whole number of words"},
		{func(r *Recorder) { r.Copy(x.Slice(0, 8), x.Slice(4, 8)) }, "overlap"},
		{func(r *Recorder) { r.Copy(x.Slice(0, 8), y.Slice(0, 4)) }, "4 bytes into 8"},
		{func(r *Recorder) { r.Scratch("tmp", -1) }, "negative"},
		{func(r *Recorder) { r.Await(nil) }, "the gate is of another device"},
		{func(r *Recorder) { r.Await(must.Get(other.NewGate())(t)) }, "the gate is of another device"},
	}
	for _, c := range cases {
		r := NewRecorder(d)
		c.do(r)
		r.Fill(y.View, 0)
		_, err := r.Build("wrong", d.NewScratchPool(), BuildOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestPlanIsPrinted(t *testing.T) {
	t.Setenv(serialVariable, "")
	d := testDevice(t)
	x, y := must.Get(Make[float32](d, Upload, 100, "x"))(t), must.Get(Make[float32](d, DeviceLocal, 100, "y"))(t)
	r := NewRecorder(d)
	r.Fill(y.View, 0)
	r.Dispatch(saxpy(x, y, 1, 1), Items(100, 64))
	r.Await(must.Get(d.NewGate())(t))
	r.Fill(y.View, 0)
	want := "   0 fill y\n     ---- barrier\n   1 saxpy {BIAS=1065353216} [2 1 1] x=x(read 400) y=y(read+write " +
		"400)\n   2 await\n   3 fill y\n"
	if got := r.String(); got != want {
		t.Errorf("plan:\n%swant:\n%s", got, want)
	}
}

func TestGrids(t *testing.T) {
	for _, n := range []int{0, 1, 65535, 65536, 65537, 1 << 24, 65535 * 65535} {
		g := Groups(n)
		if got := int(g.x) * int(g.y); g.err != nil || g.x > maxGroups || g.y > maxGroups || got < n ||
			got > n+int(g.y) {
			t.Errorf("Groups(%d) = %v, %v", n, g, g.err)
		}
	}
	if g := Groups(math.MaxInt64); g.err == nil {
		t.Errorf("Groups(MaxInt64) = %v", g)
	}
	if g := Items(129, 64); g.x != 3 {
		t.Errorf("Items(129, 64) = %v", g)
	}
}

// TestRandomPrograms runs random lists of passes over scratch and fixed buffers in normal and in serial mode, which
// must agree.
func TestRandomPrograms(t *testing.T) {
	d := testDevice(t)
	rng := rand.New(rand.NewPCG(7, 7))
	fixed := must.Get(Make[float32](d, Upload, 4096, "fixed"))(t)
	out := must.Get(Make[float32](d, Readback, 4096, "out"))(t)
	pool := d.NewScratchPool()
	for trial := range 40 {
		r := NewRecorder(d)
		live := []Slice[float32]{fixed}
		for range 5 + rng.IntN(30) {
			from := live[rng.IntN(len(live))]
			at := rng.IntN((from.N()+63)/64) * 64
			n := 1 + rng.IntN(from.N()-at)
			switch rng.IntN(3) {
			case 0:
				next := ScratchOf[float32](r, "tmp", n)
				r.Copy(next.View, from.At(at, n).View)
				live = append(live, next)
			case 1:
				next := ScratchOf[float32](r, "sum", n)
				r.Fill(next.View, math.Float32bits(float32(rng.IntN(100))))
				r.Dispatch(saxpy(from.At(at, n), next, 0.5, float32(rng.IntN(9))), Items(n, 64))
				live = append(live, next)
			case 2:
				if to := live[rng.IntN(len(live))]; to != from && to != fixed {
					m := min(n, to.N())
					r.Dispatch(saxpy(from.At(at, m), to.At(0, m), 0.25, 1), Items(m, 64))
				}
			}
		}
		last := live[len(live)-1]
		r.Copy(out.At(0, last.N()).View, last.View)
		var results [2][]float32
		for i, serial := range []bool{false, true} {
			for j := range Host(fixed) {
				Host(fixed)[j] = float32(j%97) - 40
			}
			p := must.Get(r.Build("random", pool, BuildOptions{Serial: serial}))(t)
			run(t, d, p)
			results[i] = slices.Clone(Host(out)[:last.N()])
			must.Do(t, p.Close())
		}
		if !slices.Equal(results[0], results[1]) {
			t.Fatalf("trial %d: normal and serial mode differ in\n%v", trial, r)
		}
	}
}

// TestSubgroupSizeIsRequested has a device with one subgroup size claim that it has smaller ones, so that the size is
// asked for explicitly.
func TestSubgroupSizeIsRequested(t *testing.T) {
	d := testDevice(t)
	l := &d.info.Limits
	if !d.info.Features.SubgroupSizeControl || l.MaxComputeWorkgroupSubgroups*l.SubgroupSize < 256 {
		t.Skip("the device has no subgroup size control for workgroups of 256")
	}
	if l.MinSubgroupSize == l.MaxSubgroupSize {
		l.MinSubgroupSize /= 2
	}
	s := must.Get(d.kernels.shape(scanKernel, []uint32{0}))(t)
	if s.required != l.SubgroupSize || s.spec[0] != l.SubgroupSize ||
		s.fullSubgroups != d.info.Features.ComputeFullSubgroups {
		t.Errorf("shape %+v on a device with subgroups of %d", s, l.SubgroupSize)
	}
	values := slices.Repeat([]uint32{1}, 1000)
	for i, got := range scanOf(t, d, values, BuildOptions{}) {
		if got != uint32(i) {
			t.Fatalf("sum %d = %d", i, got)
		}
	}
	l.MaxComputeWorkgroupSubgroups = 2
	if _, err := d.kernels.shape(scanKernel, []uint32{0}); err == nil ||
		!strings.Contains(err.Error(), "maxComputeWorkgroupSubgroups is 2") {
		t.Errorf("a workgroup of too many subgroups: error %v", err)
	}
}

// TestLater looks at where ops that were put off come: one after each of those that follow, before the first that
// touches the same bytes, before an Await and at the end; and at what they compute.
func TestLater(t *testing.T) {
	d := openDevice(t, testInstance(t), DeviceOptions{Budget: 64 << 20})
	gate := must.Get(d.NewGate())(t)
	var y [6]Slice[float32]
	for i := range y {
		y[i] = must.Get(Make[float32](d, Readback, 64, fmt.Sprint(i)))(t)
	}
	add := func(r *Recorder, from, to int) { r.Dispatch(saxpy(y[from], y[to], 1, 0), Items(64, 64)) }
	order := func(record func(r *Recorder)) (list []string) {
		r := NewRecorder(d)
		record(r)
		r.Len()
		for _, o := range r.ops {
			if list = append(list, "await"); o.kind != opAwait {
				list[len(list)-1] = o.views[0].Name() + o.views[len(o.views)-1].Name()
			}
		}
		return list
	}
	three := func(r *Recorder) {
		r.Later(func() {
			add(r, 0, 1)
			r.Later(func() { add(r, 0, 2) })
			add(r, 0, 3)
		})
	}
	for _, c := range []struct {
		name   string
		record func(r *Recorder)
		want   string
	}{
		{"spread", func(r *Recorder) { three(r); add(r, 0, 4); add(r, 0, 5) }, "[04 01 05 02 03]"},
		{"reads what the second writes", func(r *Recorder) { three(r); add(r, 2, 4); add(r, 0, 5) },
			"[01 02 24 03 05]"},
		{"writes what they read", func(r *Recorder) { three(r); add(r, 5, 4); add(r, 5, 0) }, "[54 01 02 03 50]"},
		{"a fill of other bytes", func(r *Recorder) { three(r); r.Fill(y[5].View, 0) }, "[55 01 02 03]"},
		{"an await", func(r *Recorder) { three(r); r.Await(gate); add(r, 0, 5) }, "[01 02 03 await 05]"},
		{"nothing", func(r *Recorder) { three(r) }, "[01 02 03]"},
	} {
		if got := fmt.Sprint(order(c.record)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	r := NewRecorder(d)
	for i := range y {
		r.Fill(y[i].View, math.Float32bits(float32(i+1)))
	}
	r.Later(func() { add(r, 1, 0); add(r, 0, 2) })
	add(r, 4, 5)
	add(r, 2, 3)
	p, s := build(t, r, BuildOptions{}), d.NewSubmission()
	s.Add(p)
	must.Do(t, d.Wait(must.Get(d.Submit(s))(t)))
	for i, want := range []float32{3, 2, 6, 10, 5, 11} {
		if got := Host(y[i])[63]; got != want {
			t.Errorf("buffer %d: %v, want %v", i, got, want)
		}
	}
}
