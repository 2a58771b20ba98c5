package photo

import (
	"encoding/binary"
	"math"
	"testing"

	"vksplat/scene/scenetest"
)

// TestTakenAt reads where photos were taken, and nothing of broken blocks.
func TestTakenAt(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, want := range []Position{{48.137154, 11.576124, 519.25}, {-33.856784, -70.215297, -3.5},
			{51.5, 0, math.NaN()}} {
			block := scenetest.GPSBlock(order, want.Latitude, want.Longitude, want.Altitude)
			for name, data := range withExif(t, block) {
				got, known := TakenAt(scenetest.PhotoFile(t, "photo", data))
				off := math.Hypot(got.Latitude-want.Latitude, got.Longitude-want.Longitude)
				if !known || off > 1e-8 || math.Abs(got.Altitude-want.Altitude) > 1e-3 ||
					math.IsNaN(got.Altitude) != math.IsNaN(want.Altitude) {
					t.Errorf("%s, %v: %v, %t, want %v", name, order, got, known, want)
				}
			}
			for n := range block[:len(block)-8] { // what is behind is the height
				if got, known := TakenAt(scenetest.PhotoFile(t, "photo", withExif(t, block[:n])["jpeg"])); known {
					t.Errorf("%d bytes of %d are at %v", n, len(block), got)
				}
			}
		}
		for name, block := range map[string][]byte{"no fix": scenetest.GPSBlock(order, 0, 0, 5),
			"beyond the pole": scenetest.GPSBlock(order, 91, 5, 5), "around": scenetest.GPSBlock(order, 5, 181, 5),
			"none": cameraBlock(order, "Phone", 42)} {
			if got, known := TakenAt(scenetest.PhotoFile(t, "photo", withExif(t, block)["jpeg"])); known {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	if got, known := TakenAt("none"); known {
		t.Errorf("no file is at %v", got)
	}
}
