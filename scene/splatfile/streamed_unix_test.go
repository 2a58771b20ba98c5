//go:build unix

package splatfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// openFiles counts the files that the process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("open files cannot be counted here: ", err)
	}
	return len(list)
}

// TestLeavesClosed wants folders that are archives of their own to be closed, also those that were opened beside one
// that could not be.
func TestLeavesClosed(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i := range 3 {
		names = append(names, fmt.Sprintf(`"%d.sog"`, i))
		name := filepath.Join(dir, fmt.Sprintf("%d.sog", i))
		must.Get(sogFormat.Write(name, Memory(model(50, 0), ply.Meta{}), WriteOptions{}))(t)
	}
	write := func(lods string) string {
		path := filepath.Join(dir, streamedName)
		text := `{"version":1,"count":50,"counts":[50],"lodLevels":1,"filenames":[` + strings.Join(names, ",") +
			`],"tree":{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":` + lods + `}}`
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	before := openFiles(t)
	l := must.Get(OpenLeaves(write(`{"0":{"file":2,"offset":0,"count":50}}`)))(t)
	if _, err := l.Folders[2].Read(0, 50, 0); err != nil {
		t.Error(err)
	}
	if n := openFiles(t); n != before+3 {
		t.Errorf("%d files are open, %d before: want one for each archive", n, before)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := OpenLeaves(write(`{"0":{"file":3,"offset":0,"count":50}}`)); err == nil {
		t.Error("a leaf of no file is not an error")
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "1.sog"), []byte("PK"), 0o600))
	if _, err := OpenLeaves(write(`{"0":{"file":2,"offset":0,"count":50}}`)); err == nil {
		t.Error("a damaged archive is not an error")
	}
	if n := openFiles(t); n != before {
		t.Errorf("%d files are open, %d before", n, before)
	}
}

// TestStreamedFiles wants a model of many folders to be read with few open files.
func TestStreamedFiles(t *testing.T) {
	open := func() int { return openFiles(t) }
	before := open()
	dir := t.TempDir()
	sog := Memory(model(50, 0), ply.Meta{})
	var names, leaves []string
	for i := range 100 {
		name := fmt.Sprintf("0_%d/meta.json", i)
		names = append(names, `"`+name+`"`)
		leaves = append(leaves, fmt.Sprintf(`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"0":{"file":%d,"offset":0,`+
			`"count":50}}}`, i))
		must.Do(t, os.Mkdir(filepath.Join(dir, fmt.Sprintf("0_%d", i)), 0o700))
		must.Get(sogFormat.Write(filepath.Join(dir, name), sog, WriteOptions{}))(t)
	}
	path := filepath.Join(dir, streamedName)
	text := `{"version":1,"count":5000,"counts":[5000],"lodLevels":1,"filenames":[` + strings.Join(names, ",") +
		`],"tree":{"bound":{"min":[0,0,0],"max":[1,1,1]},"children":[` + strings.Join(leaves, ",") + `]}}`
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	most := open()
	read := 0
	err = m.Read(func(piece *scene.Splats) error {
		most, read = max(most, open()), read+piece.N
		return nil
	})
	if err != nil || read != 5000 || most > before+10 {
		t.Errorf("%d splats read with %d open files, %d before: %v", read, most, before, err)
	}
}

// TestStreamedLink reads a model whose lod-meta.json is kept elsewhere, as caches of downloads do it.
func TestStreamedLink(t *testing.T) {
	path, kept := filepath.Join(t.TempDir(), streamedName), filepath.Join(t.TempDir(), "kept")
	smallStreamed(t, path, model(100, 0), 1)
	must.Do(t, os.Rename(path, kept))
	must.Do(t, os.Symlink(kept, path))
	if s, _ := readModel(t, streamed, path); s.N != 100 {
		t.Errorf("%d splats", s.N)
	}
}
