package splatfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
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
)

// sogFiles gives the files of a small SOG of degree 1.
func sogFiles(t testing.TB, n int) map[string][]byte {
	dir := t.TempDir()
	must.Get(sogFormat.Write(dir, Memory(shinySplats(n, 1), ply.Meta{}), WriteOptions{}))(t)
	files := map[string][]byte{}
	for _, name := range append([]string{sogMetaName}, sogNames[:]...) {
		data := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		files[name] = data
	}
	return files
}

// zipOf packs files in the order of their names.
func zipOf(t testing.TB, files map[string][]byte, method uint16) []byte {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = w.Write(files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, archive.Close())
	return out.Bytes()
}

// readBytes reads a file with these bytes.
func readBytes(t testing.TB, data []byte) (*scene.Splats, error) {
	path := filepath.Join(t.TempDir(), "a.sog")
	must.Do(t, os.WriteFile(path, data, 0o600))
	model, err := openSOG(path)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	return All(model)
}

// webpOf is an image of one colour, which takes no bits whatever its size.
func webpOf(t testing.TB, width, height int) []byte {
	data := must.Get((&losslessImage{make([]uint8, 3), 3, 1, 1}).encode())(t)
	binary.LittleEndian.PutUint32(data[21:], uint32(width-1|(height-1)<<14))
	return data
}

func TestSOGHostile(t *testing.T) {
	whole := sogFiles(t, 9)
	meta := string(whole[sogMetaName])
	edit := func(old, new string) func(map[string][]byte) {
		if !strings.Contains(meta, old) {
			t.Fatalf("meta.json has no %q: %s", old, meta)
		}
		return func(f map[string][]byte) { f[sogMetaName] = []byte(strings.Replace(meta, old, new, 1)) }
	}
	image := func(name string, data []byte) func(map[string][]byte) {
		return func(f map[string][]byte) { f[name] = data }
	}
	cut := whole["quats.webp"][:len(whole["quats.webp"])-8]
	for _, c := range []struct {
		name   string
		change func(map[string][]byte)
		want   string
	}{
		{"no meta.json", func(f map[string][]byte) { delete(f, sogMetaName) }, "meta.json: file does not exist"},
		{"image missing", func(f map[string][]byte) { delete(f, "sh0.webp") }, "sh0.webp: file does not exist"},
		{"no JSON", edit(`{"version"`, `{version`), "meta.json: invalid character"},
		{"version 3", edit(`"version":2`, `"version":3`), "version 3"},
		{"count too large", edit(`"count":9`, `"count":2000000000`), "count is 2000000000"},
		{"count beyond the bytes", edit(`"count":9`, `"count":5000000`),
			"means_l.webp: it has 4 x 4 pixels for 5000000 splats"},
		{"no count", edit(`"count":9,`, ``), "field count is missing"},
		{"null count", edit(`"count":9`, `"count":null`), "field count is missing"},
		{"negative count", edit(`"count":9`, `"count":-1`), "count is -1"},
		{"count no integer", edit(`"count":9`, `"count":9.5`),
			"meta.json: field count: number 9.5 is there, a whole number is expected"},
		{"count beyond counting", edit(`"count":9`, `"count":1e300`),
			"meta.json: field count: number 1e300 is there, a smaller whole number is expected"},
		{"count with exponent", edit(`"count":9`, `"count":9e0`),
			"number 9e0 is there, a whole number in digits alone is expected"},
		{"box beyond numbers", edit(`"mins":[`, `"mins":[1e999,0,0],"old":[`),
			"number 1e999 is there, a smaller number is expected"},
		{"path above", edit(`"means_l.webp"`, `"../means_l.webp"`), `"../means_l.webp" is not a name`},
		{"path in the middle", edit(`"means_l.webp"`, `"a/../../b.webp"`), "is not a name"},
		{"absolute path", edit(`"means_l.webp"`, `"/etc/passwd"`), "is not a name"},
		{"drive", edit(`"means_l.webp"`, `"C:x.webp"`), "is not a name"},
		{"backslash", edit(`"means_l.webp"`, `"..\\x.webp"`), "is not a name"},
		{"one file too few", edit(`"means_l.webp",`, ``), "means: files are"},
		{"infinite box", edit(`"mins":[`, `"mins":[1e300,0,0],"old":[`), "logarithms of no coordinates"},
		{"box of two", edit(`"mins":[`, `"mins":[1,0],"old":[`), "three numbers"},
		{"null in the box", edit(`"mins":[`, `"mins":[1,0,null],"old":[`), "logarithms of no coordinates"},
		{"empty codebook", edit(`"scales":{"codebook":[`, `"scales":{"codebook":[],"old":[`),
			"scales: codebook has 0 entries"},
		{"short codebook", edit(`"scales":{"codebook":[`, `"scales":{"codebook":[1,2],"old":[`), "scales.webp: pixel"},
		{"null in a codebook", edit(`"scales":{"codebook":[`, `"scales":{"codebook":[1,null,2],"old":[`),
			"codebook entry 1 is NaN"},
		{"palette too long", edit(`"shN":{"count":9`, `"shN":{"count":65`),
			"shN_centroids.webp: it has 192 x 1 pixels for 65 entries"},
		{"other degree", edit(`"bands":1`, `"bands":2`), "palette of degree 2"},
		{"degree 4", edit(`"bands":1`, `"bands":4`), "palette of degree 4"},
		{"huge image", image("means_l.webp", webpOf(t, 16383, 16383)),
			"means_l.webp: it has 16383 x 16383 pixels for 9 splats"},
		{"huge palette", image("shN_centroids.webp", webpOf(t, 192, 1025)), "1025 pixels"},
		{"lossy image", image("quats.webp", []byte("RIFF\x20\x00\x00\x00WEBPVP8 \x10\x00\x00\x000123456789012345")),
			"quats.webp: it is a lossy"},
		{"no image", image("quats.webp", []byte("GIF89a")), "quats.webp: not a lossless WebP"},
		{"empty image", image("quats.webp", nil), "quats.webp: not a lossless WebP"},
		{"image cut short", image("quats.webp", cut), "quats.webp: it is damaged"},
	} {
		files := maps.Clone(whole)
		c.change(files)
		_, err := readBytes(t, zipOf(t, files, zip.Store))
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, fault.ErrData) ||
			fault.Hint(err) == "" || !strings.Contains(err.Error(), "a.sog") {
			t.Errorf("%s: %v (hint %q), want %q", c.name, err, fault.Hint(err), c.want)
		}
	}
}

// Archives and images that claim more than they hold, and what lies beside them.
func TestSOGBombs(t *testing.T) {
	files := sogFiles(t, 9)
	if _, err := readBytes(t, zipOf(t, files, zip.Deflate)); err != nil {
		t.Errorf("compressed archive: %v", err)
	}
	files["quats.webp"] = append(files["quats.webp"], make([]byte, 50<<20)...)
	if _, err := readBytes(t, zipOf(t, files, zip.Deflate)); err == nil ||
		!strings.Contains(err.Error(), "quats.webp: it is larger than") {
		t.Errorf("an image of 50 MB of zeros: %v", err)
	}
	files = sogFiles(t, 9)
	files[sogMetaName] = append(files[sogMetaName], bytes.Repeat([]byte(" "), maxSogMeta)...)
	if _, err := readBytes(t, zipOf(t, files, zip.Deflate)); err == nil ||
		!strings.Contains(err.Error(), "meta.json: it is larger than") {
		t.Errorf("a meta.json of 4 MB: %v", err)
	}
	const side = 4000 // as many splats as no file of this size has
	text := strings.Replace(string(sogFiles(t, 9)[sogMetaName]), `"count":9`, fmt.Sprintf(`"count":%d`, side*side), 1)
	files = map[string][]byte{sogMetaName: []byte(text), "shN_centroids.webp": webpOf(t, 192, 1)}
	for _, name := range sogNames[:sogCentroids] {
		files[name] = webpOf(t, side, side)
	}
	if _, err := readBytes(t, zipOf(t, files, zip.Store)); err == nil ||
		!strings.Contains(err.Error(), "count is 16000000, but all images together have") {
		t.Errorf("images of one colour: %v", err)
	}
}

func TestSOGFolderLinks(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.webp")
	for name, data := range sogFiles(t, 9) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	inside := filepath.Join(dir, "sh0.webp")
	must.Do(t, os.Rename(inside, outside))
	if _, err := openSOG(dir); err == nil || !strings.Contains(err.Error(), "sh0.webp") ||
		!strings.Contains(fault.Hint(err), "next to") {
		t.Errorf("image missing: %v", err)
	}
	if err := os.Symlink(outside, inside); err != nil {
		t.Skip(err)
	}
	if _, err := openSOG(dir); err == nil || !strings.Contains(err.Error(), "sh0.webp") {
		t.Errorf("a link out of the folder is followed: %v", err)
	}
	if _, err := openSOG(filepath.Join(dir, "none")); err == nil ||
		fault.Hint(err) != "check the spelling of the path" {
		t.Errorf("no folder: %v", err)
	}
}

// Version 1: ranges in the place of codebooks, logits in alpha, the degree by the width of the palette.
func TestSOGVersion1(t *testing.T) {
	files := sogFiles(t, 9)
	files[sogMetaName] = []byte(
		`{"means":{"shape":[9,3],"dtype":"float32","mins":[-1,-1,-1],"maxs":[1,1,3],"files":["means_l.webp","means_u.webp"]},
"scales":{"shape":[9,3],"mins":[-8,-7,-6],"maxs":[-2,-2,-2],"files":["scales.webp"]},"quats":{"shape":[9,3],"encoding":"quaternion_packed","files":["quats.webp"]},
"sh0":{"shape":[9,1,4],"mins":[-1,-2,-3,-5],"maxs":[1,2,3,10],"files":["sh0.webp"]},
"shN":{"shape":[9,3],"mins":-0.5,"maxs":0.25,"quantization":8,"files":["shN_centroids.webp","shN_labels.webp"]}}`)
	s := must.Get(readBytes(t, zipOf(t, files, zip.Store)))(t)
	if s.N != 9 || s.Degree != 1 {
		t.Fatalf("%d splats of degree %d", s.N, s.Degree)
	}
	sh0 := must.Get(decodeLossless(files["sh0.webp"], 4, 4, 9, 4))(t)
	centroids := must.Get(decodeLossless(files["shN_centroids.webp"], 192, 1, 27, 3))(t)
	labels := must.Get(decodeLossless(files["shN_labels.webp"], 4, 4, 9, 2))(t)
	for i := range s.N {
		if want := -5 + 15*float64(sh0[4*i+3])/255; math.Abs(float64(s.LogitOpacities[i])-want) > 1e-5 {
			t.Errorf("opacity %d is %v, want %v", i, s.LogitOpacities[i], want)
		}
		if want := -3 + 6*float64(sh0[4*i+2])/255; math.Abs(float64(s.SH[12*i+2])-want) > 1e-5 {
			t.Errorf("colour %d is %v, want %v", i, s.SH[12*i+2], want)
		}
		if want := -0.5 + 0.75*float64(centroids[9*int(labels[2*i])+7])/255; math.Abs(float64(s.SH[12*i+10])-want) >
			1e-6 {
			t.Errorf("harmonic %d is %v, want %v", i, s.SH[12*i+10], want)
		}
	}
}

func TestDetectSOG(t *testing.T) {
	files := sogFiles(t, 3)
	for _, c := range []struct {
		name string
		head []byte
		want bool
	}{
		{"archive", zipOf(t, files, zip.Store), true}, {"meta.json", files[sogMetaName], true},
		{"other archive", zipOf(t, map[string][]byte{"a.txt": nil}, zip.Store), false},
		{"other JSON", []byte(`{"frames":[]}`), false}, {"nothing", nil, false}, {"cut", []byte("PK\x03\x04"), false},
	} {
		if got := detectSOG(c.head[:min(len(c.head), headBytes)]); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	for name, want := range map[string]*Format{"x/meta.json": sogFormat, "A.SOG": sogFormat, "sog": sogFormat,
		"a.sogx": nil} {
		if got := ByName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzSOG(f *testing.F) {
	files := sogFiles(f, 5)
	f.Add(zipOf(f, files, zip.Store))
	f.Add(zipOf(f, files, zip.Deflate))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readBytes(t, data)
		if err != nil {
			if !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
				t.Errorf("%v", err)
			}
			return
		}
		if s.N > sogFreeSplats+sogSplatsPerByte*len(data) {
			t.Errorf("%d bytes give %d splats", len(data), s.N)
		}
	})
}

// FuzzSOGMeta changes meta.json, the images as they are.
func FuzzSOGMeta(f *testing.F) {
	files := sogFiles(f, 5)
	f.Add(files[sogMetaName])
	f.Add([]byte(`{"means":{"shape":[5,3],"mins":[-1,-1,-1],"maxs":[1,1,3],"files":["means_l.webp","means_u.webp"]},"scales":{"mins":[-8,-7,-6],"maxs":[-2,-2,-2],"files":["scales.webp"]},` +
		`"quats":{"files":["quats.webp"]},"sh0":{"mins":[-1,-2,-3,-5],"maxs":[1,2,3,10],"files":["sh0.webp"]},"shN":{"mins":-0.5,"maxs":0.25,"files":["shN_centroids.webp","shN_labels.webp"]}}`))
	f.Fuzz(func(t *testing.T, meta []byte) {
		changed := maps.Clone(files)
		changed[sogMetaName] = meta
		s, err := readBytes(t, zipOf(t, changed, zip.Store))
		if err != nil {
			if !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
				t.Errorf("%v", err)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	})
}

func TestWebPOfOneColour(t *testing.T) {
	if pixels, err := decodeLossless(webpOf(t, 300, 200), 300, 200, 60000, 3); err != nil || len(pixels) != 180000 {
		t.Errorf("%d bytes, %v", len(pixels), err)
	}
}
