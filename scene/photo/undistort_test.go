package photo

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/lenstest"
	"vksplat/scene/scenetest"
)

// dataDir gives a folder of captures that may be absent.
func dataDir(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "data", name)
	if !atomicfile.IsDir(dir) {
		t.Skip("no folder " + dir)
	}
	return dir
}

func oneView(t testing.TB, k scene.Calibration, width, height, downscale int) scene.Camera {
	t.Helper()
	views := must.Get(k.Views(scene.Camera{Name: "a.jpg"}, width, height, downscale))(t)
	if len(views) != 1 {
		t.Fatalf("%d views", len(views))
	}
	return views[0]
}

// picturePSNR compares the RGB of two images where both count and at least margin pixels from the border.
func picturePSNR(a, b scene.Image, margin int) float64 {
	sum, n := 0.0, 0
	for y := margin; y < a.Height-margin; y++ {
		for x := margin; x < a.Width-margin; x++ {
			i := y*a.Width + x
			if !Counts(a.Mask, i) || !Counts(b.Mask, i) {
				continue
			}
			for c := range 3 {
				d := float64(a.Pix[4*i+c]) - float64(b.Pix[4*i+c])
				sum += d * d
			}
			n += 3
		}
	}
	return 10 * math.Log10(255*255*float64(n)/sum)
}

// keep writes an image where KEEP_PICTURES says, for a person to look at.
func keep(t testing.TB, name string, img scene.Image) {
	if dir := os.Getenv("KEEP_PICTURES"); dir != "" {
		scenetest.WriteImage(t, filepath.Join(dir, name+".png"), img)
	}
}

// colmapCalibration reads the only camera of a capture.
func colmapCalibration(t testing.TB, dir string) scene.Calibration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "sparse", "0", "cameras.bin"))
	if err != nil {
		t.Fatal(err)
	}
	cameras, err := colmap.ParseCameras(colmap.NewCursor(bytes.NewReader(data), int64(len(data))))
	if err != nil || len(cameras) != 1 {
		t.Fatal(len(cameras), err)
	}
	for _, c := range cameras {
		return c.Lens
	}
	panic("unreachable")
}

// COLMAP undistorted fox to fox_pinhole.
func TestUndistortFox(t *testing.T) {
	dir, undistorted := dataDir(t, "fox"), dataDir(t, "fox_pinhole")
	want := colmapCalibration(t, undistorted)
	cam := oneView(t, colmapCalibration(t, dir), 540, 960, 1)
	if cam.Width != want.Width || cam.Height != want.Height {
		t.Fatalf("%d x %d, want %d x %d", cam.Width, cam.Height, want.Width, want.Height)
	}
	for i, got := range []float64{cam.Fx, cam.Fy, cam.Cx, cam.Cy} {
		if math.Abs(got-want.Params[i]) > 1e-9 {
			t.Errorf("parameter %d is %v, want %v", i, got, want.Params[i])
		}
	}
	for _, name := range []string{"0034.jpg", "0072.jpg"} {
		cam.Path = filepath.Join(dir, "images", name)
		got := must.Get(Decode(cam))(t)
		theirs := must.Get(Decode(scene.Camera{Path: filepath.Join(undistorted, "images", name), Width: want.Width,
			Height: want.Height}))(t)
		keep(t, "fox_ours_"+name, got)
		keep(t, "fox_colmap_"+name, theirs)
		if got.Mask != nil {
			t.Errorf("%s: pixels without a source", name)
		}
		psnr := picturePSNR(got, theirs, 0)
		t.Logf("%s: %.2f dB to COLMAP's", name, psnr)
		if psnr < 36 {
			t.Errorf("%s: %.2f dB to COLMAP's", name, psnr)
		}
	}
}

// The pictures of miku_plush_pinhole_small were undistorted by COLMAP and then halved.
func TestUndistortMiku(t *testing.T) {
	dir, small := dataDir(t, "miku_plush"), dataDir(t, "miku_plush_pinhole_small")
	want := colmapCalibration(t, small)
	full := oneView(t, colmapCalibration(t, dir), 1008, 756, 1)
	cam := full.Rescaled(want.Width, want.Height)
	for i, got := range []float64{cam.Fx, cam.Fy, cam.Cx, cam.Cy} {
		if math.Abs(got-want.Params[i]) > 0.5 {
			t.Errorf("parameter %d of %d x %d is %v, want %v", i, full.Width, full.Height, got, want.Params[i])
		}
	}
	const name = "20240212_004016.jpg"
	cam.Path = filepath.Join(dir, "images", name)
	got := must.Get(Decode(cam))(t)
	theirs := must.Get(Decode(scene.Camera{Path: filepath.Join(small, "images", name), Width: want.Width,
		Height: want.Height}))(t)
	keep(t, "miku_ours", got)
	keep(t, "miku_colmap", theirs)
	psnr := picturePSNR(got, theirs, 0)
	t.Logf("%d x %d at full size, focal length %.4f of %.4f, %.2f dB to theirs", full.Width, full.Height, cam.Fx,
		want.Params[0], psnr)
	if psnr < 34 || got.Mask != nil {
		t.Errorf("%.2f dB to theirs", psnr)
	}
}

// The photos of monstree are stored lying down with a tag that says so; the calibration is of the stored pixels.
func TestUndistortMonstree(t *testing.T) {
	dir := dataDir(t, "monstree_exif")
	cam := oneView(t, colmapCalibration(t, dir), 1008, 756, 2)
	cam.Path = filepath.Join(dir, "images", "IMG_1046.JPG")
	got := must.Get(Decode(cam))(t)
	keep(t, "monstree", got)
	if got.Width != cam.Width || got.Width <= got.Height || absInt(2*got.Width-1008) > 16 ||
		absInt(2*got.Height-756) > 16 || got.Mask != nil {
		t.Errorf("%d x %d", got.Width, got.Height)
	}
}

func absInt(x int) int { return max(x, -x) }

// The figures of COLMAP's own test (image/undistortion_test.cc): a lens of 100 x 100 pixels, f 100, k 0.5.
func TestCropLikeColmap(t *testing.T) {
	cam := oneView(t, scene.Calibration{Model: scene.LensSimpleRadial, Width: 100, Height: 100,
		Params: []float64{100, 50, 50, 0.5}}, 100, 100, 1)
	if cam.Width != 84 || cam.Height != 84 || cam.Fx != 100 || cam.Fy != 100 || cam.Cx != 42 || cam.Cy != 42 {
		t.Errorf("%+v", cam)
	}
}

// Every pixel of a cropped picture has a source, unless the lens folds within its photo.
func TestCropHasSources(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pictures := 0
	for range 200 {
		f, n := 120*(0.7+random.Float64()), random.NormFloat64
		k := scene.Calibration{Model: scene.LensOpenCV, Width: 160, Height: 120,
			Params: []float64{f, f, 80 + 8*n(), 60 + 6*n(), 0.15 * n(), 0.05 * n(), 0.001 * n(), 0.001 * n()}}
		cam := oneView(t, k, 160, 120, 1)
		o := mustOptics(t, k, 160, 120)
		if cam.Model == scene.Fisheye || o.Border().Angle >= o.Angle(o.Limit) {
			continue
		}
		out, err := undistort(scene.Image{Width: 160, Height: 120, Pix: make([]uint8, 4*160*120)}, &cam, nil)
		if err != nil || out.Mask != nil {
			t.Errorf("%v: %v, pixels without a source", k.Params, err)
		}
		pictures++
	}
	if pictures < 150 {
		t.Error(pictures)
	}
}

func TestViewsRefuseHugePictures(t *testing.T) {
	k := scene.Calibration{Model: scene.LensSimpleRadial, Width: 1 << 14, Height: 1 << 14,
		Params: []float64{20000, 1 << 13, 1 << 13, -0.2}}
	_, err := k.Views(scene.Camera{Name: "a.jpg"}, 1<<14, 1<<14, 1)
	if err == nil || !errors.Is(err, fault.ErrData) ||
		!strings.Contains(err.Error(), "undistorted picture would have") || fault.Hint(err) == "" {
		t.Error(err)
	}
}

// Cameras without distortion are what they always were: scaled, without a lens.
func TestViewsWithoutDistortion(t *testing.T) {
	for _, k := range []scene.Calibration{
		{Model: scene.LensSimplePinhole, Width: 1000, Height: 600, Params: []float64{700, 480, 310}},
		{Model: scene.LensPinhole, Width: 1000, Height: 600, Params: []float64{700, 690, 480, 310}},
		{Model: scene.LensOpenCV, Width: 1000, Height: 600, Params: []float64{700, 690, 480, 310, 0, 0, 0, 0}},
		{Model: scene.LensDivision, Width: 1000, Height: 600, Params: []float64{700, 690, 480, 310, 0}},
		{Model: scene.LensFOV, Width: 1000, Height: 600, Params: []float64{700, 690, 480, 310, 0}},
		{Model: scene.LensEUCM, Width: 1000, Height: 600, Params: []float64{700, 690, 480, 310, 0, 0.7}},
		{Model: scene.LensPolynomial, Width: 1000, Height: 600,
			Params: []float64{700, 690, 480, 310, 0, 0, 0, 0, 0, 0}},
		{Model: scene.LensSimpleFisheye, Width: 1000, Height: 600, Params: []float64{700, 480, 310}},
		{Model: scene.LensFisheye, Width: 1000, Height: 600, Params: []float64{700, 690, 480, 310}},
		{Model: scene.LensOpenCVFisheye, Width: 1000, Height: 600, Params: []float64{700, 690, 480, 310, 0, 0, 0, 0}},
	} {
		fy := 690.0
		if len(k.Params) == 3 {
			fy = 700
		}
		pose := synthPose()
		pose.Path = "p"
		for _, size := range [][5]int{{1000, 600, 1, 1000, 600}, {500, 300, 1, 500, 300}, {4000, 2400, 0, 1600, 960},
			{1000, 600, 4, 250, 150}, {999, 601, 2, 500, 300}} {
			want := pose
			want.Width, want.Height, want.Fx, want.Fy, want.Cx, want.Cy = 1000, 600, 700, fy, 480, 310
			want = want.Rescaled(size[3], size[4])
			if info, _ := k.Model.Info(); info.Fish {
				want.Model = scene.Fisheye
			}
			views, err := k.Views(pose, size[0], size[1], size[2])
			if err != nil || len(views) != 1 || views[0] != want {
				t.Errorf("%v: %+v %v, want %+v", k.Model, views, err, want)
			}
		}
	}
}

// A lens that sees too much for a pinhole becomes an equidistant camera, with the scale of its centre and the size of
// its photo.
func TestWideLensesBecomeFisheyes(t *testing.T) {
	for _, c := range []struct {
		k    scene.Calibration
		fish bool
	}{
		// 58 degrees in the corners
		{scene.Calibration{Model: scene.LensOpenCV, Width: 1000, Height: 800,
			Params: []float64{400, 400, 500, 400, -0.05, 0.01, 0, 0}}, false},
		{scene.Calibration{Model: scene.LensOpenCV, Width: 1000, Height: 800,
			Params: []float64{250, 250, 500, 400, 0.001, 0, 0, 0}}, true},
		{scene.Calibration{Model: scene.LensFOV, Width: 1000, Height: 800, Params: []float64{400, 400, 500, 400, 0.95}},
			true},
		{scene.Calibration{Model: scene.LensDivision, Width: 1000, Height: 800,
			Params: []float64{400, 400, 500, 400, -0.3}}, true},
	} {
		cam := oneView(t, c.k, 1000, 800, 1)
		if (cam.Model == scene.Fisheye) != c.fish {
			t.Errorf("%v became %v of %d x %d", c.k, cam.Model, cam.Width, cam.Height)
		}
		if cam.Model != scene.Fisheye {
			continue
		}
		if cam.Width != 1000 || cam.Height != 800 || cam.Cx != 500 {
			t.Errorf("%+v", cam)
		}
		// Next to the centre both project alike.
		o := mustOptics(t, c.k, 1000, 800)
		x, _, ok := o.Project([3]float64{0.01, 0, 1})
		if got := cam.Cx + cam.Fx*math.Atan(0.01); !ok || math.Abs(got-x) > 0.002 {
			t.Errorf("%v: a ray near the axis falls on %v, in the photo on %v", c.k.Model, got, x)
		}
	}
}

// Half the size of a photo has half of everything, for a model with one focal length too.
func TestCalibrationRescales(t *testing.T) {
	k := scene.Calibration{Model: scene.LensSimpleRadial, Width: 1000, Height: 800,
		Params: []float64{900, 510, 390, -0.1}}
	whole, half := oneView(t, k, 1000, 800, 1), oneView(t, k, 500, 400, 1)
	if absInt(whole.Width-2*half.Width) > 2 || math.Abs(half.Fx-450) > 1e-9 || math.Abs(half.Fy-450) > 1e-9 {
		t.Errorf("%+v %+v", whole, half)
	}
	if odd := oneView(t, k, 500, 404, 1); math.Abs(odd.Fy-900*404/800.0) > 1e-9 || math.Abs(odd.Fx-450) > 1e-9 {
		t.Errorf("%+v", odd)
	}
}

// Random cameras never make Views hang, fail to say why, or want absurd sizes.
func FuzzViews(f *testing.F) {
	for i, c := range lenstest.All {
		f.Add(int(c.Model), 800, 1000, 800, 1000, uint64(i), 0.0)
	}
	f.Add(4, 1, 1, 1, 1, uint64(9), 5.0)
	f.Add(17, 8, 4, 4000, 2000, uint64(9), 5.0)
	f.Fuzz(func(t *testing.T, model, cw, ch, width, height int, seed uint64, spread float64) {
		info, ok := scene.LensModel(model).Info()
		if !ok {
			return
		}
		random := rand.New(rand.NewPCG(seed, 1))
		params := make([]float64, info.Params)
		for i := range params {
			params[i] = spread * random.NormFloat64()
			if i < info.Focals+2 {
				params[i] += float64(max(cw, ch)) * (0.5 + random.Float64())
			}
		}
		views, err := scene.Calibration{Model: scene.LensModel(model), Width: cw, Height: ch,
			Params: params}.Views(scene.Camera{Name: "a"}, width, height, 1)
		if err != nil {
			return
		}
		for _, v := range views {
			if v.Width < 1 || v.Height < 1 || v.Width > 2*width || v.Height > 2*max(height, width) ||
				!geom.Finite(v.Fx, v.Fy, v.Cx, v.Cy) || !(v.Fx > 0 && v.Fy > 0) {
				t.Fatalf("%v %v for %d x %d: %+v", scene.LensModel(model), params, width, height, v)
			}
		}
		if v := &views[0]; v.Lens != nil && v.Lens.Calibration.Model != scene.LensEquirectangular {
			if s := LensSharesOf(v); !(s.Rays >= 0 && s.Rays <= 1 && s.Used >= 0 && s.Used <= 1) {
				t.Fatalf("%+v", s)
			}
		}
		if width*height > 1<<12 || cw > 1<<12 || ch > 1<<12 || len(views) == 0 || views[0].Lens == nil {
			return
		}
		photo := scene.Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
		must.Get(undistort(photo, &views[0], nil))(t)
	})
}
