package splatfile

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/tiles"
)

// smallTiles writes a model with small tiles, so that there are many.
func smallTiles(t *testing.T, path string, m *scene.Splats, meta ply.Meta, o WriteOptions) *tiles.Tileset {
	t.Helper()
	must.Get((&tiler{most: 500, o: o}).run(path, Memory(m, meta)))(t)
	text := must.Get(os.ReadFile(path))(t)
	var set tiles.Tileset
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	must.Do(t, d.Decode(&set))
	return &set
}

// TestTiles wants the leaves to be the model, every tile in the box of the one above it, and errors that shrink on the
// way down.
func TestTiles(t *testing.T) {
	for _, plain := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), tilesName)
		want := model(6000, 2)
		set := smallTiles(t, path, want, ply.Meta{Antialiased: true}, WriteOptions{PlainTiles: plain, Generator: "g"})
		if set.Asset != (tiles.Asset{Version: "1.1", Generator: "g"}) || set.Root.Refine != "REPLACE" ||
			set.Error < set.Root.Volume.Diagonal() ||
			slices.Contains(set.Extensions.GLTF.Required, glbSplatsSPZ) == plain {
			t.Errorf("%+v, %+v", set.Asset, set.Extensions)
		}
		var leaves []Source
		checkTile(t, path, set.Root, func(leaf Source) { leaves = append(leaves, leaf) })
		if len(leaves) != 16 {
			t.Errorf("%d leaves", len(leaves))
		}
		all := must.Get(Merge(leaves))(t)
		got := must.Get(All(all))(t)
		format := "spz"
		if plain {
			format = "glb"
		}
		compare(t, tilesFormat.Name, got, want, quantisation[format])
		if !all.Info().Meta.Antialiased {
			t.Error("the tiles do not say that the model is antialiased")
		}
	}
}

// checkTile checks a tile and all below it, and hands its leaves to each.
func checkTile(t *testing.T, path string, tile *tiles.Tile, each func(leaf Source)) {
	t.Helper()
	m := must.Get(Open(filepath.Join(filepath.Dir(path), filepath.FromSlash(tile.Content.URI))))(t)
	t.Cleanup(func() { _ = m.Close() })
	s := must.Get(All(m))(t)
	for i := range s.N {
		p := tiles.ZUp([3]float64{float64(s.Means[3*i]), float64(s.Means[3*i+1]), float64(s.Means[3*i+2])})
		if !insideVolume(tile.Volume, p, 1e-3) {
			t.Fatalf("%s: a splat at %v, the box is %v", tile.Content.URI, p, tile.Volume.Box)
		}
	}
	if s.N > 500 {
		t.Errorf("%s: %d splats", tile.Content.URI, s.N)
	}
	if len(tile.Children) == 0 {
		if tile.Error != 0 {
			t.Errorf("%s: the model itself has an error of %g", tile.Content.URI, tile.Error)
		}
		each(m)
		return
	}
	below := 0
	for _, child := range tile.Children {
		if child.Error > tile.Error {
			t.Errorf("%s: an error of %g under one of %g", child.Content.URI, child.Error, tile.Error)
		}
		b := child.Volume.Box
		for _, sign := range []float64{-1, 1} {
			corner := [3]float64{b[0] + sign*b[3], b[1] + sign*b[7], b[2] + sign*b[11]}
			if !insideVolume(tile.Volume, corner, 1e-4) {
				t.Errorf("%s is not inside the one above it", child.Content.URI)
			}
		}
		n := must.Get(Open(filepath.Join(filepath.Dir(path), filepath.FromSlash(child.Content.URI))))(t)
		below += n.Info().N
		_ = n.Close()
		checkTile(t, path, child, each)
	}
	if s.N != (below+1)/2 || tile.Error == 0 {
		t.Errorf("%s: %d splats for %d, an error of %g", tile.Content.URI, s.N, below, tile.Error)
	}
}

func insideVolume(v tiles.Volume, p [3]float64, room float64) bool {
	for k := range 3 {
		if math.Abs(p[k]-v.Box[k]) > v.Box[3+4*k]+room {
			return false
		}
	}
	return true
}

// TestTilesPlace wants the origin of a capture, or a place on Earth, to be where the tiles are put.
func TestTilesPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), tilesName)
	meta := ply.Meta{Origin: &[3]float64{10, 20, 30}}
	set := smallTiles(t, path, model(100, 0), meta, WriteOptions{})
	if m := set.Root.Transform; m == nil || [3]float64(m[12:15]) != [3]float64{-10, -30, -20} {
		t.Errorf("%v", m)
	}
	place := &tiles.Place{Latitude: 46.5, Longitude: 6.6, Height: 400}
	set = smallTiles(t, path, model(100, 0), meta, WriteOptions{Place: place})
	if m := set.Root.Transform; m == nil || *m != *place.Transform() {
		t.Errorf("%v", m)
	}
}

// TestTilesOne wants a tileset of one tile, which has no error itself, to be worth drawing: viewers draw nothing of one
// whose error is 0, or less than its size tells.
func TestTilesOne(t *testing.T) {
	set := smallTiles(t, filepath.Join(t.TempDir(), tilesName), model(10, 0), ply.Meta{}, WriteOptions{})
	if b := set.Root.Volume.Box; set.Root.Error != 0 || set.Error < 2*max(b[3], b[7], b[11]) {
		t.Errorf("errors of %g and %g, the box is %v", set.Error, set.Root.Error, b)
	}
}

// TestTilesAgain wants an earlier tileset to be replaced with all its tiles, the same bytes for the same model, and
// nothing else to be touched.
func TestTilesAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, tilesName)
	smallTiles(t, path, model(3000, 0), ply.Meta{}, WriteOptions{})
	set := smallTiles(t, path, model(900, 1), ply.Meta{}, WriteOptions{})
	entries, err := os.ReadDir(filepath.Join(dir, tilesFolder))
	if err != nil || len(entries) != 3 || len(set.Root.Files()) != 3 {
		t.Fatalf("%v, %v", entries, err)
	}
	before := folderBytes(t, dir)
	smallTiles(t, path, model(900, 1), ply.Meta{}, WriteOptions{})
	if !bytes.Equal(before, folderBytes(t, dir)) {
		t.Error("the same model has other bytes")
	}
	mine := filepath.Join(dir, tilesFolder, "mine.txt")
	must.Do(t, os.WriteFile(mine, nil, 0o600))
	_, err = tilesFormat.Write(path, Memory(model(900, 1), ply.Meta{}), WriteOptions{})
	if err == nil || !strings.Contains(err.Error(), mine) || fault.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// folderBytes are all files of a folder, one after the other.
func folderBytes(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	must.Do(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(append(all, filepath.Base(path)...), text...)
		return err
	}))
	return all
}

// TestTilesFailed wants an earlier tileset to stay where the new one cannot be written, and nothing else.
func TestTilesFailed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, tilesName)
	smallTiles(t, path, model(900, 1), ply.Meta{}, WriteOptions{})
	before := folderBytes(t, dir)
	nowhere := WriteOptions{Place: &tiles.Place{Height: math.Inf(1)}}
	if _, err := (&tiler{most: 500, o: nowhere}).run(path, Memory(model(700, 1), ply.Meta{})); err == nil {
		t.Error("a place that is none is written")
	}
	if !bytes.Equal(before, folderBytes(t, dir)) {
		t.Error("the earlier tileset is gone")
	}
}

func TestTilesRefuse(t *testing.T) {
	path := filepath.Join(t.TempDir(), tilesName)
	far := model(10, 0)
	far.Means[0] = 1e30
	broken := model(2000, 1)
	broken.Means[3*1700] = float32(math.NaN())
	for want, m := range map[string]Source{
		"splat 1700": Memory(broken, ply.Meta{}), "without splats": Memory(scene.NewSplats(0, 0), ply.Meta{}),
		"24 bits": Memory(far, ply.Meta{}),
	} {
		_, err := writer("write 3d tiles", func(path string, m Source, o WriteOptions) ([]string, error) {
			return (&tiler{most: 500, o: o}).run(path, m)
		})(path, m, WriteOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path+": ") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestTilesRead reads a tileset of others, and refuses what is damaged or not known.
func TestTilesRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, tilesName)
	want := model(1500, 1)
	set := smallTiles(t, path, want, ply.Meta{}, WriteOptions{Place: &tiles.Place{Latitude: 10}})
	got, info := readModel(t, tilesFormat, path)
	if info.Format != "3d-tiles" || info.N != 1500 {
		t.Errorf("%+v", info)
	}
	compare(t, tilesFormat.Name, got, want, quantisation[tilesFormat.Name])
	size := int64(len(folderBytes(t, dir)))
	if n, err := Size(dir); err != nil || n > size || n < size-200 { // less the names
		t.Errorf("%d bytes of %d, %v", n, size, err)
	}

	leaf := set.Root.Files()[1]
	twice := `{"content":{"uri":"` + leaf + `"}}`
	for want, text := range map[string]string{
		"unexpected end":     `{"geometricError":1,"root":{`,
		"it names no tiles":  `{"geometricError":1}`,
		"no tile has splats": `{"geometricError":1,"root":{}}`,
		"occurs twice":       `{"geometricError":1,"root":{"children":[` + twice + `,` + twice + `]}}`,
		"objects of JSON": `{"geometricError":1,"root":{"children":[` + strings.Repeat("{},", maxTreeObjects) +
			`{}]}}`,
		"null":                   `{"geometricError":1,"root":{"children":[null]}}`,
		"leads out":              `{"geometricError":1,"root":{"content":{"uri":"../a.glb"}}}`,
		"the name ../b.glb":      `{"geometricError":1,"root":{"content":{"uri":"%2e%2E%2fb.glb"}}}`,
		"tiles of binary glTF":   `{"geometricError":1,"root":{"content":{"uri":"more.json"}}}`,
		"no such file":           `{"geometricError":1,"root":{"content":{"uri":"gone.glb"}}}`,
		"relative to its parent": `{"geometricError":1,"root":{"children":[{"transform":[2],"content":{"uri":"` + leaf + `"}}]}}`,
	} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	added := `{"geometricError":1,"root":{"refine":"ADD","content":{"uri":"` + leaf + `"},"children":[{"contents":[{"uri":"` +
		set.Root.Files()[2] + `"}]}]}}`
	must.Do(t, os.WriteFile(path, []byte(added), 0o600))
	m, err := Open(path)
	if err != nil || m.Info().N != 750 {
		t.Errorf("%v, %v", m, err)
	}
}

// TestTilesURIs wants names of files from their percent-encoded forms, and names that are none as they are.
func TestTilesURIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, tilesName)
	set := smallTiles(t, path, model(1500, 0), ply.Meta{}, WriteOptions{})
	uris := map[string]string{"zwei Hälften.glb": "zwei%20H%C3%A4lften.glb", "100%.glb": "100%.glb"}
	var children []string
	for name, uri := range uris {
		must.Do(t, os.Rename(filepath.Join(dir, filepath.FromSlash(set.Root.Files()[len(children)+1])),
			filepath.Join(dir, name)))
		children = append(children, `{"content":{"uri":"`+uri+`"}}`)
	}
	text := `{"geometricError":1,"root":{"children":[` + strings.Join(children, ",") + `]}}`
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	m, err := Open(path)
	if err != nil || m.Info().N == 0 {
		t.Fatal(err)
	}
	if n, err := Size(path); err != nil || n < 1000 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestTilesFar wants splats of a city of two kilometres within a fifth of a millimetre of their places.
func TestTilesFar(t *testing.T) {
	path := filepath.Join(t.TempDir(), tilesName)
	want := model(2000, 0)
	for i := range want.Means {
		want.Means[i] *= 1000 / 3
	}
	low, high := boundsOf(want)
	smallTiles(t, path, want, ply.Meta{}, WriteOptions{})
	got, _ := readModel(t, tilesFormat, path)
	worst := 0.0
	for i := range want.N {
		nearest := math.Inf(1)
		for j := range got.N {
			far := 0.0
			for k := range 3 {
				far = max(far, math.Abs(float64(want.Means[3*i+k])-float64(got.Means[3*j+k])))
			}
			nearest = min(nearest, far)
		}
		worst = max(worst, nearest)
	}
	t.Logf("from %v to %v: %.3g at most", low, high, worst)
	if worst > 0.0002 {
		t.Errorf("splats are off by %g", worst)
	}
}
