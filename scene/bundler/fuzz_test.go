package bundler

import (
	"bytes"
	"testing"

	"vksplat/scene"
	"vksplat/scene/exported"
	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	scenetest.FuzzRecords(f, "testdata/small/bundle/bundle.out", func(data []byte) (records []scene.Record, err error) {
		b, err := parse(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		for _, cam := range b.cameras {
			r := scene.Record{Lens: exported.Lens(cam.lens)}
			r.Bad = exported.ToCamera(&r.Cam, cam.r, cam.t)
			records = append(records, r)
		}
		return records, nil
	})
}
