package llff

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/npy"
	"vksplat/scene"
	"vksplat/scene/exported"
	"vksplat/scene/photo"
)

const columns = 17

func Find(root string) []string { return exported.Existing(root, "poses_bounds.npy") }

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, o scene.LoadOptions) ([]scene.Record, error) {
	records, err := exported.Parse(c.Model, parse)
	if err != nil {
		return nil, err
	}
	dir, err := photo.Dir(c.Root, o.Images)
	if err != nil {
		return nil, err
	}
	names, err := photosIn(dir)
	if err != nil {
		return nil, err
	}
	if len(names) != len(records) {
		return nil, &fault.Error{Op: "read " + filepath.Base(c.Model), Path: c.Model,
			Err: fmt.Errorf("it has %d rows, and %s has %d photos", len(records), dir, len(names)),
			Hint: "rows belong to photos in the order of their names: remove photos that COLMAP did not register, or name " +
				"the right folder with " + fault.Setting("images") + " DIR"}
	}
	var deep []string
	for i, name := range names {
		records[i].Cam.Name, records[i].File = name, filepath.Join(dir, name)
		if records[i].Bad == nil && records[i].Cam.Depths[1] == 0 {
			deep = append(deep, name)
		}
	}
	if len(deep) > 0 {
		c.Warn("bad-depths", fmt.Sprintf("the near and far depths of %d of %d photos are no depths and do not count",
			len(deep), len(names)), deep)
	}
	return records, exported.Cloud(c)
}

// photosIn lists the photos of a folder by the bytes of their names, as Python sorts them.
func photosIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, &fault.Error{Op: "list photos", Path: dir, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
			Hint: "check the permissions of the folder"}
	}
	for _, e := range entries {
		if photo.IsPhoto(e.Name()) && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// parse reads the rows, which name no photos.
func parse(data []byte) ([]scene.Record, error) {
	array, err := npy.Parse(data)
	if err != nil {
		return nil, err
	}
	rows, err := array.Matrix(columns)
	if err != nil {
		return nil, err
	}
	records := make([]scene.Record, len(rows))
	for i, m := range rows {
		r := &records[i]
		h, w, f := m[4], m[9], m[14]
		if geom.Finite(h, w, f) && !(isSide(h) && isSide(w) && f > 0 && f <= scene.MaxCoordinate) {
			return nil, fmt.Errorf("row %d has the height %g, the width %g and the focal length %g", i, h, w, f)
		}
		r.Lens = exported.Fixed(scene.Calibration{Model: scene.LensSimplePinhole, Width: int(w), Height: int(h),
			Params: []float64{f, w / 2, h / 2}})
		axes := [9]float64{m[1], m[0], -m[2], m[6], m[5], -m[7], m[11], m[10], -m[12]}
		r.Bad = exported.Pose(&r.Cam, axes, [3]float64{m[3], m[8], m[13]})
		if near, far := m[15], m[16]; near > 0 && near <= far && far <= scene.MaxCoordinate {
			r.Cam.Depths = [2]float64{near, far}
		}
	}
	return records, nil
}

func isSide(v float64) bool { return v >= 1 && v <= geom.MaxSide && v == math.Trunc(v) }
