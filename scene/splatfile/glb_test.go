package splatfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// glbTolerance is what float32 and the change to lengths and opacities cost.
var glbTolerance = tolerance{quat: 1e-3, scale: 2e-6, opacity: 1e-7}

func TestGLBRoundTrip(t *testing.T) {
	for degree := range 4 {
		for _, n := range []int{1, 17, PieceSplats + 3} {
			want := madeModel(n, degree, "edges")
			meta := ply.Meta{Generator: "vksplat test"}
			path, lost := writeTemp(t, glb, "a.glb", want, meta, WriteOptions{})
			if len(lost) != 0 {
				t.Errorf("lost: %v", lost)
			}
			got, info := readModel(t, glb, path)
			if info.Meta.Generator != meta.Generator || info.Format != "glb" || len(info.Notes) > 0 {
				t.Errorf("info: %+v", info)
			}
			compareModels(t, got, want, glbTolerance)
			head, err := os.ReadFile(path)
			if err != nil || !glb.Detect(head) || len(head)%4 != 0 ||
				int(binary.LittleEndian.Uint32(head[8:])) != len(head) {
				t.Errorf("%d bytes, %v", len(head), err)
			}
		}
	}
	if ByName("A.GLB") != glb || ByName("glb") != glb || ByName("a.b.spz") != spz {
		t.Error("the formats are not found by name")
	}
	path, lost := writeTemp(t, glb, "a.glb", madeModel(2, 0, "edges"), ply.Meta{Comments: []string{"mine"}},
		WriteOptions{})
	if _, info := readModel(t, glb, path); len(lost) != 1 || len(info.Meta.Comments) > 0 {
		t.Errorf("lost %q, want a sentence about comments; read %+v", lost, info.Meta)
	}
}

// The file of one splat, read without the reader: glTF's axes are left, up, forward.
func TestGLBGolden(t *testing.T) {
	s := scene.NewSplats(1, 1)
	copy(s.Means, []float32{1, 2, 3})
	copy(s.Quats, []float32{4, 2, 2, 1})
	copy(s.LogScales, []float32{0, 1, -1})
	copy(s.SH, []float32{0.5, 0, -0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	path, _ := writeTemp(t, glb, "a.glb", s, ply.Meta{}, WriteOptions{})
	data := must.Get(os.ReadFile(path))(t)
	size := binary.LittleEndian.Uint32(data[12:])
	var root map[string]any
	must.Do(t, json.Unmarshal(data[20:20+size], &root))
	bin := data[28+size:]
	position := root["accessors"].([]any)[0].(map[string]any)
	want := []any{-1.0, -2.0, 3.0}
	for _, bound := range []string{"min", "max"} {
		for i, x := range position[bound].([]any) {
			if x != want[i] {
				t.Errorf("%s %v, want %v", bound, position[bound], want)
			}
		}
	}
	values := []float32{-1, -2, 3, -0.4, -0.4, 0.2, 0.8, 1, math.E, 1 / math.E, 0.5}
	// Degree 1 is -y, z, -x: its y and x coefficients change sign.
	values = append(append(values, 0), 0.5, 0, -0.5, -1, -2, -3, 4, 5, 6, -7, -8, -9)
	for i, want := range values {
		got := math.Float32frombits(binary.LittleEndian.Uint32(bin[4*i:]))
		if i == 11 {
			if color := [4]byte(bin[44:48]); color != [4]byte{163, 128, 92, 128} {
				t.Errorf("COLOR_0 %v", color)
			}
		} else if math.Abs(float64(got-want)) > 1e-6 {
			t.Errorf("number %d is %v, want %v", i, got, want)
		}
	}
	if len(bin) != 4*len(values) {
		t.Errorf("%d bytes, want %d", len(bin), 4*len(values))
	}
}

// glbFrom makes a file of JSON and binary data.
func glbFrom(text string, bin []byte) []byte {
	for len(text)%4 != 0 {
		text += " "
	}
	return append(glbHead([]byte(text), int64(len(bin))), bin...)
}

func openGLBBytes(data []byte) (Source, error) {
	return newGLBSource("a.glb", bytes.NewReader(data), int64(len(data)), io.NopCloser(nil))
}

// quantised is a file as a compressing writer would make it: interleaved rows, normalised integers, a node that moves
// the splats.
const quantised = `{"asset":{"version":"2.0"},"buffers":[{"byteLength":88}],
"bufferViews":[{"buffer":0,"byteOffset":4,"byteLength":80,"byteStride":40}],
"accessors":[{"bufferView":0,"componentType":5126,"count":2,"type":"VEC3"},
{"bufferView":0,"byteOffset":12,"componentType":5120,"normalized":true,"count":2,"type":"VEC4"},
{"bufferView":0,"byteOffset":16,"componentType":5123,"normalized":true,"count":2,"type":"VEC3"},
{"bufferView":0,"byteOffset":24,"componentType":5121,"normalized":true,"count":2,"type":"SCALAR"},
{"bufferView":0,"byteOffset":28,"componentType":5126,"count":2,"type":"VEC3"}],
"meshes":[{"primitives":[]},{"primitives":[{"mode":0,"attributes":{"POSITION":0,"KHR_gaussian_splatting:ROTATION":1,"KHR_gaussian_splatting:SCALE":2,
"KHR_gaussian_splatting:OPACITY":3,"KHR_gaussian_splatting:SH_DEGREE_0_COEF_0":4},"extensions":{"KHR_gaussian_splatting":{"kernel":"ellipse",
"colorSpace":"lin_rec709_display"}}}]}],"nodes":[{"mesh":1,"rotation":[1,0,0,0]},{"children":[0],"scale":[2,2,2],"translation":[10,20,30]}]}`

func quantisedData() []byte {
	bin := make([]byte, 88)
	for i := range 2 {
		row := bin[4+40*i:]
		for j, x := range []float32{1, 2, 3} {
			binary.LittleEndian.PutUint32(row[4*j:], math.Float32bits(x))
			binary.LittleEndian.PutUint32(row[28+4*j:], math.Float32bits(float32(i)+x))
		}
		copy(row[12:], []byte{0x81, 0, 0, 0}) // -127, 0, 0, 0
		binary.LittleEndian.PutUint16(row[16:], 0x8000)
		row[24] = 51
	}
	return bin
}

func TestGLBQuantised(t *testing.T) {
	m := must.Get(openGLBBytes(glbFrom(quantised, quantisedData())))(t)
	s := must.Get(All(m))(t)
	// 1, 2, 3 turned about x, twice as large and moved is 12, 16, 24 in glTF's axes.
	if s.N != 2 || [3]float32(s.Means[3:]) != [3]float32{-12, -16, 24} || s.Quats[4] != 1 && s.Quats[4] != -1 ||
		s.SH[3] != 2 ||
		math.Abs(float64(s.LogScales[0])-math.Log(2*float64(0x8000)/65535)) > 1e-6 ||
		math.Abs(float64(s.LogScales[1])+ply.InfiniteLog-math.Ln2) > 1e-6 ||
		math.Abs(sigmoid(s.LogitOpacities[1])-0.2) > 1e-6 {
		t.Errorf("%+v", s)
	}
	if len(m.Info().Notes) != 1 || !strings.Contains(m.Info().Notes[0], "lin_rec709_display") {
		t.Errorf("notes %q", m.Info().Notes)
	}
}

// Nodes may turn splats by any angle.
func TestGLBTurned(t *testing.T) {
	m, err := openGLBBytes(glbFrom(strings.Replace(quantised, `"rotation":[1,0,0,0]`, `"rotation":[0.6,0,0,0.8]`, 1),
		quantisedData()))
	if err != nil {
		t.Fatal(err)
	}
	s := must.Get(All(m))(t)
	// 1, 2, 3 turned about x with cosine 0.28 and sine 0.96, twice as large and moved; the rotation's -x becomes (0.8 +
	// 0.6 x) times it. glTF's x is -x here.
	for i, want := range []float64{-12, -15.36, 35.52, 0.6, 0.8, 0, 0} {
		if got := append(s.Means[:3:3], s.Quats[:4]...)[i]; math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("number %d of mean and rotation is %v, want %v", i, got, want)
		}
	}
}

// SPZ within GLB has SPZ's axes.
func TestGLBWithSPZ(t *testing.T) {
	want := cut(madeModel(30, 2, "edges"))
	path, _ := writeTemp(t, spz, "a.spz", want, ply.Meta{Antialiased: true}, WriteOptions{})
	packed := must.Get(os.ReadFile(path))(t)
	length := must.Get(json.Marshal(len(packed)))(t)
	text := strings.ReplaceAll(
		`{"asset":{"version":"2.0","generator":"g"},"extensionsUsed":["KHR_gaussian_splatting"],"buffers":[{"byteLength":LEN}],"bufferViews":[{"buffer":0,"byteLength":LEN}],
"meshes":[{"primitives":[{"mode":0,"attributes":{},"extensions":{"KHR_gaussian_splatting":{"kernel":"ellipse","colorSpace":"srgb_rec709_display",
"extensions":{"KHR_gaussian_splatting_compression_spz_2":{"bufferView":0}}}}}]}]}`, "LEN", string(length))
	for len(packed)%4 != 0 {
		packed = append(packed, 0)
	}
	m := must.Get(openGLBBytes(glbFrom(text, packed)))(t)
	got := must.Get(All(m))(t)
	compareModels(t, got, want, spzTolerance(12))
	if info := m.Info(); info.Format != "glb" || !info.Meta.Antialiased || info.Meta.Generator != "g" {
		t.Errorf("%+v", info)
	}
}

func TestGLBWriteRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.glb")
	nan, big := madeModel(5, 1, "edges"), madeModel(5, 1, "edges")
	nan.Means[10] = float32(math.NaN())
	big.LogScales[7] = 100
	for want, model := range map[string]Source{
		"splat 3": Memory(nan, ply.Meta{}), "splat 2": Memory(big, ply.Meta{}),
		"without splats": Memory(scene.NewSplats(0, 0), ply.Meta{}),
		"4 GiB":          claimed{Memory(madeModel(1, 3, "edges"), ply.Meta{})},
	} {
		_, err := glb.Write(path, model, WriteOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// claimed is a model that is too large for a file.
type claimed struct{ Gatherer }

func (claimed) Info() Info { return Info{N: 20_000_000, Degree: 3} }

// badGLBs are damaged or hostile files and what the error must say.
func badGLBs() map[string][]byte {
	change := func(old, new string) []byte { return glbFrom(strings.Replace(quantised, old, new, 1), quantisedData()) }
	patch := func(at int, b byte) []byte {
		data := glbFrom(quantised, quantisedData())
		data[at] = b
		return data
	}
	number := func(at int, x float32) []byte {
		bin := quantisedData()
		binary.LittleEndian.PutUint32(bin[at:], math.Float32bits(x))
		return glbFrom(strings.Replace(quantised, `"byteOffset":16,"componentType":5123,"normalized":true`,
			`"byteOffset":28,"componentType":5126`, 1), bin)
	}
	return map[string][]byte{
		"not binary glTF":    []byte("glTF"),
		"version 3":          patch(4, 3),
		"the header claims":  patch(11, 9),
		"first chunk claims": patch(15, 9),
		"second chunk":       patch(len(glbFrom(quantised, nil))-7, 9),
		"invalid character":  change(`"asset"`, `asset`),
		"whole number":       change(`"count":2`, `"count":"2"`),
		"no mesh has":        change(`"KHR_gaussian_splatting":{`, `"other":{`),
		"requires the extension X_compression": change(`"buffers":`,
			`"extensionsRequired":["KHR_gaussian_splatting","X_compression"],"buffers":`),
		"more than one": change(`{"primitives":[]}`,
			`{"primitives":[{"extensions":{"KHR_gaussian_splatting":{}}}]}`),
		"no attribute POSITION":       change(`"POSITION":0`, `"P":0`),
		"no attribute KHR_gaussian":   change(`ting:SH_DEGREE_0_COEF_0":4`, `ting:SH_DEGREE_1_COEF_0":4`),
		"no accessor 77":              change(`"POSITION":0`, `"POSITION":77`),
		"no accessor -1":              change(`"POSITION":0`, `"POSITION":-1`),
		"rows, POSITION has":          change(`"count":2`, `"count":1`),
		"claims 9000000000000000000":  change(`"count":2`, `"count":9000000000000000000`),
		"claims -5":                   change(`"count":2`, `"count":-5`),
		"of component type 5125":      change(`5126`, `5125`),
		"sparse":                      change(`"count":2`, `"count":2,"sparse":{}`),
		"no buffer view 3":            change(`"bufferView":0`, `"bufferView":3`),
		"no buffer 1":                 change(`"buffer":0`, `"buffer":1`),
		"not in the file":             change(`"byteLength":88`, `"byteLength":88,"uri":"x.bin"`),
		"claims 800 bytes":            change(`"byteLength":80`, `"byteLength":800`),
		"bytes from -4":               change(`"byteOffset":4`, `"byteOffset":-4`),
		"follow each other after 253": change(`"byteStride":40`, `"byteStride":253`),
		"follow each other after 8":   change(`"byteStride":40`, `"byteStride":8`),
		"its rotation is":             change(`"rotation":[1,0,0,0]`, `"rotation":[0,0,0,0]`),
		"mirrors or flattens":         change(`"scale":[2,2,2]`, `"scale":[-2,2,2]`),
		"stretches one direction":     change(`"scale":[2,2,2]`, `"scale":[2,2,1]`),
		"matrix has 1":                change(`"scale":[2,2,2]`, `"matrix":[2]`),
		"3 numbers instead of 4":      change(`"rotation":[1,0,0,0]`, `"rotation":[1,0,0]`),
		"placed more than once":       change(`"nodes":[`, `"nodes":[{"mesh":1},`),
		"two parents":                 change(`"children":[0]`, `"children":[0,0]`),
		"form a cycle":                change(`"mesh":1,`, `"mesh":1,"children":[1],`),
		"logarithms":                  number(32, -2),
		"the opacity is": change(`"byteOffset":24,"componentType":5121,"normalized":true`,
			`"byteOffset":24,"componentType":5121`),
		"it is not an SPZ": change(`"kernel":"ellipse"`,
			`"extensions":{"KHR_gaussian_splatting_compression_spz_2":{"bufferView":0}}`),
	}
}

func TestGLBReadRefuses(t *testing.T) {
	bad := badGLBs()
	const spz = "it is not an SPZ" // a node that moves SPZ is refused before
	bad[spz] = bytes.Replace(bad[spz], []byte(`"mesh":1,`), []byte(`"n":1,   `), 1)
	refusesAll(t, "a.glb", bad, openGLBBytes, 16<<20)
}

// refusesAll wants a reader to refuse each file with the error under which it is listed, before much is allocated.
func refusesAll[S Source](t *testing.T, name string, bad map[string][]byte, open func([]byte) (S, error), most uint64) {
	t.Helper()
	allocated := filetest.Allocated()
	for want, data := range bad {
		m, err := open(data)
		if err == nil {
			_, err = All(m)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.ErrData) ||
			fault.Hint(err) == "" || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, hint %q, want %q", err, fault.Hint(err), want)
		}
	}
	if used := allocated(); used > most {
		t.Errorf("%d bytes allocated for a handful of small files", used)
	}
}

func FuzzGLB(f *testing.F) {
	for _, data := range badGLBs() {
		f.Add(data)
	}
	f.Add(glbFrom(quantised, quantisedData()))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := openGLBBytes(data)
		if err == nil {
			n := 0
			err = m.Read(func(piece *scene.Splats) error { n += piece.N; return nil })
			_, plain := m.(*glbSource)
			if err == nil && n != m.Info().N || plain && n > len(data) {
				t.Errorf("%d splats of %d in %d bytes", n, m.Info().N, len(data))
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		if err != nil && !errors.Is(err, fault.ErrData) {
			t.Errorf("error of no kind: %v", err)
		}
	})
}
