// Package check is the case table of every kernel: small inputs, the device's outputs, and what pipeline/ref makes of
// the same inputs. Tests run it on the device at hand, `vksplat doctor` on the user's.
//
// Integers must agree exactly. Floats have a tolerance, with its reason beside it: Vulkan lets division, roots, exp and
// log be a few units in the last place off and lets compilers contract multiplications and additions, so no two devices
// agree in every bit.
package check

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"vksplat/shaders"
	"vksplat/vk"
)

// Case is one situation of one kernel.
type Case struct {
	Kernel string                   // as in shaders.All
	Name   string                   // unique for the kernel
	Bytes  int64                    // the largest binding, where it is more than 1 MiB; else 0
	Run    func(d *vk.Device) error // the error names kernel, binding, first index, got, want, seed
}

// longVariable turns on the cases of large sizes and of many random inputs, which take half a minute on a CPU.
const longVariable = "VKSPLAT_LONG"

// Cases returns the whole table, kernel by kernel. With VKSPLAT_LONG=1 it holds large sizes too.
func Cases() []Case {
	table := slices.Concat(
		beginCases(), finishCases(), scanCases(), sortCases(), sweepCases(), projectCases(), lensCases(), tileCases(),
		scanTilesCases(), rasterizeCases(), lookCases(), lossCases(), maskCases(), shrinkCases(), appearanceCases(),
		outlierCases(), depthCases(), poseCases(), packedCases(),
		rasterizeBwdCases(), reduceCases(), projectBwdCases(), adamCases(), batchCases(), refineCases(),
		rankedCases(), refineKernelCases(), carveCases(), resetCases(), relocationCases(), mcmcCases(), packetCases(),
		reorderCases(), verifyCases(), benchCases(), pictureCases(), lpipsCases(),
	)
	if os.Getenv(longVariable) == "1" {
		table = slices.Concat(table, longCases())
	}
	slices.SortStableFunc(table, func(a, b Case) int { return compareNames(a.Kernel, b.Kernel) })
	return table
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// kernels are those that have cases of their own. Variants for processors run in those of their kernel: see rasterCase.
func kernels() []*vk.Kernel {
	return slices.DeleteFunc(slices.Clone(shaders.All), func(k *vk.Kernel) bool {
		return strings.HasSuffix(k.Name, "_handed")
	})
}

// Fits reports whether the device can bind what c binds.
func (c Case) Fits(d *vk.Device) bool { return c.Bytes <= d.Info().Limits.MaxStorageBufferRange }

// trial is one run of a case: its device, and the random numbers of its seed.
type trial struct {
	*rand.Rand
	d         *vk.Device
	mixed     bool // chunks are in mixed precision
	cpuRaster bool // rasterize and rasterize_bwd run as on processors
	packed    bool // with packed states

	lookback bool // isects are found by scan_tiles
	rounds   bool // which takes several rounds
}

// newCase makes a case whose seed follows from its name.
func newCase(kernel, name string, run func(t *trial) error) Case {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", kernel, name)
	seed := h.Sum64()
	return Case{Kernel: kernel, Name: name, Run: func(d *vk.Device) error {
		t := &trial{Rand: rand.New(rand.NewPCG(seed, 0)), d: d}
		if err := run(t); err != nil {
			return fmt.Errorf("run %s/%s with seed %#x: %w", kernel, name, seed, err)
		}
		return nil
	}}
}

// each runs f for every value and names the value that fails.
func each[T any](values []T, f func(T) error) error {
	for _, v := range values {
		if err := f(v); err != nil {
			return fmt.Errorf("%v: %w", v, err)
		}
	}
	return nil
}

// inTurn runs checks until one fails.
func inTurn(checks ...func() error) error {
	for _, f := range checks {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// first returns the first error there is.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
