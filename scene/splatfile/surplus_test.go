package splatfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene/ply"
)

// Bytes after the last record are noted, and refused where they are whole rows or as many for each splat.
func TestSurplus(t *testing.T) {
	files := map[string]func(path string) error{
		"a.ksplat": func(path string) error {
			data, _ := madeKsplat(1, madeModel(100, 1, "spread"))
			return os.WriteFile(path, data, 0o666)
		},
	}
	for _, name := range []string{"a.ply", "a.compressed.ply", "a.glb"} {
		files[name] = func(path string) error {
			_, err := ByName(name).Write(path, Memory(madeModel(100, 1, "spread"), ply.Meta{}), WriteOptions{})
			return err
		}
	}
	rows := map[string]int{"a.ply": 4 * 26, "a.compressed.ply": 16, "a.glb": 4 * 23, "a.ksplat": 24 + 2*9}
	for name, write := range files {
		for more, want := range map[int]string{0: "", 1: "has 1 byte more", 7: "7 bytes more",
			rows[name]: "1 more row of",
			200:        "2 for each of the 100"} {
			path := filepath.Join(t.TempDir(), name)
			must.Do(t, write(path))
			lengthen(t, path, more)
			m, err := Open(path)
			switch {
			case err == nil:
				notes := strings.Join(m.Info().Notes, " ")
				if notes != "" && more == 0 || !strings.Contains(notes, want) {
					t.Errorf("%s and %d bytes: %q, want %q", name, more, notes, want)
				}
				_ = m.Close()
			case want == "" || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.ErrData) ||
				!strings.Contains(fault.Hint(err), "counts wrong"):
				t.Errorf("%s and %d bytes: %v, hint %q, want %q", name, more, err, fault.Hint(err), want)
			}
		}
	}
}

// lengthen appends bytes to a file.
func lengthen(t *testing.T, path string, bytes int) {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.WriteFile(path, append(data, make([]byte, bytes)...), 0o666))
}

// Images of a SOG may go on after what they say is their end, also in the folders of a streamed model.
func TestSOGSurplus(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "sog", sogMetaName),
		filepath.Join(dir, "streamed", streamedName)} {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Get(ByName(path).Write(path, Memory(madeModel(50, 1, "spread"), ply.Meta{}), WriteOptions{Levels: 1}))(t)
		must.Do(t, filepath.WalkDir(filepath.Dir(path), func(path string, _ os.DirEntry, err error) error {
			if filepath.Base(path) == "quats.webp" {
				lengthen(t, path, 5)
			}
			return err
		}))
		m := must.Get(Open(path))(t)
		if notes := fmt.Sprint(m.Info().Notes); !strings.Contains(notes, "quats.webp has 5 bytes more") {
			t.Errorf("%s: %s", path, notes)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The hint of a caller stays where the error has none of its own.
func TestReadErrorHint(t *testing.T) {
	for own, want := range map[string]string{"": "the caller's", "its own": "its own"} {
		err := readError(opReadTiles, "a", &fault.Error{Err: ErrUnknown, Hint: own}, "the caller's")
		if got := fault.Hint(err); got != want {
			t.Errorf("%q becomes %q, want %q", own, got, want)
		}
	}
}

// Files that are packed, pointers of Git LFS or glTF in JSON are named under every name, and so are parts of models.
func TestOtherKinds(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
	dir := t.TempDir()
	check := func(name, want, hint string) {
		t.Helper()
		_, err := Open(filepath.Join(dir, name))
		if !errors.Is(err, fault.ErrData) || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(fault.Hint(err), hint) {
			t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
		}
	}
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777),
			os.WriteFile(path, []byte(content), 0o666)))
	}
	for _, name := range []string{"a.ply", "a.compressed.ply", "a.splat", "a.ksplat", "a.spz", "a.glb", "a.sog",
		"meta.json",
		"lod-meta.json", "tileset.json", "a.safetensors", "a"} {
		write(name, pointer)
		check(name, "pointer of Git LFS", "git lfs pull")
		if name != "a.spz" { // which may be packed, and says what is wrong with it
			write(name, string(gzipped(t, []byte("ply\n"))))
			check(name, "compressed with gzip", "gzip -dc")
		}
	}
	write("a.gltf", `{"buffers": [{"uri": "data:`)
	check("a.gltf", "glTF in JSON", ".glb")
	write("tiles/tileset.json", `{"geometricError":1,"root":{"content":{"uri":"b.glb"}}}`)
	write("tiles/b.glb", pointer)
	check("tiles/tileset.json", "b.glb: it is not binary glTF: it is a pointer", "git lfs pull")
	path := filepath.Join(dir, "sog", sogMetaName)
	write("sog/"+sogMetaName, "")
	must.Get(sogFormat.Write(path, Memory(madeModel(50, 0, "spread"), ply.Meta{}), WriteOptions{}))(t)
	write("sog/quats.webp", pointer)
	check("sog", "quats.webp: not a lossless WebP image: it is a pointer", "git lfs pull")
}
