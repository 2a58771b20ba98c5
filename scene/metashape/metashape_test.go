package metashape_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"vksplat/scene"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

func TestFormat(t *testing.T) {
	loadtest.Format{Name: scene.FormatMetashape, Photos: "images", File: "cameras.xml", Points: true,
		Refused: map[string]loadtest.Refusal{
			"lens":     {`type="frame"`, `type="rpc"`, `camera type is "rpc"`},
			"p3":       {"<p1>", "<p3>0.1</p3><p1>", "p3 and p4"},
			"focal":    {"<f>61.5</f>", "<f>-3</f>", "its f is -3"},
			"size":     {`width="64"`, `width="64000000"`, "the resolution is"},
			"sensor":   {`sensor_id="0"`, `sensor_id="7"`, `sensor "7", which does not exist`},
			"name":     {"IMG_0001", "IMG_0000", "two cameras have the photo"},
			"disabled": {`enabled="true"`, `enabled="false"`, "none of its 1 chunks"},
			"scale":    {`<scale locked="false">2.5`, `<scale locked="false">-1`, "scaled by -1"},
			"matrix":   {`<rotation locked="false">`, `<rotation locked="false">1 `, "has 10 numbers"},
		},
		NotFinite: map[string]string{"<transform>-0.22140732061784546": "<transform>@", "<f>48</f>": "<f>@</f>",
			"<k1>0.02</k1>": "<k1>@</k1>", "<location>1.5386245773028093": "<location>@",
			"0.73957086273719863": "@", "<p2>0.002</p2>": "<p3>@</p3>"},
		Spellings: loadtest.NotFinite,
	}.Check(t)
}

// Photos without a pose, or disabled, are counted.
func TestWarnings(t *testing.T) {
	c := loadtest.MustLoad(t, loadtest.Fixture(t, "images"), loadtest.AnyModel())
	if filepath.Base(c.Images) != "images" {
		t.Errorf("photos in %s", c.Images)
	}
	for code, count := range map[string]int{"unaligned-photos": 1, "disabled-photos": 1, "moved-points": 0} {
		if w, ok := scenetest.WarningOf(c, code); !ok || w.Count != count {
			t.Errorf("%s: %v", code, w)
		}
	}
}

// Photos under any folder, with any extension; the file named instead of the folder; points of the world stay there.
func TestPlaces(t *testing.T) {
	for _, photos := range []string{".", "input", "photos of today"} {
		root := loadtest.Fixture(t, photos)
		loadtest.CheckFixture(t, loadtest.MustLoad(t, filepath.Join(root, "cameras.xml"), loadtest.AnyModel()), true)
	}
	root := loadtest.Fixture(t, "images")
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	var cloud bytes.Buffer
	cloud.WriteString("ply\nformat ascii 1.0\nelement vertex 1\nproperty double x\nproperty double y\nproperty " +
		"double z\n" +
		"end_header\n10 -20 5\n")
	scenetest.Put(t, filepath.Join(root, "tie_points.ply"), cloud.Bytes())
	world := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if len(world.Points) != 1 || world.Points[0].Pos != [3]float64{10, -20, 5} {
		t.Errorf("%v, of %v", world.Points, c.Points)
	}
	loadtest.Removed("tie_points.ply")(t, root)
	loadtest.CheckFixture(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), false)
}
