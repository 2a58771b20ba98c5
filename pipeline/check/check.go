// Package check is the case table of every kernel: small inputs, the device's outputs, and what pipeline/ref makes of
// the same inputs. Tests run it on the device at hand, `vksplat doctor` on the user's.
//
// Integers must agree exactly. Floats have a tolerance, with its reason beside it: Vulkan lets division, roots, exp and
// log be a few units in the last place off and lets compilers contract multiplications and additions, so no two devices
// agree in every bit.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

type Case struct {
	Kernel string // as in shaders.All
	Name   string // unique for the kernel
	Bytes  int64  // the largest binding, where it is more than 1 MiB; else 0
	check  func(t *trial)
}

// Run runs the case on a device. The error names kernel, binding, first index, got, want and the seed, which follows
// from the names.
func (c Case) Run(d *vk.Device) error { return c.run(d, 0, nil) }

// run is Run with inputs that are halved some times, and keeps what it ran in r unless that is nil.
func (c Case) run(d *vk.Device, halvings int, r *recording) (err error) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", c.Kernel, c.Name)
	t := &trial{source: source{rand.New(rand.NewPCG(h.Sum64(), 0)), halvings}, d: d, recorded: r}
	defer func() {
		if err = errors.Join(err, t.free()); err != nil {
			err = fmt.Errorf("run %s/%s with seed %#x: %w", c.Kernel, c.Name, h.Sum64(), err)
		}
	}()
	return outcome(func() {
		c.check(t)
		t.allJudged()
	})
}

// longVariable turns on the cases of large sizes and of many random inputs, which take half a minute on a CPU.
const longVariable = "VKSPLAT_LONG"

// Cases returns the whole table, kernel by kernel. With VKSPLAT_LONG=1 it holds large sizes too.
func Cases() []Case {
	var cases []Case
	for _, list := range tables {
		cases = append(cases, list()...)
	}
	if os.Getenv(longVariable) == "1" {
		cases = append(cases, long()...)
	}
	slices.SortStableFunc(cases, func(a, b Case) int { return cmp.Compare(a.Kernel, b.Kernel) })
	return cases
}

// kernels are those that have cases of their own. Variants for processors run in those of their kernel: see
// shapedCases.
func kernels() []*vk.Kernel {
	return slices.DeleteFunc(slices.Clone(shaders.All), func(k *vk.Kernel) bool {
		return strings.HasSuffix(k.Name, "_handed") || strings.HasSuffix(k.Name, "_processor")
	})
}

// Fits reports whether the device can bind what c binds.
func (c Case) Fits(d *vk.Device) bool { return c.Bytes <= d.Info().Limits.MaxStorageBufferRange }

// table is the cases of a kernel: their names and what they do.
type table []struct {
	name  string
	check func(t *trial)
}

// casesOf makes cases of a table. Modes change every trial before its check.
func casesOf(kernel string, rows table, modes ...func(t *trial)) (cases []Case) {
	for _, r := range rows {
		cases = append(cases, Case{Kernel: kernel, Name: r.name, check: func(t *trial) {
			for _, mode := range modes {
				mode(t)
			}
			r.check(t)
		}})
	}
	return cases
}

// over makes a check that runs for every value, and names the value that fails.
func over[T any](values []T, check func(t *trial, v T)) func(t *trial) {
	return func(t *trial) { eachOf(values, func(v T) { check(t, halved(t.source, v)) }) }
}

// halved returns a number of elements for a case that is shrunk; what is not a number stays.
func halved[T any](t source, v T) T {
	if n, is := any(v).(int); is && n > 0 {
		return any(t.fewer(n)).(T)
	}
	return v
}

// eachOf runs f for every value and names the value that fails.
func eachOf[T any](values []T, f func(v T)) {
	for _, v := range values {
		during(v, func() { f(v) })
	}
}

// during runs f and puts what it was about before its failure.
func during(what any, f func()) {
	if err := outcome(f); err != nil {
		failf("%v: %w", what, err)
	}
}

// failure is the panic value of a failed check.
type failure struct{ error }

func failf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func outcome(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			failed, is := r.(failure)
			if !is {
				panic(r)
			}
			err = failed.error
		}
	}()
	f()
	return nil
}

func newCase(kernel, name string, check func(t *trial)) Case {
	return Case{Kernel: kernel, Name: name, check: check}
}

// long returns sizes beyond what a step usually needs, and the same cases with other numbers.
func long() []Case {
	const many = 3<<20 + 5
	big := func(kernel, name string, check func(t *trial)) Case {
		c := newCase(kernel, name, check)
		c.Bytes = 4*many + guardBytes
		return c
	}
	return []Case{
		big("scan_apply", "long: millions", func(t *trial) { checkScan(t, t.uints(many, 1000)) }),
		big("sort_scatter", "long: millions of keys",
			func(t *trial) { checkSort(t, sortShapes(t.d)[0].radixSort, t.keys(many, 18), 18) }),
		big("sort_scatter", "long: millions of depths",
			func(t *trial) { checkDepthSort(t, sortShapes(t.d)[0].radixSort, t.depthKeys(many, 0.2)) }),
		big("sort_sweep", "long: millions of keys", func(t *trial) {
			s := sweepShapes(t.d)[0].sorter
			eachOf(oneBlock(t.d, []int{2000, many}, layout.SortBlock), func(n int) {
				checkSort(t, s, t.keys(n, 18), 18)
				checkDepthSort(t, s, t.depthKeys(n, 0.2))
			})
		}),
		newCase("sort_scatter", "long: sizes around powers of two, all shapes", func(t *trial) {
			for n := 1; n <= 1<<16; n *= 2 {
				wholeSorts([]int{n - 1, n, n + 1}, []int{1 + t.IntN(32)})(t)
			}
		}),
		newCase("refine_place", "long: thousands of splats, other mixes", func(t *trial) {
			for range 200 {
				m := mix{keep: 1 + t.IntN(5), duplicate: t.IntN(5), split: t.IntN(5), prune: t.IntN(5)}
				n := t.IntN(900)
				checkRefine(t, t.refinable(n, m), refinement{ceiling: t.IntN(2*n + 1), chunks: 15})
			}
		}),
		newCase("emit_isects", "long: other ellipses", func(t *trial) {
			for range 50 {
				w, h := 1+t.IntN(500), 1+t.IntN(400)
				checkTiles(t, t.ellipses(300, w, h), t.camera(w, h), 1, 1+t.IntN(10))
			}
		}),
		newCase("rasterize_bwd", "long: other pictures", func(t *trial) {
			for range 20 {
				w, h := 1+t.IntN(100), 1+t.IntN(80)
				checkRasterBwd(t, t.crowd(t.IntN(4*layout.MostBucket), w, h, t.Float64()), t.camera(w, h), false)
			}
		}),
	}
}
