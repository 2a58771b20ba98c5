package splatfile

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// smallStreamed writes a model with small leaves, so that there are many.
func smallStreamed(t *testing.T, path string, m *scene.Splats, levels int) *streamedMeta {
	t.Helper()
	s := &streamer{most: 500, least: 50, side: 2}
	lost, err := s.run(path, Memory(m, ply.Meta{Antialiased: true, Comments: []string{"hello"}}),
		WriteOptions{Levels: levels})
	if err != nil || len(lost) != 1 {
		t.Fatal(err, lost)
	}
	meta := must.Get(readStreamed(path))(t)
	return meta
}

// streamedLeaves lists the leaves of a tree, and wants every box to be that of what is in it.
func streamedLeaves(t *testing.T, n *streamedNode) []*streamedNode {
	if len(n.Children) == 0 {
		return []*streamedNode{n}
	}
	box, list := emptyBound(), []*streamedNode{}
	for _, child := range n.Children {
		list = append(list, streamedLeaves(t, child)...)
		box.take(child.Bound)
	}
	if len(n.Children) != 2 || len(n.Runs) != 0 || box != n.Bound {
		t.Errorf("a node has %d children, %d runs, %v, and what is in it %v", len(n.Children), len(n.Runs), n.Bound,
			box)
	}
	return list
}

// TestStreamed wants every splat of every level in one leaf, in whose box it lies, and the finest level to be the
// model.
func TestStreamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), streamedName)
	m := model(6000, 1)
	meta := smallStreamed(t, path, m, 3)
	if !slices.Equal(meta.Counts, []int{6000, 3000, 1500}) || meta.Count != 10500 || meta.Levels != 3 {
		t.Errorf("%+v", meta)
	}
	leaves := streamedLeaves(t, meta.Tree)
	if len(leaves) < 20 || len(meta.Files) < 15 {
		t.Errorf("%d leaves, %d folders", len(leaves), len(meta.Files))
	}
	folders := make([]*scene.Splats, len(meta.Files))
	for i, name := range meta.Files {
		folders[i], _ = readModel(t, sogFormat, filepath.Join(filepath.Dir(path), name))
	}
	used, counts := make([]int, len(folders)), make([]int, 3)
	for _, leaf := range leaves {
		all := 0
		for level, run := range leaf.Runs {
			number, err := strconv.Atoi(level)
			if err != nil || !strings.HasPrefix(meta.Files[run.File], level+"_") || run.Offset != used[run.File] {
				t.Fatalf("level %s, %+v after %d in %s", level, run, used[run.File], meta.Files[run.File])
			}
			used[run.File] += run.Count
			counts[number] += run.Count
			all += run.Count
			part := folders[run.File].Slice(run.Offset, run.Offset+run.Count)
			for i, x := range part.Means {
				if k := i % 3; x < leaf.Bound.Low[k]-1e-3 || x > leaf.Bound.High[k]+1e-3 {
					t.Fatalf("a splat at %v of a leaf with the box %v", part.Means[i-k:i-k+3], leaf.Bound)
				}
			}
		}
		if all > 500 {
			t.Errorf("a leaf of %d splats", all)
		}
	}
	for i, n := range used {
		if n != folders[i].N || n > 1000 {
			t.Errorf("%s has %d splats, %d are in leaves", meta.Files[i], folders[i].N, n)
		}
	}
	if !slices.Equal(counts, meta.Counts) {
		t.Errorf("%v splats are in leaves", counts)
	}
	got, info := readModel(t, streamed, path)
	if info.Format != StreamedFormat || !info.Meta.Antialiased {
		t.Errorf("%+v", info)
	}
	compare(t, StreamedFormat, got, m, quantisation[StreamedFormat])
	if size, err := Size(filepath.Dir(path)); err != nil || size < 50_000 {
		t.Errorf("%d bytes, %v", size, err)
	}
}

// TestStreamedAgain wants an earlier model to be replaced with all its folders, and nothing else in the folder.
func TestStreamedAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, streamedName)
	before := smallStreamed(t, path, model(3000, 0), 3)
	must.Do(t, os.WriteFile(filepath.Join(dir, "mine.txt"), nil, 0o600))
	after := smallStreamed(t, path, model(700, 0), 2)
	if len(after.Files) >= len(before.Files) {
		t.Fatal("nothing is tested")
	}
	want := []string{streamedName, "mine.txt"}
	for _, name := range after.Files {
		want = append(want, filepath.Dir(name))
	}
	entries := must.Get(os.ReadDir(dir))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
}

// TestStreamedSpares wants what is no part of an earlier model to stay, whatever that claims.
func TestStreamedSpares(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, streamedName)
	mine := filepath.Join(dir, "0_0", "mine.txt")
	must.Do(t, errors.Join(os.Mkdir(filepath.Dir(mine), 0o777), os.WriteFile(mine, nil, 0o600)))
	s := &streamer{most: 500, least: 50, side: 2}
	if _, err := s.run(path, Memory(model(100, 0), ply.Meta{}), WriteOptions{}); err == nil ||
		!strings.Contains(err.Error(), filepath.Dir(mine)) || fault.Hint(err) == "" {
		t.Errorf("a folder of somebody else: %v", err)
	}
	claim := []byte(`{"version":1,"filenames":["photos/meta.json","photos/a.jpg","./meta.json"],"tree":{}}`)
	photo, other := filepath.Join(dir, "photos", "a.jpg"), filepath.Join(dir, sogMetaName)
	must.Do(t, errors.Join(os.RemoveAll(filepath.Dir(mine)), os.Mkdir(filepath.Dir(photo), 0o777),
		os.WriteFile(photo, nil, 0o600), os.WriteFile(other, nil, 0o600), os.WriteFile(path, claim, 0o600)))
	smallStreamed(t, path, model(100, 0), 1)
	for _, name := range []string{photo, other} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("what a foreign file names is gone: %v", err)
		}
	}
}

// TestStreamedFew wants as many levels as there are splats to halve.
func TestStreamedFew(t *testing.T) {
	if meta := smallStreamed(t, filepath.Join(t.TempDir(), streamedName), model(3, 0), 9); !slices.Equal(meta.Counts,
		[]int{3, 2, 1}) {
		t.Errorf("%v", meta.Counts)
	}
}

// TestStreamedHostile wants errors that name the file, whatever lod-meta.json says.
func TestStreamedHostile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, streamedName)
	smallStreamed(t, path, model(100, 0), 1)
	text := must.Get(os.ReadFile(path))(t)
	for name, change := range map[string]func(m map[string]any){
		"a name that leads out":  func(m map[string]any) { m["filenames"] = []string{"../0_0/meta.json"} },
		"a name from the root":   func(m map[string]any) { m["filenames"] = []string{"/0_0/meta.json"} },
		"an environment outside": func(m map[string]any) { m["environment"] = "../env/meta.json" },
		"a name twice": func(m map[string]any) {
			m["filenames"] = []string{"0_0/meta.json", "./0_0/meta.json"}
		},
		"no files":             func(m map[string]any) { m["filenames"] = []string{} },
		"no tree":              func(m map[string]any) { m["tree"] = nil },
		"a later version":      func(m map[string]any) { m["version"] = 2 },
		"a child that is null": func(m map[string]any) { m["tree"] = map[string]any{"children": []any{nil}} },
		"a file that is none":  func(m map[string]any) { m["filenames"] = []string{"9_9/meta.json"} },
		"itself":               func(m map[string]any) { m["filenames"] = []string{streamedName} },
		"a number of a file": func(m map[string]any) {
			m["tree"] = map[string]any{"lods": map[string]any{"0": map[string]any{"file": 7, "count": 1}}}
		},
		"no finest level": func(m map[string]any) {
			m["tree"] = map[string]any{"lods": map[string]any{"1": map[string]any{"file": 0, "count": 1}}}
		},
	} {
		var m map[string]any
		must.Do(t, json.Unmarshal(text, &m))
		change(m)
		bad, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		must.Do(t, os.WriteFile(path, bad, 0o600))
		_, err = Open(path)
		if !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), dir) || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// streamedByConverter lets splat-transform read what is written here, and reads what it writes.
func streamedByConverter(t *testing.T, convert converter) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mine", streamedName)
	must.Do(t, os.Mkdir(filepath.Dir(path), 0o777))
	smallStreamed(t, path, shinySplats(2000, 3), 2)
	got, _ := readModel(t, streamed, path)
	file := filepath.Join(dir, "finest.ply")
	convert(t, path, "--select-lod", "0", file)
	want, _, err := ply.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	closeModel(t, got, want)

	theirs := filepath.Join(dir, "theirs", streamedName)
	convert(t, "--gpu", "cpu", file, "--tag-lod", "0", theirs)
	again, info := readModel(t, streamed, theirs)
	if info.Format != StreamedFormat || again.N != want.N {
		t.Errorf("%+v", info)
	}
}

// TestStreamedArchive wants an archive to hold what the folder does, and to have the same bytes every time.
func TestStreamedArchive(t *testing.T) {
	dir := t.TempDir()
	m := model(3000, 1)
	folder, archive := filepath.Join(dir, streamedName), filepath.Join(dir, "a.SSOG")
	meta := smallStreamed(t, folder, m, 3)
	packed := smallStreamed(t, archive, m, 3)
	if !slices.Equal(meta.Files, packed.Files) || !slices.Equal(meta.Counts, packed.Counts) {
		t.Errorf("%+v, want %+v", packed, meta)
	}
	want, _ := readModel(t, streamed, folder)
	got, info := readModel(t, streamed, archive)
	if info.Format != StreamedFormat || !info.Meta.Antialiased {
		t.Errorf("%+v", info)
	}
	for i, tensor := range got.Tensors() {
		if !slices.Equal(tensor.Data, want.Tensors()[i].Data) {
			t.Errorf("%s differ", tensor.Name)
		}
	}
	bytes := must.Get(os.ReadFile(archive))(t)
	if size, err := Size(archive); err != nil || size != int64(len(bytes)) {
		t.Errorf("%d bytes, %v", size, err)
	}
	smallStreamed(t, archive, m, 3)
	if again, err := os.ReadFile(archive); err != nil || string(again) != string(bytes) {
		t.Errorf("other bytes, %v", err)
	}
	for cut, want := range map[int]string{len(bytes) / 2: "zip", 40: "zip"} {
		short := filepath.Join(dir, "short.ssog")
		must.Do(t, os.WriteFile(short, bytes[:cut], 0o600))
		if _, err := Open(short); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
}

// TestStreamedArchiveBomb wants no more of an archive's part in memory than the archive has bytes.
func TestStreamedArchiveBomb(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bomb.ssog")
	f := must.Get(os.Create(path))(t)
	w := zip.NewWriter(f)
	for name, text := range map[string]string{
		streamedName:    `{"version":1,"lodLevels":1,"filenames":["0_0/meta.json"],"tree":{}}`,
		"0_0/meta.json": strings.Repeat(" ", 1<<24),
	} {
		to, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(to, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, errors.Join(w.Close(), f.Close()))
	if _, err := StreamedParts(path); !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), "unpacks to more") {
		t.Errorf("error %v", err)
	}
}

// TestStreamedStops wants the work to end where the caller says so, whatever is in memory already, and nothing to stay.
func TestStreamedStops(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{streamedName, "a.ssog", tilesName} {
		asked, stop := 0, errors.New("enough")
		o := WriteOptions{Stop: func() error {
			if asked++; asked < 3 {
				return nil
			}
			return stop
		}}
		m := Memory(model(3000, 1), ply.Meta{})
		var err error
		if name == tilesName {
			_, err = (&tiler{most: 500, o: o}).run(filepath.Join(dir, name), m)
		} else {
			_, err = (&streamer{most: 500, least: 50, side: 2}).run(filepath.Join(dir, name), m, o)
		}
		if !errors.Is(err, stop) || asked != 3 {
			t.Errorf("%s: asked %d times, error %v", name, asked, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
