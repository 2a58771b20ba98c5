//go:build unix

package splatfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/scene"
	"vksplat/scene/ply"
)

// TestStreamedFiles wants a model of many folders to be read with few open files.
func TestStreamedFiles(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("open files cannot be counted here: ", err)
	}
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := open()
	dir := t.TempDir()
	sog := Memory(model(50, 0), ply.Meta{})
	var names, leaves []string
	for i := range 100 {
		name := fmt.Sprintf("0_%d/meta.json", i)
		names = append(names, `"`+name+`"`)
		leaves = append(leaves, fmt.Sprintf(`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"0":{"file":%d,"offset":0,`+
			`"count":50}}}`, i))
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("0_%d", i)), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := writeSOG(filepath.Join(dir, name), sog, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, streamedName)
	text := `{"version":1,"count":5000,"counts":[5000],"lodLevels":1,"filenames":[` + strings.Join(names, ",") +
		`],"tree":{"bound":{"min":[0,0,0],"max":[1,1,1]},"children":[` + strings.Join(leaves, ",") + `]}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
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
