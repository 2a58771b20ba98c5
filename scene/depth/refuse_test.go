package depth

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

// readBoth reads a folder as depth maps and as normal maps.
func readBoth(c *scene.Capture, dir string) map[string]error {
	_, depths := Maps(c, make(Known, len(c.Cameras)), MapOptions{Dir: dir, Unit: 1})
	_, normals := ReadNormals(c, NormalOptions{Dir: dir, Frame: FrameOpenCV})
	return map[string]error{"depths": depths, "normals": normals}
}

// mapsOf are maps of a size that know something everywhere, by the setting that reads them.
func mapsOf(width, height int) map[string][]byte {
	values, normals := make([]float64, width*height), make([][3]float64, width*height)
	for i := range values {
		values[i], normals[i] = 1+float64(i%7), [3]float64{0, 0, -1}
	}
	return map[string][]byte{"depths": depthsNPY(width, values), "normals": normalsNPY(width, normals, false)}
}

// TestShapes takes smaller maps of a photo's aspect, also where a network rounded sides, and refuses turned, stretched
// and cropped ones. Where a lens bends the photo, the aspect is that of the photo, not that of the picture without
// distortion.
func TestShapes(t *testing.T) {
	plain := scene.Camera{Name: "a.png", Width: 120, Height: 160, Fx: 100, Fy: 100, Cx: 60, Cy: 80, R: geom.Identity}
	views, err := scene.Calibration{Model: scene.LensOpenCV, Width: 120, Height: 160,
		Params: []float64{90, 90, 60, 80, -0.3, 0.1, 0, 0}}.Views(plain, 120, 160, 1)
	if err != nil || len(views) != 1 || views[0].Lens == nil {
		t.Fatal(views, err)
	}
	bent := views[0]
	bent.Height /= 2 // another aspect than the photo's, which nothing goes by
	for _, c := range []struct {
		width, height int
		want, hint    string // "": taken
	}{
		{120, 160, "", ""}, {60, 80, "", ""}, {240, 320, "", ""}, {96, 126, "", ""}, {7, 9, "", ""},
		{160, 120, "the map has 160 x 120 pixels, its photo the shape of 120 x 160: it is turned", "rows and columns"},
		{32, 24, "it is turned", "rows and columns"},
		{120, 140, "it is stretched or cropped", "whole photos"},
		{160, 160, "it is stretched or cropped", "whole photos"},
	} {
		for setting, data := range mapsOf(c.width, c.height) {
			for name, cam := range map[string]scene.Camera{"plain": plain, "bent": bent} {
				dir := t.TempDir()
				scenetest.Put(t, filepath.Join(dir, "a.npy"), data)
				err := readBoth(&scene.Capture{Cameras: []scene.Camera{cam}}, dir)[setting]
				if c.want == "" && err != nil || c.want != "" && (err == nil ||
					!strings.Contains(err.Error(), c.want) || !strings.Contains(fault.Hint(err), c.hint) ||
					!strings.Contains(err.Error(), "a.npy")) {
					t.Errorf("%s of %d x %d, %s: %v, hint %q", setting, c.width, c.height, name, err, fault.Hint(err))
				}
			}
		}
	}
}

// TestRefuseMany wants one error about many maps, with the first names and a count; of a map that several cameras have
// it counts one.
func TestRefuseMany(t *testing.T) {
	c, dir := &scene.Capture{}, t.TempDir()
	for i := range 12 {
		name := fmt.Sprintf("left/%02d.png", i)
		for range 1 + i%2 {
			c.Cameras = append(c.Cameras, scene.Camera{Name: name, Width: 8, Height: 6, Fx: 8, Fy: 8, R: geom.Identity})
		}
		scenetest.Put(t, filepath.Join(dir, fmt.Sprintf("left/%02d.npy", i)), []byte("some text"))
	}
	for setting, err := range readBoth(c, dir) {
		want := "left/00.npy: not an NPY file; 11 more maps cannot be used, for this reason or others: left/01.npy, "
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			strings.Count(err.Error(), "not an NPY file") != 1 || fault.Hint(err) == "" ||
			fault.ExitCode(err) != fault.ExitData {
			t.Errorf("%s: %v, hint %q", setting, err, fault.Hint(err))
		}
		if want := fmt.Sprintf(" and %d more", 11-scene.MaxNames); !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q at its end", setting, err, want)
		}
	}
}

// TestRounded takes what networks make of common photos, with sides of multiples of 32, and refuses what is turned.
func TestRounded(t *testing.T) {
	for _, c := range []struct {
		width, height, w, h int
		want                bool
	}{
		{256, 160, 1920, 1280, true}, {256, 192, 1920, 1280, true}, {256, 160, 1920, 1080, true},
		{256, 128, 1920, 1080, true}, {518, 294, 1920, 1080, true}, {160, 256, 1920, 1280, false},
		{32, 24, 120, 160, false}, {256, 256, 1920, 1080, false}, {1600, 1280, 1600, 1200, false},
	} {
		if got := sameShape(c.width, c.height, c.w, c.h); got != c.want {
			t.Errorf("%d x %d of %d x %d: %v", c.width, c.height, c.w, c.h, got)
		}
	}
}

// TestRefuseFolder: a file is no folder of maps, and one that is not there is none either.
func TestRefuseFolder(t *testing.T) {
	c := &scene.Capture{Root: t.TempDir(), Cameras: []scene.Camera{{Name: "a.png"}}}
	scenetest.Put(t, filepath.Join(c.Root, "a.npy"), mapsOf(8, 6)["depths"])
	for dir, want := range map[string][2]string{
		"a.npy":   {"this is a file, and a folder is wanted", "give the folder that it is in"},
		"nowhere": {"no such folder", "a folder below the capture's"},
	} {
		for setting, err := range readBoth(c, dir) {
			if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(err.Error(), dir) ||
				!strings.Contains(fault.Hint(err), want[1]) || !strings.Contains(fault.Hint(err), setting) {
				t.Errorf("%s: %v, hint %q", setting, err, fault.Hint(err))
			}
		}
	}
}

// TestFortranOrder: what NumPy keeps column by column is refused, with what to do.
func TestFortranOrder(t *testing.T) {
	c := &scene.Capture{Cameras: []scene.Camera{{Name: "a.png", Width: 8, Height: 6, Fx: 8, Fy: 8, R: geom.Identity}}}
	for setting, data := range mapsOf(8, 6) {
		dir := t.TempDir()
		text := strings.Replace(string(data), "'fortran_order': False", "'fortran_order': True ", 1)
		scenetest.Put(t, filepath.Join(dir, "a.npy"), []byte(text))
		if err := readBoth(c, dir)[setting]; err == nil || !strings.Contains(err.Error(), "Fortran order") ||
			!strings.Contains(fault.Hint(err), "np.ascontiguousarray") {
			t.Errorf("%s: %v, hint %q", setting, err, fault.Hint(err))
		}
	}
}
