package transforms

import (
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// File is the content of a transforms.json, in the dialects of nerfstudio,
// instant-ngp and the synthetic NeRF scenes.
type File struct {
	Frames  []frame
	points  string                // file of a point cloud, "" if none
	roles   map[string]scene.Role // by file path as the lists have it; nil without lists
	unknown map[string][]string   // list to its entries that no frame has
	applied *scene.AppliedTransform
}

// frame is a photo in a transforms.json.
type frame struct {
	index      int
	File, mask string // as written, with slashes
	Pose       pose
	Motion     scene.Motion
	Lens       frameLens
	Bad        error // why the pose is bad, or nil
	unclear    error // why the motion is unknown, or nil
}

// Parse reads a transforms.json without looking at any other file.
func Parse(data []byte) (*File, error) {
	top, err := strictjson.DecodeObject(strictjson.Finite(data))
	if err != nil {
		return nil, err
	}
	if !top.Has("frames") {
		return nil, errors.New("there is no field frames")
	}
	list, err := top.List("frames")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("field frames is empty")
	}
	t := &File{Frames: make([]frame, 0, min(len(list), 1<<10))}
	seen := map[string]int{}
	for i, raw := range list {
		f, err := strictjson.Element(raw, "frame", i)
		if err != nil {
			return nil, err
		}
		fr, err := parseFrame(f, top)
		if err != nil {
			return nil, err
		}
		fr.index = i
		if first, twice := seen[CleanSlashes(fr.File)]; twice {
			return nil, f.Errorf("field file_path is %s, as in frame %d", strconv.Quote(fr.File), first)
		}
		seen[CleanSlashes(fr.File)] = i
		t.Frames = append(t.Frames, fr)
	}
	if err := top.Into("ply_file_path", &t.points, "a text"); err != nil {
		return nil, err
	}
	if err := t.readRoles(top, seen); err != nil {
		return nil, err
	}
	return t, t.readApplied(top)
}

// CleanSlashes gives the shortest form of a path in any system's spelling.
func CleanSlashes(file string) string { return path.Clean(strings.ReplaceAll(file, `\`, "/")) }

func parseFrame(f, top strictjson.Object) (out frame, err error) {
	if err := f.Into("file_path", &out.File, "a text"); err != nil {
		return out, err
	}
	if strings.TrimSpace(out.File) == "" || strings.ContainsRune(out.File, 0) {
		return out, f.Errorf("field file_path names no photo")
	}
	if err := f.Into("mask_path", &out.mask, "a text"); err != nil {
		return out, err
	}
	if err := out.parsePose(f, top); err != nil {
		return out, err
	}
	out.Lens, err = ParseLens(f, top)
	return out, err
}

// parsePose reads the pose of the middle row, and how the camera moved. If the motion is unknown, the camera
// counts as still: a photo is of use without it, as before readers knew of motion.
func (out *frame) parsePose(f, top strictjson.Object) (err error) {
	const given = "transform_matrix"
	if f.Has(startMatrix) {
		if out.Pose, err = parseMatrix(f, startMatrix); err != nil && f.Has(given) {
			out.unclear = err
			out.Pose, err = parseMatrix(f, given)
		}
	} else {
		out.Pose, err = parseMatrix(f, given)
	}
	if err == nil && out.unclear == nil {
		out.unclear = out.parseMotion(f, top)
	}
	if errors.Is(err, scene.ErrPose) {
		out.Bad, err = err, nil
	}
	return err
}

// parseMatrix reads a pose. An error of scene.ErrPose's kind is of a matrix that is none.
func parseMatrix(f strictjson.Object, name string) (p pose, err error) {
	if !f.Has(name) {
		return p, f.Errorf("there is no field %s", name)
	}
	m, err := f.Matrix(name)
	if err != nil {
		return p, err
	}
	if p, err = PoseFromOpenGL(m); err != nil {
		err = fmt.Errorf("%sfield %s: %w", f.Where, name, err)
	}
	return p, err
}

// readRoles reads nerfstudio's lists of files. Photos of the test list are held
// out or, where there is no test list, those of the val list.
func (t *File) readRoles(top strictjson.Object, frames map[string]int) error {
	lists := [...]struct {
		name string
		is   scene.Role
	}{{"train_filenames", scene.RoleTrain}, {"val_filenames", scene.RoleUnused}, {"test_filenames", scene.RoleTest}}
	if !top.Has("test_filenames") {
		lists[1].is = scene.RoleTest
	}
	for _, l := range lists {
		var names []string
		if err := top.Into(l.name, &names, "a list of texts"); err != nil {
			return err
		}
		for _, n := range names {
			if t.roles == nil {
				t.roles = map[string]scene.Role{}
			}
			clean := CleanSlashes(n)
			if _, ok := frames[clean]; !ok {
				if t.unknown == nil {
					t.unknown = map[string][]string{}
				}
				t.unknown[l.name] = append(t.unknown[l.name], n)
			}
			if l.is != scene.RoleTrain && t.roles[clean] == scene.RoleTrain {
				return fmt.Errorf("%s is in train_filenames and in %s", strconv.Quote(n), l.name)
			}
			t.roles[clean] = l.is
		}
	}
	// Without a list to train on, the rest is.
	if t.roles != nil && !top.Has("train_filenames") {
		for file := range frames {
			if t.roles[file] == scene.RoleNone {
				t.roles[file] = scene.RoleTrain
			}
		}
	}
	return nil
}

func (t *File) roleOf(file string) scene.Role {
	if t.roles == nil {
		return scene.RoleNone
	}
	if s := t.roles[CleanSlashes(file)]; s != scene.RoleNone {
		return s
	}
	return scene.RoleUnused
}

func (t *File) readApplied(top strictjson.Object) error {
	if !top.Has("applied_transform") && !top.Has("applied_scale") {
		return nil
	}
	a := &scene.AppliedTransform{Matrix: [12]float64{0: 1, 5: 1, 10: 1}, Scale: 1}
	var err error
	if top.Has("applied_transform") {
		if a.Matrix, err = top.Matrix("applied_transform"); err != nil {
			return err
		}
	}
	if top.Has("applied_scale") {
		if a.Scale, err = top.Number("applied_scale"); err != nil {
			return err
		}
		if !(a.Scale > 0) {
			return fmt.Errorf("field applied_scale is %g, it must be positive", a.Scale)
		}
	}
	t.applied = a
	return nil
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, o scene.LoadOptions) ([]scene.Record, error) {
	t, err := readTransformsFile(c.Model)
	if err != nil {
		return nil, err
	}
	var records []scene.Record
	if c.Format == scene.FormatBlender {
		records, err = readTestFile(c, t, o)
	} else {
		records, err = frameRecords(c, c.Model, t, o, t.roleOf)
	}
	if err != nil {
		return nil, err
	}
	noteFrames(c, t, records)
	for _, list := range []string{"train_filenames", "val_filenames", "test_filenames"} {
		if names := t.unknown[list]; len(names) > 0 {
			c.Warn("unknown-filenames", fmt.Sprintf("%d names in %s are those of no frame", len(names), list), names)
		}
	}
	if t.points != "" {
		if err := readCloud(c, t.points, o.Strict); err != nil {
			return nil, err
		}
	}
	c.Applied = t.applied
	return records, nil
}

const hintTransforms = "correct the file, or write it again with the program that made it"

func readTransformsFile(file string) (*File, error) {
	op := "read " + filepath.Base(file)
	data, err := fault.ReadFile(file, math.MaxInt64)
	if err != nil {
		return nil, &fault.Error{Op: op, Path: file, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
			Hint: "check that the file exists and can be read"}
	}
	t, err := Parse(data)
	if err != nil {
		return nil, &fault.Error{Op: op, Path: file, Err: err, Hint: hintTransforms}
	}
	return t, nil
}

// readTestFile adds the photos to evaluate on to those of t, which are trained on.
// A capture without such a file has no held-out photos of its own.
func readTestFile(c *scene.Capture, t *File, o scene.LoadOptions) ([]scene.Record, error) {
	file := filepath.Join(c.Root, TestFile)
	train := scene.RoleTrain
	if fault.Regular(file) != nil {
		train = scene.RoleNone
	}
	c.Synthetic = !slices.ContainsFunc(t.Frames, func(f frame) bool { return f.Lens.Width != 0 || f.Lens.fx != 0 }) &&
		t.points == ""
	records, err := frameRecords(c, c.Model, t, o, func(string) scene.Role { return train })
	if err != nil || train == scene.RoleNone {
		return records, err
	}
	test, err := readTransformsFile(file)
	if err != nil {
		return nil, err
	}
	more, err := frameRecords(c, file, test, o, func(string) scene.Role { return scene.RoleTest })
	if err != nil {
		return nil, err
	}
	if val := filepath.Join(c.Root, ValFile); fault.Regular(val) == nil {
		c.Warnings = append(c.Warnings,
			scene.Warning{Code: "unused-split", Text: fmt.Sprintf("the photos of %s are not used", ValFile)})
	}
	return append(records, more...), nil
}

// frameRecords makes records of the frames of a file. Names are as the file has them
// until locateFiles.
func frameRecords(c *scene.Capture, file string, t *File, o scene.LoadOptions,
	roleOf func(file string) scene.Role) ([]scene.Record, error) {
	records, masks := make([]scene.Record, len(t.Frames)), make([]string, len(t.Frames))
	dir := filepath.Dir(file)
	for i, f := range t.Frames {
		r := scene.Record{Cam: scene.Camera{Name: CleanSlashes(f.File), R: f.Pose.R, T: f.Pose.T, Motion: f.Motion},
			Lens: f.Lens, File: photo.NativePath(dir, f.File), Role: roleOf(f.File)}
		if f.Bad != nil {
			r.Bad = &fault.Error{Op: "read " + filepath.Base(file), Path: file, Err: f.Bad, Hint: hintTransforms}
		}
		if f.mask != "" {
			masks[i] = photo.NativePath(dir, f.mask)
		}
		records[i] = r
	}
	return records, findMasks(c, file, t, o, records, masks)
}

func findMasks(c *scene.Capture, file string, t *File, o scene.LoadOptions, records []scene.Record,
	masks []string) error {
	var noMask []string
	finder := NewFinder(c)
	found := finder.Find(masks)
	for i, mask := range found {
		if mask != "" {
			records[i].Cam.Mask, records[i].Cam.MaskInverted = mask, o.InvertMasks
		} else if masks[i] != "" {
			noMask = append(noMask, t.Frames[i].mask)
		}
	}
	if len(noMask) > 0 {
		if o.Strict {
			return fault.Data("read "+filepath.Base(file), file, "correct mask_path, or leave out "+
				fault.Setting("strict")+" to train on the whole photos", "masks are missing: %d, the first is %s", len(
				noMask), wording.Printable(noMask[0]))
		}
		c.Warn("missing-masks", fmt.Sprintf("masks are missing: %d; their photos count whole", len(noMask)), noMask)
	}
	return finder.Outside(found, "mask", o.Strict)
}

// noteFrames warns of poses that had to be corrected, and of unknown motions.
func noteFrames(c *scene.Capture, t *File, records []scene.Record) {
	var skewed, scaled, unclear []string
	var why error // of the first
	for _, f := range t.Frames {
		if f.Pose.skewed {
			skewed = append(skewed, f.File)
		}
		if f.Pose.scaled {
			scaled = append(scaled, f.File)
		}
		if f.unclear != nil {
			if unclear = append(unclear, f.File); why == nil {
				why = f.unclear
			}
		}
	}
	if len(skewed) > 0 {
		c.Warn("skewed-poses",
			fmt.Sprintf("the rotations of %d of %d poses are not orthonormal; the nearest rotations are taken",
				len(skewed), len(records)), skewed)
	}
	if len(scaled) > 0 {
		c.Warn("scaled-poses",
			fmt.Sprintf("the rotations of %d of %d poses are scaled; the scale is removed", len(scaled), len(records)),
			scaled)
	}
	if len(unclear) > 0 {
		c.Warn("unclear-motion", fmt.Sprintf("the motion of %d of %d cameras is unknown; they are treated as still: %v",
			len(unclear), len(records), why), unclear)
	}
}
