package splatfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/tiles"
)

const (
	opReadTiles = "read 3d tiles"
	hintTiles   = "the tileset may be cut short: copy or export it again, with all tiles that it names"
)

// isTiles knows tileset.json by its first words, which other writers put into another order.
func isTiles(head []byte) bool {
	text := bytes.TrimSpace(head)
	return bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text, []byte(`"geometricError"`))
}

// readTileset reads and checks a tileset.json.
func readTileset(path string) (*tiles.Tileset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	set := &tiles.Tileset{}
	if err := readTree(f, set); err != nil {
		return nil, err
	}
	if set.Root == nil {
		return nil, errors.New("it names no tiles")
	}
	return set, nil
}

// openTiles opens the finest tiles of a tileset, one after the other, in the frame of its root: where that is on Earth
// does not count.
func openTiles(file string) (Source, error) {
	fail := func(err error) error { return readError(opReadTiles, file, err, hintTiles) }
	set, err := readTileset(file)
	if err != nil {
		return nil, fail(err)
	}
	set.Root.Transform = nil
	names, err := set.Root.Finest()
	if err != nil {
		return nil, fail(err)
	}
	if len(names) == 0 {
		return nil, fail(errors.New("no tile has splats"))
	}
	var parts []Source
	known := map[string]bool{}
	for _, name := range names {
		if known[name] {
			return nil, fail(fmt.Errorf("the tile %s occurs twice", wording.Printable(name)))
		}
		known[name] = true
		if !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, ":") {
			return nil, fail(fmt.Errorf("the name %s leads out of the folder", wording.Printable(name)))
		}
		if ext := strings.ToLower(path.Ext(name)); ext != ".glb" {
			return nil, fail(fmt.Errorf("a tile is %s: tiles of binary glTF (.glb) are read", wording.Printable(name)))
		}
		part, err := newTilePart(filepath.Join(filepath.Dir(file), filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	all, err := Merge(parts)
	if err != nil {
		return nil, fail(err)
	}
	m := all.(*merged)
	m.info.Format = tiles3D
	return m, nil
}

// tilePart is a tile whose file is open only while it is read: there may be thousands.
type tilePart struct {
	path string
	info Info
}

func newTilePart(path string) (*tilePart, error) {
	t := &tilePart{path: path}
	m, err := t.open()
	if err != nil {
		return nil, err
	}
	t.info = m.Info()
	return t, m.Close()
}

// open opens the file. SPZ in tiles has glTF's axes, whatever the draft says: see writeGLBPacked.
func (t *tilePart) open() (Source, error) {
	m, err := openGLB(t.path)
	if s, ok := m.(*spzSource); ok && err == nil {
		s.axes = spzAxes{sign: glbFrame}
	}
	return m, err
}

func (t *tilePart) Info() Info   { return t.info }
func (t *tilePart) Close() error { return nil }

func (t *tilePart) Read(put func(piece *scene.Splats) error) error {
	m, err := t.open()
	if err != nil {
		return err
	}
	return errors.Join(m.Read(put), m.Close())
}

// tilesSize is how many bytes all files of a tileset take.
func tilesSize(path string) (sum int64, err error) {
	set, err := readTileset(path)
	if err != nil {
		return 0, readError(opReadTiles, path, err, hintTiles)
	}
	for _, name := range append(set.Root.Files(), filepath.Base(path)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		st, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))
		if err != nil {
			return 0, readError(opReadTiles, path, err, hintTiles)
		}
		sum += st.Size()
	}
	return sum, nil
}
