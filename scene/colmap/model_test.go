package colmap

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

func smallModel() *Model {
	return &Model{
		Cameras: map[uint32]scene.Calibration{
			3: {Model: scene.LensOpenCV, Width: 640, Height: 480,
				Params: []float64{500, 501, 320, 240, 0.1, 0.01, 0, 0}},
			1: {Model: scene.LensPinhole, Width: 64, Height: 48, Params: []float64{50, 50, 32, 24}}},
		Images: []Image{{Id: 7, Camera: 3, Quat: [4]float64{1, 0, 0, 0}, T: [3]float64{0, 0.5, 4}, Name: "b/one.jpg"},
			{Id: 2, Camera: 1, Quat: [4]float64{0, 1, 0, 0}, T: [3]float64{1, 0, 4}, Name: "two.jpg"}},
		Seen: [][]Seen{{{1.5, 2.25, 40}, {3, 4, 9}}, {{5, 6, 9}}},
		Points: []Point{{scene.Point{Pos: [3]float64{1, 2, 3}, Color: [3]uint8{4, 5, 6}}, 9, 0.5},
			{scene.Point{}, 40, 0}},
	}
}

// inText writes a model in text form, with 2D points that were not matched among the others.
func inText(t *testing.T, m *Model) string {
	dir := t.TempDir()
	var cameras, images, points strings.Builder
	row := func(b *strings.Builder, values ...any) {
		b.WriteString(strings.Trim(fmt.Sprintln(values...), "\n") + " ")
	}
	numbers := func(list []float64) string { return strings.Trim(fmt.Sprint(list), "[]") }
	for id, k := range m.Cameras {
		row(&cameras, id, k.Model, k.Width, k.Height, numbers(k.Params))
		cameras.WriteString("\n")
	}
	for i, img := range m.Images {
		row(&images, img.Id, numbers(img.Quat[:]), numbers(img.T[:]), img.Camera, img.Name)
		images.WriteString("\n11 12 -1 ")
		for _, s := range m.Seen[i] {
			row(&images, s.X, s.Y, s.Point)
		}
		images.WriteString("\n")
	}
	for _, p := range m.Points {
		row(&points, p.ID, numbers(p.Pos[:]), p.Color[0], p.Color[1], p.Color[2], p.Error, 7, 1)
		points.WriteString("\n")
	}
	for name, b := range map[string]*strings.Builder{"cameras": &cameras, "images": &images, "points3D": &points} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name+".txt"), []byte(b.String()), 0o666))
	}
	return dir
}

// TestModel reads what was written, from memory, a folder and text alike, without observations of points that are not
// there.
func TestModel(t *testing.T) {
	want, written := smallModel(), smallModel()
	written.Seen[0] = append(written.Seen[0], Seen{9, 9, 1000})
	dir := t.TempDir()
	must.Do(t, Save(dir, written.Files()))
	converted := t.TempDir()
	must.Do(t, Save(converted, Folder(inText(t, want))))
	for name, c := range map[string]*scene.Capture{
		"memory": {Format: scene.FormatColmap, Calibrated: written.Files()},
		"folder": {Format: scene.FormatColmap, Calibrated: Folder(dir)},
		"model":  {Format: scene.FormatColmap, Model: dir},
		"saved":  {Format: scene.FormatColmap, Model: converted},
		"text":   {Format: scene.FormatColmap, Model: inText(t, want), Text: true},
	} {
		m, ok, err := ReadModel(c)
		if err != nil || !ok || !reflect.DeepEqual(m, want) {
			t.Errorf("%s: %v, %v\n%+v\n%+v", name, ok, err, m, want)
		}
	}
	must.Do(t, os.Truncate(filepath.Join(dir, "images.bin"), 100))
	if _, _, err := ReadModel(&scene.Capture{Format: scene.FormatColmap, Calibrated: Folder(dir)}); err == nil {
		t.Error("a file that ends too early: no error")
	}
	if _, ok, err := ReadModel(&scene.Capture{Format: scene.FormatTransforms}); ok || err != nil {
		t.Errorf("no COLMAP model: %v, %v", ok, err)
	}
	list := map[int]int{}
	must.Do(t, EachTrack(&scene.Capture{Format: scene.FormatColmap, Calibrated: written.Files(),
		Renamed: map[string]string{}, Cameras: []scene.Camera{{Name: "b/one.jpg"}, {Name: "two.jpg"}},
	}, func(point int, cams []int) {
		list[point] = len(cams)
	}))
	if list[0] != 2 || list[1] != 1 {
		t.Errorf("tracks %v", list)
	}
}
