package splatfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// worstErrors are the greatest errors of a model that was read. Of compressed PLY: of positions, logarithms of scales
// and colours in parts of the range of their chunk, of opacity, components of rotations, and higher coefficients.
type worstErrors map[string]float64

func (w worstErrors) add(what string, e float64) { w[what] = max(w[what], e) }

// checkPacked compares splats that were read with those that were written, splat i of which is number order[i] of want.
func checkPacked(t *testing.T, got, want *scene.Splats, order []uint32, worst worstErrors) {
	t.Helper()
	if got.N != len(order) || got.Degree != want.Degree {
		t.Fatalf("%d splats of degree %d, want %d of %d", got.N, got.Degree, len(order), want.Degree)
	}
	for lo := 0; lo < got.N; lo += packedChunk {
		part := got.Slice(lo, min(lo+packedChunk, got.N))
		from := scene.NewSplats(part.N, want.Degree)
		must.Do(t, Memory(want, ply.Meta{}).Gather(order[lo:lo+part.N], from))
		checkChunk(t, part, from, worst)
	}
}

// checkChunk compares the splats of one chunk.
func checkChunk(t *testing.T, got, want *scene.Splats, worst worstErrors) {
	t.Helper()
	k := 3 * want.K()
	part := func(what string, axis, levels, stride int, a, b []float32, value func(x float32) float64) {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range want.N {
			x := value(b[stride*i+axis])
			low, high = min(low, x), max(high, x)
		}
		// float32 numbers of the ends' size have steps of their own.
		bound := 0.5*(high-low)/float64(levels)*1.0001 + 3e-7*max(math.Abs(low), math.Abs(high))
		for i := range want.N {
			x := value(b[stride*i+axis])
			near(t, fmt.Sprint(what, axis), i, value(a[stride*i+axis]), x, bound)
			if high > low {
				worst.add(what, math.Abs(value(a[stride*i+axis])-x)/(high-low))
			}
		}
	}
	for axis := range 3 {
		levels := []int{2047, 1023, 2047}[axis]
		part("position", axis, levels, 3, got.Means, want.Means, func(x float32) float64 { return float64(x) })
		part("scale", axis, levels, 3, got.LogScales, want.LogScales, func(x float32) float64 {
			return min(max(float64(x), -packedLog), packedLog)
		})
		part("colour", axis, 255, k, got.SH, want.SH, colorOf)
	}
	for i := range want.N {
		opacity := math.Abs(sigmoid(got.LogitOpacities[i]) - sigmoid(want.LogitOpacities[i]))
		near(t, "opacity", i, opacity, 0, 0.5/255+1e-6)
		// The three smallest are half a step of sqrt(2)/1023 off at most, the largest, which is 0.5 or more, as much as
		// they together.
		quat := quatError(got.Quats[4*i:4*i+4], want.Quats[4*i:4*i+4])
		near(t, "rotation", i, quat, 0, 3*math.Sqrt2/2/1023+1e-6)
		worst.add("opacity", opacity)
		worst.add("rotation", quat)
		for j := 3; j < k; j++ {
			x := min(max(float64(want.SH[k*i+j]), -4), 4)
			bound := 1.0 / 64
			if math.Abs(x) > 4-1.0/32 {
				bound = 1.0 / 32
			}
			near(t, "sh", i, float64(got.SH[k*i+j]), x, bound)
			worst.add("sh", math.Abs(float64(got.SH[k*i+j])-x))
		}
	}
}

func TestCompressedPLY(t *testing.T) {
	worst := worstErrors{}
	meta := ply.Meta{Generator: "something 1", Step: 7, Seed: 3, Origin: &[3]float64{1, 2, 3}, Antialiased: true,
		Vertical: "y", Comments: []string{"more"}}
	for _, kind := range []string{"spread", "point", "huge"} {
		for _, n := range []int{0, 1, 255, 256, 257, 2500} {
			for degree := range scene.MaxSHDegree + 1 {
				s := madeModel(n, degree, kind)
				once, info, lost := written(t, compressedPLY, s, meta, WriteOptions{Generator: "vksplat test"})
				order := must.Get(mortonOrder(Memory(s, meta)))(t)
				checkPacked(t, once, s, order, worst)
				if told := strings.Contains(fmt.Sprint(lost),
					"scales outside"); told != slices.ContainsFunc(s.LogScales,
					func(x float32) bool { return x < -20 || x > 20 }) {
					t.Errorf("%s, %d splats: told of %q", kind, n, lost)
				}
				want := meta
				if want.Generator = "vksplat test"; !reflect.DeepEqual(info.Meta, want) || len(info.Notes) > 0 {
					t.Errorf("%+v, %q, want %+v", info.Meta, info.Notes, want)
				}
				twice, info, lost := written(t, compressedPLY, once, info.Meta, WriteOptions{})
				order = must.Get(mortonOrder(Memory(once, meta)))(t)
				checkPacked(t, twice, once, order, worstErrors{})
				if len(lost) != 0 || info.Meta.Generator != "vksplat test" {
					t.Errorf("a model from compressed PLY loses %q, made by %q", lost, info.Meta.Generator)
				}
			}
		}
	}
	t.Logf("greatest errors: %v", worst)
}

// TestCompressedPLYBytes fixes the words, by hand.
func TestCompressedPLYBytes(t *testing.T) {
	s := scene.NewSplats(3, 1)
	copy(s.Means, []float32{0, 0, 0, 1, 2, 3, 1, 1, 3})
	copy(s.LogScales, []float32{-1, -2, -3, 0, 0, 0, -1, -2, -3})
	copy(s.Quats, []float32{1, 0, 0, 0, 0, 0, -1, 1e-3, 1, 1, 0, 0})
	copy(s.LogitOpacities, []float32{-50, 0, 50})
	for i, x := range []float32{0, 1, 2, -4, 4, 100, -100, 1.0 / 64, -1.0 / 64} {
		s.SH[3+i] = x
	}
	path := filepath.Join(t.TempDir(), "a.ply")
	must.Get(compressedPLY.Write(path, Memory(s, ply.Meta{}), WriteOptions{}))(t)
	data := must.Get(os.ReadFile(path))(t)
	_, body, _ := bytes.Cut(data, []byte("end_header\n"))
	if len(body) != 4*18+3*(16+9) || !compressedPLY.Detect(data) {
		t.Fatalf("%d bytes, or not detected", len(body))
	}
	order, _ := mortonOrder(Memory(s, ply.Meta{})) // cannot fail
	if !slices.Equal(order, []uint32{0, 2, 1}) {
		t.Fatal(order)
	}
	for i, want := range []float32{0, 0, 0, 1, 2, 3, -1, -2, -3, 0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5} {
		if got := floatAt(body, i); got != want {
			t.Errorf("bound %d is %v, want %v", i, got, want)
		}
	}
	words := []uint32{
		0, 0<<30 | 512<<20 | 512<<10 | 512, 0, 0,
		2047<<21 | 512<<11 | 2047, 0<<30 | 1023<<20 | 512<<10 | 512, 0, 255,
		2047<<21 | 1023<<11 | 2047, 2<<30 | 512<<20 | 512<<10 | 511, 2047<<21 | 1023<<11 | 2047, 128,
	}
	for i, want := range words {
		if got := binary.LittleEndian.Uint32(body[72+4*i:]); got != want {
			t.Errorf("word %d is %#x, want %#x", i, got, want)
		}
	}
	// Channel by channel: coefficients 1 to 3 of red, of green, of blue.
	if sh := body[72+48 : 72+48+9]; !bytes.Equal(sh, []byte{128, 0, 0, 160, 255, 128, 192, 255, 127}) {
		t.Errorf("sh %v", sh)
	}
}

// packedFile makes a file with a header of lines and a body of zeros.
func packedFile(body int, lines ...string) []byte {
	return append([]byte("ply\nformat binary_little_endian 1.0\n"+strings.Join(lines, "\n")+"\nend_header\n"),
		make([]byte, body)...)
}

// packedLines are the elements chunk and vertex of a header.
func packedLines(chunks, splats, bounds int) []string {
	lines := []string{fmt.Sprint("element chunk ", chunks)}
	for _, name := range packedBounds[:bounds] {
		lines = append(lines, "property float "+name)
	}
	lines = append(lines, fmt.Sprint("element vertex ", splats))
	for _, name := range packedWords {
		lines = append(lines, "property uint "+name)
	}
	return lines
}

// TestCompressedPLYOld reads a file without bounds of colours, with things in it that nobody knows.
func TestCompressedPLYOld(t *testing.T) {
	lines := append(packedLines(1, 1, 12), "property float more", "element other 1", "property int x")
	data := packedFile(0, lines...)
	for i := range 12 {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)))
	}
	for _, word := range []uint32{2047 << 21, 3 << 30, 2047, 51<<24 | 102<<16 | 255<<8 | 255, 9, 9} {
		data = binary.LittleEndian.AppendUint32(data, word)
	}
	path := filepath.Join(t.TempDir(), "old.ply")
	must.Do(t, os.WriteFile(path, data, 0o600))
	s, info := readModel(t, compressedPLY, path)
	if !slices.Equal(s.Means, []float32{3, 1, 2}) || !slices.Equal(s.LogScales, []float32{6, 7, 11}) ||
		s.LogitOpacities[0] != ply.InfiniteLog ||
		!slices.Equal(s.SH, []float32{byteColors[51], byteColors[102], byteColors[255]}) || s.Quats[0] != s.Quats[2] ||
		s.Quats[3] != 0 {
		t.Errorf("%+v", s)
	}
	if want := []string{"property more of element vertex is not read",
		"property x of element other is not read"}; !slices.Equal(info.Notes, want) {
		t.Errorf("notes %q", info.Notes)
	}
}

func TestCompressedPLYRefused(t *testing.T) {
	sh := []string{"element sh 256", "property uchar f_rest_0"}
	for what, data := range map[string][]byte{
		"nothing":         nil,
		"no PLY":          []byte("plx\n"),
		"no header's end": []byte("ply\nformat binary_little_endian 1.0\nelement chunk 1\n"),
		"ascii": bytes.Replace(packedFile(4096+72, packedLines(1, 256, 18)...),
			[]byte("binary_little_endian"), []byte("ascii"), 1),
		"a splat too many": packedFile(72+256*16, packedLines(1, 257, 18)...),
		"one chunk short":  packedFile(72+257*16, packedLines(1, 257, 18)...),
		"many chunks":      packedFile(100, packedLines(1<<40, 1, 18)...),
		"many splats":      packedFile(100, packedLines(1, math.MaxInt64, 18)...),
		"17 bounds":        packedFile(68+16, packedLines(1, 1, 17)...),
		"no bounds":        packedFile(16+16, packedLines(1, 1, 4)...),
		"no chunks":        packedFile(16, packedLines(0, 1, 18)[19:]...),
		"a list":           packedFile(72+20, append(packedLines(1, 1, 18), "property list uint uint more")...),
		"an odd degree":    packedFile(72+257*16, append(packedLines(1, 256, 18), sh...)...),
		"sh for some":      packedFile(72+16*257, append(packedLines(2, 257, 18), sh...)...),
		"no rows":          packedFile(72+16, append(packedLines(1, 1, 18), "element empty 99999999999")...),
		"a plain PLY": packedFile(12, "element vertex 1", "property float x", "property float y",
			"property float z"),
	} {
		refused(t, compressedPLY, what, data)
	}
}

// TestCompressedPLYForeign compares a file of another program with the model that it was made of, which is in another
// order.
func TestCompressedPLYForeign(t *testing.T) {
	got, info := readModel(t, compressedPLY, foreignSplats(t, "converted_by_splat-transform/playbot6.compressed.ply"))
	want, _, err := ply.Read(foreignSplats(t, "converted_by_splat-transform/playbot6.ply"))
	if err != nil || got.Degree != 2 || got.N != want.N || !strings.HasPrefix(info.Meta.Generator, "splat-transform") {
		t.Fatalf("%+v, %v", info, err)
	}
	order, taken := make([]uint32, got.N), make([]bool, got.N)
	for i := range order {
		best := math.Inf(1)
		for j := range want.N {
			far := 0.0
			for axis := range 3 {
				far += math.Abs(float64(got.Means[3*i+axis])-float64(want.Means[3*j+axis])) +
					0.1*math.Abs(float64(got.LogScales[3*i+axis])-float64(want.LogScales[3*j+axis]))
			}
			if !taken[j] && far < best {
				best, order[i] = far, uint32(j)
			}
		}
		taken[order[i]] = true
	}
	worst := worstErrors{}
	checkPacked(t, got, want, order, worst)
	t.Logf("greatest errors: %v", worst)
	for _, name := range []string{"biker", "guitar"} {
		s, _ := readModel(t, compressedPLY, foreignSplats(t, "playcanvas-engine/"+name+".compressed.ply"))
		if err := s.Validate(); err != nil || s.N < 90000 {
			t.Errorf("%s: %d splats, %v", name, s.N, err)
		}
	}
}

func FuzzCompressedPLY(f *testing.F) {
	f.Add(packedFile(72+32+18,
		append(packedLines(1, 2, 18), "element sh 2", "property uchar f_rest_0", "property uchar f_rest_1",
			"property uchar f_rest_2",
			"property uchar f_rest_3", "property uchar f_rest_4", "property uchar f_rest_5", "property uchar f_rest_6",
			"property uchar f_rest_7", "property uchar f_rest_8")...))
	f.Add(packedFile(48+16, packedLines(1, 1, 12)...))
	f.Add(packedFile(64, packedLines(1, 2, 18)...))
	fuzzReader(f, compressedPLY)
}

// TestPackedSky: a far shell costs no splat of the scene its place but those that share a chunk with it, which are the
// faintest. A model without one is in Z-order.
func TestPackedSky(t *testing.T) {
	const near, sky = 1000, 300
	r := rand.New(rand.NewPCG(3, 4))
	s := scene.NewSplats(near+sky, 0)
	isSky := func(i int) bool { return i%13 < 3 }
	for i := range s.N {
		m := s.Means[3*i : 3*i+3]
		for k := range m {
			m[k] = float32(r.NormFloat64())
		}
		if isSky(i) {
			length := math.Sqrt(float64(m[0]*m[0] + m[1]*m[1] + m[2]*m[2]))
			for k := range m {
				m[k] *= float32(500 / length)
			}
		}
		s.Quats[4*i], s.LogitOpacities[i] = 1, float32(r.NormFloat64())
	}
	order := must.Get(packedOrder(Memory(s, ply.Meta{})))(t)
	path := filepath.Join(t.TempDir(), "m.compressed.ply")
	must.Get(compressedPLY.Write(path, Memory(s, ply.Meta{}), WriteOptions{}))(t)
	got, _ := readModel(t, compressedPLY, path)
	var logits, lost []float32 // of the scene, and of its splats that are elsewhere
	found := make([]bool, s.N)
	for k, id := range order {
		if found[id] {
			t.Fatalf("splat %d comes twice", id)
		}
		found[id] = true
		if isSky(int(id)) {
			continue
		}
		off := 0.0
		for axis := range 3 {
			off = max(off, math.Abs(float64(got.Means[3*k+axis]-s.Means[3*int(id)+axis])))
		}
		logits = append(logits, s.LogitOpacities[id])
		if off > 0.005 {
			lost = append(lost, s.LogitOpacities[id])
		}
	}
	slices.Sort(logits)
	if few := near % packedChunk; len(lost) == 0 || len(lost) > few || slices.Max(lost) > logits[few-1] {
		t.Errorf("%d splats are elsewhere, of logits up to %g; the %d faintest are allowed to, up to %g", len(lost),
			slices.Max(append(lost, -99)), few, logits[few-1])
	}
	var rest []int
	for i := range s.N {
		if !isSky(i) {
			rest = append(rest, i)
		}
	}
	plainModel := Memory(s.Take(rest), ply.Meta{})
	plain := must.Get(mortonOrder(plainModel))(t)
	if packed, err := packedOrder(plainModel); err != nil || !slices.Equal(packed, plain) {
		t.Errorf("without a sky the order is another, error %v", err)
	}
}
