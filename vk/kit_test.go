package vk

import (
	_ "embed"
	"errors"
	"math"
	"testing"

	must "vksplat/internal/musttest"
)

// The test kernels. Rebuild them with
//
//	glslc --target-env=vulkan1.2 -O -Werror -o NAME.spv NAME.comp
var (
	//go:embed testdata/saxpy.spv
	saxpySPV []byte
	//go:embed testdata/scan.spv
	scanSPV []byte
	//go:embed testdata/add_base.spv
	addBaseSPV []byte
	//go:embed testdata/size.spv
	sizeSPV []byte
)

var (
	saxpyKernel = &Kernel{Name: "saxpy", SPIRV: saxpySPV, Local: [3]uint32{64, 1, 1}, LocalSpecID: 0, PushSize: 8,
		Bindings: []Binding{{"x", Read}, {"y", ReadWrite}}, Specs: []Spec{{"WORKGROUP_SIZE", 0, 64}, {"BIAS", 1, 0}}}
	scanKernel = &Kernel{Name: "scan", SPIRV: scanSPV, Local: [3]uint32{256, 1, 1}, LocalSpecID: -1, PushSize: 4,
		Bindings: []Binding{{"values", Read}, {"sums", Write}, {"totals", Write}},
		Specs:    []Spec{{"SUBGROUP_SIZE", 0, 32}}}
	addBaseKernel = &Kernel{Name: "add_base", SPIRV: addBaseSPV, Local: [3]uint32{256, 1, 1}, LocalSpecID: -1,
		PushSize: 4,
		Bindings: []Binding{{"bases", Read}, {"sums", ReadWrite}}}
	sizeKernel = &Kernel{Name: "size", SPIRV: sizeSPV, Local: [3]uint32{64, 1, 1}, LocalSpecID: -1,
		Bindings: []Binding{{"count", Read}, {"size", Write}}, Specs: []Spec{{"SUBGROUP_SIZE", 7, 32}}}
)

// rawPass is a Pass that says everything itself.
type rawPass struct {
	k     *Kernel
	views []View
	push  []byte
	spec  []uint32
}

func (p *rawPass) Kernel() *Kernel { return p.k }

func (p *rawPass) Args(views []View) ([]View, []byte, []uint32) {
	return append(views[:0], p.views...), p.push, p.spec
}

func saxpy(x, y Slice[float32], a, bias float32) Pass {
	push := struct {
		n uint32
		a float32
	}{uint32(y.N()), a}
	return &rawPass{saxpyKernel, []View{x.View, y.View}, Bytes(&push), []uint32{64, math.Float32bits(bias)}}
}

// count is the push block of the kernels that take a number of items only.
func count(n int) []byte {
	c := uint32(n)
	return Bytes(&c)
}

// scanPasses appends an exclusive prefix sum of in to out, with scratch for the levels above.
func scanPasses(r *Recorder, in, out Slice[uint32], level int) {
	n := in.N()
	groups := max((n+255)/256, 1)
	totals := ScratchOf[uint32](r, "totals", groups)
	r.Dispatch(&rawPass{scanKernel, []View{in.View, out.View, totals.View}, count(n), []uint32{0}}, Groups(groups))
	if groups == 1 {
		return
	}
	bases := ScratchOf[uint32](r, "bases", groups)
	scanPasses(r, totals, bases, level+1)
	r.Dispatch(&rawPass{addBaseKernel, []View{bases.View, out.View}, count(n), nil}, Groups(groups))
}

// testInstance opens Vulkan with the validation layer where it is installed, and fails the test on any message.
func testInstance(t *testing.T) *Instance {
	t.Helper()
	in, err := Open(InstanceOptions{Validation: true})
	if errors.Is(err, errNoValidation) {
		t.Log("the validation layer is not installed: running without it")
		in, err = Open(InstanceOptions{})
	}
	if errors.Is(err, ErrNoLoader) || errors.Is(err, ErrNoDevice) {
		t.Skipf("no Vulkan here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		for _, m := range in.Messages() {
			t.Errorf("validation layer: %s", m)
		}
	})
	return in
}

// plainInstance opens Vulkan without the validation layer, for tests that measure.
func plainInstance(t testing.TB) *Instance {
	t.Helper()
	in, err := Open(InstanceOptions{})
	if errors.Is(err, ErrNoLoader) || errors.Is(err, ErrNoDevice) {
		t.Skipf("no Vulkan here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

func openDevice(t testing.TB, in *Instance, o DeviceOptions) *Device {
	t.Helper()
	info, _, err := in.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	d := must.Get(in.NewDevice(info, o))(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func testDevice(t *testing.T) *Device {
	t.Helper()
	return openDevice(t, testInstance(t), DeviceOptions{Budget: 512 << 20})
}

// run submits the items once and waits.
func run(t testing.TB, d *Device, items ...Submittable) {
	t.Helper()
	s := d.NewSubmission()
	for _, x := range items {
		s.Add(x)
	}
	must.Do(t, d.Wait(must.Get(d.Submit(s))(t)))
}

// build builds the list of r with a pool of its own.
func build(t testing.TB, r *Recorder, o BuildOptions) *Program {
	t.Helper()
	return must.Get(r.Build(t.Name(), r.dev.NewScratchPool(), o))(t)
}
