package vk

import (
	"testing"

	must "vksplat/internal/musttest"
)

// TestKeptScratch reads what a program left in scratch memory that it keeps: nothing that the list does afterwards
// comes to lie there.
func TestKeptScratch(t *testing.T) {
	d := testDevice(t)
	const n = 5000
	for _, kept := range []bool{true, false} {
		r := NewRecorder(d)
		drawn, later := ScratchOf[uint32](r, "drawn", n), ScratchOf[uint32](r, "later", n)
		r.Fill(drawn.View, 7)
		if kept {
			r.Keep(drawn.View)
		}
		r.Fill(later.View, 9)
		pool := d.NewScratchPool()
		p := must.Get(r.Build("keeps", pool, BuildOptions{}))(t)
		run(t, d, p)
		at := p.Kept(drawn.At(n-1, 1).View)
		if at.IsZero() == kept || !p.Kept(later.View).IsZero() {
			t.Fatalf("kept %v: the last number is at %+v", kept, at)
		}
		if kept {
			out := must.Get(Make[uint32](d, Readback, 1, "out"))(t)
			c := must.Get(d.NewCopier())(t)
			must.Do(t, c.Record(out.View, at))
			s := d.NewSubmission()
			s.Add(c)
			must.Do(t, d.Wait(must.Get(d.Submit(s))(t)))
			if got := Host(out)[0]; got != 7 {
				t.Errorf("%d is there, want 7", got)
			}
			if err := d.Free(out.View); err != nil {
				t.Error(err)
			}
		}
		must.Do(t, pool.Close())
		if !p.Kept(drawn.View).IsZero() {
			t.Error("a stale program says where its scratch memory is")
		}
	}
	r := NewRecorder(d)
	if r.Keep(NewRecorder(d).Scratch("other", 4)); r.Err() == nil {
		t.Error("a list keeps the scratch buffer of another")
	}
}
