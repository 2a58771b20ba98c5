package bundler

import (
	"bytes"
	"os"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/exported"
)

// Whatever a file holds, reading it gives an error, or poses that are finite or marked as bad.
func FuzzParse(f *testing.F) {
	seed, err := os.ReadFile("testdata/small/bundle/bundle.out")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := parse(bytes.NewReader(data))
		if err != nil {
			return
		}
		var records []scene.Record
		for _, cam := range b.cameras {
			r := scene.Record{Lens: exported.Lens(cam.lens)}
			r.Bad = exported.ToCamera(&r.Cam, cam.r, cam.t)
			records = append(records, r)
		}
		for _, r := range records {
			if r.Bad == nil && !(geom.Finite(r.Cam.R[:]...) && geom.Finite(r.Cam.T[:]...)) {
				t.Fatalf("%+v", r.Cam)
			}
			k := r.Lens.Calibration(40, 30)
			if _, err := k.Optics(40, 30); err == nil && !geom.Finite(k.Params...) {
				t.Fatalf("%+v", k)
			}
		}
	})
}
