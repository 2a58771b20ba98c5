package splatfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// TestLeaves wants the leaves of a level to have the splats of that level, whichever way these are read.
func TestLeaves(t *testing.T) {
	dir := t.TempDir()
	folder, archive := filepath.Join(dir, streamedName), filepath.Join(dir, "a.ssog")
	meta := smallStreamed(t, folder, model(3000, 1), 3)
	smallStreamed(t, archive, model(3000, 1), 3)
	want, _ := readModel(t, streamed, folder)
	var digests []uint64
	for _, path := range []string{folder, archive} {
		l := must.Get(OpenLeaves(path))(t)
		if l.Info.N != want.N || l.Info.Degree != 1 || !l.Info.Meta.Antialiased || l.Always != -1 ||
			len(l.Folders) != len(meta.Files) {
			t.Errorf("%+v", l.Info)
		}
		counts := make([]int, 3)
		got := scene.NewSplats(want.N, 1)
		for _, leaf := range l.List {
			for _, r := range leaf.Runs {
				counts[r.Level] += r.N
				s := must.Get(l.Folders[r.Folder].Read(r.First, r.N, 1))(t)
				for i, x := range s.Means {
					if x < leaf.Low[i%3] || x > leaf.High[i%3] {
						t.Fatalf("%v is beyond %v to %v", x, leaf.Low, leaf.High)
					}
				}
				if r.Level > 0 {
					continue
				}
				first := r.First // the folders of a level come one after the other
				for i, f := range l.Folders[:r.Folder] {
					if strings.HasPrefix(meta.Files[i], "0_") {
						first += f.N
					}
				}
				for k, tensor := range s.Tensors() {
					copy(got.Tensors()[k].Data[first*tensor.Width:], tensor.Data)
				}
			}
		}
		if !slices.Equal(counts, meta.Counts) {
			t.Errorf("%v splats, want %v", counts, meta.Counts)
		}
		for i, tensor := range got.Tensors() {
			if !slices.Equal(tensor.Data, want.Tensors()[i].Data) {
				t.Errorf("%s differ", tensor.Name)
			}
		}
		digests = append(digests, l.Digest)
		for _, f := range l.Folders {
			f.Drop()
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if again, err := OpenLeaves(folder); err != nil || again.Digest != digests[0] {
		t.Errorf("the digest is another, %v", err)
	}
	smallStreamed(t, folder, model(3000, 0), 3)
	if other, err := OpenLeaves(folder); err != nil || other.Digest == digests[0] {
		t.Errorf("the digest is the same, %v", err)
	}
}

// TestLeavesHostile wants trees that say what cannot be to be refused.
func TestLeavesHostile(t *testing.T) {
	path := filepath.Join(t.TempDir(), streamedName)
	smallStreamed(t, path, model(100, 0), 2)
	good := must.Get(os.ReadFile(path))(t)
	_, tree, _ := strings.Cut(string(good), `"tree":`)
	for bad, want := range map[string]string{
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"0":{"file":7,"offset":0,"count":1}}}`:   "file 7",
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"0":{"file":-1,"offset":0,"count":1}}}`:  "file -1",
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"0":{"file":0,"offset":90,"count":11}}}`: "90 to 101",
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"0":{"file":0,"offset":9,"count":-1}}}`:  "9 to 8",
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"99":{"file":0,"offset":0,"count":1}}}`:  `level "99"`,
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"x":{"file":0,"offset":0,"count":1}}}`:   `level "x"`,
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"00":{"file":0,"offset":0,"count":1}}}`:  `level "00"`,
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"+0":{"file":0,"offset":0,"count":1}}}`:  `level "+0"`,
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"-0":{"file":0,"offset":0,"count":1}}}`:  `level "-0"`,
		`{"bound":{"min":[2,0,0],"max":[1,1,1]},"lods":{"0":{"file":0,"offset":0,"count":1}}}`:   "reaches from",
		`{"bound":{"min":[0,0,0],"max":[1,1,1]},"children":[null,null]}`:                         "null",
	} {
		must.Do(t, os.WriteFile(path, []byte(strings.Replace(string(good), tree, bad+"}", 1)), 0o600))
		if _, err := OpenLeaves(path); !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
	// A run without splats is no leaf.
	none := `{"bound":{"min":[0,0,0],"max":[1,1,1]},"lods":{"0":{"file":0,"offset":0,"count":0}}}}`
	must.Do(t, os.WriteFile(path, []byte(strings.Replace(string(good), tree, none, 1)), 0o600))
	if l, err := OpenLeaves(path); err != nil || len(l.List) > 0 || l.Info.N != 0 {
		t.Errorf("%v", err)
	}
}
