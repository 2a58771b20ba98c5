package polycam

import (
	"testing"

	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	const file = "testdata/small/keyframes/cameras/1442008525605.json"
	scenetest.FuzzRecords(f, file, func(data []byte) ([]scene.Record, error) {
		r, err := parse(data)
		return []scene.Record{r}, err
	})
}
