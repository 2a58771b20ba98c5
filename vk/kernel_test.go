package vk

import (
	"strings"
	"testing"
)

type blockPush struct{ A, B uint32 }

type plainPass struct {
	rawPass
	In, Out Slice[uint32]
	Mixed   bool
	Push    blockPush
	Spec    struct{ Keep, Lost bool }
}

type otherPass struct {
	In, More Slice[uint32]
	Mixed    bool
	Push     struct{ B, A, C uint32 }
	Spec     struct{ Keep, Own bool }
}

// TestDerive wants everything that both kernels have, and zeros to stay where set puts them.
func TestDerive(t *testing.T) {
	base := &plainPass{In: Slice[uint32]{View: View{size: 4}}, Mixed: true, Push: blockPush{1, 2}}
	base.Spec.Keep = true
	p := Derive(base, func(*otherPass) {})
	if p.In != base.In || !p.Mixed || p.Push.A != 1 || p.Push.B != 2 || !p.Spec.Keep || p.Push.C != 0 || p.Spec.Own {
		t.Errorf("%+v", p)
	}
	p = Derive(base, func(p *otherPass) { p.Mixed, p.Push.A, p.Spec.Keep, p.Spec.Own = false, 0, false, true })
	if p.Mixed || p.Push.A != 0 || p.Push.B != 2 || p.Spec.Keep || !p.Spec.Own {
		t.Errorf("what set makes zero is %+v", p)
	}
	defer func() {
		if recover() == nil {
			t.Error("bindings of other types pass for each other")
		}
	}()
	type wrong struct{ In Slice[float32] }
	Derive(base, func(*wrong) {})
}

// TestAdreno wants a device whose default subgroups are too wide to be usable where narrower ones can be required, and
// every kernel that uses subgroups to require them.
func TestAdreno(t *testing.T) {
	caps := deviceCaps{subgroup_size: 128, subgroup_control: 1, required_stages: stageCompute, min_subgroup: 64,
		max_subgroup: 128, max_workgroup_subgroups: 16}
	core := coreProperties{limits: Limits{MaxComputeWorkGroupInvocations: 1024,
		MaxComputeWorkGroupSize: [3]uint32{1024, 1024, 64}}}
	refused := func(l Limits) bool {
		return strings.Contains(strings.Join(missing(version12, l, Features{}), ", "), "a subgroup size of 4 to 64")
	}
	l := limitsOf(core, caps, 0)
	if l.SubgroupSize != 64 || refused(l) {
		t.Errorf("subgroups of %d, of which 64 can be had: %v", l.SubgroupSize, missing(version12, l, Features{}))
	}
	plainScan := &Kernel{Name: "scan without a choice", SPIRV: scanSPV, Local: [3]uint32{256, 1, 1}, LocalSpecID: -1}
	ks := newKernels(&Device{info: DeviceInfo{Limits: l}})
	for kernel, want := range map[*Kernel]uint32{addBaseKernel: 0, sizeKernel: 64, scanKernel: 64, plainScan: 64} {
		if s, err := ks.shape(kernel, make([]uint32, len(kernel.Specs))); err != nil || s.required != want {
			t.Errorf("%s requires subgroups of %d, want %d: %v", kernel.Name, s.required, want, err)
		}
	}
	caps.min_subgroup = 128
	if l := limitsOf(core, caps, 0); !refused(l) {
		t.Errorf("subgroups of %d pass", l.SubgroupSize)
	}
}
