package check

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/vk"
	"vksplat/vk/vktest"
)

// TestTrials wants trials to have something to compare in every tensor of the schema.
func TestTrials(t *testing.T) {
	p := (source{Rand: rand.New(rand.NewPCG(1, 2))}).splats(50, 3)
	for _, x := range p.Tensors() {
		if slices.Min(x.Data) == slices.Max(x.Data) {
			t.Errorf("all of %s is %g", x.Name, x.Data[0])
		}
	}
	for i, rate := range rates.All() {
		if *rate == 0 {
			t.Errorf("learning rate %d is 0", i)
		}
	}
}

// TestKernels runs every case on a device that binds 1 MiB at once, if it can be. The others say that they bind more:
// they have a device with all that there is, as all cases have in the long form.
func TestKernels(t *testing.T) {
	whole := vktest.Device(t)
	limits := filepath.Join(t.TempDir(), "limits.json")
	if err := os.WriteFile(limits, []byte(`{"maxStorageBufferRange": 1048576}`), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VKSPLAT_LIMITS", limits)
	small := vktest.Device(t)
	if got := small.Info().Limits.MaxStorageBufferRange; got != 1<<20 {
		t.Fatalf("storage range of %d bytes", got)
	}
	for _, c := range Cases() {
		t.Run(c.Kernel+"/"+c.Name, func(t *testing.T) {
			if c.Fits(small) {
				if err := c.Run(small); err != nil {
					t.Errorf("with bindings of 1 MiB: %v", err)
				}
				if !filetest.Long() {
					return
				}
			}
			if !c.Fits(whole) {
				t.Skipf("binds %d bytes, the device %d", c.Bytes, whole.Info().Limits.MaxStorageBufferRange)
			}
			if err := c.Run(whole); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKernelsInTurn runs the cases of several workgroups that wait for each other where that is possible on software
// Vulkan only one after another.
func TestKernelsInTurn(t *testing.T) {
	t.Setenv(oneThread, "1")
	d := vktest.Device(t)
	for _, c := range Cases() {
		if c.Kernel == "sort_sweep" || c.Kernel == "scan_tiles" {
			if err := c.Run(d); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestComplete requires cases for every kernel, with names that occur once.
func TestComplete(t *testing.T) {
	var named []string
	seen := map[string]bool{}
	for _, c := range Cases() {
		named = append(named, c.Kernel)
		if name := c.Kernel + "/" + c.Name; seen[name] {
			t.Errorf("two cases are called %s", name)
		} else {
			seen[name] = true
		}
	}
	for _, k := range kernels() {
		if !slices.Contains(named, k.Name) {
			t.Errorf("kernel %s has no case", k.Name)
		}
	}
	for _, k := range named {
		if !slices.ContainsFunc(shaders.All, func(x *vk.Kernel) bool { return x.Name == k }) {
			t.Errorf("there is no kernel %s", k)
		}
	}
}

// TestDoctor reads a report. The script doctor of cmd/vksplat reads one, too, in every run.
func TestDoctor(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 runs every kernel once more, for doctor's report")
	}
	var out bytes.Buffer
	v, err := Doctor(&out, os.Getenv("VKSPLAT_DEVICE"))
	t.Log("\n" + out.String())
	if err != nil || v.Kernels != len(kernels()) || v.Right != v.Kernels || v.Name == "" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, k := range kernels() {
		if !regexp.MustCompile(`(?m)^  pass ` + k.Name + ` `).Match(out.Bytes()) {
			t.Errorf("no pass for %s", k.Name)
		}
	}
	if !strings.Contains(out.String(), "maxStorageBufferRange") ||
		!strings.Contains(out.String(), "scalarBlockLayout") {
		t.Error("limits or features are not in the report")
	}
}

func TestDoctorWithoutDevice(t *testing.T) {
	t.Run("no such device", func(t *testing.T) {
		if v, err := Doctor(&bytes.Buffer{}, "99"); err == nil || v != (Verdict{}) {
			t.Errorf("%+v, %v", v, err)
		}
	})
	t.Run("no loader", func(t *testing.T) {
		t.Setenv("VKSPLAT_LOADER", filepath.Join(t.TempDir(), "none.so"))
		if _, err := Doctor(&bytes.Buffer{}, "auto"); !errors.Is(err, vk.ErrNoLoader) {
			t.Errorf("got %v", err)
		}
	})
}

// TestComparisons makes sure that comparisons fail when they should.
func TestComparisons(t *testing.T) {
	for name, check := range map[string]func(){
		"other integer": func() { same("x", []uint32{1, 2}, []uint32{1, 3}) },
		"fewer":         func() { same("x", []uint32{1}, []uint32{1, 3}) },
		"off":           func() { near("x", []float32{1}, []float64{1.1}, 0.05, 0.01) },
		"NaN got":       func() { near("x", []float32{nan}, []float64{1}, 1, 1) },
		"NaN norm":      func() { nearNorm("x", []float32{nan, 1}, []float64{1, 1}, 1) },
		"norm":          func() { nearNorm("x", []float32{1, 1}, []float64{1, 1.1}, 0.01) },
		"infinite":      func() { areFinite("x", []float32{1, bad[1]}) },
		"signed zero":   func() { same("x", []float32{0}, []float32{bad[9]}) },
		"beyond":        func() { writtenPart("x", []uint32{guardWord, 1}, 0, 1) },
		"image": func() {
			compareImage([][4]float32{{1}, {nan}, {nan}},
				&ref.Image[float64]{Width: 3, Height: 1, Render: [][4]float64{{1}, {1}, {1}}})
		},
	} {
		if err := outcome(check); err == nil {
			t.Errorf("%s: no error", name)
		} else if !strings.Contains(err.Error(), "binding ") {
			t.Errorf("%s: the error names no binding: %v", name, err)
		}
	}
	if err := outcome(func() {
		same("x", []uint32{1}, []uint32{1})
		near("x", []float32{1}, []float64{1.04}, 0.05, 0)
		near("x", []float32{nan}, []float32{nan}, 0, 0)
		same("x", []float32{nan}, []float32{nan})
		same("x", writtenPart("x", []uint32{1, guardWord}, 0, 1), []uint32{1})
	}); err != nil {
		t.Error(err)
	}
}

// TestUnjudged wants a case to fail if it compares nothing with what a kernel writes, or writes an input.
func TestUnjudged(t *testing.T) {
	d := vktest.Device(t)
	for want, bind := range map[string]func(t *trial) vk.Slice[uint32]{
		"nothing judges it": func(t *trial) vk.Slice[uint32] { return out[uint32](t, 300) },
		"bound as an input": func(t *trial) vk.Slice[uint32] { return in(t, make([]uint32, 300)...) },
		"got 0":             func(t *trial) vk.Slice[uint32] { return out[uint32](t, 300, exactly(uint32(1))) },
		"behind its end":    func(t *trial) vk.Slice[uint32] { return out[uint32](t, 299, func(*binding) {}) },
		"only [0:299] may be": func(t *trial) vk.Slice[uint32] {
			return out[uint32](t, 300, exactly(make([]uint32, 299)...))
		},
	} {
		c := newCase("bench_shared", want, func(t *trial) {
			t.dispatch(&shaders.BenchShared{SharedSums: bind(t), Push: shaders.BenchSharedPush{N: 300}}, vk.Items(300,
				256))
			t.run()
		})
		if err := c.Run(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
