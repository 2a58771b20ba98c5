package scene

import (
	"math"
	"testing"
)

// throughLens renders the procedural world as a camera with a lens at cam's pose photographs it, n x n rays a pixel.
func throughLens(t testing.TB, cam Camera, k Calibration, n int) Image {
	t.Helper()
	world, o := newSynthWorld(), mustOptics(t, k, k.Width, k.Height)
	return render(k.Width, k.Height, n, func(x, y float64) (vec, bool) {
		if o.plane == noPlane {
			elevation, azimuth := (0.5-y/o.height)*math.Pi, (x/o.width-0.5)*2*math.Pi
			return world.see(&cam, [3]float64{math.Cos(elevation) * math.Sin(azimuth), -math.Sin(elevation), math.Cos(elevation) * math.Cos(azimuth)}), true
		}
		p, ok := o.toPlane(x, y, [2]float64{})
		if !ok {
			return vec{}, false
		}
		if o.plane == anglePlane {
			return world.see(&cam, angleRay(p[0], p[1])), true
		}
		return world.see(&cam, [3]float64{p[0], p[1], 1}), true
	})
}

// directly renders what an undistorted camera sees.
func directly(cam Camera, n int) Image {
	world := newSynthWorld()
	return render(cam.Width, cam.Height, n, func(x, y float64) (vec, bool) {
		u, v := (x-cam.Cx)/cam.Fx, (y-cam.Cy)/cam.Fy
		if cam.Model == Fisheye {
			return world.see(&cam, angleRay(u, v)), true
		}
		return world.see(&cam, [3]float64{u, v, 1}), true
	})
}

func angleRay(u, v float64) [3]float64 {
	theta := math.Hypot(u, v)
	if theta == 0 {
		return [3]float64{0, 0, 1}
	}
	return [3]float64{u / theta * math.Sin(theta), v / theta * math.Sin(theta), math.Cos(theta)}
}

// see gives the colour in the direction of a ray in the camera's axes.
func (w *synthWorld) see(cam *Camera, d [3]float64) vec {
	return w.color(ray{cam.Center(), vec(rotate(transposed(cam.R), d)).unit()})
}

func render(width, height, n int, color func(x, y float64) (vec, bool)) Image {
	img := Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
	parallel(height, func(y int) {
		for x := range width {
			var sum vec
			for j := range n {
				for i := range n {
					c, _ := color(float64(x)+(float64(i)+0.5)/float64(n), float64(y)+(float64(j)+0.5)/float64(n))
					sum = sum.add(c)
				}
			}
			sum = sum.mul(255 / float64(n*n))
			copy(img.Pix[4*(y*width+x):], []uint8{toByte(sum[0]), toByte(sum[1]), toByte(sum[2]), 255})
		}
	})
	return img
}

// synthPose looks at the middle of the procedural world.
func synthPose() Camera {
	cam := Camera{Name: "a.jpg"}
	lookAt(&cam, vec{4.2, 0.7, 1.4}, vec{0, 0, 0.5})
	return cam
}

func TestExperiment(t *testing.T) {
	k := Calibration{Model: lensOpenCV, Width: 640, Height: 480, Params: []float64{520, 523, 322, 237, -0.12, 0.04, 0.001, -0.0007}}
	pose := synthPose()
	photo := throughLens(t, pose, k, 4)
	keep(t, "exp_photo", photo)
	for _, d := range []int{1, 2, 4} {
		cams, _ := k.Views(pose, 640, 480, d)
		got, _ := undistort(photo, &cams[0], nil)
		truth := directly(cams[0], 4*d)
		full, _ := k.Views(pose, 640, 480, 1)
		step, _ := undistort(photo, &full[0], nil)
		two := resize(step, cams[0].Width, cams[0].Height)
		keep(t, "exp_got"+string(rune('0'+d)), got)
		keep(t, "exp_truth"+string(rune('0'+d)), truth)
		t.Logf("1/%d %dx%d: to truth %.2f; two-step to truth %.2f; one to two %.2f mask %v", d, cams[0].Width, cams[0].Height, picturePSNR(got, truth, 2), picturePSNR(two, truth, 2), picturePSNR(got, two, 2), got.Mask != nil)
	}
	for _, d := range []float64{1.25, 1.5, 1.75} {
		full, _ := k.Views(pose, 640, 480, 1)
		cam := full[0].Rescaled(int(float64(full[0].Width)/d), int(float64(full[0].Height)/d))
		got, _ := undistort(photo, &cam, nil)
		truth := directly(cam, 6)
		step, _ := undistort(photo, &full[0], nil)
		two := resize(step, cam.Width, cam.Height)
		t.Logf("1/%v %dx%d: to truth %.2f; two-step to truth %.2f; one to two %.2f", d, cam.Width, cam.Height, picturePSNR(got, truth, 2), picturePSNR(two, truth, 2), picturePSNR(got, two, 2))
	}
}
