package metashape

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Whatever a file holds, reading it gives an error, or poses that are finite or marked as bad.
func FuzzParse(f *testing.F) {
	seed, err := os.ReadFile("testdata/small/cameras.xml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parse(data)
		if err != nil {
			return
		}
		c := &scene.Capture{}
		k, err := d.choose(c)
		if err != nil {
			return
		}
		records, _, err := k.records(c)
		if err != nil {
			return
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

// The cameras of groups in groups are not copied at each level.
func TestDeepGroups(t *testing.T) {
	const deep = 2000
	d, err := parse([]byte("<document><chunk><cameras>" + strings.Repeat("<group>", deep) +
		strings.Repeat(`<camera label="a"/>`, deep) + strings.Repeat("</group>", deep) + "</cameras></chunk></document>"))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cams := d.Chunks[0].Cameras.all(nil)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; len(cams) != deep || used > 16<<20 {
		t.Errorf("%d cameras take %d MB", len(cams), used>>20)
	}
}
