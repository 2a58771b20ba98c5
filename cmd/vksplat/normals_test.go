package main

import (
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
	"vksplat/scene/surface/surfacetest"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// TestNormals draws normals of balls on the surfaces of a made-up scene, and wants most to be those of the surfaces.
func TestNormals(t *testing.T) {
	needDevice(t)
	dir := t.TempDir()
	capture, model, out := filepath.Join(dir, "capture"), filepath.Join(dir, "model.ply"), filepath.Join(dir, "out")
	o := synth.Options{Images: 12, Width: 128, Height: 96, Points: 100}
	made, err := synth.New(o)
	balls := ballsOn(surfacetest.SeenByThree(surfacetest.Views(t, o, meshFar), 2))
	must.Do(t, errors.Join(err, synth.Write(capture, o), plytest.Write(model, balls, ply.Meta{})))
	vksplat(t, "render", model, "--cameras", capture, "-o", out, "--normals", "--frames", "0-11x4")
	var list []float64
	for i, c := range made.Cameras() {
		if i%4 != 0 {
			continue
		}
		f, err := os.Open(filepath.Join(out, strings.TrimSuffix(c.Name, ".png")+".normal.png"))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(f)
		must.Do(t, errors.Join(err, f.Close()))
		truth, depths := synthtest.Normals(made, i), made.Depths(i)
		for p, z := range depths {
			r, g, b, _ := picture.At(p%c.Width, p/c.Width).RGBA()
			if z > meshFar/2 || r+g+b == 0 {
				continue
			}
			n := geom.Vec{float64(r)/0x7fff - 1, float64(g)/0x7fff - 1, float64(b)/0x7fff - 1}.Unit()
			list = append(list, math.Acos(min(n.Dot(geom.Vec(truth[p])), 1))*180/math.Pi)
		}
	}
	if len(list) < 5000 {
		t.Fatalf("%d pixels have normals", len(list))
	}
	slices.Sort(list)
	median := list[len(list)/2]
	t.Logf("%d pixels; half of them within %.1f degrees of the truth", len(list), median)
	if median > 6 {
		t.Error("these are other normals")
	}
}
