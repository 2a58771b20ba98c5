package vk

import "testing"

// TestOneShots makes, runs and ends many short programs one right after the other, as checkpoints do. The validation
// layer looks at the end of each on a thread of its own, while the next one is recorded.
func TestOneShots(t *testing.T) {
	d := testDevice(t)
	v, err := d.Alloc(Readback, 4096, "words")
	if err != nil {
		t.Fatal(err)
	}
	pool := d.NewScratchPool()
	defer pool.Close()
	s := d.NewSubmission()
	for i := range 1000 {
		r := NewRecorder(d)
		r.Fill(v, uint32(i))
		p, err := r.Build("one shot", pool, BuildOptions{NoTimings: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Reset()
		s.Add(p)
		ticket, err := d.Submit(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(ticket); err != nil {
			t.Fatal(err)
		}
		if got := Host(Cast[uint32](v))[1023]; got != uint32(i) {
			t.Fatalf("run %d left %d", i, got)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
