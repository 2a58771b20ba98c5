package scene

import "testing"

// emptyCapture has two cameras that look along z at a wall of points at depth 2, and extra points.
func emptyCapture(extra ...[3]float64) *Capture {
	c := &Capture{Cameras: []Camera{
		{Name: "a", Width: 100, Height: 100, Fx: 50, Fy: 50, Cx: 50, Cy: 50, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}},
		{Name: "b", Width: 100, Height: 100, Fx: 50, Fy: 50, Cx: 50, Cy: 50, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1},
			T: [3]float64{-1, 0, 0}},
	}}
	for i := range 400 {
		c.Points = append(c.Points, Point{Pos: [3]float64{float64(i%20)/10 - 0.5, float64(i/20)/10 - 1, 2}})
	}
	for _, p := range extra {
		c.Points = append(c.Points, Point{Pos: p})
	}
	return c
}

func TestClear(t *testing.T) {
	c := emptyCapture(
		[3]float64{0, 0, 0.1},  // right in front of a
		[3]float64{1, 0, 0.9},  // in front of b, just inside half the depth
		[3]float64{0, 0, 1.1},  // beyond half the depth
		[3]float64{0, 0, -0.5}, // behind both
		[3]float64{9, 0, 0.5},  // near, and in no picture
	)
	depths := c.Depths(0.5)
	for i, d := range depths {
		if d != (Depths{Empty: 1, Median: 2}) {
			t.Errorf("camera %d: %+v", i, d)
		}
	}
	if n := c.Clear(depths); n != 2 {
		t.Errorf("%d points dropped, want 2", n)
	}
	if len(c.Points) != 403 || c.Points[400].Pos[2] != 1.1 {
		t.Errorf("%d points left, the first of the extra ones at %v", len(c.Points), c.Points[400].Pos)
	}
}

func TestClearKnowsNothing(t *testing.T) {
	few := emptyCapture([3]float64{0, 0, 0.1})
	few.Points = few.Points[350:]
	off := emptyCapture([3]float64{0, 0, 0.1})
	for name, c := range map[string]struct {
		capture *Capture
		share   float64
	}{"too few points": {few, 0.5}, "turned off": {off, 0}, "no points": {&Capture{Cameras: off.Cameras}, 0.5}} {
		before := len(c.capture.Points)
		if n := c.capture.Clear(c.capture.Depths(c.share)); n != 0 || len(c.capture.Points) != before {
			t.Errorf("%s: %d points dropped", name, n)
		}
	}
}
