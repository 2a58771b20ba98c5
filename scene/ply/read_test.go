package ply

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

// foreignPLY writes a model the way some other program might.
type foreignPLY struct {
	format  string
	order   []int          // of the properties of splatProperties
	kinds   map[string]int // property -> 0 float, 1 double; others from the name
	extra   bool           // unknown properties, an element before and one after the vertices
	newline string
}

func (f *foreignPLY) encode(s *scene.Splats) []byte {
	names := splatProperties(s.Degree)
	rows := rawRows(s)
	var b bytes.Buffer
	b.WriteString("ply" + f.newline + "format " + f.format + " 1.0" + f.newline + "comment hello world" + f.newline)
	if f.extra {
		b.WriteString("element face 3" + f.newline + "property list uchar int vertex_indices" + f.newline +
			"property short flag" + f.newline)
	}
	fmt.Fprintf(&b, "element vertex %d%s", s.N, f.newline)
	for _, j := range f.order {
		fmt.Fprintf(&b, "property %s %s%s", [2]string{"float", "float64"}[f.kinds[names[j]]], names[j], f.newline)
	}
	if f.extra {
		b.WriteString("property uchar red" + f.newline + "property list uchar float weights" + f.newline +
			"element tail 1000" + f.newline + "property double d" + f.newline)
	}
	b.WriteString("end_header" + f.newline)
	if f.extra {
		for i := range 3 {
			f.put(&b, "uchar", float64(i))
			for j := range i {
				f.put(&b, "int", float64(-j))
			}
			f.put(&b, "short", -2)
		}
	}
	for _, row := range rows {
		for _, j := range f.order {
			f.put(&b, [2]string{"float", "double"}[f.kinds[names[j]]], row[j])
		}
		if f.extra {
			f.put(&b, "uchar", 200)
			f.put(&b, "uchar", 1)
			f.put(&b, "float", 0.25)
		}
	}
	return b.Bytes()
}

// put writes one value.
func (f *foreignPLY) put(b *bytes.Buffer, kind string, v float64) {
	if f.format == "ascii" {
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64) + " ")
		return
	}
	var order binary.ByteOrder = binary.LittleEndian
	if f.format == "binary_big_endian" {
		order = binary.BigEndian
	}
	var buf [8]byte
	switch kind {
	case "uchar":
		b.WriteByte(byte(v))
	case "short":
		order.PutUint16(buf[:], uint16(int16(v)))
		b.Write(buf[:2])
	case "int":
		order.PutUint32(buf[:], uint32(int32(v)))
		b.Write(buf[:4])
	case "float":
		order.PutUint32(buf[:], math.Float32bits(float32(v)))
		b.Write(buf[:4])
	case "double":
		order.PutUint64(buf[:], math.Float64bits(v))
		b.Write(buf[:8])
	}
}

// rawRows lists the numbers of every splat in the order of splatProperties.
func rawRows(s *scene.Splats) [][]float64 {
	rows := make([][]float64, s.N)
	k := s.K()
	for i := range rows {
		row := []float32{s.Means[3*i], s.Means[3*i+1], s.Means[3*i+2], 0, 0, 0}
		sh := s.SH[3*k*i:]
		row = append(row, sh[0], sh[1], sh[2])
		for c := range 3 {
			for j := 1; j < k; j++ {
				row = append(row, sh[3*j+c])
			}
		}
		row = append(row, s.LogitOpacities[i])
		row = append(row, s.LogScales[3*i:3*i+3]...)
		row = append(row, s.Quats[4*i:4*i+4]...)
		for _, v := range row {
			rows[i] = append(rows[i], float64(v))
		}
	}
	return rows
}

// Any order, encoding, type, line end and bystander gives the same splats.
func TestPLYReadVariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 60 {
		degree := trial % 4
		s := scenetest.RandomSplats(5, degree)
		for i := range s.N {
			q, _ := normalised(s.Quats[4*i : 4*i+4])
			copy(s.Quats[4*i:], q[:])
		}
		f := foreignPLY{
			format:  []string{"ascii", "binary_little_endian", "binary_big_endian"}[trial%3],
			order:   rng.Perm(len(splatProperties(degree))),
			kinds:   map[string]int{},
			extra:   trial%2 == 0,
			newline: []string{"\n", "\r\n"}[trial/4%2],
		}
		for _, name := range splatProperties(degree) {
			f.kinds[name] = rng.IntN(2)
		}
		got, info, err := decodeBytes(f.encode(s))
		if err != nil {
			t.Fatalf("trial %d (%+v): %v", trial, f, err)
		}
		sameSplats(t, got, s)
		if info.Format != f.format || len(info.Comments) != 1 || info.Comments[0] != "hello world" {
			t.Errorf("trial %d: info %+v", trial, info)
		}
		if f.extra != (fmt.Sprint(info.Ignored) == "[red weights]") {
			t.Errorf("trial %d: ignored %v", trial, info.Ignored)
		}
	}
}

func TestPLYReadNonFinite(t *testing.T) {
	s := scenetest.RandomSplats(4, 0)
	f := foreignPLY{format: "ascii", newline: "\n", order: []int{0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}
	s.LogitOpacities[1] = float32(math.Inf(1))
	s.LogScales[3*1+2] = float32(math.Inf(-1))
	s.LogitOpacities[2] = float32(math.Inf(-1))
	s.LogScales[3*0] = float32(math.Inf(1))
	s.Means[3*3] = float32(math.NaN())
	got, info, err := decodeBytes(f.encode(s))
	if err != nil || info.NonFinite != 2 || info.Clamped != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	if got.LogitOpacities[1] != 30 || got.LogScales[3*1+2] != -30 || got.LogitOpacities[2] != -30 {
		t.Errorf("logits %v, log scales %v", got.LogitOpacities, got.LogScales)
	}
}

// Every C library's spelling of a number that is not finite is a splat that is left out, in ascii as in binary.
func TestPLYReadSpelling(t *testing.T) {
	s := scenetest.RandomSplats(1, 0)
	f := foreignPLY{format: "ascii", newline: "\n", order: []int{0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}
	s.Means[0] = 0.123456789
	text := string(f.encode(s))
	for _, spelling := range []string{"nan", "-nan", "-nan(ind)", "1.#QNAN", "-1.#IND", "-1.#INF", "-inf", "1e999"} {
		before, after, _ := strings.Cut(text, "0.12345")
		_, after, _ = strings.Cut(after, " ")
		_, info, err := decodeBytes([]byte(before + spelling + " " + after))
		if err != nil || info.NonFinite != 1 {
			t.Errorf("%s: %+v, %v", spelling, info, err)
		}
	}
}

// flatPLY is a file of n splats without the third scale, as 2D Gaussian Splatting writes them.
func flatPLY(s *scene.Splats) []byte {
	f := foreignPLY{format: "binary_little_endian", newline: "\n", order: []int{0, 1, 2, 6, 7, 8, 9, 10, 11, 13, 14, 15,
		16}}
	return f.encode(s)
}

func TestPLYFlat(t *testing.T) {
	s := scenetest.RandomSplats(3, 0)
	for i := range s.N {
		q, _ := normalised(s.Quats[4*i : 4*i+4])
		copy(s.Quats[4*i:], q[:])
	}
	got, info, err := decodeBytes(flatPLY(s))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.N {
		s.LogScales[3*i+2] = -13.815511 // log 1e-6
	}
	sameSplats(t, got, s)
	if notes := fmt.Sprint(info.Notes()); !strings.Contains(notes, "2DGS") || !strings.Contains(notes, "1e-06") {
		t.Error(notes)
	}
}

// What follows the last row is reported, and refused where it is whole rows or bytes of every row.
func TestPLYSurplus(t *testing.T) {
	const row = 13 * 4
	for _, c := range []struct {
		n, bytes int
		want     string
	}{{10, 1, ""}, {10, 37, ""}, {2, 2, ""}, {4, 4, ""}, {63, 126, ""}, {64, 64 * 53, ""}, {10, row, "for 1 more row of 52 bytes"},
		{10, 3 * row, "for 3 more rows of 52 bytes after the 10"}, {64, 128, "2 for each of the 64: rows have 54, not 52"}} {
		data, bytes, want := flatPLY(scenetest.RandomSplats(c.n, 0)), c.bytes, c.want
		_, info, err := decodeBytes(append(data, make([]byte, bytes)...))
		switch {
		case want == "":
			if notes := fmt.Sprint(info.Notes()); err != nil ||
				!strings.Contains(notes, "the file has "+wording.Count(int64(bytes), "byte")+" more") {
				t.Errorf("%d bytes: %s, %v", bytes, notes, err)
			}
		case err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.ErrData) ||
			!strings.Contains(fault.Hint(err), "counts wrong"):
			t.Errorf("%d bytes: %v, want %s", bytes, err, want)
		}
	}
}

// More values in each row of ascii than the header lists would shift all rows.
func TestPLYSurplusText(t *testing.T) {
	f := foreignPLY{format: "ascii", newline: "\n", order: []int{0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}
	text := string(f.encode(scenetest.RandomSplats(5, 0)))
	for more, want := range map[string]string{"": "", "\x1a": "", "1 2 3": "", strings.Repeat("7 ", 10): "2 for each of the 5",
		strings.Repeat("7 ", 14): "1 more row of 14 values"} {
		if _, _, err := decodeBytes([]byte(text + more)); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", more, err, want)
		}
	}
}

// Files of other kinds under the name of a PLY are named.
func TestPLYOtherKinds(t *testing.T) {
	for head, want := range map[string]string{"\x1f\x8b\x08": "gzip -dc", "<html>": "download",
		"version https://git-lfs.github.com/spec/v1\noid": "git lfs pull"} {
		if _, _, err := decodeBytes([]byte(head)); !errors.Is(err, ErrNotPLY) ||
			!strings.Contains(fault.Hint(err), want) {
			t.Errorf("%q: %v, hint %q", head, err, fault.Hint(err))
		}
	}
}

// badPLYs are files that must be refused, with what the error says.
func badPLYs() map[string]string {
	degree0 := "property float " + strings.Join(splatProperties(0), "\nproperty float ") + "\n"
	le := "ply\nformat binary_little_endian 1.0\n"
	return map[string]string{
		"":                                     "first line",
		"plyx\n":                               "first line",
		"\x89PNG\r\n\x1a\n":                    "first line",
		strings.Repeat("p", 10000):             "first line",
		"ply\n":                                "ends before end_header",
		"ply\nelement vertex 0\nend_header\n":  "no format",
		"ply\nformat text 1.0\nend_header\n":   "not known",
		"ply\nformat ascii 2.0\nend_header\n":  "version 1.0",
		le + "end_header\n":                    "no element vertex",
		le + "property float x\nend_header\n":  "before any element",
		le + "element vertex -1\nend_header\n": "count",
		le + "element vertex 99999999999999999999\nend_header\n":                "count",
		le + "element vertex 1\nproperty quad x\nend_header\n":                  "type",
		le + "element vertex 1\nproperty list float int x\nend_header\n":        "cannot count",
		le + "element vertex 1\nproperty float x\nproperty int x\nend_header\n": "twice",
		le + "element vertex 1\nelement vertex 1\nend_header\n":                 "twice",
		le + "element vertex 1\nproperty\nend_header\n":                         "type and a name",
		le + "vertices 1\nend_header\n":                                         "an unknown keyword",
		le + "element vertex 0\nproperty float x\nend_header\n":                 "lacks",
		le + "element vertex 1099511627776\n" + degree0 +
			"end_header\n": "claims 1099511627776",
		le + "element vertex 9223372036854775807\n" + degree0 + "end_header\n":                        "claims",
		le + "element face 1099511627776\nproperty list uint float x\nelement vertex 1\nend_header\n": "claims",
		le + "element a 9223372036854775807\nelement vertex 1\n" + degree0 +
			"end_header\n": "claims 1 of element vertex",
		le + "element vertex 1\n" + degree0 + "end_header\n" +
			strings.Repeat("a", 67): "claims 1 of",
		le + "element vertex 0\n" + degree0 + "property float f_rest_0\nend_header\n":             "1 f_rest",
		"ply\nformat ascii 1.0\nelement vertex 1099511627776\n" + degree0 + "end_header\n0 0 0\n": "claims",
		"ply\nformat ascii 1.0\nelement vertex 1\n" + degree0 + "end_header\n" +
			strings.Repeat(" ", 99): "the file ends",
		"ply\nformat ascii 1.0\nelement vertex 1\n" + degree0 + "end_header\n" +
			strings.Repeat("x ", 17): "not a number",
		"ply\nformat ascii 1.0\nelement vertex 1\n" + degree0 + "end_header\n" + strings.Repeat("1", 99): "too long",
		"ply\nformat ascii 1.0\nelement f 1\nproperty list uchar int x\nelement vertex 0\n" + degree0 +
			"end_header\n-1 2 3\n": "list of length",
		"ply\nformat ascii 1.0\nelement f 1\nproperty list uchar int x\nelement vertex 0\n" + degree0 +
			"end_header\n1e18 2 3\n": "the file ends",
		le + "comment " + strings.Repeat("c", 5000) + "\n": "bytes",
	}
}

func TestPLYReadRefuses(t *testing.T) {
	for text, want := range badPLYs() {
		_, _, err := decodeBytes([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.ErrData) ||
			fault.Hint(err) == "" {
			t.Errorf("%.200q:\nerror %v, hint %q, want %q", text, err, fault.Hint(err), want)
		}
	}
	missing := filepath.Join(t.TempDir(), "none.ply")
	if _, _, err := Read(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) ||
		fault.Hint(err) == "" {
		t.Errorf("missing file: %v", err)
	}
	if _, _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("folder: %v", err)
	}
}

// Headers of a megabyte must not take seconds, in which names are compared with each other.
func TestPLYHeaderBounds(t *testing.T) {
	many := func(n int, line string) string {
		var b strings.Builder
		b.WriteString("ply\nformat binary_little_endian 1.0\nelement vertex 0\n")
		for i := range n {
			fmt.Fprintf(&b, line+"\n", i)
		}
		return b.String() + "end_header\n"
	}
	for text, want := range map[string]string{
		many(4097, "property float p%d"):   "more than 4096 properties",
		many(4096, "property float p%d"):   "lacks",
		many(256, "element e%d 0"):         "more than 256 elements",
		many(255, "element e%d 0"):         "lacks",
		many(60000, "comment %d"):          "more than 16384 lines",
		many(16000, "comment %d"):          "lacks",
		many(60000, "element vertex%d 99"): "elements",
		many(300, "comment %03999d"):       "more than 1048576 bytes",
	} {
		if _, _, err := decodeBytes([]byte(text)); err == nil || !strings.Contains(err.Error(), want) ||
			!errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
			t.Errorf("%.80q: error %.300v, want %q", text, err, want)
		}
		if _, _, err := ReadTables(strings.NewReader(text), int64(len(text))); want != "lacks" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("tables of %.80q: error %.300v, want %q", text, err, want)
		}
	}
}

// A header that claims a tera of vertices must not cost memory.
func TestPLYReadAllocatesLittle(t *testing.T) {
	allocated := filetest.Allocated()
	for text := range badPLYs() {
		_, _, _ = decodeBytes([]byte(text))
		_, _, _ = decodePoints(strings.NewReader(text), int64(len(text)))
	}
	if used := allocated(); used > 64<<20 {
		t.Errorf("%d bytes allocated for a handful of small files", used)
	}
}

func TestPointKinds(t *testing.T) {
	cases := []struct {
		properties, row string
		want            [3]uint8
	}{
		{"property float x\nproperty float y\nproperty float z\n", "1 2 3", [3]uint8{128, 128, 128}},
		{"property uchar red\nproperty uchar green\nproperty uchar blue\nproperty double x\nproperty float " +
			"y\nproperty int z\n", "0 17 255 1 2 3", [3]uint8{0, 17, 255}},
		{"property float x\nproperty float y\nproperty float z\nproperty float red\nproperty float green\nproperty " +
			"float blue\n", "1 2 3 0 0.5 1", [3]uint8{0, 128, 255}},
		{"property float x\nproperty float y\nproperty float z\nproperty ushort red\nproperty ushort green\nproperty " +
			"ushort blue\n", "1 2 3 0 32768 65535", [3]uint8{0, 128, 255}},
		{"property float x\nproperty float y\nproperty float z\nproperty uchar diffuse_red\nproperty uchar " +
			"diffuse_green\nproperty uchar diffuse_blue\n", "1 2 3 4 5 6", [3]uint8{4, 5, 6}},
	}
	for _, c := range cases {
		text := "ply\nformat ascii 1.0\nelement vertex 1\n" + c.properties + "end_header\n" + c.row + "\n"
		points, _, err := decodePoints(strings.NewReader(text), int64(len(text)))
		if err != nil || len(points) != 1 || points[0] != (scene.Point{Pos: [3]float64{1, 2, 3}, Color: c.want}) {
			t.Errorf("%q: %v, %v", c.row, points, err)
		}
	}
	for row, want := range map[string]string{"1 2   ": "the file ends", "1 2 3\n4 5 6": "1 more row of 3 values",
		"1 two 3": "not a number"} {
		path := filepath.Join(t.TempDir(), "a.ply")
		text := "ply\nformat ascii 1.0\nelement vertex 1\n" + cases[0].properties + "end_header\n" + row + "\n"
		must.Do(t, os.WriteFile(path, []byte(text), 0o666))
		if _, _, err := ReadPoints(path); err == nil || !strings.Contains(err.Error(), want) ||
			!errors.Is(err, fault.ErrData) {
			t.Errorf("%q: %v", row, err)
		}
	}
}

// Points that are not finite, in any spelling, are left out of a capture's cloud, and the other points stay.
func TestCloudNonFinite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ply")
	text := "ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\nproperty float z\n" +
		"end_header\n1 2 3\n1 -nan(ind) 3\n-1.#IND 2 3\n1 2 -1e999\n4 5 6\n"
	must.Do(t, os.WriteFile(path, []byte(text), 0o666))
	c := &scene.Capture{}
	if err := ReadCloud(c, path); err != nil || len(c.Points) != 2 || c.Points[1].Pos != [3]float64{4, 5, 6} ||
		len(c.Warnings) != 1 || c.Warnings[0].Count != 3 {
		t.Errorf("%v, %v, %v", c.Points, c.Warnings, err)
	}
}

func FuzzDecodePLY(f *testing.F) {
	for text := range badPLYs() {
		f.Add([]byte(text))
	}
	order := make([]int, len(splatProperties(1)))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	for _, format := range []string{"ascii", "binary_little_endian", "binary_big_endian"} {
		writer := foreignPLY{format: format, order: order, extra: true, newline: "\n"}
		f.Add(writer.encode(scenetest.RandomSplats(2, 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, info, err := decodeBytes(data)
		if err != nil && !errors.Is(err, fault.ErrData) {
			t.Errorf("error of no kind: %v", err)
		}
		if err == nil {
			if err := s.Validate(); (err == nil) != (info.NonFinite == 0) {
				t.Errorf("%d splats are not finite, and: %v", info.NonFinite, err)
			}
			if s.N > len(data) {
				t.Errorf("%d splats in %d bytes", s.N, len(data))
			}
		}
		points, _, err := decodePoints(bytes.NewReader(data), int64(len(data)))
		if err == nil && len(points) > len(data) {
			t.Errorf("%d points in %d bytes", len(points), len(data))
		}
	})
}
