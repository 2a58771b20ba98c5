package vk

import (
	"testing"

	must "vksplat/internal/musttest"
)

// TestOneShots makes, runs and ends many short programs one right after the other, as checkpoints do. The validation
// layer looks at the end of each on a thread of its own, while the next one is recorded.
func TestOneShots(t *testing.T) {
	d := testDevice(t)
	v := must.Get(d.Alloc(Readback, 4096, "words"))(t)
	pool := d.NewScratchPool()
	defer pool.Close()
	s := d.NewSubmission()
	for i := range 1000 {
		r := NewRecorder(d)
		r.Fill(v, uint32(i))
		p := must.Get(r.Build("one shot", pool, BuildOptions{NoTimings: true}))(t)
		s.Reset()
		s.Add(p)
		ticket := must.Get(d.Submit(s))(t)
		must.Do(t, d.Wait(ticket))
		if got := Host(Cast[uint32](v))[1023]; got != uint32(i) {
			t.Fatalf("run %d left %d", i, got)
		}
		must.Do(t, p.Close())
	}
}
