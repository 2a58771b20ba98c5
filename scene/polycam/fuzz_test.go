package polycam

import (
	"testing"

	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	scenetest.FuzzRecords(f, "testdata/small/keyframes/cameras/1442008525605.json", func(data []byte) ([]scene.Record, error) {
		r, err := parse(data)
		return []scene.Record{r}, err
	})
}
