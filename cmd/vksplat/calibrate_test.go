package main

import (
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// cmdBent is "bent DIR": a capture of 24 photos of 96x72 whose lens bends them, with cameras that know nothing of that
// and are not where they stood, and with the pixels where photos show its points, off by a third of a pixel.
func cmdBent(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	o := synth.Options{Images: 24, Width: 96, Height: 72, Points: 500, Lens: &synth.Lens{Model: scene.LensOpenCV,
		Focal: 0.8, Distortion: []float64{-0.16, 0.04, 0, 0}}}
	ts.Check(synthtest.Write(dir, o))
	s, err := synth.New(o)
	ts.Check(err)
	cams, points := s.Cameras(), s.Points()
	seen := make([][]colmap.Seen, len(cams))
	for i := range cams {
		find := s.Find(i)
		for k, p := range points {
			if x, y, ok := find(p.Pos); ok {
				bits := philox.Block([4]uint32{uint32(i), uint32(k)}, philox.Key(3))
				r, sin, cos := philox.NormalPair(max(philox.Uniform(bits[0]), 1e-9), philox.Uniform(bits[1]))
				seen[i] = append(seen[i], colmap.Seen{X: x + r*sin/3, Y: y + r*cos/3, Point: uint64(k + 1)})
			}
		}
		for k := range 3 {
			cams[i].T[k] += 0.1 * float64((3*i+7*k)%5-2) // in scene units
		}
		cams[i].Lens, cams[i].Model = nil, scene.Pinhole
		cams[i].Width, cams[i].Height, cams[i].Fx, cams[i].Fy, cams[i].Cx, cams[i].Cy = 96, 72, 76.8, 76.8, 48, 36
	}
	ts.Check(colmap.WriteTracks(filepath.Join(dir, "sparse", "0"), cams, points, seen))
}
