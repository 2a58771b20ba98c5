// Package synthtest draws the made-up captures of tests. To draw one takes longer than most tests train on it.
package synthtest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing/fstest"

	"vksplat/scene/synth"
)

// drawn has the files of captures by their options.
var drawn = struct {
	sync.Mutex
	files map[string]fstest.MapFS
}{files: map[string]fstest.MapFS{}}

// Write is synth.Write for a folder without such files. It draws equal captures once a process.
func Write(dir string, o synth.Options) error {
	key, err := json.Marshal(o)
	if err != nil {
		return err
	}
	drawn.Lock()
	defer drawn.Unlock()
	files := drawn.files[string(key)]
	if files == nil {
		if files, err = draw(o); err != nil {
			return err
		}
		drawn.files[string(key)] = files
	}
	return os.CopyFS(dir, files)
}

func draw(o synth.Options) (files fstest.MapFS, err error) {
	dir, err := os.MkdirTemp("", "capture")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := synth.Write(dir, o); err != nil {
		return nil, err
	}
	files = fstest.MapFS{}
	root := os.DirFS(dir)
	return files, fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
}
