package photo

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func writeText(t testing.TB, path, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must.Do(t, os.WriteFile(path, []byte(text), 0o666))
}

// TestMaskOfBentCamera: pixels where the lens shows nothing do not count, nor do those that a mask leaves out.
func TestMaskOfBentCamera(t *testing.T) {
	dir := t.TempDir()
	scenetest.WriteImage(t, filepath.Join(dir, "a.png"),
		scenetest.Paint(80, 60, func(x, y int) [4]uint8 { return [4]uint8{uint8(x), uint8(y), 9, 255} }))
	scenetest.WriteImage(t, filepath.Join(dir, "mask.png"), scenetest.Halves(8, 4, 4))
	k := scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 80, Height: 60,
		Params: []float64{30, 30, 40, 30, -0.3, 0, 0, 0}}
	views := must.Get(k.Views(scene.Camera{Name: "a.png", Path: filepath.Join(dir, "a.png")}, 80, 60, 1))(t)
	taken := must.Get(views[0].AsTaken())(t)
	for _, mask := range []string{"", filepath.Join(dir, "mask.png")} {
		cam := taken
		cam.Mask = mask
		img := must.Get(Decode(cam))(t)
		if img.Width != 80 || img.Height != 60 || img.Pix[4*(30*80+40)] != 40 {
			t.Errorf("a picture of %dx%d, with %v in the middle", img.Width, img.Height, img.Pix[4*(30*80+40)])
		}
		left, right := Counts(img.Mask, 30*80+30), Counts(img.Mask, 30*80+50)
		if Counts(img.Mask, 0) || left && right == (mask != "") || !left && !right {
			t.Errorf("mask %q: the corner counts: %v, the middle: %v and %v", mask, Counts(img.Mask, 0), left, right)
		}
	}
}

// A mask of another size than the photo is stretched to it; bits beyond the last pixel are 0.
func TestMaskOfPlainCamera(t *testing.T) {
	dir := t.TempDir()
	scenetest.WriteImage(t, filepath.Join(dir, "a.png"),
		scenetest.Paint(20, 10, func(x, y int) [4]uint8 { return [4]uint8{uint8(x), uint8(y), 9, 255} }))
	scenetest.WriteImage(t, filepath.Join(dir, "mask.png"), scenetest.Halves(8, 4, 2))
	for _, inverted := range []bool{false, true} {
		for _, width := range []int{20, 10, 5} {
			cam := scene.Camera{Path: filepath.Join(dir, "a.png"), Width: width, Height: width / 2,
				Mask: filepath.Join(dir, "mask.png"), MaskInverted: inverted}
			img := must.Get(Decode(cam))(t)
			if len(img.Mask) != (width*(width/2)+31)/32 {
				t.Fatalf("%d words for %d x %d", len(img.Mask), width, width/2)
			}
			for i := range 32 * len(img.Mask) {
				want := i < width*(width/2) && ((float64(i%width)+0.5)/float64(width) < 0.25) != inverted
				if Counts(img.Mask, i) != want {
					t.Errorf("width %d, inverted %v: bit %d is %v", width, inverted, i, !want)
				}
			}
		}
	}
}

func TestMaskThreshold(t *testing.T) {
	dir := t.TempDir()
	values := [][4]uint8{{128, 128, 128, 255}, {127, 127, 127, 255}, {255, 255, 255, 128}, {255, 255, 255, 127},
		{0, 255, 0, 255}, {255, 0, 255, 255}, {255, 255, 255, 255}, {0, 0, 0, 0}}
	scenetest.WriteImage(t, filepath.Join(dir, "m.png"),
		scenetest.Paint(8, 1, func(x, _ int) [4]uint8 { return values[x] }))
	m := must.Get(ReadMask(filepath.Join(dir, "m.png"), false))(t)
	for i, want := range []bool{true, false, true, false, true, false, true, false} {
		if Counts(m.Words, i) != want {
			t.Errorf("%v: %v", values[i], !want)
		}
	}
}

// A mask moves with its photo: what the mask leaves shows what the photo has there.
func TestMaskThroughLens(t *testing.T) {
	dir := t.TempDir()
	photo := scenetest.Halves(96, 72, 40) // white is what counts
	scenetest.WriteImage(t, filepath.Join(dir, "a.png"), photo)
	for _, k := range []scene.Calibration{
		{Model: scene.LensOpenCV, Width: 96, Height: 72, Params: []float64{80, 81, 47, 37, -0.2, 0.03, 0.002, -0.001}},
		{Model: scene.LensRadialFisheye, Width: 96, Height: 72, Params: []float64{45, 47, 37, 0.05, -0.01}},
		{Model: scene.LensEquirectangular, Width: 96, Height: 72, Params: []float64{96, 72}},
	} {
		for _, downscale := range []int{1, 2} {
			views, err := k.Views(scene.Camera{Name: "a.png", Path: filepath.Join(dir, "a.png")}, 96, 72, downscale)
			if err != nil {
				t.Fatal(err)
			}
			kept, all, wrong := 0, 0, 0
			for _, cam := range views {
				cam.Mask = cam.Path
				img, err := Decode(cam)
				if errors.Is(err, ErrMasked) {
					continue // a face that sees black alone
				}
				if err != nil {
					t.Fatal(err)
				}
				for i := range img.Width * img.Height {
					all++
					if Counts(img.Mask, i) {
						kept++
						if img.Pix[4*i] < 100 {
							wrong++
						}
					} else if img.Pix[4*i] > 155 {
						wrong++
					}
				}
			}
			if kept < all/5 || kept > all*4/5 || wrong > 0 {
				t.Errorf("%v at 1/%d: %d of %d pixels kept, %d wrongly", k.Model, downscale, kept, all, wrong)
			}
		}
	}
}

func TestMaskErrors(t *testing.T) {
	dir := t.TempDir()
	photo, black, broken := filepath.Join(dir, "a.png"), filepath.Join(dir, "black.png"),
		filepath.Join(dir, "broken.png")
	scenetest.WriteImage(t, photo, scenetest.Halves(8, 8, 8))
	scenetest.WriteImage(t, black, scenetest.Halves(8, 8, 0))
	writeText(t, broken, "\x89PNG\r\n\x1a\nno")
	fish := oneView(t, scene.Calibration{Model: scene.LensFisheye, Width: 8, Height: 8, Params: []float64{1, 1, 4, 4}},
		8, 8, 1)
	for name, c := range map[string]struct {
		mask   string
		masked bool
		want   string
	}{
		"black":  {black, true, "no pixel of the photo counts"},
		"broken": {broken, false, "decode mask"},
		"absent": {filepath.Join(dir, "no.png"), false, "decode mask"},
		"folder": {dir, false, "not a file"},
	} {
		for _, lens := range []*scene.Lens{nil, fish.Lens} {
			cam := fish
			cam.Path, cam.Mask, cam.Lens = photo, c.mask, lens
			_, err := Decode(cam)
			if err == nil || errors.Is(err, ErrMasked) != c.masked || !errors.Is(err, fault.ErrData) ||
				!strings.Contains(err.Error(), c.want) || fault.Hint(err) == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAttachMasks(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"b.JPG.png", "sub/C.MASK.png", "sub/d.png", "sub/d.mask.jpg", "e.jpeg", "other.png",
		"pano.png"} {
		writeText(t, filepath.Join(root, "masks", filepath.FromSlash(f)), "x")
	}
	capture := func() *scene.Capture {
		c := &scene.Capture{Root: root, Images: filepath.Join(root, "images")}
		for _, n := range []string{"a.jpg", "b.jpg", "e.png", "pano.jpg/back.png", "pano.jpg/front.png", "sub/c.jpg",
			"sub/d.jpg"} {
			cam := scene.Camera{Name: n}
			if strings.HasPrefix(n, "pano") {
				cam.Photo = "pano.jpg"
			}
			c.Cameras = append(c.Cameras, cam)
		}
		return c
	}
	want := []string{"", "b.JPG.png", "e.jpeg", "pano.png", "pano.png", "sub/C.MASK.png", "sub/d.mask.jpg"}
	for _, dir := range []string{"", "masks", filepath.Join(root, "masks")} {
		c := capture()
		must.Do(t, AttachMasks(c, dir, dir != ""))
		for i, cam := range c.Cameras {
			file := ""
			if want[i] != "" {
				file = filepath.Join(root, "masks", filepath.FromSlash(want[i]))
			}
			if cam.Mask != file || cam.MaskInverted != (file != "" && dir != "") {
				t.Errorf("dir %q: %s has %q %v, want %q", dir, cam.Name, cam.Mask, cam.MaskInverted, file)
			}
		}
		if len(c.Warnings) != 1 || c.Warnings[0].Code != "masks" ||
			!strings.Contains(c.Warnings[0].Text, "5 of 6 photos have masks") ||
			!slices.Equal(c.Warnings[0].Names, []string{"a.jpg"}) {
			t.Errorf("dir %q: %+v", dir, c.Warnings)
		}
	}
	// A photo is not its own mask.
	c := &scene.Capture{Root: root,
		Cameras: []scene.Camera{{Name: "other.png", Path: filepath.Join(root, "masks", "other.png")}}}
	if err := AttachMasks(c, "masks", false); err == nil || !strings.Contains(err.Error(), "no mask of any photo") ||
		fault.Hint(err) == "" {
		t.Error(err)
	}
	if err := AttachMasks(c, "absent", false); err == nil || !strings.Contains(err.Error(), "no such folder") ||
		fault.Hint(err) == "" {
		t.Error(err)
	}
	c = &scene.Capture{Root: root, Images: filepath.Join(root, "sub", "images"), Cameras: capture().Cameras}
	if err := AttachMasks(c, "", false); err != nil || len(c.Warnings) != 0 {
		t.Error(err, c.Warnings)
	}
	c = &scene.Capture{Root: root, Images: filepath.Join(root, "images"), Cameras: []scene.Camera{{Name: "zzz.jpg"}}}
	if err := AttachMasks(c, "", false); err != nil || len(c.Warnings) != 1 || c.Warnings[0].Code != "no-masks" {
		t.Error(err, c.Warnings)
	}
}

// Many goroutines give what one gives, masks included: they share tables of weights.
func TestDecodeInParallel(t *testing.T) {
	dir := t.TempDir()
	scenetest.WriteImage(t, filepath.Join(dir, "a.png"),
		scenetest.Paint(96, 48,
			func(x, y int) [4]uint8 { return [4]uint8{uint8(7 * x), uint8(5 * y), uint8(x * y), 255} }))
	scenetest.WriteImage(t, filepath.Join(dir, "mask.png"), scenetest.Halves(96, 48, 50))
	var cams []scene.Camera
	for _, k := range []scene.Calibration{
		{Model: scene.LensEquirectangular, Width: 96, Height: 48, Params: []float64{96, 48}},
		{Model: scene.LensRadTanThinPrism, Width: 96, Height: 48,
			Params: []float64{40, 40, 48, 24, -0.0232, 0.0924, -0.0591, 0.003, 0.0048, -0.0009,
				0.0002, 0.0005, -0.0009, -0.0001, 0.00007, -0.00017}},
	} {
		views := must.Get(k.Views(scene.Camera{Name: "a.png", Path: filepath.Join(dir, "a.png"),
			Mask: filepath.Join(dir, "mask.png")}, 96, 48, 1))(t)
		cams = append(cams, views...)
	}
	// sees black alone
	cams = slices.DeleteFunc(cams, func(c scene.Camera) bool { return strings.Contains(c.Name, "right") })
	decode := func(run func(n int, f func(i int))) []scene.Image {
		images := make([]scene.Image, len(cams))
		run(len(cams), func(i int) {
			var err error
			if images[i], err = Decode(cams[i]); err != nil {
				t.Error(err)
			}
		})
		return images
	}
	one := decode(func(n int, f func(i int)) {
		for i := range n {
			f(i)
		}
	})
	many := decode(func(n int, f func(i int)) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { f(i) })
		}
		wg.Wait()
	})
	for i := range one {
		if !slices.Equal(one[i].Pix, many[i].Pix) || !slices.Equal(one[i].Mask, many[i].Mask) {
			t.Errorf("%s differs", cams[i].Name)
		}
	}
}

// TestGrowMask grows what a mask leaves out by so many pixels to all sides, and no further.
func TestGrowMask(t *testing.T) {
	dir := t.TempDir()
	const width, height = 37, 21
	left := map[[2]int]bool{{0, 0}: true, {18, 9}: true, {20, 9}: true, {36, 20}: true}
	scenetest.WriteImage(t, filepath.Join(dir, "m.png"), scenetest.Paint(width, height, func(x, y int) [4]uint8 {
		if left[[2]int{x, y}] {
			return [4]uint8{0, 0, 0, 255}
		}
		return [4]uint8{255, 255, 255, 255}
	}))
	for _, n := range []int{0, 1, 4, 100} {
		m := must.Get(readMaskOf(&scene.Camera{Mask: filepath.Join(dir, "m.png"), MaskGrow: n}))(t)
		for y := range height {
			for x := range width {
				want := true
				for p := range left {
					want = want && max(p[0]-x, x-p[0], p[1]-y, y-p[1]) > n
				}
				if got := Counts(m.Words, y*width+x); got != want {
					t.Errorf("grown by %d, pixel %d, %d counts: %v", n, x, y, got)
				}
			}
		}
	}
}
