package synth

import (
	"math"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// TestCity: houses and trees stay on their squares and below the cameras, so that the search for what a ray meets,
// square by square, finds what a search of all objects does; every ray meets something.
func TestCity(t *testing.T) {
	o := must.Get(Options{City: true, Images: 60, Width: 32, Height: 24, Points: 500}.withDefaults())(t)
	w, views := o.newCityWorld(), o.cityViews()
	side := o.citySide()
	if len(w.squares) != side*side {
		t.Fatalf("%d squares, want %d", len(w.squares), side*side)
	}
	all := *w
	all.squares = nil
	met := 0
	for i := range views {
		c := &views[i]
		if at := c.Center(); at[2] < cityTop {
			t.Errorf("camera %d flies at %g", i, at[2])
		}
		l := newLens(c)
		for y := range c.Height {
			for x := range c.Width {
				r := l.ray(float64(x)+0.5, float64(y)+0.5)
				got, want := w.trace(r), all.trace(r)
				if got.owner != want.owner || got.t != want.t {
					t.Fatalf("view %d, pixel %d %d: object %d at %g, want %d at %g", i, x, y, got.owner, got.t,
						want.owner, want.t)
				}
				if !(got.t > 0) || math.IsInf(got.t, 0) || !geom.Finite(got.color[:]...) {
					t.Fatalf("view %d, pixel %d %d: nothing is met: %+v", i, x, y, got)
				}
				if got.owner >= 0 {
					met++
				}
			}
		}
	}
	if pixels := len(views) * o.Width * o.Height; met < pixels/10 || met > pixels*9/10 {
		t.Errorf("houses and trees fill %d of %d pixels", met, pixels)
	}
	if up, err := scene.MeanUp(views); err != nil || up[2] < 0.8 {
		t.Errorf("up is %v, %v", up, err)
	}
}
