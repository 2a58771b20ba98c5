package scenetest

import (
	"os"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// FuzzRecords fuzzes a reader of cameras, from a whole file and half of it: whatever a file holds, reading it gives an
// error, or poses that are finite or marked as bad.
func FuzzRecords(f *testing.F, file string, parse func(data []byte) ([]scene.Record, error)) {
	f.Helper()
	seed := must.Get(os.ReadFile(file))(f)
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := parse(data)
		if err != nil {
			return
		}
		for _, r := range records {
			if !geom.Finite(r.Cam.Depths[:]...) ||
				r.Bad == nil && !(geom.Finite(r.Cam.R[:]...) && geom.Finite(r.Cam.T[:]...)) {
				t.Fatalf("%+v", r.Cam)
			}
			k := r.Lens.Calibration(40, 30)
			if _, err := k.Optics(40, 30); err == nil && !geom.Finite(k.Params...) {
				t.Fatalf("%+v", k)
			}
		}
	})
}
