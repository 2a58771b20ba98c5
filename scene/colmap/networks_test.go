package colmap_test

import (
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene/colmap"
	"vksplat/scene/load/loadtest"
)

// Networks that estimate poses write models of their own: Depth Anything 3 with rigs and frames in sparse/0, VGGT in
// sparse itself with a cloud beside, others with a PLY in place of points3D. Each photo has a camera, the points have
// tracks of one photo or none, and photos may be larger than what the network saw.
func TestModelsOfNetworks(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	loadtest.CheckFixture(t, c, true)
	n := 0
	if err := colmap.EachTrack(c, func(_ int, cams []int) { n += len(cams) }); err != nil || n != 7 {
		t.Errorf("%d observations, %v", n, err)
	}

	model := filepath.Join(root, "sparse", "0")
	for from, to := range map[string]string{"cameras.bin": "cameras.bin", "images.bin": "images.bin",
		"points3D.bin": "points3D.bin", "points3D.ply": "points.ply"} {
		must.Do(t, os.Rename(filepath.Join(model, from), filepath.Join(root, "sparse", to)))
	}
	loadtest.Removed("sparse/0")(t, root)
	loadtest.CheckFixture(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), true)

	must.Do(t, os.Rename(filepath.Join(root, "sparse", "points.ply"), filepath.Join(root, "sparse",
		"points3D.ply")))
	loadtest.Removed("sparse/points3D.bin")(t, root)
	c = loadtest.MustLoad(t, root, loadtest.AnyModel())
	loadtest.CheckFixture(t, c, true)
	if err := colmap.EachTrack(c, func(int, []int) { t.Error("a track") }); err != nil {
		t.Error(err)
	}
}
