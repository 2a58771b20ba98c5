package synth

import (
	"bytes"
	"testing"

	must "vksplat/internal/musttest"
)

// TestPassers: people walk through a third of the photos that are trained on, in each a noticeable part of it, and
// through none of those that are held out.
func TestPassers(t *testing.T) {
	o := Options{Images: 25, Width: 48, Height: 36, Points: 10}
	empty := must.Get(New(o))(t)
	o.Passers = true
	passed := must.Get(New(o))(t)
	walks := 0
	for i := range o.Images {
		a, b := empty.Photo(i, 1), passed.Photo(i, 1)
		differs := 0
		for k := 0; k < len(a.Pix); k += 4 {
			if !bytes.Equal(a.Pix[k:k+4], b.Pix[k:k+4]) {
				differs++
			}
		}
		share := float64(differs) / float64(o.Width*o.Height)
		if passed.HasPassers(i) {
			walks++
		}
		if has := passed.HasPassers(i); has && (share < 0.05 || share > 0.8) || !has && differs > 0 || has && i%8 == 0 {
			t.Errorf("photo %d: somebody walks through it: %v; %.0f %% of the pixels differ", i, has, 100*share)
		}
	}
	if walks != 7 {
		t.Errorf("somebody walks through %d of 21 photos", walks)
	}
	o.City = true
	if _, err := New(o); err == nil {
		t.Error("people in the city: no error")
	}
}
