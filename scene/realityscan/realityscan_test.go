package realityscan_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

func TestFormat(t *testing.T) {
	loadtest.Format{Name: scene.FormatRealityScan, Photos: "images", File: "cameras.csv", Points: true,
		Refused: map[string]loadtest.Refusal{
			"name":   {"frame_00001", "frame_00002", "two cameras have the photo"},
			"number": {",34.200000000000003", ",wide", `"wide" is not a number, in the column f`},
			"focal":  {",34.200000000000003", ",0", "the focal length is 0"},
			"short":  {",-0.12,", "\n", "it ends before the column k1"},
		},
		NotFinite: map[string]string{",2.3521597868189796,": ",@,", ",34.200000000000003,": ",@,",
			",-0.12,": ",@,",
			",0.002,": ",@,"},
		Spellings: loadtest.NotFinite,
	}.Check(t)
}

// A spreadsheet writes semicolons or tabs, decimal commas with the former, UTF-16, and carriage returns alone.
func TestSpreadsheets(t *testing.T) {
	wide := func(order binary.AppendByteOrder) func(string) string {
		return func(text string) string {
			data := order.AppendUint16(nil, 0xfeff)
			for _, unit := range utf16.Encode([]rune(text)) {
				data = order.AppendUint16(data, unit)
			}
			return string(data)
		}
	}
	for name, change := range map[string]func(string) string{
		"semicolons":       strings.NewReplacer(",", ";").Replace,
		"decimal commas":   strings.NewReplacer(",", ";", ".png", ".png", ".", ",").Replace,
		"tabs":             strings.NewReplacer(",", "\t").Replace,
		"carriage returns": strings.NewReplacer("\r", "", "\n", "\r").Replace,
		"UTF-16":           wide(binary.LittleEndian), "big-endian UTF-16": wide(binary.BigEndian),
	} {
		root := loadtest.Fixture(t, "images")
		file := filepath.Join(root, "cameras.csv")
		data := must.Get(os.ReadFile(file))(t)
		scenetest.Put(t, file, []byte(change(string(data))))
		t.Run(name, func(t *testing.T) {
			loadtest.CheckFixture(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), true)
		})
	}
}

// Columns may be fewer and in another order, as a template of the user says.
func TestColumns(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.png", "b.png", "c.png"} {
		scenetest.WritePhoto(t, filepath.Join(root, name), 40, 30)
	}
	scenetest.Put(t, filepath.Join(root, "any.csv"), []byte("\xef\xbb\xbf#f, name, alt, y, x, yaw, pitch, roll\r\n"+
		"18, a.jpg, 3, 2, 1, 90, 90, 0\r\n18, b.jpg, 3, 2, 2, 0, 0, 0\r\n18, c.jpg, 3, 2, 3, 0, 0, 0\r\n"))
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	cam := c.Cameras[0]
	if cam.Center() != [3]float64{1, 2, 3} || cam.Fx != 20 || cam.Cx != 20 || cam.Cy != 15 {
		t.Errorf("%+v", cam)
	}
	// A heading of 90 degrees is east, +x; a pitch of 90 is the horizon, of 0 straight down.
	scenetest.IsAt(t, "east", cam.ToCamera([3]float64{6, 2, 3}), [3]float64{0, 0, 5}, 1e-12)
	scenetest.IsAt(t, "north is left", cam.ToCamera([3]float64{6, 3, 3}), [3]float64{-1, 0, 5}, 1e-12)
	scenetest.IsAt(t, "down", c.Cameras[1].ToCamera([3]float64{2, 2, 0}), [3]float64{0, 0, 3}, 1e-12)
}
