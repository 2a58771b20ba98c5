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
	return map[string][]byte{"depths": npy(width, values), "normals": normalsNPY(width, normals, false)}
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
		want := "left/00.npy: it is no NPY file; 11 more maps cannot be used, for this reason or others: left/01.npy, "
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			strings.Count(err.Error(), "no NPY file") != 1 || fault.Hint(err) == "" ||
			fault.ExitCode(err) != fault.ExitData {
			t.Errorf("%s: %v, hint %q", setting, err, fault.Hint(err))
		}
		if want := fmt.Sprintf(" and %d more", 11-scene.MaxNames); !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q at its end", setting, err, want)
		}
	}
}

// TestRefuseFolder: a file is no folder of maps, and one that is not there is none either.
func TestRefuseFolder(t *testing.T) {
	c := &scene.Capture{Root: t.TempDir(), Cameras: []scene.Camera{{Name: "a.png"}}}
	scenetest.Put(t, filepath.Join(c.Root, "a.npy"), mapsOf(8, 6)["depths"])
	for dir, want := range map[string][2]string{
		"a.npy":   {"this is a file, and a folder of maps is wanted", "give the folder that it is in"},
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
