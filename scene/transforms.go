package scene

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// transforms is what a transforms.json says, in the dialects of nerfstudio,
// instant-ngp and the synthetic NeRF scenes.
type transforms struct {
	frames  []frame
	points  string              // file of a point cloud, "" if none
	roles   map[string]role     // by file path as the lists have it; nil without lists
	unknown map[string][]string // list to its entries that no frame has
	applied *AppliedTransform
}

// frame is a photo in a transforms.json.
type frame struct {
	index      int
	file, mask string // as written, with slashes
	pose       pose
	lens       frameLens
	bad        error // why the pose is bad, or nil
}

// parseTransforms reads a transforms.json without looking at any other file.
func parseTransforms(data []byte) (*transforms, error) {
	top, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	if !top.has("frames") {
		return nil, errors.New("there is no field frames")
	}
	list, err := top.list("frames")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("field frames is empty")
	}
	t := &transforms{frames: make([]frame, 0, min(len(list), 1<<10))}
	seen := map[string]int{}
	for i, raw := range list {
		f, err := element(raw, "frame", i)
		if err != nil {
			return nil, err
		}
		fr, err := parseFrame(f, top)
		if err != nil {
			return nil, err
		}
		fr.index = i
		if first, twice := seen[cleanSlashes(fr.file)]; twice {
			return nil, f.errorf("field file_path is %s, as in frame %d", strconv.Quote(fr.file), first)
		}
		seen[cleanSlashes(fr.file)] = i
		t.frames = append(t.frames, fr)
	}
	if err := top.into("ply_file_path", &t.points, "a text"); err != nil {
		return nil, err
	}
	if err := t.readRoles(top, seen); err != nil {
		return nil, err
	}
	return t, t.readApplied(top)
}

// cleanSlashes gives the shortest form of a path in any system's spelling.
func cleanSlashes(file string) string { return path.Clean(strings.ReplaceAll(file, `\`, "/")) }

func parseFrame(f, top fields) (out frame, err error) {
	if err := f.into("file_path", &out.file, "a text"); err != nil {
		return out, err
	}
	if strings.TrimSpace(out.file) == "" || strings.ContainsRune(out.file, 0) {
		return out, f.errorf("field file_path names no photo")
	}
	if err := f.into("mask_path", &out.mask, "a text"); err != nil {
		return out, err
	}
	if !f.has("transform_matrix") {
		return out, f.errorf("there is no field transform_matrix")
	}
	m, err := f.matrix("transform_matrix")
	if err != nil {
		return out, err
	}
	if out.pose, err = poseFromOpenGL(m); err != nil {
		out.bad = f.errorf("field transform_matrix: %v", err)
	}
	if err != nil && !errors.Is(err, errPose) {
		return out, out.bad
	}
	out.lens, err = parseLens(f, top)
	return out, err
}

// readRoles reads nerfstudio's lists of files. Photos of the test list are held
// out or, where there is no test list, those of the val list.
func (t *transforms) readRoles(top fields, frames map[string]int) error {
	lists := [...]struct {
		name string
		is   role
	}{{"train_filenames", roleTrain}, {"val_filenames", roleUnused}, {"test_filenames", roleTest}}
	if !top.has("test_filenames") {
		lists[1].is = roleTest
	}
	for _, l := range lists {
		var names []string
		if err := top.into(l.name, &names, "a list of texts"); err != nil {
			return err
		}
		for _, n := range names {
			if t.roles == nil {
				t.roles = map[string]role{}
			}
			clean := cleanSlashes(n)
			if _, ok := frames[clean]; !ok {
				if t.unknown == nil {
					t.unknown = map[string][]string{}
				}
				t.unknown[l.name] = append(t.unknown[l.name], n)
			}
			if l.is != roleTrain && t.roles[clean] == roleTrain {
				return fmt.Errorf("%s is in train_filenames and in %s", strconv.Quote(n), l.name)
			}
			t.roles[clean] = l.is
		}
	}
	// Without a list to train on, the rest is.
	if t.roles != nil && !top.has("train_filenames") {
		for file := range frames {
			if t.roles[file] == roleNone {
				t.roles[file] = roleTrain
			}
		}
	}
	return nil
}

// roleOf says what a frame is for.
func (t *transforms) roleOf(file string) role {
	if t.roles == nil {
		return roleNone
	}
	if s := t.roles[cleanSlashes(file)]; s != roleNone {
		return s
	}
	return roleUnused
}

func (t *transforms) readApplied(top fields) error {
	if !top.has("applied_transform") && !top.has("applied_scale") {
		return nil
	}
	a := &AppliedTransform{Matrix: [12]float64{0: 1, 5: 1, 10: 1}, Scale: 1}
	var err error
	if top.has("applied_transform") {
		if a.Matrix, err = top.matrix("applied_transform"); err != nil {
			return err
		}
	}
	if top.has("applied_scale") {
		if a.Scale, err = top.number("applied_scale"); err != nil {
			return err
		}
		if !(a.Scale > 0) {
			return fmt.Errorf("field applied_scale is %g, it must be positive", a.Scale)
		}
	}
	t.applied = a
	return nil
}

// readTransforms fills Points and gives the records of the photos.
func (c *Capture) readTransforms(o LoadOptions) ([]record, error) {
	t, err := readTransformsFile(c.Model)
	if err != nil {
		return nil, err
	}
	var records []record
	if c.Format == FormatBlender {
		records, err = c.readTestFile(t, o)
	} else {
		records, err = c.frameRecords(c.Model, t, o, t.roleOf)
	}
	if err != nil {
		return nil, err
	}
	c.noteFrames(t, records)
	for _, list := range []string{"train_filenames", "val_filenames", "test_filenames"} {
		if names := t.unknown[list]; len(names) > 0 {
			c.warn("unknown-filenames", fmt.Sprintf("%d names in %s are those of no frame", len(names), list), names)
		}
	}
	if t.points != "" {
		if err := c.readCloud(t.points); err != nil {
			return nil, err
		}
	}
	c.Applied = t.applied
	if o.UndoAppliedTransform {
		if err := c.undoApplied(records); err != nil {
			return nil, err
		}
	}
	return records, nil
}

const hintTransforms = "correct the file, or write it again with the program that made it"

func readTransformsFile(file string) (*transforms, error) {
	op := "read " + filepath.Base(file)
	err := regular(file)
	var data []byte
	if err == nil {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, &Error{Op: op, Path: file, Err: trimPath(err), Kind: readKind(err), Hint: "check that the file exists and can be read"}
	}
	t, err := parseTransforms(data)
	if err != nil {
		return nil, &Error{Op: op, Path: file, Err: err, Hint: hintTransforms}
	}
	return t, nil
}

// readTestFile adds the photos to evaluate on to those of t, which are trained on.
// A capture without such a file has no held-out photos of its own.
func (c *Capture) readTestFile(t *transforms, o LoadOptions) ([]record, error) {
	file := filepath.Join(c.Root, testFile)
	train := roleTrain
	if regular(file) != nil {
		train = roleNone
	}
	c.Synthetic = !slices.ContainsFunc(t.frames, func(f frame) bool { return f.lens.width != 0 || f.lens.fx != 0 }) && t.points == ""
	records, err := c.frameRecords(c.Model, t, o, func(string) role { return train })
	if err != nil || train == roleNone {
		return records, err
	}
	test, err := readTransformsFile(file)
	if err != nil {
		return nil, err
	}
	more, err := c.frameRecords(file, test, o, func(string) role { return roleTest })
	if err != nil {
		return nil, err
	}
	if val := filepath.Join(c.Root, valFile); regular(val) == nil {
		c.Warnings = append(c.Warnings, Warning{Code: "unused-split", Text: fmt.Sprintf("the photos of %s are not used", valFile)})
	}
	return append(records, more...), nil
}

// frameRecords makes records of the frames of a file. Names are as the file has them
// until locateFiles.
func (c *Capture) frameRecords(file string, t *transforms, o LoadOptions, roleOf func(file string) role) ([]record, error) {
	records := make([]record, len(t.frames))
	dir := filepath.Dir(file)
	for i, f := range t.frames {
		r := record{cam: Camera{Name: cleanSlashes(f.file), R: f.pose.r, T: f.pose.t}, lens: f.lens, file: nativePath(dir, f.file), role: roleOf(f.file)}
		if f.bad != nil {
			r.bad = &Error{Op: "read " + filepath.Base(file), Path: file, Err: f.bad, Hint: hintTransforms}
		}
		if f.mask != "" {
			r.cam.Mask, r.cam.MaskInverted = nativePath(dir, f.mask), o.InvertMasks
		}
		records[i] = r
	}
	var noMask []string
	finder := newLocator(c.Root)
	for i := range records {
		cam := &records[i].cam
		if cam.Mask == "" {
			continue
		}
		if cam.Mask = finder.find(cam.Mask); cam.Mask == "" {
			cam.MaskInverted = false
			noMask = append(noMask, t.frames[i].mask)
		}
	}
	if len(noMask) > 0 {
		if o.Strict {
			return nil, badData("read "+filepath.Base(file), file, "correct mask_path, or leave out --strict to train on the whole photos", "masks are missing: %d, the first is %s", len(noMask), Printable(noMask[0]))
		}
		c.warn("missing-masks", fmt.Sprintf("masks are missing: %d; their photos count whole", len(noMask)), noMask)
	}
	return records, nil
}

// noteFrames warns of poses that had to be corrected.
func (c *Capture) noteFrames(t *transforms, records []record) {
	var skewed, scaled []string
	for _, f := range t.frames {
		if f.pose.skewed {
			skewed = append(skewed, f.file)
		}
		if f.pose.scaled {
			scaled = append(scaled, f.file)
		}
	}
	if len(skewed) > 0 {
		c.warn("skewed-poses", fmt.Sprintf("the rotations of %d of %d poses are not orthonormal; the nearest rotations are taken", len(skewed), len(records)), skewed)
	}
	if len(scaled) > 0 {
		c.warn("scaled-poses", fmt.Sprintf("the rotations of %d of %d poses are scaled; the scale is removed", len(scaled), len(records)), scaled)
	}
}
