package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/atomicfile"
)

// put writes a file that only its owner may read: whole or not at all.
func put(path string, data []byte) error { return place(path, data, os.Rename) }

func putJSON(path string, v any) error { return placeJSON(path, v, os.Rename) }

// putNewJSON is putJSON for files that must not exist: the error is fs.ErrExist where one does.
func putNewJSON(path string, v any) error { return placeJSON(path, v, os.Link) }

func placeJSON(path string, v any, move func(from, to string) error) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return place(path, append(data, '\n'), move)
}

// place writes a private file beside path and moves it there.
func place(path string, data []byte, move func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := move(f.Name(), path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// readAll calls read with every JSON file of a folder, if there is one. A file that cannot be read does not hide the
// others.
func readAll(dir string, read func(path string) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			err = errors.Join(err, read(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
