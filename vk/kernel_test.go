package vk

import "testing"

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
