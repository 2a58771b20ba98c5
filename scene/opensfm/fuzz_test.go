package opensfm

import (
	"testing"

	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	scenetest.FuzzRecords(f, "testdata/small/reconstruction.json", func(data []byte) ([]scene.Record, error) {
		components, err := parse(data)
		if err != nil {
			return nil, err
		}
		c := &scene.Capture{}
		records, err := components[0].records(c)
		if err != nil {
			return nil, err
		}
		_, err = components[0].cloud(c)
		return records, err
	})
}
