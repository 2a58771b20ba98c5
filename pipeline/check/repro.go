package check

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"vksplat/internal/fault"
	"vksplat/shaders"
	"vksplat/vk"
)

// Repro is one run of passes that computed something wrong, with all that it takes to run them again elsewhere.
type Repro struct {
	Program, Device, Driver string // that found it
	Case, Error             string
	Halvings                int // of the case's inputs
	Passes                  []ReproPass
	Buffers                 []ReproBuffer
	Wrong                   *ReproWant // nil where the twin judged something computed from what came back

	lost bool // the device was lost
}

type ReproPass struct {
	Kernel  string
	Buffers []int // an index into Buffers for each binding
	Push    []byte
	Spec    []uint32
	Groups  [3]uint32
}

type ReproBuffer struct {
	Name    string // of the first kernel's binding that has it
	Written bool   // by the passes; a guard then follows that they may not write
	Start   []byte // before the run; nil: guard words
	Got     []byte // after it, without the guard; nil where nothing came back
}

// ReproWant is what should have come back in a part of a buffer.
type ReproWant struct {
	Buffer, At int       // At is in bytes
	Want       []byte    // in words
	Within     []float64 // how far each word may be off, as float32; nil: not at all
}

// recording keeps the runs of a trial.
type recording struct {
	passes []recordedPass
	runs   []*Repro
	of     []*binding // of the last run's buffers; nil for inputs
}

type recordedPass struct {
	ReproPass
	views []vk.View
}

func (r *recording) pass(p vk.Pass, g vk.Grid) {
	if r == nil {
		return
	}
	views, push, spec := p.Args(nil)
	r.passes = append(r.passes, recordedPass{ReproPass{Kernel: p.Kernel().Name, Push: slices.Clone(push),
		Spec: slices.Clone(spec), Groups: g.Words()}, views})
}

// begin keeps what goes into a run.
func (r *recording) begin(t *trial) {
	if r == nil {
		return
	}
	run, at := &Repro{}, map[vk.View]int{}
	r.of = nil
	for _, p := range r.passes {
		for _, v := range p.views {
			if _, known := at[v]; !known {
				at[v] = len(run.Buffers)
				b := t.bindings[v.Name()]
				r.of = append(r.of, b)
				if b == nil {
					run.Buffers = append(run.Buffers, ReproBuffer{Name: "input", Start: slices.Clone(v.Host())})
				} else {
					guarded := slices.Repeat(bytesOf([]uint32{guardWord}), int(v.Size()/4))
					copy(guarded, bytesOf(b.start))
					run.Buffers = append(run.Buffers, ReproBuffer{Name: b.name, Written: true, Start: guarded})
				}
			}
			p.Buffers = append(p.Buffers, at[v])
		}
		run.Passes = append(run.Passes, p.ReproPass)
	}
	r.passes, r.runs = nil, append(r.runs, run)
}

// end keeps what came back.
func (r *recording) end() {
	if r == nil {
		return
	}
	run := r.runs[len(r.runs)-1]
	for i, b := range r.of {
		if b != nil {
			run.Buffers[i].Got = bytesOf(b.words)
		}
	}
}

// failed returns the run that err is about: the last one that left what was compared, or else the last of all.
func (r *recording) failed(err error) *Repro {
	if len(r.runs) == 0 {
		return nil
	}
	var m *mismatch
	if errors.As(err, &m) && len(m.got) > 0 {
		for _, run := range slices.Backward(r.runs) {
			for i, b := range run.Buffers {
				if at := bytes.Index(b.Got, m.got); at >= 0 && b.Name == m.binding {
					run.Wrong = &ReproWant{Buffer: i, At: at, Want: m.want, Within: m.within}
					return run
				}
			}
		}
	}
	return r.runs[len(r.runs)-1]
}

// bytes returns how much memory the run's buffers take.
func (r *Repro) bytes() (n int) {
	for _, b := range r.Buffers {
		n += len(b.Start)
	}
	return n
}

// mismatch is an error that says what was compared.
type mismatch struct {
	error
	binding   string
	got, want []byte
	within    []float64
}

func newMismatch[T any](err error, binding string, got, want []T, limit func(i int) float64) error {
	m := &mismatch{error: err, binding: binding, got: bytesOf(got), want: bytesOf(want)}
	for i := range want {
		if limit != nil {
			within := min(limit(i), math.MaxFloat64) // JSON has no infinity
			if math.IsNaN(within) {
				within = 0
			}
			m.within = append(m.within, within)
		}
	}
	return m
}

func bytesOf[T any](x []T) (b []byte) {
	for i := range x {
		b = append(b, vk.Bytes(&x[i])...)
	}
	return b
}

// rerun is a pass of a Repro.
type rerun struct {
	*ReproPass
	kernel *vk.Kernel
	views  []vk.View
}

func (p *rerun) Kernel() *vk.Kernel { return p.kernel }

func (p *rerun) Args(views []vk.View) ([]vk.View, []byte, []uint32) {
	return append(views, p.views...), p.Push, p.Spec
}

// Run runs the passes again. The error says what is wrong now, and wraps ErrKernels where a kernel computed it.
func (r *Repro) Run(d *vk.Device) error {
	t, buffers := &trial{d: d}, make([]vk.Slice[byte], len(r.Buffers))
	err := outcome(func() {
		for i, b := range r.Buffers {
			switch n := len(b.Start) - guardBytes; {
			case !b.Written:
				buffers[i] = in(t, b.Start...)
			case n < 0 || n%4 != 0:
				failf("buffer %d: %d bytes with the guard", i, len(b.Start))
			default:
				buffers[i] = update(t, b.Start[:n])
			}
		}
		for i := range r.Passes {
			t.dispatch(r.pass(i, buffers), r.Passes[i].grid())
		}
	})
	if err != nil {
		return errors.Join(&fault.Error{Op: "record passes", Err: err, Hint: "give a file that " +
			fault.Setting("bisect") + " of this version wrote"}, t.free())
	}
	err = outcome(func() {
		t.run()
		for i, b := range r.Buffers {
			if b.Written {
				r.judge(i, got(t, buffers[i]))
			}
		}
	})
	return errors.Join(err, t.free())
}

func (p *ReproPass) grid() vk.Grid {
	return vk.Groups3(int(p.Groups[0]), int(p.Groups[1]), int(p.Groups[2]))
}

func (r *Repro) pass(i int, buffers []vk.Slice[byte]) vk.Pass {
	p := &rerun{ReproPass: &r.Passes[i]}
	at := slices.IndexFunc(shaders.All, func(k *vk.Kernel) bool { return k.Name == p.ReproPass.Kernel })
	if at < 0 {
		failf("pass %d: there is no kernel %q", i, p.ReproPass.Kernel)
	}
	p.kernel = shaders.All[at]
	for _, b := range p.Buffers {
		if b < 0 || b >= len(buffers) {
			failf("pass %d: there is no buffer %d", i, b)
		}
		p.views = append(p.views, buffers[b].View)
	}
	if len(p.views) != len(p.kernel.Bindings) {
		failf("pass %d: %d buffers, %s binds %d", i, len(p.views), p.kernel.Name, len(p.kernel.Bindings))
	}
	return p
}

// judge looks at what came back in buffer i.
func (r *Repro) judge(i int, got []byte) {
	b := &r.Buffers[i]
	if r.Wrong == nil {
		if len(b.Got) > 0 && bytes.Equal(got, b.Got) && !bytes.Equal(got, b.Start[:len(got)]) {
			failf("%w: binding %s: the same bytes come back as when it failed: %s", ErrKernels, b.Name, r.Error)
		}
		return
	}
	w := r.Wrong
	if w.Buffer != i {
		return
	}
	if w.At < 0 || w.At+len(w.Want) > len(got) || len(w.Want)%4 != 0 ||
		w.Within != nil && len(w.Within) != len(w.Want)/4 {
		failf("binding %s: what is wanted is not a part of it", b.Name)
	}
	is, want, differ, first := wordsOf(got[w.At:]), wordsOf(w.Want), 0, -1
	for k := range want {
		if !w.allows(k, is[k], want[k]) {
			if differ++; first < 0 {
				first = k
			}
		}
	}
	if differ > 0 {
		failf("%w: binding %s: %d of %d words are wrong, first [%d]: got %#x (%g), want %#x (%g)", ErrKernels, b.Name,
			differ, len(want), first, is[first], math.Float32frombits(is[first]), want[first],
			math.Float32frombits(want[first]))
	}
}

func (w *ReproWant) allows(k int, is, want uint32) bool {
	g, x := float64(math.Float32frombits(is)), float64(math.Float32frombits(want))
	return is == want || w.Within != nil && (math.Abs(g-x) <= w.Within[k] || math.IsNaN(g) && math.IsNaN(x))
}
