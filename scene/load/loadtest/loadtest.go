package loadtest

import (
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/scenetest"
)

func TinyCapture(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	TinyModel(t, root, scenetest.TinyCameras(), scenetest.TinyPoints())
	for _, c := range scenetest.TinyCameras() {
		scenetest.WritePhoto(t, filepath.Join(root, "images", c.Name), scenetest.TinyWidth, scenetest.TinyHeight)
	}
	return root
}

func TinyModel(t testing.TB, root string, cams []scene.Camera, points []scene.Point) {
	t.Helper()
	must.Do(t, colmap.Write(filepath.Join(root, "sparse", "0"), cams, points))
}

// Edit rewrites a file of the capture's model.
func Edit(t testing.TB, root, name string, change func(b []byte) []byte) {
	t.Helper()
	path := filepath.Join(root, "sparse", "0", name)
	b := must.Get(os.ReadFile(path))(t)
	scenetest.Put(t, path, change(b))
}

func AnyModel() scene.LoadOptions { return scene.LoadOptions{Model: scene.AnyModel} }

func MustLoad(t testing.TB, root string, o scene.LoadOptions) *scene.Capture {
	t.Helper()
	c, err := load.Capture(root, o)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	return c
}

func Removed(paths ...string) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		for _, p := range paths {
			must.Do(t, os.RemoveAll(filepath.Join(root, filepath.FromSlash(p))))
		}
	}
}
