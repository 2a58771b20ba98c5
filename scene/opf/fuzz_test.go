package opf

import (
	"encoding/json"
	"testing"

	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	scenetest.FuzzRecords(f, "testdata/small/calibrated-cameras.json", func(data []byte) ([]scene.Record, error) {
		var k calibratedCameras
		if err := json.Unmarshal(data, &k); err != nil {
			return nil, err
		}
		var list cameraList
		for i := range k.Cameras {
			list.Cameras = append(list.Cameras, listed{k.Cameras[i].ID, "a%20b.jpg"})
		}
		return k.records(&scene.Capture{}, list, inputCameras{})
	})
}
