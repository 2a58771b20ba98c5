package detail

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/splatfile"
)

// row writes a model of blocks in a row along x, ten apart, with splats on a floor of one by one unit each, in levels.
func row(t *testing.T, blocks, side, levels int) string {
	t.Helper()
	s := scene.NewSplats(side*side, 1)
	for i := range s.N {
		s.Means[3*i], s.Means[3*i+2] = float32(i%side)/float32(side), float32(i/side)/float32(side)
		s.Quats[4*i], s.LogitOpacities[i] = 1, 2
		for k := range 3 {
			s.LogScales[3*i+k] = float32(-math.Log(float64(2 * side)))
		}
		s.SH[12*i] = float32(i%7) / 7
	}
	dir := t.TempDir()
	path := filepath.Join(dir, splatfile.StreamedMain)
	var whole streamedModel
	for i := range blocks {
		name := fmt.Sprintf("block_%d", i)
		file := filepath.Join(dir, name, splatfile.StreamedMain)
		must.Do(t, os.Mkdir(filepath.Dir(file), 0o700))
		must.Get(splatfile.ByName(file).Write(file, splatfile.Memory(s, ply.Meta{}),
			splatfile.WriteOptions{Levels: levels}))(t)
		text, err := os.ReadFile(file)
		var block streamedModel
		if err == nil {
			err = json.Unmarshal(text, &block)
		}
		if err != nil {
			t.Fatal(err)
		}
		whole.add(name, block)
		for k := range s.N {
			s.Means[3*k] += 10
		}
	}
	text, err := json.Marshal(whole)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// streamedModel is the JSON of a streamed model.
type streamedModel struct {
	Version int          `json:"version"`
	Count   int          `json:"count"`
	Levels  int          `json:"lodLevels"`
	Files   []string     `json:"filenames"`
	Tree    streamedNode `json:"tree"`
}

type streamedNode struct {
	Bound    json.RawMessage           `json:"bound,omitempty"`
	Children []streamedNode            `json:"children,omitempty"`
	Runs     map[string]map[string]int `json:"lods,omitempty"`
}

// add adds a model, whose files are in a folder, beside those that are there.
func (m *streamedModel) add(folder string, block streamedModel) {
	m.Version, m.Levels, m.Count = block.Version, block.Levels, m.Count+block.Count
	block.Tree.shift(len(m.Files))
	for _, name := range block.Files {
		m.Files = append(m.Files, folder+"/"+name)
	}
	m.Tree.Children = append(m.Tree.Children, block.Tree)
}

// shift adds to the numbers of files.
func (n *streamedNode) shift(by int) {
	for _, run := range n.Runs {
		run["file"] += by
	}
	for i := range n.Children {
		n.Children[i].shift(by)
	}
}

// page is how many splats a page of the device has.
const page = 128

func open(t *testing.T, path string, ram int64) *Model {
	t.Helper()
	m := must.Get(Open(path))(t)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	m.Use(scene.Identity(), [3]float64{}, page)
	m.LimitRAM(ram)
	return m
}

// along looks down the row from x, at a height above the floor.
func along(x, height float64) scene.Camera {
	c := scene.Camera{Width: 640, Height: 480, Fx: 500, Fy: 500, Cx: 320, Cy: 240,
		R: [9]float64{0, 0, -1, 0, 1, 0, 1, 0, 0}} // ahead is x
	p := [3]float64{x, -height, 0.5}
	for r := range 3 {
		for k := range 3 {
			c.T[r] -= c.R[3*r+k] * p[k]
		}
	}
	return c
}

// levelsOf lists the level of each leaf that is shown, by its place in the row.
func levelsOf(m *Model, parts []int) map[int]int {
	found := map[int]int{}
	for _, l := range m.leaves {
		for k, level := range l.levels {
			if slices.Contains(parts, level.part) {
				found[int(math.Round(l.low[0]/10))] = k
				break
			}
		}
	}
	return found
}

// TestChoose wants near blocks fine and far ones coarse, those behind the camera not at all, and a budget to be kept.
func TestChoose(t *testing.T) {
	m := open(t, row(t, 12, 60, 4), 1<<30)
	c := along(19, 0.5)
	all, err := m.Choose(&c, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	levels := levelsOf(m, all)
	// 3600 splats are 1/60 apart, which is 8.3 pixels at one unit's distance, 0.1 at 91.
	if levels[2] != 0 || levels[11] != 3 || len(levels) < 10 || len(levels) > 12 {
		t.Errorf("levels %v", levels)
	}
	for i := 3; i < 12; i++ {
		if levels[i] < levels[i-1] {
			t.Errorf("levels %v", levels)
		}
	}
	if _, ok := levels[0]; ok {
		t.Errorf("what is behind the camera is shown: %v", levels)
	}
	before := math.MaxInt
	for _, most := range []int{20000, 12000, 8000, 6500} {
		parts, err := m.Choose(&c, most)
		if err != nil {
			t.Fatal(most, err)
		}
		n := 0
		for _, part := range parts {
			n += m.Sizes()[part]
		}
		if n > most || n > before || n < 4000 {
			t.Errorf("%d splats of %d at most", n, most)
		}
		before = n
		coarse := levelsOf(m, parts)
		for i := range coarse {
			if coarse[i] < levels[i] {
				t.Errorf("block %d is in level %d with %d splats at most, else in %d", i, coarse[i], most, levels[i])
			}
		}
		if again, err := m.Choose(&c, most); err != nil || !slices.Equal(again, parts) {
			t.Error("other parts, ", err)
		}
	}
	if _, err := m.Choose(&c, 1000); fault.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	inside := along(0.5, 0.05)
	parts, err := m.Choose(&inside, math.MaxInt32)
	if err != nil || levelsOf(m, parts)[0] != 0 {
		t.Errorf("levels %v, %v", levelsOf(m, parts), err)
	}
}

// TestChoosePages wants parts to count for whole pages of the device, whatever their size, and the hint of too small a
// budget to name the smallest that is enough.
func TestChoosePages(t *testing.T) {
	m := open(t, row(t, 12, 60, 4), 1<<30)
	c := along(19, 0.5)
	for _, m.page = range []int{1, page, 1000} {
		_, err := m.Choose(&c, 1)
		var enough int
		if _, scanned := fmt.Sscanf(fault.Hint(err), "raise --max-splats to %d", &enough); scanned != nil {
			t.Fatal(err, fault.Hint(err))
		}
		parts := must.Get(m.Choose(&c, enough))(t)
		room := 0
		for _, part := range parts {
			room += (m.Sizes()[part] + m.page - 1) / m.page * m.page
		}
		if _, err := m.Choose(&c, enough-1); err == nil || room != enough {
			t.Errorf("pages of %d: %d splats are said to be enough, %d are taken, error of one less %v", m.page,
				enough, room, err)
		}
	}
}

// edited changes lod-meta.json of a model.
func edited(t *testing.T, path string, change func(meta map[string]any)) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]any
	if err = json.Unmarshal(text, &meta); err == nil {
		change(meta)
		if text, err = json.Marshal(meta); err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestChooseCoarse wants a block that has coarse levels alone to be shown in the finest of them, however near it is.
func TestChooseCoarse(t *testing.T) {
	var strip func(node map[string]any)
	strip = func(node map[string]any) {
		children, _ := node["children"].([]any)
		for _, child := range children {
			strip(child.(map[string]any))
		}
		if runs, ok := node["lods"].(map[string]any); ok {
			delete(runs, "0")
			delete(runs, "2")
		}
	}
	m := open(t, edited(t, row(t, 3, 40, 4), func(meta map[string]any) { strip(meta["tree"].(map[string]any)) }), 1<<30)
	inside := along(0.5, 0.05)
	parts, err := m.Choose(&inside, math.MaxInt32)
	if err != nil || len(parts) != 3 || m.Sizes()[parts[0]] != 800 {
		t.Errorf("parts %v of %v splats, %v", parts, m.Sizes(), err)
	}
	for _, l := range m.leaves {
		if len(l.levels) != 2 {
			t.Errorf("%d levels, want 1 and 3", len(l.levels))
		}
	}
}

// writeBall writes n splats at a place on the x axis into a folder of their own.
func writeBall(t *testing.T, meta string, n int, x float32) {
	t.Helper()
	s := scene.NewSplats(n, 0)
	for i := range n {
		s.Means[3*i], s.Quats[4*i] = x, 1
	}
	err := os.Mkdir(filepath.Dir(meta), 0o700)
	if err == nil {
		_, err = splatfile.ByName(meta).Write(meta, splatfile.Memory(s, ply.Meta{}), splatfile.WriteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestChooseOneLevel wants blocks out of view to be left out where there is one level alone, but not what is always
// drawn.
func TestChooseOneLevel(t *testing.T) {
	path := row(t, 12, 20, 1)
	c := along(59, 0.5)
	m := open(t, path, 1<<30)
	parts, err := m.Choose(&c, math.MaxInt32)
	if levels := levelsOf(m, parts); err != nil || len(levels) > 7 || len(levels) < 6 {
		t.Errorf("levels %v, %v", levels, err)
	}
	sky := filepath.Join(filepath.Dir(path), "sky", "meta.json")
	writeBall(t, sky, 7, 0)
	m = open(t, edited(t, path, func(meta map[string]any) { meta["environment"] = "sky/meta.json" }), 1<<30)
	again, err := m.Choose(&c, math.MaxInt32)
	if err != nil || len(again) != len(parts)+1 || m.Sizes()[again[0]] != 7 {
		t.Errorf("parts %v, without what is always drawn %v, %v", again, parts, err)
	}
}

// TestFoldersKept wants folders to be decoded within the limit, however many cores there are: one alone where there is
// room for none.
func TestFoldersKept(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	const folders, n = 24, 400 // of which a part is one
	path := row(t, 1, 20, 1)
	var names []string
	var leaves []any
	for i := range folders {
		names = append(names, fmt.Sprintf("folder_%d/meta.json", i))
		file := filepath.Join(filepath.Dir(path), names[i])
		writeBall(t, file, n, float32(i))
		leaves = append(leaves, map[string]any{"bound": map[string]any{"min": [3]int{}, "max": [3]int{99, 1, 1}},
			"lods": map[string]any{"0": map[string]int{"file": i, "offset": 0, "count": 1}}})
	}
	edited(t, path, func(meta map[string]any) {
		meta["filenames"], meta["tree"].(map[string]any)["children"] = names, leaves
		delete(meta["tree"].(map[string]any), "lods")
	})
	for _, room := range []int64{0, 1, 3, 30} { // folders
		m := open(t, path, 1<<30)
		one := m.Folders[0].LoadBytes()
		m.limit = room * one
		check := func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			reading := 0
			for _, f := range m.folders {
				reading += min(f.readers, 1)
			}
			if m.kept > max(m.limit, one) || reading > int(max(room*one/m.Folders[0].Bytes(), 1)) {
				t.Errorf("%d bytes of folders of %d, %d at a time, with room for %d", m.kept, one, reading, room)
			}
		}
		parts := make([]int, folders)
		for i := range parts {
			parts[i] = i
		}
		m.Ahead(parts)
		check()
		for i := range parts {
			s, err := m.Read(i)
			if err != nil || math.Abs(float64(s.Means[0])-float64(i)) > 0.01 {
				t.Fatalf("part %d: %v", i, err)
			}
			check()
		}
	}
}

// TestRead wants parts to be the same, ahead of time or not, with little room for them, from several goroutines' work.
func TestRead(t *testing.T) {
	path := row(t, 8, 40, 4)
	want := open(t, path, 1<<30)
	var parts []int
	for part := range want.Sizes() {
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	for _, ram := range []int64{1 << 30, 1 << 17, 1} {
		m := open(t, path, ram)
		for i, part := range parts {
			if i%3 == 0 {
				m.Ahead(parts[i:])
			}
			got, err := m.Read(part)
			if err != nil {
				t.Fatal(err)
			}
			same, err := want.Read(part)
			if err != nil || !slices.Equal(got.Means, same.Means) || !slices.Equal(got.SH, same.SH) ||
				got.N != m.Sizes()[part] {
				t.Errorf("part %d is another, %v", part, err)
			}
		}
		m.mu.Lock()
		if m.bytes != 0 || len(m.store.parts) != 0 || m.kept > ram/2 && m.working == 0 {
			t.Errorf("%d bytes of %d parts are left, %d of folders", m.bytes, len(m.store.parts), m.kept)
		}
		m.mu.Unlock()
	}
}

// TestAheadDropped wants what is no longer wanted to be forgotten, and Close to end what is being read.
func TestAheadDropped(t *testing.T) {
	m := open(t, row(t, 8, 40, 4), 1<<30)
	var once sync.Once
	for part := range m.Sizes() {
		m.Ahead([]int{part})
		once.Do(runtime.Gosched)
	}
	m.Ahead(nil)
	if _, err := m.Read(3); err != nil {
		t.Error(err)
	}
}

// TestMissing wants a folder that is damaged to be an error of the part that is in it.
func TestMissing(t *testing.T) {
	path := row(t, 2, 20, 4)
	m := open(t, path, 1<<30)
	name := filepath.Join(filepath.Dir(path), "block_0", "0_0", "quats.webp")
	must.Do(t, os.WriteFile(name, []byte("RIFF"), 0o600))
	m.Ahead([]int{0, 1, 2, 3, 4, 5, 6, 7})
	failed := 0
	for part := range m.Sizes() {
		if _, err := m.Read(part); err != nil {
			failed++
		}
	}
	if failed != 1 { // the coarser levels are in folders of their own
		t.Errorf("%d parts failed", failed)
	}
}
