package photo

import (
	"fmt"
	"hash/crc32"
	"math"
	"path"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/lenstest"
	"vksplat/scene/scenetest"
)

// throughLens renders a sphere of coloured tiles around the camera as a lens sees it, n x n rays a pixel.
func throughLens(t testing.TB, cam scene.Camera, k scene.Calibration, n int) scene.Image {
	t.Helper()
	o := mustOptics(t, k, k.Width, k.Height)
	return render(k.Width, k.Height, n, func(x, y float64) geom.Vec {
		if o.Plane == scene.NoPlane {
			elevation, azimuth := (0.5-y/o.Height)*math.Pi, (x/o.Width-0.5)*2*math.Pi
			return tiles(&cam,
				[3]float64{math.Cos(elevation) * math.Sin(azimuth), -math.Sin(elevation),
					math.Cos(elevation) * math.Cos(azimuth)})
		}
		p, ok := o.ToPlane(x, y, [2]float64{})
		switch {
		case !ok:
			return geom.Vec{}
		case o.Plane == scene.AnglePlane:
			return tiles(&cam, angleRay(p[0], p[1]))
		}
		return tiles(&cam, [3]float64{p[0], p[1], 1})
	})
}

// directly renders what an undistorted camera sees.
func directly(cam scene.Camera, n int) scene.Image {
	return render(cam.Width, cam.Height, n, func(x, y float64) geom.Vec {
		u, v := (x-cam.Cx)/cam.Fx, (y-cam.Cy)/cam.Fy
		if cam.Model == scene.Fisheye {
			return tiles(&cam, angleRay(u, v))
		}
		return tiles(&cam, [3]float64{u, v, 1})
	})
}

func angleRay(u, v float64) [3]float64 {
	theta := math.Hypot(u, v)
	if theta == 0 {
		return [3]float64{0, 0, 1}
	}
	return [3]float64{u / theta * math.Sin(theta), v / theta * math.Sin(theta), math.Cos(theta)}
}

// tiles gives the colour in the direction of a ray in the camera's axes: tiles with edges a few pixels wide, and finer
// waves.
func tiles(cam *scene.Camera, d [3]float64) geom.Vec {
	w := geom.Rotate(geom.Transposed(cam.R), d)
	w = geom.Scale(w, 1/geom.Length(w))
	tile := math.Tanh(4 * math.Sin(19*w[0]+1) * math.Sin(17*w[1]+2) * math.Sin(18*w[2]+3))
	wave := math.Sin(50*w[0]) * math.Sin(45*w[1]+1) * math.Sin(40*w[2]+2)
	return geom.Vec{0.5 + 0.4*tile, 0.5 + 0.45*wave, 0.5 + 0.2*tile + 0.2*wave}
}

func render(width, height, n int, color func(x, y float64) geom.Vec) scene.Image {
	img := scene.Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
	for y := range height {
		for x := range width {
			var sum geom.Vec
			for j := range n {
				for i := range n {
					sum = sum.Add(color(float64(x)+(float64(i)+0.5)/float64(n), float64(y)+(float64(j)+0.5)/float64(n)))
				}
			}
			sum = sum.Mul(255 / float64(n*n))
			copy(img.Pix[4*(y*width+x):],
				[]uint8{scene.ToByte(sum[0]), scene.ToByte(sum[1]), scene.ToByte(sum[2]), 255})
		}
	}
	return img
}

// synthPose looks somewhere, turned about all axes.
func synthPose() scene.Camera {
	cam := scene.Camera{Name: "a.jpg"}
	scene.LookAt(&cam, geom.Vec{4.2, 0.7, 1.4}, geom.Vec{0, 0, 0.5})
	return cam
}

// throughLenses are lenses for photos of 128 x 96 pixels that see the same as one without.
var throughLenses = []struct {
	k    scene.Calibration
	fish bool
	psnr float64 // least, to what the undistorted camera sees
}{
	{scene.Calibration{Model: scene.LensSimpleRadial, Width: 128, Height: 96, Params: []float64{104, 65, 47, -0.15}},
		false, 45.5},
	{scene.Calibration{Model: scene.LensOpenCV, Width: 128, Height: 96,
		Params: []float64{104, 105, 65, 47, -0.12, 0.04, 0.001, -0.0007}}, false, 45.5},
	{scene.Calibration{Model: scene.LensFullOpenCV, Width: 128, Height: 96,
		Params: []float64{104, 105, 65, 47, 0.1, 0.02, 0.001, -0.0007, 0.01, 0.2, 0.02, 0.001}}, false, 45.5},
	{scene.Calibration{Model: scene.LensFOV, Width: 128, Height: 96, Params: []float64{84, 85, 65, 47, 0.8}}, false,
		45.5},
	{scene.Calibration{Model: scene.LensDivision, Width: 128, Height: 96, Params: []float64{104, 105, 65, 47, -0.2}},
		false, 45.5},
	{scene.Calibration{Model: scene.LensEUCM, Width: 128, Height: 96, Params: []float64{104, 105, 65, 47, 0.5, 1.1}},
		false, 45.5},
	{scene.Calibration{Model: scene.LensPolynomial, Width: 128, Height: 96,
		Params: []float64{104, 105, 65, 47, -0.2, 0.05, 0.01, 0.002, 0.0007, -0.001}}, false, 45.5},
	{scene.Calibration{Model: scene.LensEUCM, Width: 128, Height: 96, Params: []float64{50, 51, 65, 47, 0.62, 1.1}},
		true, 40.5},
	{scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 128, Height: 96,
		Params: []float64{50, 51, 65, 47, 0.03, -0.02, 0.002, -0.001}}, true, 40.5},
	{scene.Calibration{Model: scene.LensThinPrism, Width: 128, Height: 96,
		Params: []float64{60, 61, 65, 47, 0.03, -0.02, 0.001, -0.002, 0.001, 0, 0.002, 0.001}}, true, 40.5},
	{scene.Calibration{Model: scene.LensFisheye, Width: 128, Height: 96, Params: []float64{45, 46, 65, 47}}, true,
		40.5},
}

// A photo taken through a lens becomes what a camera without one sees, at full size and reduced; and one resampling is
// as close to that, to a fifth of a dB, as undistortion at full size with reduction after it.
func TestUndistortAgainstTruth(t *testing.T) {
	pose := synthPose()
	for _, c := range throughLenses {
		photo := throughLens(t, pose, c.k, 3)
		keep(t, "photo_"+c.k.Model.String(), photo)
		for _, downscale := range []int{1, 2} {
			views := must.Get(c.k.Views(pose, 128, 96, downscale))(t)
			cam := views[0]
			if (cam.Model == scene.Fisheye) != c.fish {
				t.Fatalf("%v became %v", c.k, cam.Model)
			}
			got := must.Get(picture((&cam), photo, nil))(t)
			truth := directly(cam, 3*downscale)
			keep(t, fmt.Sprintf("got_%v_%d", c.k.Model, downscale), got)
			keep(t, fmt.Sprintf("truth_%v_%d", c.k.Model, downscale), truth)
			psnr := picturePSNR(got, truth, 0)
			t.Logf("%v at 1/%d: %d x %d, %.2f dB", c.k.Model, downscale, cam.Width, cam.Height, psnr)
			if psnr < c.psnr {
				t.Errorf("%v at 1/%d: %.2f dB to the truth, want %v", c.k.Model, downscale, psnr, c.psnr)
			}
			if (got.Mask != nil) && !c.fish {
				t.Errorf("%v at 1/%d: pixels without a source", c.k.Model, downscale)
			}
			if downscale == 1 || cam.Lens == nil || c.fish {
				continue
			}
			full := must.Get(c.k.Views(pose, 128, 96, 1))(t)
			step := must.Get(undistort(photo, &full[0], nil))(t)
			if two := picturePSNR(resize(step, cam.Width, cam.Height), truth, 0); psnr < two-0.2 {
				t.Errorf("%v: %.2f dB with one resampling, %.2f with two", c.k.Model, psnr, two)
			}
		}
	}
}

// The six faces of a panorama show what cameras there see, across the seam and at the poles too.
func TestPanorama(t *testing.T) {
	pose := synthPose()
	pose.Name = "dir/pano.jpg"
	k := scene.Calibration{Model: scene.LensEquirectangular, Width: 256, Height: 128, Params: []float64{256, 128}}
	photo := throughLens(t, pose, k, 3)
	keep(t, "panorama", photo)
	for _, downscale := range []int{1, 2} {
		views, err := k.Views(pose, 256, 128, downscale)
		if err != nil || len(views) != 6 {
			t.Fatal(len(views), err)
		}
		for _, cam := range views {
			if cam.Photo != "dir/pano.jpg" || path.Dir(cam.Name) != cam.Photo || cam.Width != 64/downscale ||
				cam.Height != cam.Width || cam.Fx != float64(cam.Width)/2 {
				t.Errorf("%+v", cam)
			}
			if geom.Length(geom.Sub(cam.Center(), pose.Center())) > 1e-12 {
				t.Errorf("%s is at %v, not at %v", cam.Name, cam.Center(), pose.Center())
			}
			got, err := picture((&cam), photo, nil)
			if err != nil || got.Mask != nil {
				t.Fatal(err, got.Mask)
			}
			truth := directly(cam, 3*downscale)
			keep(t, fmt.Sprintf("face%d_%s", downscale, path.Base(cam.Name[:len(cam.Name)-4])), got)
			psnr := picturePSNR(got, truth, 0)
			t.Logf("%s at 1/%d: %.2f dB", cam.Name, downscale, psnr)
			if psnr < 40 {
				t.Errorf("%s at 1/%d: %.2f dB to the truth", cam.Name, downscale, psnr)
			}
		}
	}
}

// Interpolated places are those that the model gives, to 1/500 pixel.
func TestPlacesAreExact(t *testing.T) {
	for i, c := range lenstest.All {
		views := must.Get(scene.Calibration{Model: scene.LensModel(c.Model), Width: 800, Height: 1000,
			Params: c.Params}.Views(scene.Camera{Name: "a"}, 200, 250, 1))(t)
		for _, cam := range views {
			if cam.Lens == nil {
				continue
			}
			s := must.Get(newSampler(&cam, 200, 250))(t)
			p := newPlacer(s)
			smooth, outside := 0, 0
			for y := range cam.Height {
				for x, at := range p.places(y) {
					wx, wy, ok := s.at(float64(x)+0.5, float64(y)+0.5)
					ok = ok && s.inside(wx, wy)
					if ok != at.ok && math.Abs(wx+0.5) > 0.01 && math.Abs(wy+0.5) > 0.01 && math.Abs(wx-200.5) > 0.01 &&
						math.Abs(wy-250.5) > 0.01 {
						t.Fatalf("%s: pixel %d %d has a place: %v, want %v (%v %v)", lensName(i), x, y, at.ok, ok, wx,
							wy)
					}
					if !at.ok {
						outside++
						continue
					}
					if math.Abs(at.x-wx) > 1.0/500 || math.Abs(at.y-wy) > 1.0/500 {
						t.Fatalf("%s %s: pixel %d %d lies at %v %v, want %v %v", lensName(i), cam.Name, x, y, at.x,
							at.y, wx, wy)
					}
					if at.shape != &p.own[x] {
						smooth++
					}
				}
			}
			if n := cam.Width * cam.Height; smooth < n/3 && s.o.Plane != scene.NoPlane || cam.Model == scene.Pinhole &&
				outside > 0 {
				t.Errorf("%s %s: of %d pixels %d are interpolated, %d outside", lensName(i), cam.Name, n, smooth,
					outside)
			}
		}
	}
}

// A map that moves nothing changes nothing, whatever the alpha.
func TestUndistortIdentity(t *testing.T) {
	// the corners are too far from the axis
	k := scene.Calibration{Model: scene.LensFisheye, Width: 61, Height: 47, Params: []float64{12, 12, 30.5, 23.5}}
	cam := oneView(t, k, 61, 47, 1)
	if cam.Lens == nil {
		t.Fatal("no lens")
	}
	for _, alpha := range []uint8{255, 128} {
		photo := scenetest.Paint(61, 47,
			func(x, y int) [4]uint8 { return [4]uint8{uint8(x * 4), uint8(y * 5), uint8(x * y), alpha} })
		got, err := undistort(photo, &cam, nil)
		if err != nil || got.Mask == nil {
			t.Fatal(err, got.Mask)
		}
		counted := 0
		for i := range 61 * 47 {
			theta := math.Hypot(float64(i%61)-30, float64(i/61)-23) / 12
			if Counts(got.Mask, i) != (theta <= scene.WidestFisheye) {
				t.Fatalf("pixel %d at %v: %v", i, theta, Counts(got.Mask, i))
			}
			if p, q := [4]uint8(photo.Pix[4*i:]), [4]uint8(got.Pix[4*i:]); theta <= scene.WidestFisheye && p != q {
				t.Fatalf("pixel %d: %v, want %v", i, q, p)
			} else if theta <= scene.WidestFisheye {
				counted++
			}
		}
		if counted < 500 {
			t.Error(counted)
		}
	}
}

// Colours under transparent pixels do not bleed.
func TestUndistortWeightsByAlpha(t *testing.T) {
	photo := scenetest.Paint(64, 48, func(x, y int) [4]uint8 {
		if (x/3+y/5)%2 == 0 {
			return [4]uint8{200, 100, 50, 255}
		}
		return [4]uint8{0, 255, 0, 0}
	})
	for _, downscale := range []int{1, 2} {
		cam := oneView(t, scene.Calibration{Model: scene.LensSimpleRadial, Width: 64, Height: 48,
			Params: []float64{60, 32, 24, -0.1}}, 64, 48, downscale)
		got := must.Get(undistort(photo, &cam, nil))(t)
		for i := 0; i < len(got.Pix); i += 4 {
			if p := got.Pix[i : i+4]; p[3] > 16 &&
				(absDiff(p[0], 200) > 1 || absDiff(p[1], 100) > 1 || absDiff(p[2], 50) > 1) {
				t.Fatalf("pixel %d is %v", i/4, p)
			}
		}
	}
}

func absDiff(a, b uint8) int { return max(int(a), int(b)) - min(int(a), int(b)) }

// The bytes are the same on every processor and from every goroutine.
func TestUndistortBytes(t *testing.T) {
	photo := scenetest.Paint(257, 131,
		func(x, y int) [4]uint8 { return [4]uint8{uint8(x * 37), uint8(y * 29), uint8(x*y + x), 255} })
	for downscale, want := range map[int]uint32{1: 0x38d68e0e, 2: 0xbb2ad50e, 4: 0x2786b9f1} {
		cam := oneView(t, scene.Calibration{Model: scene.LensOpenCV, Width: 257, Height: 131,
			Params: []float64{210, 212, 127, 66, -0.12, 0.04, 0.001, -0.0007}}, 257, 131, downscale)
		sums := make([]uint32, 8)
		parallel.For(len(sums), func(i int) {
			got, err := undistort(photo, &cam, nil)
			if err != nil {
				t.Error(err)
			}
			sums[i] = crc32.ChecksumIEEE(got.Pix)
		})
		for _, sum := range sums {
			if sum != want {
				t.Errorf("1/%d: checksum %#x, want %#x", downscale, sum, want)
			}
		}
	}
}

// Weights add up; a footprint of one pixel at its own place is that pixel, one of whole pixels their mean.
func TestAxisWeights(t *testing.T) {
	for i := range 2 * 100 * (maxTable - 1) {
		size, cubic := 0.3+0.005*float64(i), i%2 == 0
		for x := -0.5; x < 3; x += 0.01 {
			_, w := weightsFor(size, cubic).at(x)
			sum := int32(0)
			for _, v := range w {
				sum += v
			}
			if sum != whole {
				t.Fatalf("size %v at %v: %v add up to %d", size, x, w, sum)
			}
		}
	}
	for i := range 2 * maxTable {
		n := i/2 + 1
		first, w := weightsFor(float64(n), i%2 == 0).at(10 + float64(n)/2)
		for i, v := range w {
			if in := first+i >= 10 && first+i < 10+n; in && absDiff(uint8(v/16), uint8(whole/n/16)) > 1 || !in &&
				v != 0 {
				t.Fatalf("%d pixels from 10 on: %v from %d on", n, w, first)
			}
		}
	}
	if weightsFor(maxTable+1, false) != nil {
		t.Error("a table for a large footprint")
	}
}

func BenchmarkUndistort(b *testing.B) {
	photo := scenetest.Paint(4000, 3000,
		func(x, y int) [4]uint8 { return [4]uint8{uint8(x * 37), uint8(y * 29), uint8(x*y + x), 255} })
	opencv := scene.Calibration{Model: scene.LensOpenCV, Width: 4000, Height: 3000,
		Params: []float64{3300, 3300, 2000, 1500, 0.05, -0.08, -0.001, 0.0002}}
	for _, c := range []struct {
		name      string
		k         scene.Calibration
		downscale int
	}{
		{"opencv", opencv, 1}, {"opencv/2", opencv, 2}, {"opencv auto", opencv, 0}, {"opencv/8", opencv, 8},
		{"fisheye", scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 4000, Height: 3000,
			Params: []float64{1500, 1500, 2000, 1500, 0.05, -0.01, -0.001, 0.0002}}, 1},
		{"panorama", scene.Calibration{Model: scene.LensEquirectangular, Width: 4000, Height: 3000,
			Params: []float64{4000, 3000}}, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			views, err := c.k.Views(scene.Camera{Name: "a"}, 4000, 3000, c.downscale)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				for i := range views {
					if _, err := undistort(photo, &views[i], nil); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(12e6*b.N), "ns/source-pixel")
		})
	}
}

func lensName(i int) string { return fmt.Sprintf("%d %v", i, lenstest.All[i].Model) }

func mustOptics(t testing.TB, k scene.Calibration, width, height int) *scene.Optics {
	t.Helper()
	o := must.Get(k.Optics(width, height))(t)
	return o
}
