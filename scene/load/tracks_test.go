package load_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/scenetest"
	"vksplat/scene/synth"
)

// TestTracks: a model with tracks says which cameras saw each point, in both of COLMAP's forms; points that are left
// out of a capture are left out here.
func TestTracks(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, synth.Write(dir, synth.Options{Images: 4, Width: 32, Height: 24, Points: 8}))
	model := filepath.Join(dir, "sparse", "0")
	// Image ids are 1 to 4 in the order of the names. Image 99 is in no file; the second point is beyond all bounds.
	tracks := [][]uint32{{1, 3}, {2}, {}, {4, 99, 2}}
	want := [][]int{{0, 2}, {}, {3, 1}}
	le := binary.LittleEndian
	b := le.AppendUint64(nil, uint64(len(tracks)))
	var text strings.Builder
	for i, images := range tracks {
		x := float64(i)
		if i == 1 {
			x = 1e300
		}
		b = scenetest.AppendFloats(le.AppendUint64(b, uint64(i+1)), x, 0.5, 1)
		b = append(b, 1, 2, 3)
		b = le.AppendUint64(scenetest.AppendFloats(b, 0.5), uint64(len(images)))
		fmt.Fprintf(&text, "%d %g 0.5 1 1 2 3 0.5", i+1, x)
		for k, id := range images {
			b = le.AppendUint32(le.AppendUint32(b, id), uint32(k))
			fmt.Fprintf(&text, " %d %d", id, k)
		}
		text.WriteString("\n")
	}
	must.Do(t, os.WriteFile(filepath.Join(model, "points3D.bin"), b, 0o666))
	check := func(form string) {
		c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t)
		var got [][]int
		must.Do(t, colmap.EachTrack(c, func(point int, cams []int) {
			if point != len(got) {
				t.Errorf("%s: point %d comes after %d", form, point, len(got))
			}
			got = append(got, append([]int{}, cams...))
		}))
		if len(got) != len(c.Points) || !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: tracks %v of %d points, want %v", form, got, len(c.Points), want)
		}
	}
	check("binary")
	textModel(t, model, must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t), text.String())
	for _, name := range colmap.ModelFiles {
		must.Do(t, os.Remove(filepath.Join(model, name+".bin")))
	}
	check("text")
}

// textModel writes the cameras of a capture, which have one lens, and points as a model in text form.
func textModel(t *testing.T, dir string, c *scene.Capture, points string) {
	t.Helper()
	var images, cameras strings.Builder
	for i, cam := range c.Cameras {
		q := cam.Quat()
		fmt.Fprintf(&images, "%d %g %g %g %g %g %g %g 1 %s\n\n", i+1, q[0], q[1], q[2], q[3], cam.T[0], cam.T[1],
			cam.T[2], cam.Name)
	}
	cam := c.Cameras[0]
	fmt.Fprintf(&cameras, "1 PINHOLE %d %d %g %g %g %g\n", cam.Width, cam.Height, cam.Fx, cam.Fy, cam.Cx, cam.Cy)
	for name, content := range map[string]string{"points3D": points, "images": images.String(),
		"cameras": cameras.String()} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name+".txt"), []byte(content), 0o666))
	}
}
