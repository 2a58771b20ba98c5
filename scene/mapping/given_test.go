package mapping

import (
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// given returns an input whose photos have their true places but for some, which have the lens of the others or one of
// their own that is to be found.
func (s *truth) given(own bool, but ...int) *Input {
	in := s.input()
	in.Lenses = append(in.Lenses[:1:1], in.Lenses[0])
	in.Lenses[0] = Lens{Calibration: s.lens, FocalKnown: true, Fixed: true}
	for i := range in.Photos {
		switch found := slices.Contains(but, i); {
		case !found:
			in.Photos[i].Given = &Place{s.cameras[i].R, s.cameras[i].T}
		case own:
			in.Photos[i].Lens = 1
		}
	}
	return in
}

// TestGiven places photos among given ones, which stay as they are with their lens.
func TestGiven(t *testing.T) {
	for _, own := range []bool{false, true} {
		s := arc(12, 1.2)
		in := s.given(own, 0, 1, 5, 9, 11)
		m, err := Map(t.Context(), in, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Missing) > 0 || len(m.Points) < 500 {
			t.Fatalf("own lens %t: missing are %v, there are %d points", own, m.Missing, len(m.Points))
		}
		if !reflect.DeepEqual(m.Lenses[0], s.lens) {
			t.Errorf("own lens %t: the lens is %v", own, m.Lenses[0])
		}
		for i, p := range m.Poses {
			if g := in.Photos[i].Given; g != nil && (p.R != g.R || p.T != g.T) {
				t.Errorf("own lens %t: photo %d has moved", own, i)
			}
			if off := geom.Length(geom.Sub(centreOf(m, i), s.cameras[i].Center())); off > 0.02 {
				t.Errorf("own lens %t: photo %d is %.3g off", own, i, off)
			}
		}
		if f := m.Lenses[1].Params[0]; own && math.Abs(f-850) > 10 {
			t.Errorf("the focal length of the new photos is %.1f, not 850", f)
		}
		before := runtime.GOMAXPROCS(1)
		again, err := Map(t.Context(), in, Options{})
		runtime.GOMAXPROCS(before)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("own lens %t: on one core the model is another: %v", own, err)
		}
	}
}

// TestGivenAlone has nothing to place: photos that show something else stay out, and given ones in.
func TestGivenAlone(t *testing.T) {
	s := arc(8, 1)
	s.with(arc(4, 0.6), [3]float64{100, 0, 0})
	in := s.given(false, 8, 9, 10, 11)
	m, err := Map(t.Context(), in, Options{})
	if err != nil || len(m.Missing) != 4 || !m.Placed[7] || m.Placed[8] {
		t.Errorf("%v: placed are %v", err, m.Placed)
	}
	in.Photos[2].Given.T[1] = math.NaN()
	if _, err := Map(t.Context(), in, Options{}); err == nil {
		t.Error("a place that is not finite is accepted")
	}
	in.Photos[2].Given, in.Lenses[1] = nil, Lens{Calibration: scene.Calibration{Model: scene.LensPinhole, Width: 9,
		Height: 9, Params: []float64{9, 9, 4, 4}}, Fixed: true}
	if _, err := Map(t.Context(), in, Options{}); err == nil {
		t.Error("a fixed guess is accepted")
	}
}
