package depth

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/scenetest"
	"vksplat/scene/synth"
)

// drawn is a procedural capture in a unit of its own.
func drawn(t *testing.T, points int) (*scene.Capture, *synth.Capture) {
	t.Helper()
	o := synth.Options{Images: 6, Width: 96, Height: 72, Points: points, Scale: 2.5, Offset: [3]float64{7, -3, 11}}
	s := must.Get(synth.New(o))(t)
	dir := t.TempDir()
	must.Do(t, synth.Write(dir, o))
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Downscale: 1}))(t)
	return c, s
}

// wrong returns the share of depths that differ by more than 3 % from the nearest of the drawn ones around them.
func wrong(list []scene.KnownDepth, want []float32, width int) float64 {
	n := 0
	for _, k := range list {
		best := math.Inf(1)
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				if p := (int(k.Y)+dy)*width + int(k.X) + dx; p >= 0 && p < len(want) {
					best = min(best, math.Abs(float64(k.Depth/want[p])-1))
				}
			}
		}
		if best > 0.03 {
			n++
		}
	}
	return float64(n) / float64(max(len(list), 1))
}

// TestVisible projects points all around into photos: those behind something must not be seen through it, whether there
// are few or many.
func TestVisible(t *testing.T) {
	for _, points := range []int{2000, 60000} {
		c, s := drawn(t, points)
		known, tracked, err := Points(c, c.Points)
		if err != nil || tracked {
			t.Fatalf("tracked %v, %v", tracked, err)
		}
		depths := known.Count()
		if slices.Contains(known.Counts(), 0) || depths < points/4 {
			t.Errorf("%d points: %d depths, by camera %d", points, depths, known.Counts())
		}
		hidden, seen := 0.0, 0.0
		for i := range known {
			seen += wrong(known[i], s.Depths(i), 96) / float64(len(known))
			hidden += wrong(nearestOf(&c.Cameras[i], c.Points), s.Depths(i), 96) / float64(len(known))
		}
		t.Logf("%d points: %d depths, wrong are %.2f %%, without visibility %.2f %%", points, depths, 100*seen,
			100*hidden)
		if !(seen < 0.02) || points < 10000 && !(hidden > 2*seen) {
			t.Error("hidden points are seen")
		}
	}
}

// TestThin leaves about as many depths as a photo may have, at the same places whatever they are.
func TestThin(t *testing.T) {
	var list []scene.KnownDepth
	for p := range 4 * mostKnown {
		list = append(list, scene.KnownDepth{X: uint16(p % 1024), Y: uint16(p / 1024), Depth: 1})
	}
	few := thin(append([]scene.KnownDepth(nil), list[:mostKnown]...))
	kept := thin(list)
	if len(few) != mostKnown || math.Abs(float64(len(kept))/mostKnown-1) > 0.01 {
		t.Errorf("%d of %d, %d of %d", len(few), mostKnown, len(kept), 4*mostKnown)
	}
}

// TestScale brings depths to another unit.
func TestScale(t *testing.T) {
	known := Known{{{Depth: 3}}, nil}
	known.Scale(0.5)
	known.Add(Known{nil, {{Depth: 2}}})
	if known[0][0].Depth != 1.5 || known[1][0].Depth != 2 {
		t.Errorf("%v", known)
	}
}

// TestTracked takes the depths of points in the photos of their tracks alone, at their projections.
func TestTracked(t *testing.T) {
	c, s := drawn(t, 300)
	le := binary.LittleEndian
	b := le.AppendUint64(nil, uint64(len(c.Points)))
	want := make([]int, len(c.Cameras))
	for p, point := range c.Points {
		// by the first camera that this point was drawn for; image ids are 1 to 6 in the order of the names
		seen := p % len(c.Cameras)
		b = scenetest.AppendFloats(le.AppendUint64(b, uint64(p+1)), point.Pos[:]...)
		b = append(b, point.Color[:]...)
		b = le.AppendUint64(scenetest.AppendFloats(b, 0.5), 1)
		b = le.AppendUint32(le.AppendUint32(b, uint32(seen+1)), 0)
		want[seen]++
	}
	must.Do(t, os.WriteFile(filepath.Join(c.Model, "points3D.bin"), b, 0o666))
	known, tracked, err := Points(c, c.Points)
	if err != nil || !tracked {
		t.Fatalf("tracked %v, %v", tracked, err)
	}
	for i, list := range known {
		if len(list) != want[i] || wrong(list, s.Depths(i), 96) > 0.02 {
			t.Errorf("camera %d: %d depths, want %d; wrong are %.2f %%", i, len(list), want[i],
				100*wrong(list, s.Depths(i), 96))
		}
	}
}
