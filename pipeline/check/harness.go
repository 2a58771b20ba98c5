package check

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/vk"
)

// trial is one run of a case: random numbers of its seed, a device, and the passes that are recorded for it. Buffers
// are bound where a kernel's struct is filled: in for what it reads, out and update for what it writes, each with what
// judges it after the run. What nothing judges fails the case.
type trial struct {
	source
	d        *vk.Device
	recorder *vk.Recorder
	held     []vk.View
	pending  []*binding          // to be read back by the next run
	bindings map[string]*binding // by the name of their memory
	recorded *recording          // of the passes, for Repro; nil: they are not kept

	mixed     bool   // chunks are in mixed precision
	processor bool   // kernels that have a shape for processors run in that
	packed    bool   // states are packed
	everyone  bool   // rasterize gives splats to all patches
	alone     bool   // rasterize draws into memory of the band's rows
	subgroup  uint32 // of rasterize; 0: the device's own
	lookback  bool   // isects are found by scan_tiles
	rounds    bool   // which takes several rounds
}

// binding is memory that kernels write.
type binding struct {
	name       string   // of the first kernel's binding that has it
	start      []uint32 // words before the run; nil if nothing was there
	words      []uint32 // after it
	end        any      // []T, the same
	host, from vk.View
	read       func() // sets words and end
	judges     []judge
	judged     bool
}

// judge compares what kernels wrote with what they should have written.
type judge func(b *binding)

// guardWord fills outputs before the passes run, and guardBytes behind their end: what still holds it was not written.
const (
	guardWord  = 0xDEADBEEF
	guardBytes = 256
)

// rec is the recorder of the passes since the last run.
func (t *trial) rec() *vk.Recorder {
	if t.recorder == nil {
		t.recorder = vk.NewRecorder(t.d)
	}
	return t.recorder
}

func (t *trial) alloc(kind vk.MemoryKind, bytes int64) vk.View {
	v, err := t.d.Alloc(kind, bytes, "input")
	must(err)
	t.held = append(t.held, v)
	return v
}

// in binds elements that kernels only read.
func in[T any](t *trial, data ...T) vk.Slice[T] {
	s := vk.Cast[T](t.alloc(vk.Upload, int64(max(1, len(data)))*sizeOf[T]()))
	copy(vk.Host(s), data)
	return s
}

// out binds n elements that kernels write, and that hold guard words at first. The view is longer by a guard that
// nothing may write.
func out[T any](t *trial, n int, judges ...judge) vk.Slice[T] {
	bytes := int64(n) * sizeOf[T]()
	s := vk.Cast[T](t.rec().Scratch(fmt.Sprintf("output %d", len(t.bindings)), bytes+guardBytes))
	t.rec().Fill(s.View, guardWord)
	b := &binding{from: s.View, host: t.alloc(vk.Readback, bytes+guardBytes), judges: judges, judged: len(judges) > 0}
	b.read = func() {
		b.words = wordsOf(b.host.Host())
		for k, w := range b.words[bytes/4:] {
			if w != guardWord {
				failf("binding %s: word %d behind its end was written: %#x", b.name, k, w)
			}
		}
		b.words, b.end = b.words[:bytes/4], slices.Clone(vk.Host(vk.Cast[T](b.host))[:n])
	}
	if t.bindings == nil {
		t.bindings = map[string]*binding{}
	}
	t.pending, t.bindings[s.Name()] = append(t.pending, b), b
	return s
}

// update binds elements that kernels change.
func update[T any](t *trial, data []T, judges ...judge) vk.Slice[T] {
	s := out[T](t, len(data), judges...)
	b := t.bindings[s.Name()]
	b.start = []uint32{}
	if len(data) > 0 {
		from := in(t, data...)
		t.rec().Copy(s.View.Slice(0, from.Size()), from.View)
		b.start = wordsOf(from.Host())
	}
	return s
}

// scratch binds n elements of which only the guard behind them is looked at: what a later pass makes of them is judged.
func scratch[T any](t *trial, n int) vk.Slice[T] { return out[T](t, n, func(*binding) {}) }

// scratchOf is scratch that holds data at first.
func scratchOf[T any](t *trial, data []T) vk.Slice[T] { return update(t, data, func(*binding) {}) }

// got returns what an output holds after the run, for whoever called out or update without a judge.
func got[T any](t *trial, s vk.Slice[T]) []T {
	b := t.bindings[s.Name()]
	b.judged = true
	return b.end.([]T)
}

// head is got for an output of which only the first n elements may be written.
func head[T any](t *trial, s vk.Slice[T], n int) []T {
	return writtenPart(t.bindings[s.Name()].name, got(t, s), 0, n)
}

// exactly wants the bits of all elements. Where they are fewer than was bound, the rest must not have been written.
func exactly[T any](want ...T) judge { return exactlyAt(0, want...) }

// exactlyAt wants them from an element on, and nothing else written.
func exactlyAt[T any](at int, want ...T) judge {
	return func(b *binding) { same(b.name, writtenPart(b.name, b.end.([]T), at, at+len(want)), want) }
}

// roughly wants numbers, all that the elements are made of, that differ from want by at most abs + rel |want|.
func roughly[R ref.Real](want []R, abs, rel float64) judge {
	return func(b *binding) { near(b.name, floatsOf(b.words), want, abs, rel) }
}

func nothing(b *binding) { writtenPart(b.name, b.words, 0, 0) }

// dispatch records a pass, whose kernel says which of its bindings it writes.
func (t *trial) dispatch(p vk.Pass, g vk.Grid) {
	views, _, _ := p.Args(nil)
	for i, what := range p.Kernel().Bindings {
		b := t.bindings[views[i].Name()]
		switch {
		case b != nil && b.name == "":
			b.name = what.Name
		case b == nil && what.Access != vk.Read:
			failf("binding %s: %s writes what is bound as an input", what.Name, p.Kernel().Name)
		}
	}
	t.recorded.pass(p, g)
	t.rec().Dispatch(p, g)
}

// run runs the passes that were recorded, and reads back and judges what they wrote.
func (t *trial) run() {
	for _, b := range t.pending {
		t.rec().Copy(b.host, b.from)
	}
	t.recorded.begin(t)
	err := t.d.RunOnce(t.rec(), "check")
	pending := t.pending
	t.recorder, t.pending = nil, nil
	if err == nil {
		err = outcome(func() {
			for _, b := range pending {
				b.read()
			}
		})
	}
	must(errors.Join(err, t.free()))
	t.recorded.end()
	for _, b := range pending {
		for _, f := range b.judges {
			f(b)
		}
	}
}

func (t *trial) free() (err error) {
	for _, v := range t.held {
		err = errors.Join(err, t.d.Free(v))
	}
	t.held = nil
	return err
}

// allJudged fails if something that kernels wrote was compared with nothing.
func (t *trial) allJudged() {
	for _, b := range t.bindings {
		if !b.judged {
			failf("binding %s: nothing judges it", b.name)
		}
	}
}

func sizeOf[T any]() int64 {
	var x T
	return int64(len(vk.Bytes(&x)))
}

func wordsOf(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

func floatsOf[T any](x []T) (f []float32) {
	for i := range x {
		for _, w := range wordsOf(vk.Bytes(&x[i])) {
			f = append(f, math.Float32frombits(w))
		}
	}
	return f
}

func with[T any](data []T, i int, v T) []T {
	c := slices.Clone(data)
	c[i] = v
	return c
}

// closeScaled is nearBy, but returns its error.
func closeScaled[T ref.Real](binding string, got []float32, want []T, limit func(i int) float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("binding %s: %d elements, want %d", binding, len(got), len(want))
	}
	differ, at, worst := 0, -1, 0.0
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		d := math.Abs(g - w)
		if d <= limit(i) || g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		worst = max(worst, d)
		if differ++; at < 0 {
			at = i
		}
	}
	if differ > 0 {
		err := fmt.Errorf("binding %s: %d of %d are off, first [%d]: got %g, want %g within %.3g; the worst is off by "+
			"%.3g", binding, differ, len(want), at, got[at], float64(want[at]), limit(at), worst)
		return newMismatch(err, binding, got, ref.ConvertSlice[float32](want), limit)
	}
	return nil
}

// same wants the same bits: NaN equals itself, 0 differs from -0.
func same[T any](name string, got, want []T) {
	if len(got) != len(want) {
		failf("binding %s: %d elements, want %d", name, len(got), len(want))
	}
	differ, at := 0, -1
	for i := range want {
		if !bytes.Equal(vk.Bytes(&got[i]), vk.Bytes(&want[i])) {
			if differ++; at < 0 {
				at = i
			}
		}
	}
	if differ > 0 {
		err := fmt.Errorf("binding %s: %d of %d differ, first [%d]: got %v, want %v; bits %#x, want %#x", name, differ,
			len(want), at, got[at], want[at], wordsOf(vk.Bytes(&got[at])), wordsOf(vk.Bytes(&want[at])))
		must(newMismatch(err, name, got, want, nil))
	}
}

// writtenPart returns the elements [from, to) of an output. The others must hold guard words.
func writtenPart[T any](name string, got []T, from, to int) []T {
	for i := range got {
		for _, w := range wordsOf(vk.Bytes(&got[i])) {
			if w != guardWord && (i < from || i >= to) {
				failf("binding %s: element [%d] was written, only [%d:%d] may be", name, i, from, to)
			}
		}
	}
	if to > len(got) {
		failf("binding %s: %d elements, want %d", name, len(got), to)
	}
	return got[from:to]
}

// near wants |got - want| <= abs + rel |want|, element by element. What is not a number must be so in both.
func near[T ref.Real](name string, got []float32, want []T, abs, rel float64) {
	nearBy(name, got, want, func(i int) float64 { return abs + rel*math.Abs(float64(want[i])) })
}

// nearBy wants |got - want| <= limit(i), element by element.
func nearBy[T ref.Real](name string, got []float32, want []T, limit func(i int) float64) {
	must(closeScaled(name, got, want, limit))
}

// nearNorm wants ||got - want|| <= limit ||want||, for results that single pixels on a threshold may move.
func nearNorm[T ref.Real](name string, got []float32, want []T, limit float64) {
	r := ref.RelNorm(got, want)
	if r <= limit {
		return
	}
	at := slices.IndexFunc(indices(len(want)), func(i int) bool {
		return i >= len(got) || !(math.Abs(float64(got[i])-float64(want[i])) <= limit*math.Abs(float64(want[i])))
	})
	if at < 0 || at >= len(got) {
		failf("binding %s: %d elements, want %d; relative norm %g, %g allowed", name, len(got), len(want), r, limit)
	}
	failf("binding %s: relative norm of the difference %.3g, %.3g allowed; first [%d]: got %g, want %g", name, r, limit,
		at, got[at], float64(want[at]))
}

func areFinite(name string, x []float32) {
	for i, v := range x {
		if !(math.Abs(float64(v)) <= math.MaxFloat32) {
			failf("binding %s: [%d] is %g", name, i, v)
		}
	}
}

func indices(n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = i
	}
	return x
}
