package ref

import (
	"math"
	"slices"
	"testing"
)

// outlierScene is a black photo and a picture that is light where it says so.
func outlierScene(width, height int, light func(x, y int) bool, c Outliers[float64]) (counted func(x, y int) bool,
	errors []uint32) {
	render, target := make([][4]float64, width*height), make([]float64, 3*width*height)
	for p := range render {
		if light(p%width, p/width) {
			render[p] = [4]float64{0.6, 0.3, 0, 0}
		}
	}
	counts, errors := FindOutliers(render, target, width, height, &c)
	return func(x, y int) bool { p := y*width + x; return counts[p/32]>>(p%32)&1 == 1 }, errors
}

// TestOutliers wants thin things to count that lie among pixels which do, and somebody who stands in the picture not
// to.
func TestOutliers(t *testing.T) {
	person := func(x, y int) bool { return x >= 20 && x < 44 && y >= 12 }
	wire := func(x, y int) bool { return x == 6 }
	both := func(x, y int) bool { return person(x, y) || wire(x, y) }
	counted, errors := outlierScene(64, 48, both, Outliers[float64]{Threshold: 0.2, Step: 6})
	inside, outside := 0, 0
	for y := range 48 {
		for x := range 64 {
			switch {
			case person(x, y) && counted(x, y):
				inside++
			case !person(x, y) && !counted(x, y):
				outside++
			}
		}
	}
	if inside > 24*36/4 || outside > 0 {
		t.Errorf("%d pixels of the person count, and %d of the others do not", inside, outside)
	}
	sum := uint32(0)
	for _, n := range errors {
		sum += n
	}
	// Where all of 3x3 pixels are the person's, and one of 4x4 is looked at.
	if n := errors[ErrorBin(0.3)]; sum != 64*48/16 || n != 6*9 {
		t.Errorf("%d errors, %d of 0.3", sum, n)
	}
	counted, _ = outlierScene(64, 48, both, Outliers[float64]{})
	if !counted(30, 30) {
		t.Error("without a threshold a pixel does not count")
	}
	kept := 0
	counted, _ = outlierScene(64, 48, both, Outliers[float64]{Threshold: 0.2, Keep: 0.5, ID: 3})
	for y := 20; y < 40; y++ {
		for x := 24; x < 40; x++ {
			if counted(x, y) {
				kept++
			}
		}
	}
	if kept < 120 || kept > 200 {
		t.Errorf("%d of 320 pixels are drawn of half of them", kept)
	}
}

// TestTrackErrors wants the share of errors that was asked for below the threshold, and a history that forgets.
func TestTrackErrors(t *testing.T) {
	history, errors := make([]float64, ErrorBins), make([]uint32, ErrorBins)
	if got := TrackErrors(history, errors, 0.7); got != 0 {
		t.Errorf("of nothing: %g", got)
	}
	for e := range 1000 {
		errors[ErrorBin((float64(e)+0.5)/1000)]++
	}
	if got := TrackErrors(history, errors, 0.7); math.Abs(got-0.7) > 0.002 {
		t.Errorf("of even errors: %g", got)
	}
	if got := TrackErrors(slices.Clone(history), errors, 1); got != 0 {
		t.Errorf("of all: %g", got)
	}
	clear(errors)
	errors[ErrorBin(0.01)] = 1000
	for range 60 {
		TrackErrors(history, errors, 0.7)
	}
	if got := TrackErrors(history, errors, 0.7); math.Abs(got-0.01) > 0.0005 {
		t.Errorf("after 60 steps of small errors: %g", got)
	}
}
