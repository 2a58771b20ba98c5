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

// putJSON writes a file that only its owner may read, whole or not at all: with os.Rename as move in place of an
// existing one, with os.Link only where there is none, else the error is fs.ErrExist.
func putJSON(path string, v any, move func(from, to string) error) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return put(path, append(data, '\n'), move)
}

// put is putJSON for bytes.
func put(path string, data []byte, move func(from, to string) error) error {
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

// readAll reads every JSON file of a folder, if there is one. A file that cannot be read does not hide the others.
func readAll[T any](dir string) (list []T, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		var v T
		if wrong := readJSON(filepath.Join(dir, e.Name()), &v); wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		list = append(list, v)
	}
	return list, err
}
