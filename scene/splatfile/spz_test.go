package splatfile

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// spzTolerance is half a step of every value, and what float32 adds.
func spzTolerance(bits int) tolerance {
	return tolerance{mean: math.Ldexp(0.50001, -bits), quat: 0.0025, scale: 0.5001 / 16, opacity: 0.5001 / 255,
		dc:  0.5001 / 255 / 0.15,
		sh1: 4.501 / 128, sh: 8.501 / 128}
}

func TestSPZRoundTrip(t *testing.T) {
	for _, version := range []int{0, 3, 4} {
		for degree := range 4 {
			for _, n := range []int{0, 1, 17, PieceSplats + 3} {
				if n > 17 && (degree != 3 || version == 0) {
					continue
				}
				want := cut(madeModel(n, degree, "edges"))
				meta := ply.Meta{Antialiased: n == 17}
				path, lost := writeTemp(t, spz, "a.spz", want, meta, WriteOptions{Version: version})
				if len(lost) != 0 {
					t.Errorf("lost: %v", lost)
				}
				got, info := readModel(t, spz, path)
				if info.Meta.Antialiased != meta.Antialiased || info.Format != "spz" {
					t.Errorf("info: %+v", info)
				}
				worst := compareModels(t, got, want, spzTolerance(12))
				if n > 17 && degree == 3 {
					t.Logf("version %d: largest errors %+v", version, worst)
				}
				head, err := os.ReadFile(path)
				if err != nil || !spz.Detect(head[:min(len(head), headBytes)]) {
					t.Errorf("not detected: %v", err)
				}
				// What was read is on the steps of the format: written again, it comes back as it is.
				path, _ = writeTemp(t, spz, "b.spz", got, meta, WriteOptions{Version: version})
				again, _ := readModel(t, spz, path)
				compareModels(t, again, got, tolerance{quat: 1e-3, opacity: 1e-6})
			}
		}
	}
}

// Planes larger than any window of a small frame.
func TestSPZLarge(t *testing.T) {
	want := madeModel(300_000, 0, "edges")
	for _, version := range []int{3, 4} {
		path, _ := writeTemp(t, spz, "a.spz", want, ply.Meta{}, WriteOptions{Version: version})
		got, _ := readModel(t, spz, path)
		compareModels(t, got, cut(want), spzTolerance(12))
	}
}

// Writing must give the same bytes through memory and through temporary files.
func TestPlanesInFile(t *testing.T) {
	want := madeModel(1000, 3, "edges")
	for _, version := range []int{3, 4} {
		var files [2][]byte
		for i, limit := range []int64{planesInMemory, 1000} {
			p := newPlanes(want.N, spzHeader{version: version, degree: 3}.widths(), limit, t.TempDir())
			must.Get(packModel(Memory(want, ply.Meta{}), 12, p))(t)
			var b bytes.Buffer
			must.Do(t, writePlanes(&b, spzHeader{version: version, n: want.N, degree: 3, bits: 12}, p))
			if (p.file != nil) != (i == 1) {
				t.Error("the planes are not where they should be")
			}
			files[i] = b.Bytes()
			must.Do(t, p.close())
			if left, err := os.ReadDir(p.dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("version %d: the bytes depend on where the planes are", version)
		}
	}
}

func TestSPZPositions(t *testing.T) {
	for _, c := range []struct {
		farthest float32
		bits     int
		lost     bool
	}{{0, 12, false}, {1e-4, 23, false}, {0.5, 14, false}, {1, 13, false}, {15, 12, false}, {2047.9, 12, false},
		{2048, 11, true},
		{2047.9999, 11, true}, {500000, 4, true}} {
		s := madeModel(3, 0, "edges")
		copy(s.Means, []float32{c.farthest, -c.farthest, 0, 0, 0, 0, c.farthest / 3, 0, 0})
		bits, err := spzBitsFor(float64(c.farthest))
		if err != nil || bits != c.bits {
			t.Errorf("%v: %d bits, %v, want %d", c.farthest, bits, err, c.bits)
		}
		path, lost := writeTemp(t, spz, "a.spz", s, ply.Meta{}, WriteOptions{})
		if (len(lost) > 0) != c.lost {
			t.Errorf("%v: lost %v", c.farthest, lost)
		}
		got, _ := readModel(t, spz, path)
		compareModels(t, got, s, spzTolerance(c.bits))
	}
}

func TestSPZWriteRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.spz")
	nan, inf, far, still := madeModel(5, 1, "edges"), madeModel(5, 1, "edges"), madeModel(5, 1, "edges"),
		madeModel(5, 1, "edges")
	nan.SH[3*4*3+5] = float32(math.NaN())
	inf.LogScales[12] = float32(math.Inf(1))
	far.Means[7] = 600000
	copy(still.Quats[8:], []float32{0, 0, 0, 0})
	for want, s := range map[string]*scene.Splats{"splat 3": nan, "splat 4": inf, "600000": far, "splat 2": still} {
		_, err := spz.Write(path, Memory(s, ply.Meta{}), WriteOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) ||
			fault.Hint(err) == "" {
			t.Errorf("error %v, want %s", err, want)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	if _, err := spz.Write(path, Memory(madeModel(1, 0, "edges"), ply.Meta{}),
		WriteOptions{Version: 2}); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("version 2: %v", err)
	}
	if _, err := createTemp(filepath.Join(t.TempDir(), "none"), 0); !errors.Is(writeError("write spz", path, err),
		fault.ErrTryAgain) {
		t.Errorf("no folder for temporary files: %v", err)
	}
	origin := [3]float64{1, 2, 3}
	wild := madeModel(9, 1, "edges")
	wild.SH[0], wild.SH[5], wild.LogScales[4] = 9, 2, -20
	if _, lost := writeTemp(t, spz, "a.spz", wild, ply.Meta{Origin: &origin}, WriteOptions{}); len(lost) != 4 {
		t.Errorf("lost %q, want 4 sentences", lost)
	}
}

// spzFile is a file of a version made here, byte by byte, without the writer: planes as given.
func spzFile(version, n uint32, degree, bits, flags byte, planes ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("NGSP"), version)
	b = binary.LittleEndian.AppendUint32(b, n)
	b = append(b, degree, bits, flags, 0)
	for _, p := range planes {
		b = append(b, p...)
	}
	return b
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	must.Get(z.Write(b))(t)
	must.Do(t, z.Close())
	return out.Bytes()
}

func openBytes(data []byte) (*spzSource, error) {
	return newSPZSource("a.spz", bytes.NewReader(data), int64(len(data)), io.NopCloser(nil))
}

// One splat of every version that is one gzip stream, its bytes written out.
func TestSPZGolden(t *testing.T) {
	rest := []byte{128, 255, 128, 0, 160, 159, 144, 64}
	frame := binary.LittleEndian.AppendUint32([]byte{3, 0, 0xbe, 0xad, 4, 0, 0, 0}, 7)
	for name, c := range map[string]struct {
		data []byte
		mean [3]float32
		quat [4]float64
	}{
		"1": {gzipped(t, spzFile(1, 1, 0, 0, 0, []byte{0, 0x3c, 0, 0xc0, 1, 0}, rest[:7], []byte{255, 128, 128})),
			[3]float32{1, 2, -1.0 / (1 << 24)}, [4]float64{0, 1, -0.004, -0.004}},
		"2": {gzipped(t,
			spzFile(2, 1, 0, 1, 1, []byte{3, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0x80}, rest[:7], []byte{255, 128, 128})),
			[3]float32{1.5, 0.5, 1 << 22}, [4]float64{0, 1, -0.004, -0.004}},
		"raw": {spzFile(2, 1, 0, 1, 1, []byte{3, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0x80}, rest[:7],
			[]byte{255, 128, 128}), [3]float32{1.5, 0.5, 1 << 22}, [4]float64{0, 1, -0.004, -0.004}},
		"3": {gzipped(t,
			spzFile(3, 1, 0, 0, 0, []byte{2, 0, 0, 3, 0, 0, 4, 0, 0}, rest[:7], []byte{0xff, 3, 0, 0xc0})),
			[3]float32{2, -3, -4}, [4]float64{math.Sqrt(0.5), 0, 0, math.Sqrt(0.5)}},
		"its own": {gzipped(t,
			spzFile(3, 1, 0, 0, 2, []byte{2, 0, 0, 3, 0, 0, 4, 0, 0}, rest[:7], []byte{0xff, 3, 0, 0xc0}, frame)),
			[3]float32{-2, -3, 4}, [4]float64{math.Sqrt(0.5), 0, 0, -math.Sqrt(0.5)}},
	} {
		m, err := openBytes(c.data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s, err := All(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		q := direction(s.Quats)
		for i := range q {
			if math.Abs(q[i]-c.quat[i]) > 0.001 {
				t.Errorf("%s: rotation %v, want %v", name, q, c.quat)
			}
		}
		if [3]float32(s.Means) != c.mean || [3]float32(s.LogScales) != [3]float32{0, -0.0625, -1} ||
			math.Abs(float64(s.LogitOpacities[0])-0.00784) > 1e-4 ||
			math.Abs(float64(s.SH[0])-3.3333) > 1e-4 || m.Info().Meta.Antialiased != (m.head.flags&1 != 0) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Degree 4 has 24 coefficients a channel; models take the first 15 and say so. Records that are not known are told of
// too.
func TestSPZDegree4(t *testing.T) {
	const n = 2
	sh := make([]byte, n*72)
	for i := range sh {
		sh[i] = byte(i)
	}
	orbit := append([]byte{2, 0, 0xbe, 0xad, 12, 0, 0, 0}, make([]byte, 12)...)
	m := must.Get(openBytes(gzipped(t, spzFile(3, n, 4, 12, 2, make([]byte, n*20), sh, orbit))))(t)
	s := must.Get(All(m))(t)
	// The second splat's coefficients 1 (y, whose sign changes) and 15 (x, whose sign does not).
	if s.Degree != 3 || s.SH[48+3] != -(72.0-128)/128 || s.SH[48+45] != (72.0+42-128)/128 || len(m.Info().Notes) != 2 {
		t.Errorf("degree %d, %v, %v, notes %q", s.Degree, s.SH[51], s.SH[93], m.Info().Notes)
	}
}

// csvModel reads a table that an independent converter made.
func csvModel(t *testing.T, path string) *scene.Splats {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%s: %d rows, %v", path, len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[strings.TrimSpace(name)] = i
	}
	rests := 0
	for ; ; rests++ {
		if _, ok := column[fmt.Sprintf("f_rest_%d", rests)]; !ok {
			break
		}
	}
	degree := map[int]int{0: 0, 9: 1, 24: 2, 45: 3}[rests]
	s := scene.NewSplats(len(rows)-1, degree)
	k := s.K()
	for i, row := range rows[1:] {
		value := func(format string, args ...any) float32 {
			x := must.Get(strconv.ParseFloat(row[column[fmt.Sprintf(format, args...)]], 32))(t)
			return float32(x)
		}
		for c, axis := range []string{"x", "y", "z"} {
			s.Means[3*i+c] = value("%s", axis)
			s.LogScales[3*i+c] = value("scale_%d", c)
			s.SH[3*k*i+c] = value("f_dc_%d", c)
			for j := 1; j < k; j++ {
				s.SH[3*(k*i+j)+c] = value("f_rest_%d", c*(k-1)+j-1)
			}
		}
		for c := range 4 {
			s.Quats[4*i+c] = value("rot_%d", c)
		}
		s.LogitOpacities[i] = value("opacity")
	}
	return s
}

// sameReading is the tolerance between two programs that read the same bytes: they differ in what they make of the
// opacities 0 and 1 (see unpackSPZ).
var sameReading = tolerance{mean: 1e-6, quat: 0.001, scale: 1e-6, opacity: 0.26 / 255, dc: 1e-5, sh1: 1e-6, sh: 1e-6}

// The tables were made by splat-transform before version 3, which turned SPZ's axes to those of PLY.
func TestSPZForeign(t *testing.T) {
	for file, table := range map[string]string{
		"splat-transform/minimal-v2.spz": "minimal-v2.spz.csv", "splat-transform/minimal-v3.spz": "minimal-v3.spz.csv",
		"splat-transform/minimal-v4.spz":   "minimal-v4.spz.csv",
		"gsplat-rs/minimal_v4_degree0.spz": "gsplatrs_minimal_v4_degree0.spz.csv",
	} {
		got, _ := readModel(t, spz, foreignSplats(t, file))
		want := csvModel(t, foreignSplats(t, "converted_by_splat-transform/"+table))
		compareModels(t, got, want, sameReading)
	}
	want := csvModel(t, foreignSplats(t, "converted_by_splat-transform/playbot6.csv"))
	for _, file := range []string{"playbot6_v3.spz", "playbot6_v4.spz"} {
		got, _ := readModel(t, spz, foreignSplats(t, "converted_by_splat-transform/"+file))
		t.Logf("%s: %+v", file, compareModels(t, got, cut(want), spzTolerance(12)))
	}
	raw, _ := readModel(t, spz, foreignSplats(t, "splat-transform/minimal-raw.spz"))
	packed, _ := readModel(t, spz, foreignSplats(t, "splat-transform/minimal-v2.spz"))
	compareModels(t, raw, packed, tolerance{})
}
