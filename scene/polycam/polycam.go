package polycam

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/exported"
)

// maxCameras bounds the cameras of a session; Polycam takes some hundreds.
const maxCameras = 1 << 16

// Find gives the folder of cameras of a capture: root is the exported folder, or its keyframes.
func Find(root string) []string {
	for _, dir := range []string{"keyframes/corrected_cameras", "keyframes/cameras", "corrected_cameras"} {
		dir = filepath.Join(root, filepath.FromSlash(dir))
		if files, err := camerasIn(dir); err == nil && len(files) > 0 {
			return []string{dir}
		}
	}
	return nil
}

// camerasIn lists the JSON files of a folder by name.
func camerasIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.EqualFold(path.Ext(e.Name()), ".json") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, _ scene.LoadOptions) ([]scene.Record, error) {
	names, err := camerasIn(c.Model)
	if err != nil {
		return nil, &fault.Error{Op: "read cameras", Path: c.Model, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
			Hint: "check that the folder exists and can be read"}
	}
	if len(names) > maxCameras {
		return nil, exported.Badf(c.Model, "there are %d cameras, more than %d", len(names), maxCameras)
	}
	records := make([]scene.Record, 0, len(names))
	for _, name := range names {
		file := filepath.Join(c.Model, name)
		one, err := exported.Parse(file, func(data []byte) ([]scene.Record, error) {
			r, err := parse(data)
			return []scene.Record{r}, err
		})
		if err != nil {
			return nil, err
		}
		one[0].Cam.Name = strings.TrimSuffix(name, path.Ext(name))
		records = append(records, one[0])
	}
	if err := exported.Locate(c, records, photosOf(c)...); err != nil {
		return nil, err
	}
	return records, exported.Cloud(c)
}

// photosOf gives the folders in which the photos of a folder of cameras are looked for, below the capture's.
func photosOf(c *scene.Capture) []string {
	folders := []string{"images"}
	if filepath.Base(c.Model) == "corrected_cameras" {
		folders = []string{"corrected_images", "images"}
	}
	keyframes := filepath.Dir(c.Model)
	folders = slices.DeleteFunc(folders, func(name string) bool {
		return !atomicfile.IsDir(filepath.Join(keyframes, name))
	})
	if rel, err := filepath.Rel(c.Root, keyframes); err == nil {
		for i, name := range folders {
			folders[i] = path.Join(filepath.ToSlash(rel), name)
		}
	}
	return folders
}

// parse reads the JSON of one camera.
func parse(data []byte) (r scene.Record, err error) {
	top, err := strictjson.DecodeObject(strictjson.Finite(data))
	if err != nil {
		return r, err
	}
	number := func(name string) (v float64) {
		if err == nil && !top.Has(name) {
			err = fmt.Errorf("there is no field %s", name)
		}
		if err == nil {
			v, err = top.Number(name)
		}
		return v
	}
	var m [12]float64
	for i := range m {
		m[i] = number(fmt.Sprintf("t_%d%d", i/4, i%4))
	}
	params := []float64{number("fx"), number("fy"), number("cx"), number("cy")}
	number("width")
	number("height")
	if err != nil {
		return r, err
	}
	k := scene.Calibration{Model: scene.LensPinhole, Params: params}
	if k.Width, err = top.Side("width"); err != nil {
		return r, err
	}
	if k.Height, err = top.Side("height"); err != nil {
		return r, err
	}
	if f := min(params[0], params[1]); !(f > 0) {
		return r, errors.New("a focal length is not above 0")
	}
	r.Lens = exported.Fixed(k)
	axes := exported.FromOpenGL([9]float64{m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]})
	r.Bad = exported.Pose(&r.Cam, axes, [3]float64{m[3], m[7], m[11]})
	return r, nil
}
