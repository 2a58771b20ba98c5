package record3d

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"vksplat/internal/geom"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/exported"
)

// exr is the folder that Record3D makes for this kind of export.
const exr = "EXR_RGBD"

// Find lists the metadata of a capture.
func Find(root string) (files []string) {
	for _, file := range exported.Existing(root, "metadata.json", exr+"/metadata.json") {
		head := exported.Head(file)
		for _, key := range []string{`"poses"`, `"perFrameIntrinsicCoeffs"`, `"frameTimestamps"`, `"initPose"`} {
			if bytes.Contains(head, []byte(key)) {
				files = append(files, file)
				break
			}
		}
	}
	return files
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, _ scene.LoadOptions) ([]scene.Record, error) {
	records, err := exported.Parse(c.Model, parse)
	if err != nil {
		return nil, err
	}
	folder := "rgb"
	if filepath.Base(filepath.Dir(c.Model)) == exr && filepath.Base(c.Root) != exr {
		folder = exr + "/rgb"
	}
	if err := exported.Locate(c, records, folder); err != nil {
		return nil, err
	}
	return records, exported.Cloud(c)
}

// parse reads the metadata without looking at any other file.
func parse(data []byte) ([]scene.Record, error) {
	top, err := strictjson.DecodeObject(strictjson.Finite(data))
	if err != nil {
		return nil, err
	}
	if !top.Has("poses") || !top.Has("w") || !top.Has("h") {
		return nil, errors.New("the fields poses, w and h are expected")
	}
	var k scene.Calibration
	if k.Width, err = top.Side("w"); err != nil {
		return nil, err
	}
	if k.Height, err = top.Side("h"); err != nil {
		return nil, err
	}
	poses, err := top.List("poses")
	if err != nil {
		return nil, err
	}
	lenses, err := lensesOf(top, len(poses))
	if err != nil {
		return nil, err
	}
	records := make([]scene.Record, len(poses))
	for i, raw := range poses {
		var v [7]float64
		if err := numbers(raw, v[:]); err != nil {
			return nil, fmt.Errorf("pose %d: %w", i, err)
		}
		k := k
		k.Model, k.Params = scene.LensPinhole, lenses[i%len(lenses)]
		r := scene.Record{Cam: scene.Camera{Name: strconv.Itoa(i)}, Lens: exported.Fixed(k)}
		turn, ok := geom.RotationFromQuat([4]float64{v[3], v[0], v[1], v[2]})
		if !ok || !scene.InRange([3]float64(v[:3])) || !scene.InRange([3]float64(v[1:4])) {
			r.Bad = scene.PoseError{Cause: fmt.Errorf("pose %d: %v is not a quaternion", i, v[:4])}
		} else {
			r.Bad = exported.Pose(&r.Cam, exported.FromOpenGL(turn), [3]float64(v[4:]))
		}
		records[i] = r
	}
	return records, nil
}

// lensesOf gives fx, fy, cx and cy: one of all frames, or one of each.
func lensesOf(top strictjson.Object, frames int) (lenses [][]float64, err error) {
	if top.Has("perFrameIntrinsicCoeffs") {
		list, err := top.List("perFrameIntrinsicCoeffs")
		if err != nil {
			return nil, err
		}
		if len(list) == frames && frames > 0 {
			for i, raw := range list {
				v := make([]float64, 4)
				if err := numbers(raw, v); err != nil {
					return nil, fmt.Errorf("perFrameIntrinsicCoeffs of frame %d: %w", i, err)
				}
				lenses = append(lenses, v)
			}
			return lenses, checkFocal(lenses)
		}
		if len(list) > 0 {
			return nil, fmt.Errorf("there are %d perFrameIntrinsicCoeffs of %d poses", len(list), frames)
		}
	}
	if !top.Has("K") {
		return nil, errors.New("there is neither a field K nor perFrameIntrinsicCoeffs")
	}
	var k [9]float64
	if err := top.Numbers("K", k[:]); err != nil {
		return nil, err
	}
	if k[8] != 1 || k[2] != 0 || k[5] != 0 {
		return nil, fmt.Errorf("field K is %g; fx 0 0, 0 fy 0, cx cy 1 is expected", k)
	}
	lenses = [][]float64{{k[0], k[4], k[6], k[7]}}
	return lenses, checkFocal(lenses)
}

func checkFocal(lenses [][]float64) error {
	for _, v := range lenses {
		if !(v[0] > 0 && v[1] > 0) {
			return fmt.Errorf("the focal lengths are %g and %g", v[0], v[1])
		}
	}
	return nil
}

// numbers decodes a list of exactly len(dst) numbers.
func numbers(raw json.RawMessage, dst []float64) error {
	return strictjson.Object{Members: map[string]json.RawMessage{"numbers": raw}}.Numbers("numbers", dst)
}
