package output

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/atomicfile"
)

// FolderOf returns the folder of the run that a model lies in, "" for none.
func FolderOf(file string) string {
	dir := filepath.Dir(file)
	out := filepath.Dir(filepath.Dir(dir))
	if filepath.Base(file) == ModelName &&
		slices.Contains(StepFolders(out, ModelFolder, -1),
			filepath.Join(out, filepath.Dir(ModelFolder), filepath.Base(dir))) {
		return out
	}
	return ""
}

// Absolute returns path as one that other programs find from anywhere, or
// unchanged where the working folder is gone.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func Within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Resolved is a path without links, as far as it exists.
func Resolved(path string) string {
	path = Absolute(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func IsFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func IsFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// InFolder reports whether path is directly in dir.
func InFolder(path, dir string) bool { return Absolute(filepath.Dir(path)) == Absolute(dir) }

// PathsIn joins a folder and names.
func PathsIn(dir string, names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(dir, name)
	}
	return paths
}

// WriteJSON writes v to path as one whole file.
func WriteJSON(path string, v any) error { return atomicfile.WriteJSON(path, v, "  ") }

// CopyWhole copies a file, which appears whole.
func CopyWhole(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	return atomicfile.Write(to, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

func WritePicture(path string, write func(path string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return write(path)
}
