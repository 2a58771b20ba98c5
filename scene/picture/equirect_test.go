package picture

import (
	"math"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/scenetest"
	"vksplat/scene/trajectory"
)

// TestPanoramaDrawn paints faces with a smooth function of the direction in the world and wants the panorama to show it
// everywhere, edges and poles included, with the distances of a sphere.
func TestPanoramaDrawn(t *testing.T) {
	c := trajectory.LookingAt(scene.Camera{Width: 10, Height: 10, Fx: 9, Fy: 9, Cx: 5, Cy: 5, R: geom.Identity},
		[3]float64{1, 2, 3}, [3]float64{4, -1, 5}, [3]float64{0, 0, 1})
	paint := func(d [3]float64) [4]float64 { // of length 1
		return [4]float64{0.5 + 0.4*d[0], 0.5 + 0.4*math.Sin(2*d[1]), 0.5 + 0.4*d[2]*d[0], 0.3 + 0.2*d[1]}
	}
	const width, height, radius = 400, 200, 7.0
	cams := PanoramaFaces(c, width)
	faces := make([]*Picture, len(cams))
	for k, f := range cams {
		scenetest.IsAt(t, "face", f.Center(), c.Center(), 1e-9)
		p := &Picture{Width: f.Width, Height: f.Height}
		for i := range f.Width * f.Height {
			ray := [3]float64{(float64(i%f.Width) + 0.5 - f.Cx) / f.Fx, (float64(i/f.Width) + 0.5 - f.Cy) / f.Fy, 1}
			l := geom.Length(ray)
			for _, x := range paint(geom.Rotate(geom.Transposed(f.R), geom.Scale(ray, 1/l))) {
				p.Color = append(p.Color, float32(x))
			}
			p.Depth = append(p.Depth, float32(radius/l))
		}
		faces[k] = p
	}
	out := &Picture{Width: width, Height: height}
	Panorama(out, cams, faces)
	for i := range width * height {
		azimuth, elevation := (float64(i%width)+0.5)/width*2*math.Pi-math.Pi,
			math.Pi/2-(float64(i/width)+0.5)/height*math.Pi
		d := [3]float64{math.Sin(azimuth) * math.Cos(elevation), -math.Sin(elevation),
			math.Cos(azimuth) * math.Cos(elevation)}
		for k, want := range paint(geom.Rotate(geom.Transposed(c.R), d)) {
			if got := float64(out.Color[4*i+k]); math.Abs(got-want) > 1e-3 {
				t.Fatalf("pixel %d, %d: channel %d is %g, want %g", i%width, i/width, k, got, want)
			}
		}
		if math.Abs(float64(out.Depth[i])-radius) > 0.1 {
			t.Fatalf("pixel %d, %d: distance %g", i%width, i/width, out.Depth[i])
		}
	}
}
