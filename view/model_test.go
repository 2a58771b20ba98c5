package view

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
	"vksplat/scene/splatfile"
)

// testModel writes a model of n splats in a row along x.
func testModel(t *testing.T, n int, comments ...string) string {
	t.Helper()
	s := scene.NewSplats(n, 1)
	for i := range n {
		s.Means[3*i], s.Quats[4*i] = float32(i), 1
	}
	path := filepath.Join(t.TempDir(), "model.ply")
	must.Do(t, plytest.Write(path, s, ply.Meta{Comments: comments}))
	return path
}

// asciiModel writes a model as text, which the viewer does not read.
func asciiModel(t *testing.T, path string) {
	t.Helper()
	names := strings.Fields("x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3")
	text := "ply\nformat ascii 1.0\ncomment Vertical axis: z\nelement vertex 2\n"
	for _, name := range names {
		text += "property float " + name + "\n"
	}
	text += "end_header\n0 0 0 0 0 0 2 -3 -3 -3 1 0 0 0\n1 2 3 0 0 0 2 -3 -3 -3 1 0 0 0\n"
	must.Do(t, os.WriteFile(path, []byte(text), 0o666))
}

// TestPrepareAsIs serves a binary PLY file as it is.
func TestPrepareAsIs(t *testing.T) {
	path := testModel(t, 3, "step one", "Vertical Axis: Z")
	m, err := Prepare(path, t.TempDir(), false)
	if err != nil || m.path != path || m.name != plainName || m.Converted || m.Splats != 3 || len(m.Positions) != 3 ||
		m.Positions[2] != [3]float64{2, 0, 0} {
		t.Errorf("%+v, %v", m, err)
	}
	if m.Meta.Vertical != "z" {
		t.Errorf("vertical axis %q", m.Meta.Vertical)
	}
}

// TestPrepareConverts turns what the viewer does not read into a file that it does.
func TestPrepareConverts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "text.ply")
	asciiModel(t, path)
	m, err := Prepare(path, dir, false)
	if err != nil || !m.Converted || filepath.Dir(m.path) != dir || readable(m.path) != m.name {
		t.Fatalf("%+v, %v", m, err)
	}
	s, _, err := ply.Read(m.path)
	if err != nil || s.N != 2 || s.Means[5] != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestPrepareCompact asks for the smallest file.
func TestPrepareCompact(t *testing.T) {
	if compactFormat() == nil {
		t.Skip("this build writes no compressed PLY files")
	}
	dir := t.TempDir()
	m, err := Prepare(testModel(t, 300), dir, true)
	if err != nil || !m.Converted || m.name != compactName || readable(m.path) != compactName {
		t.Errorf("%s at %s, %v", m.name, m.path, err)
	}
}

// TestPrepareRefuses wants errors that name the file and a remedy.
func TestPrepareRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty.ply": "", "text.ply": "hello",
		"short.ply": "ply\nformat binary_little_endian 1.0\nelement vertex 1000000000\nend_header\n"} {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(content), 0o666))
		_, err := Prepare(path, dir, false)
		if err == nil || !strings.Contains(err.Error(), name) || fault.Hint(err) == "" ||
			!errors.Is(err, fault.ErrData) {
			t.Errorf("%s: %v (%s)", name, err, fault.Hint(err))
		}
	}
	if _, err := Prepare(testModel(t, 0), dir, false); err == nil || !strings.Contains(err.Error(), "no splats") {
		t.Errorf("no splats: %v", err)
	}
}

// TestReadable knows which files the viewer reads.
func TestReadable(t *testing.T) {
	const ply = "ply\nformat binary_little_endian 1.0\n"
	for i, c := range []struct{ name, head, want string }{
		{"a.ply", ply + "element vertex 1\nproperty float x\nend_header\n", plainName},
		{"a.ply", ply + "element vertex 1\nproperty double x\nend_header\n", ""},
		{"a.ply", ply + "element vertex 1\nproperty float x\nelement face 1\nend_header\n", ""},
		{"a.ply", ply + "element vertex 1\nproperty float x\nproperty list uchar int i\nend_header\n", ""},
		{"a.ply", "ply\nformat binary_big_endian 1.0\nelement vertex 1\nproperty float x\nend_header\n", ""},
		{"a.ply", "ply\r\nformat binary_little_endian 1.0\r\nelement vertex 1\r\nend_header\r\n", ""},
		{"a.ply", ply + "element chunk 1\nproperty float min_x\nelement vertex 1\nproperty uint " +
			"packed_position\nend_header\n", compactName},
		{"a.ply", ply + "element vertex 1\n", ""},
		{"a.ply", ply + "element vertex 1\nproperty float scale_0\nproperty float scale_1\nend_header\n", ""},
		{"a.sog", "PK\x03\x04....", sogName},
		{"a.zip", "PK\x03\x04....", ""},
		{"a.ply", "", ""},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		must.Do(t, os.WriteFile(path, []byte(c.head), 0o666))
		if got := readable(path); got != c.want {
			t.Errorf("case %d, %s: %q, want %q", i, c.name, got, c.want)
		}
	}
	if got := readable(t.TempDir()); got != "" {
		t.Errorf("a folder is readable as %q", got)
	}
}

// TestPositions thins large models out evenly and leaves what is not finite out.
func TestPositions(t *testing.T) {
	s := scene.NewSplats(2*maxPositions+1, 0)
	for i := range s.N {
		s.Means[3*i] = float32(i)
	}
	s.Means[0] = float32(math.NaN())
	list, _, err := somePositions(splatfile.Memory(s, ply.Meta{}))
	if err != nil || len(list) != 2*maxPositions/3 || list[0][0] != 3 {
		t.Errorf("%d positions from %v on, %v", len(list), list[0], err)
	}
}

// TestBrokenModels refuses a model of which nothing can be drawn, and warns of one of which something can.
func TestBrokenModels(t *testing.T) {
	nan, file := float32(math.NaN()), testModel(t, 1)
	for _, test := range []struct {
		scales [2]float32 // of two splats
		want   string
	}{{[2]float32{nan, nan}, "none of its splats"}, {[2]float32{3e38, 3e38}, "none of its splats"},
		{[2]float32{nan, 3e38}, "none of its splats"}, {[2]float32{-1, 3e38}, "1 of 2 splats"},
		{[2]float32{-1, -2}, ""}} {
		s := scene.NewSplats(2, 0)
		for i, x := range test.scales {
			s.Quats[4*i], s.LogScales[3*i] = 1, x
		}
		m, err := prepare(file, t.TempDir(), splatfile.Memory(s, ply.Meta{}), false)
		switch {
		case strings.HasPrefix(test.want, "none"):
			if !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), test.want) || fault.Hint(err) == "" {
				t.Errorf("%v: %v", test.scales, err)
			}
		case err != nil:
			t.Errorf("%v: %v", test.scales, err)
		case len(m.Lost) > 0 != (test.want != "") || test.want != "" && !strings.Contains(m.Lost[0], test.want):
			t.Errorf("%v: %q", test.scales, m.Lost)
		}
	}
}

// TestPage writes a page that asks for nothing beside it.
func TestPage(t *testing.T) {
	m := must.Get(Prepare(testModel(t, 3), t.TempDir(), false))(t)
	out := new(bytes.Buffer)
	must.Do(t, WritePage(out, Scene{Title: "<b>&", Start: StartAt(nil, "", m.Positions)}, m))
	page := out.String()
	outside, _, _ := strings.Cut(page, `<script type="module">`)
	if !strings.Contains(page, "<title>&lt;b&gt;&amp;</title>") || strings.Contains(outside, `src="`) ||
		strings.Contains(outside, "stylesheet") || strings.Contains(page, importLine) {
		t.Error("the page is not of its own")
	}
	if !strings.Contains(outside, "Copyright (c)") || !strings.Contains(outside, "-->") {
		t.Error("the viewer's licence is not in its copy")
	}
	if n := strings.Count(page, "</script>"); n != 3 {
		t.Errorf("%d elements of scripts end, want 3: scene, model, viewer", n)
	}
	again := new(bytes.Buffer)
	if err := WritePage(again, Scene{Title: "<b>&", Start: StartAt(nil, "", m.Positions)}, m); err != nil ||
		again.String() != page {
		t.Errorf("the same page has other bytes, %v", err)
	}
	huge := filepath.Join(t.TempDir(), "huge.ply")
	must.Do(t, os.WriteFile(huge, nil, 0o666))
	if err := os.Truncate(huge, maxPage+1); err != nil { // takes no room
		t.Fatal(err)
	}
	if err := WritePage(out, Scene{}, &Model{path: huge, name: plainName}); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprint(maxPage>>20)) {
		t.Errorf("a huge model: %v", err)
	}
}
