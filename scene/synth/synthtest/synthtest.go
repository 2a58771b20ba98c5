// Package synthtest draws the made-up captures of tests. To draw one takes longer than most tests train on it.
package synthtest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"vksplat/scene/synth"
)

// drawn has the files of captures, by their names, by the captures' options.
var drawn = struct {
	sync.Mutex
	captures map[string]map[string][]byte
}{captures: map[string]map[string][]byte{}}

// Write is synth.Write, but draws equal captures once a process.
func Write(dir string, o synth.Options) error {
	key, err := json.Marshal(o)
	if err != nil {
		return err
	}
	drawn.Lock()
	defer drawn.Unlock()
	files := drawn.captures[string(key)]
	if files == nil {
		if files, err = draw(o); err != nil {
			return err
		}
		drawn.captures[string(key)] = files
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be a link
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func draw(o synth.Options) (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "capture")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := synth.Write(dir, o); err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	root := os.DirFS(dir)
	return files, fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(root, name)
		return err
	})
}

// Normals returns the direction in which the surface looks that each pixel of photo i shows at its centre, row by row,
// in the camera's axes and towards it.
func Normals(s *synth.Capture, i int) (list [][3]float64) {
	c, look := s.Cameras()[i], s.Look(i)
	for p := range c.Width * c.Height {
		_, n := look(float64(p%c.Width)+0.5, float64(p/c.Width)+0.5)
		list = append(list, n)
	}
	return list
}
