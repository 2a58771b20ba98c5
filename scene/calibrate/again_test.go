package calibrate

import (
	"context"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene/colmap"
)

// TestApart leaves out photos whose poses and observations are both wrong.
func TestApart(t *testing.T) {
	s := ring(pinhole(700), pinhole(700))
	for _, i := range []int{10, 11} {
		s.m.Images[i].T = [3]float64{-20, 5, 40}
	}
	s.c.Calibrated = s.m.Files()
	if res := must.Get(Capture(context.Background(), s.c, Options{Check: true}))(t); res.Cameras != nil || res.Text() != "" {
		t.Errorf("a check changes cameras: %s", res.Text())
	}
	res, m := s.calibrate(t)
	if !slices.Equal(res.Apart, []string{"010.jpg", "011.jpg"}) || len(m.Images) != photos-2 ||
		!strings.HasSuffix(res.Text(), "2 photos whose poses cannot be right are left out: 010.jpg, 011.jpg") {
		t.Errorf("%v apart, %d images left; %s", res.Apart, len(m.Images), res.Text())
	}
}

// TestAgain gives photos whose poses and observations are wrong, a held-out one among them, to a match that finds what
// they show, besides wrong points. One that finds nothing leaves them out, or where they were.
func TestAgain(t *testing.T) {
	s := ring(pinhole(700), opencv(690, -0.15, 0.2))
	right := map[string][]colmap.Seen{}
	for _, i := range []int{7, 8} {
		right[s.m.Images[i].Name] = s.m.Seen[i]
		s.m.Images[i].T = [3]float64{-20, 5, 40}
		s.m.Seen[i] = slices.Clone(s.m.Seen[i])
		for k := range s.m.Seen[i] {
			s.m.Seen[i][k].Point = s.m.Seen[i][(k+40)%len(s.m.Seen[i])].Point
		}
	}
	for _, finds := range []bool{true, false} {
		match := func(_ context.Context, apart, others []Photo) ([][]Sight, error) {
			points := map[uint64]int32{} // by their places in the photos that others are
			for _, p := range others {
				if s.c.HeldOut[p.Name] || right[p.Name] != nil || len(p.Sights) == 0 {
					t.Errorf("to match with: %s, %d sights", p.Name, len(p.Sights))
				}
				for _, sight := range p.Sights {
					points[s.m.Points[sight.Point].ID] = sight.Point
				}
			}
			found := make([][]Sight, len(apart))
			for i, p := range apart {
				for k, seen := range right[p.Name] {
					point, known := points[seen.Point]
					if k%3 == 0 {
						point = int32(k)
					}
					if known && finds {
						found[i] = append(found[i], Sight{X: seen.X, Y: seen.Y, Point: point})
					}
				}
			}
			return found, nil
		}
		s.c.Calibrated = s.m.Files()
		res := must.Get(Capture(t.Context(), s.c, Options{Match: match}))(t)
		better := *s.c
		better.Calibrated = res.Cameras
		m, _, err := colmap.ReadModel(&better)
		must.Do(t, err)
		switch off := s.off(m, true); {
		case finds && (off > 0.01 || len(m.Images) != photos || len(res.Apart) > 0 || !strings.HasSuffix(res.Text(),
			"2 photos whose poses could not be right are placed by new matches: 007.jpg, 008.jpg")):
			t.Errorf("cameras are %.4f off, %d images, %v stand apart; %s", off, len(m.Images), res.Apart, res.Text())
		case !finds && (len(m.Images) != photos-1 || !slices.Equal(res.Apart, []string{"007.jpg", "008.jpg"}) ||
			!strings.HasSuffix(res.Text(), "1 photo whose pose cannot be right is left out: 007.jpg")):
			t.Errorf("%d images, %v stand apart; %s", len(m.Images), res.Apart, res.Text())
		}
	}
}

// TestAlone leaves out one of photos that are too few for an order, but no two.
func TestAlone(t *testing.T) {
	for wrong, want := range [][]string{{}, {"009.jpg"}, {}} {
		s := ring(pinhole(700), pinhole(700))
		s.m.Images, s.m.Seen, s.c.Cameras = s.m.Images[:18], s.m.Seen[:18], s.c.Cameras[:18]
		for i := range wrong {
			s.m.Images[9+i].T = [3]float64{0, 0, 40}
		}
		if res, _ := s.calibrate(t); !slices.Equal(res.Apart, want) {
			t.Errorf("of %d wrong poses: %v apart", wrong, res.Apart)
		}
	}
}
