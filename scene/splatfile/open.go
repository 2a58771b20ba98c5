package splatfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/filekind"
	"vksplat/scene/photo"
)

// ErrUnknown says that a file is of none of the formats.
var ErrUnknown = errors.New("not a known format")

// Open opens a model of any format, by what the file holds or, where that says nothing, by its name. A folder is one of
// SOG, with meta.json or lod-meta.json in it, or the OUT of a run of train, whose latest model or checkpoint is opened.
// Errors are of kind fault.ErrData or ErrTryAgain and say what to do.
func Open(path string) (Source, error) {
	path, err := Find(path)
	if err != nil {
		return nil, err
	}
	head, err := readHead(path)
	if err != nil {
		return nil, err
	}
	switch f := choose(path, head); {
	case f == nil:
		return nil, unknown(path, head)
	case f.Open == nil:
		return nil, openFail(path, "name the file that it was converted from", "%s is written, and not read", f.Name)
	default:
		return f.Open(path)
	}
}

const opOpen = "open model"

// Find returns the file that Open opens: path itself, unless it is a folder. A file is not looked at.
func Find(path string) (string, error) { return FindStep(path, 0) }

// FindStep is Find for what a run wrote at a step, its model rather than its checkpoint; 0 stands for the latest.
func FindStep(path string, step int) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", readError(opOpen, path, err, "")
	}
	if !st.IsDir() {
		if !st.Mode().IsRegular() {
			return "", readError(opOpen, path, fault.ErrNotRegular, "")
		}
		return path, nil
	}
	for _, name := range []string{sogMetaName, streamedName, tilesName} {
		if file := filepath.Join(path, name); isFile(file) {
			return file, nil
		}
	}
	wanted := func(n int) bool { return step == 0 || n == step }
	file, at := latest(filepath.Join(path, "point_cloud"), "iteration_", filepath.FromSlash("/point_cloud.ply"), wanted)
	if saved, later := latest(filepath.Join(path, "checkpoints"), checkpointPrefix, checkpointSuffix,
		wanted); later > at {
		file = saved
	}
	switch {
	case file != "":
		return file, nil
	case step > 0:
		return "", openFail(path, fault.Command("info "+photo.ShellWord(path))+" lists the models",
			"the folder holds no model of step %d", step)
	}
	return "", openFail(path, "name a file of splats, or the folder OUT of vksplat train once it has written a model "+
		"or a checkpoint", "the folder holds no model")
}

// Size is how many bytes a model takes: its file or, of SOG in a folder, meta.json and the images that it names.
func Size(path string) (int64, error) {
	path, err := Find(path)
	if err != nil {
		return 0, err
	}
	head, err := readHead(path)
	if err != nil {
		return 0, err
	}
	switch choose(path, head) {
	case sogFormat:
		s, err := newSOG(path)
		if err != nil {
			return 0, err
		}
		return s.bytes, s.Close()
	case streamed:
		return streamedSize(path)
	case tilesFormat:
		return tilesSize(path)
	}
	st, err := os.Stat(path)
	if err != nil {
		return 0, readError(opOpen, path, err, "")
	}
	return st.Size(), nil
}

// latest returns the file in dir whose name is prefix, a wanted step and suffix, with the highest step; -1 for none.
func latest(dir, prefix, suffix string, wanted func(step int) bool) (file string, step int) {
	step = -1
	inside := strings.HasPrefix(suffix, string(filepath.Separator))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", step // there is none, and what follows says so
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), prefix)
		name := filepath.Join(dir, e.Name())
		if inside {
			name += suffix
		} else {
			var cut bool
			number, cut = strings.CutSuffix(number, suffix)
			ok = ok && cut
		}
		if n, err := strconv.Atoi(number); ok && err == nil && n > step && wanted(n) && isFile(name) {
			file, step = name, n
		}
	}
	return file, step
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// readHead returns the first bytes of a file, which is not empty.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, readError(opOpen, path, err, "")
	}
	defer f.Close() // only read
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, readError(opOpen, path, err, "")
	}
	if n == 0 {
		return nil, openFail(path, "copy or export it again", "the file is empty")
	}
	return head[:n], nil
}

// choose returns the format of a file: one that recognises the content, rather one whose name the file has; else one
// that goes by the name alone, or whose Open can say what is wrong. It is nil for none.
func choose(path string, head []byte) *Format {
	byName := ByName(filepath.Base(path))
	if byName != nil && byName.Detect != nil && byName.Detect(head) {
		return byName
	}
	for _, f := range formats {
		if f.Detect != nil && f.Detect(head) {
			return f
		}
	}
	if kind, _ := filekind.Of(path, head); kind != "" && !(byName == spz && isGzip(head)) {
		return nil
	}
	return byName
}

// unknown is the error of a file that nothing here reads.
func unknown(path string, head []byte) error {
	var names []string
	for _, f := range formats {
		if f.Open != nil {
			names = append(names, f.Name)
		}
	}
	switch kind, hint := filekind.Of(path, head); kind {
	case "":
		return openFail(path, "name a file of splats: "+strings.Join(names, ", "), "%w", ErrUnknown)
	case filekind.Photo:
		return openFail(path, "name a file of splats; photos are what vksplat train reads, in the folder of a capture",
			"it is %s", kind)
	default:
		return openFail(path, hint, "it is %s", kind)
	}
}

// openFail is an error of kind fault.ErrData.
func openFail(path, hint, format string, args ...any) error {
	return &fault.Error{Op: opOpen, Path: path, Err: fmt.Errorf(format, args...), Hint: hint}
}
