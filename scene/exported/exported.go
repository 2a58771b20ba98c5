package exported

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/photo"
)

const (
	// headBytes are looked at to tell what a file is.
	headBytes = 1 << 16
	// headFiles is how many files of an extension are looked at.
	headFiles = 64
	// maxFile is more than any file of cameras has; files of points are not read whole.
	maxFile = 1 << 30
)

// Lens gives the calibration of a photo of width x height pixels.
type Lens func(width, height int) scene.Calibration

func (l Lens) Calibration(width, height int) scene.Calibration { return l(width, height) }

// Fixed is a lens whose calibration the file has whole.
func Fixed(k scene.Calibration) Lens { return func(int, int) scene.Calibration { return k } }

// Bad is the error about a file that does not hold what it should.
func Bad(file string, err error) error {
	return &fault.Error{Op: "read " + filepath.Base(file), Path: file, Err: err,
		Hint: "export the file again; what each program exports is in docs/capture.md"}
}

func Badf(file, format string, args ...any) error { return Bad(file, fmt.Errorf(format, args...)) }

func Read(file string) ([]byte, error) {
	if _, err := Size(file); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	return data, unread(file, err)
}

// Parse reads a file of cameras by a function that knows its form. Errors, of the file and of single records, name it.
func Parse(file string, parse func(data []byte) ([]scene.Record, error)) ([]scene.Record, error) {
	data, err := Read(file)
	if err != nil {
		return nil, err
	}
	records, err := parse(data)
	if err != nil {
		return nil, Bad(file, err)
	}
	for i := range records {
		if bad := records[i].Bad; bad != nil {
			records[i].Bad = Bad(file, bad)
		}
	}
	return records, nil
}

func Open(file string) (f *os.File, err error) {
	f, _, err = fault.Open(file)
	return f, unread(file, err)
}

func Size(file string) (int, error) {
	err := fault.Regular(file)
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(file)
	}
	switch {
	case err != nil:
		return 0, unread(file, err)
	case info.Size() > maxFile:
		return 0, Badf(file, "the file has %d bytes, more than any file of cameras", info.Size())
	}
	return int(info.Size()), nil
}

func Part(file string, offset, n int) ([]byte, error) {
	f, err := Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	data := make([]byte, n)
	_, err = f.ReadAt(data, int64(offset))
	return data, unread(file, err)
}

// unread explains why a file cannot be read; nil where it was.
func unread(file string, err error) error {
	if err == nil {
		return nil
	}
	return &fault.Error{Op: "read " + filepath.Base(file), Path: file, Err: fault.TrimPath(err),
		Kind: fault.ReadKind(err), Hint: "check that the file exists and can be read"}
}

// Head gives the first bytes of a file, none if it cannot be read.
func Head(file string) []byte {
	f, err := Open(file)
	if err != nil {
		return nil
	}
	defer f.Close() // only read from
	data, err := io.ReadAll(io.LimitReader(f, headBytes))
	if err != nil {
		return nil
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
}

// Files lists the files of a folder that have an extension and a head that fits, by name.
func Files(root, ext string, fits func(head []byte) bool) (files []string) {
	entries, err := os.ReadDir(root) // sorted
	if err != nil {
		return nil
	}
	looked := 0
	for _, e := range entries {
		if e.IsDir() || !strings.EqualFold(path.Ext(e.Name()), ext) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if looked++; looked > headFiles {
			break
		}
		if file := filepath.Join(root, e.Name()); fits(Head(file)) {
			files = append(files, file)
		}
	}
	return files
}

// Existing gives those of some files below a folder that are there.
func Existing(root string, names ...string) (files []string) {
	for _, name := range names {
		if file := filepath.Join(root, filepath.FromSlash(name)); fault.Regular(file) == nil {
			files = append(files, file)
		}
	}
	return files
}

// Pose sets the pose of a camera from its axes, the columns of a row-major matrix from camera to world, OpenCV axes (x
// right, y down, z forward), and its position. The error is a scene.PoseError.
func Pose(cam *scene.Camera, axes [9]float64, centre [3]float64) error {
	if !geom.Finite(axes[:]...) || !scene.InRange(centre) {
		return scene.PoseError{Cause: fmt.Errorf("the camera is at %g with axes %g", centre, axes)}
	}
	turn, _, _, err := geom.NearestRotation(axes)
	if err != nil {
		return scene.PoseError{Cause: err}
	}
	cam.R = geom.Transposed(turn)
	cam.T = geom.TranslationOf(cam.R, centre)
	return nil
}

// FromOpenGL turns the axes of a camera that looks along -z with y up into those of one that looks along +z with y
// down.
func FromOpenGL(axes [9]float64) [9]float64 {
	for row := range 3 {
		axes[3*row+1], axes[3*row+2] = -axes[3*row+1], -axes[3*row+2]
	}
	return axes
}

// FromOpenGLToCamera is FromOpenGL for a transform from world to camera.
func FromOpenGLToCamera(r [9]float64, t [3]float64) ([9]float64, [3]float64) {
	for i := 3; i < 9; i++ {
		r[i] = -r[i]
	}
	return r, [3]float64{t[0], -t[1], -t[2]}
}

// ToCamera sets the pose of a camera from a transform from world to camera, OpenCV axes. The error is a
// scene.PoseError.
func ToCamera(cam *scene.Camera, r [9]float64, t [3]float64) error {
	if !geom.Finite(r[:]...) || !scene.InRange(t) {
		return scene.PoseError{Cause: fmt.Errorf("the camera is moved by %g and turned by %g", t, r)}
	}
	back := geom.Transposed(r)
	return Pose(cam, back, geom.Scale(geom.Rotate(back, t), -1))
}

// Locate names the photos of records by Cam.Name, which is what the file calls them, and sets File. They are searched
// in folders below the capture's, then in the usual ones, and nowhere else. Records of which two mean one photo are
// refused, and a file without any.
func Locate(c *scene.Capture, records []scene.Record, folders ...string) error {
	if err := distinct(c.Model, records); err != nil {
		return err
	}
	finder := photo.NewLocator(c.Root)
	for i := range records {
		records[i].File = finder.Below(records[i].Cam.Name, folders...)
	}
	if err := separate(c.Model, records); err != nil {
		return err
	}
	at := ""
	for i := range records {
		if file := records[i].File; file != "" {
			at = filepath.Dir(file)
		}
	}
	if at == "" {
		at = c.Root
		if dir, err := photo.Dir(c.Root, ""); err == nil {
			at = dir
		}
	}
	names := make([]string, len(records))
	shared, taken := map[string]int{}, map[string]bool{}
	for i := range records {
		taken[records[i].File] = true
		name := path.Clean(strings.ReplaceAll(records[i].Cam.Name, `\`, "/"))
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			name = path.Base(name)
		}
		names[i] = name
		shared[name]++
	}
	for i := range records {
		r := &records[i]
		name := names[i]
		if r.File == "" {
			if r.File = filepath.Join(at, path.Base(name)); taken[r.File] { // it is missing, and that is another's
				r.File = filepath.Join(at, filepath.FromSlash(strings.ReplaceAll(path.Join("/", r.Cam.Name), `\`, "/")))
			}
		} else if rel, err := filepath.Rel(c.Root, r.File); err == nil && shared[name] > 1 {
			name = filepath.ToSlash(rel) // photos of one name in several folders
		}
		r.Cam.Name = name
	}
	return nil
}

// separate gives a file that several records mean to the one whose name agrees with more of its path: photos of one
// name in several folders, of which some are not there. It refuses records that mean it equally.
func separate(file string, records []scene.Record) error {
	first := map[string]int{} // record of each photo
	for i := range records {
		at := records[i].File
		k, taken := first[at]
		if at == "" || !taken {
			first[at] = i
			continue
		}
		switch own, other := agreement(records[i].Cam.Name, at), agreement(records[k].Cam.Name, at); {
		case own == other:
			return &fault.Error{Op: "read " + filepath.Base(file), Path: file,
				Err: fmt.Errorf("two cameras, %.80q and %.80q, have the photo %s", records[k].Cam.Name,
					records[i].Cam.Name, at),
				Hint: "put the photos into folders as they were when they were calibrated, or give each a name of its own"}
		case own > other:
			records[k].File, first[at] = "", i
		default:
			records[i].File = ""
		}
	}
	return nil
}

// agreement is how many parts of a name, from its end, are those of a photo's path: folders, and the photo's own name
// without extension and case.
func agreement(name, file string) (n int) {
	parts := func(s string) []string {
		return strings.Split(scene.FoldName(strings.TrimSuffix(s, path.Ext(s))), "/")
	}
	a, b := parts(path.Clean(strings.ReplaceAll(name, `\`, "/"))), parts(filepath.ToSlash(file))
	for n < min(len(a), len(b)) && (n == 0 || a[len(a)-1-n] == b[len(b)-1-n]) {
		n++
	}
	return n
}

// distinct refuses records of which two have one name, and a file without any.
func distinct(file string, records []scene.Record) error {
	if len(records) == 0 {
		return Bad(file, errors.New("no photo in it has a pose"))
	}
	names := make([]string, len(records))
	for i, r := range records {
		names[i] = r.Cam.Name
	}
	slices.Sort(names)
	for i, name := range names {
		base := path.Base(strings.ReplaceAll(name, `\`, "/")) // "." of nothing
		if strings.TrimSpace(name) == "" || strings.ContainsRune(name, 0) || strings.Trim(base, "./") == "" {
			return Bad(file, errors.New("a camera names no photo"))
		}
		if i > 0 && name == names[i-1] {
			return &fault.Error{Op: "read " + filepath.Base(file), Path: file,
				Err:  fmt.Errorf("two cameras have the photo %.80q", name),
				Hint: "give each photo a name of its own, or one with its folder, before the file is exported"}
		}
	}
	return nil
}
