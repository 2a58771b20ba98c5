package ref

import "testing"

// outlierScene is a black photo, number 9, and a picture that is light where it says so. Photos agree at all places,
// and the mean error is 0.05.
func outlierScene(light func(x, y int) bool, agree, differ uint32) (counted func(x, y int) bool, squares []uint32) {
	const width, height, tiles = 64, 48, 4 * 3
	render, target := make([][4]float64, width*height), make([]float64, 3*width*height)
	for p := range render {
		if light(p%width, p/width) {
			render[p] = [4]float64{0.6, 0.3, 0, 0}
		}
	}
	c := Outliers[float64]{Factor: 2.5, Photo: 9, Places: make([]uint32, tiles*tileSquares),
		History: make(History, 2+tiles*tileSquares)}
	c.History[0], c.History[1] = 0.05*errorOne*100, 100
	for i := range c.Places {
		c.Places[i] = uint32(i + 2)
		c.History[i+2] = agree | differ<<16
	}
	counts, squares := FindOutliers(render, target, width, height, &c)
	return func(x, y int) bool { p := y*width + x; return counts[p/32]>>(p%32)&1 == 1 }, squares
}

// TestOutliers wants thin things to count that lie among pixels which do, and somebody who stands in the picture not
// to, if other photos agree with the model about what is behind.
func TestOutliers(t *testing.T) {
	beside := func(x, y int) bool { return x >= 19 && x < 45 && y >= 11 } // an error is of 3x3 pixels
	person := func(x, y int) bool { return x >= 20 && x < 44 && y >= 12 }
	wire := func(x, y int) bool { return x == 6 }
	both := func(x, y int) bool { return person(x, y) || wire(x, y) }
	few := func(agree, differ uint32) (inside, outside int) {
		counted, _ := outlierScene(both, agree, differ)
		for y := range 48 {
			for x := range 64 {
				switch {
				case person(x, y) && counted(x, y):
					inside++
				case !beside(x, y) && !counted(x, y):
					outside++
				}
			}
		}
		return inside, outside
	}
	for _, test := range []struct {
		agree, differ uint32
		leaves        bool
	}{
		{0xFF, 0, true}, {0xC, 0, true}, {0x7F, 0x300, true}, {0, 0, false}, {0x1, 0, false},
		{0x201, 0, false}, // the photo's own word does not count
		{0xFF, 0x7C00, false},
	} {
		inside, outside := few(test.agree, test.differ)
		if outside > 0 || test.leaves && inside > 24*36/4 || !test.leaves && inside != 24*36 {
			t.Errorf("agree %#x, differ %#x: %d pixels of the person count, and %d of the others do not", test.agree,
				test.differ, inside, outside)
		}
	}
}

// TestTrackErrors wants a photo's last opinion of a place, and a mean that follows the errors.
func TestTrackErrors(t *testing.T) {
	_, squares := outlierScene(func(x, y int) bool { return x >= 32 }, 0, 0)
	places := make([]uint32, len(squares))
	for i := range places {
		places[i] = 2
		if squares[i]&squareDiffers != 0 {
			places[i] = 3
		}
	}
	h := make(History, 4)
	h[2], h[3] = 1<<4|1<<25, 1<<9
	for range 100 {
		TrackErrors(h, places, squares, 9)
	}
	if h[2] != 1<<4|1<<9 || h[3] != 1<<25 {
		t.Errorf("photos that agree and differ: %#x and %#x", h[2], h[3])
	}
	if mean := float64(h[0]) / float64(h[1]) / errorOne; mean < 0.14 || mean > 0.16 {
		t.Errorf("the mean error is %g, want 0.15", mean)
	}
}
