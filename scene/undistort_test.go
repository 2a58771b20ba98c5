package scene

import (
	"image"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// dataDir gives a folder of captures that may be absent.
func dataDir(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "data", name)
	if !isDir(dir) {
		t.Skip("no folder " + dir)
	}
	return dir
}

func oneView(t testing.TB, k Calibration, width, height, downscale int) Camera {
	t.Helper()
	views, err := k.Views(Camera{Name: "a.jpg"}, width, height, downscale)
	if err != nil {
		t.Fatal(err)
	}
	if len(views) != 1 {
		t.Fatalf("%d views", len(views))
	}
	return views[0]
}

// picturePSNR compares the RGB of two images where both count and at least margin pixels from the border.
func picturePSNR(a, b Image, margin int) float64 {
	sum, n := 0.0, 0
	for y := margin; y < a.Height-margin; y++ {
		for x := margin; x < a.Width-margin; x++ {
			i := y*a.Width + x
			if !counts(a.Mask, i) || !counts(b.Mask, i) {
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

func writeImage(t testing.TB, path string, img Image) {
	t.Helper()
	if err := encodePNG(path, &image.NRGBA{Pix: img.Pix, Stride: 4 * img.Width, Rect: image.Rect(0, 0, img.Width, img.Height)}); err != nil {
		t.Fatal(err)
	}
}

// keep writes an image where KEEP_PICTURES says, for a person to look at.
func keep(t testing.TB, name string, img Image) {
	if dir := os.Getenv("KEEP_PICTURES"); dir != "" {
		writeImage(t, filepath.Join(dir, name+".png"), img)
	}
}

// colmapCalibration reads the only camera of a capture.
func colmapCalibration(t testing.TB, dir string) Calibration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "sparse", "0", "cameras.bin"))
	if err != nil {
		t.Fatal(err)
	}
	cameras, err := parseColmapCameras(data)
	if err != nil || len(cameras) != 1 {
		t.Fatal(len(cameras), err)
	}
	for _, c := range cameras {
		return Calibration{Model: LensModel(c.model), Width: c.width, Height: c.height, Params: c.params}
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
		got, err := cam.Decode()
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := Camera{Path: filepath.Join(undistorted, "images", name), Width: want.Width, Height: want.Height}.Decode()
		if err != nil {
			t.Fatal(err)
		}
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

// random cameras never make Views hang, fail to say why, or want absurd sizes.
func FuzzViews(f *testing.F) {
	for i, c := range lensCases {
		f.Add(int(c.model), 800, 1000, 800, 1000, uint64(i), 0.0)
	}
	f.Add(4, 1, 1, 1, 1, uint64(9), 5.0)
	f.Add(17, 8, 4, 4000, 2000, uint64(9), 5.0)
	f.Fuzz(func(t *testing.T, model, cw, ch, width, height int, seed uint64, spread float64) {
		info, ok := LensModel(model).info()
		if !ok {
			return
		}
		random := rand.New(rand.NewPCG(seed, 1))
		params := make([]float64, info.params)
		for i := range params {
			params[i] = spread * random.NormFloat64()
			if i < info.focals+2 {
				params[i] += float64(max(cw, ch)) * (0.5 + random.Float64())
			}
		}
		views, err := Calibration{Model: LensModel(model), Width: cw, Height: ch, Params: params}.Views(Camera{Name: "a"}, width, height, 1)
		if err != nil {
			return
		}
		for _, v := range views {
			if v.Width < 1 || v.Height < 1 || v.Width > 2*width || v.Height > 2*max(height, width) || !finite(v.Fx, v.Fy, v.Cx, v.Cy) || !(v.Fx > 0 && v.Fy > 0) {
				t.Fatalf("%v %v for %d x %d: %+v", LensModel(model), params, width, height, v)
			}
		}
		if width*height > 1<<12 || cw > 1<<12 || ch > 1<<12 || len(views) == 0 || views[0].Lens == nil {
			return
		}
		photo := Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
		if _, err := undistort(photo, &views[0], nil); err != nil {
			t.Fatal(err)
		}
	})
}
