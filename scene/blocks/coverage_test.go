package blocks

import (
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/synth"
)

// TestCoverage draws all cameras, and points in the colours of how many photos see them.
func TestCoverage(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, synth.Write(dir, synth.Options{Images: 12, Width: 32, Height: 24, Points: 500}))
	c := must.Get(load.Capture(dir, scene.LoadOptions{}))(t)
	path := filepath.Join(dir, "coverage.png")
	must.Do(t, WriteCoverage(path, c))
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	img := must.Get(png.Decode(f))(t)
	seen := map[color.Color]int{}
	ground := img.Bounds()
	ground.Max.Y -= legend
	for y := ground.Min.Y; y < ground.Max.Y; y++ {
		for x := ground.Min.X; x < ground.Max.X; x++ {
			seen[img.At(x, y)]++
		}
	}
	if seen[ink] < 12*20 {
		t.Errorf("%d pixels are of cameras", seen[ink])
	}
	points := 0
	for _, s := range coverageShades {
		points += seen[mixed(s.RGBA, paper, 0.8)]
	}
	if points < 500 {
		t.Errorf("%d pixels are of points", points)
	}
}

// TestCoverageArea holds all cameras, leaves far points out, and is as wide as it is high.
func TestCoverageArea(t *testing.T) {
	cams := Rect{[2]float64{0, 0}, [2]float64{2, 1}}
	places := [][2]float64{{1e6, 0}, {0, -1e6}}
	for i := range 200 {
		places = append(places, [2]float64{1, float64(i) / 40})
	}
	a := coverageArea(cams, places)
	if a.Min[1] != 0 || a.Max[1] < 4.5 || a.Max[1] > 5 || a.size()[0] < a.size()[1] || a.Max[0] > 10 {
		t.Errorf("the area is %v", a)
	}
	if a := coverageArea(cams, nil); a != cams {
		t.Errorf("without points it is %v", a)
	}
}
