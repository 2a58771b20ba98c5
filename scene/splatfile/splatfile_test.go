package splatfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
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

// model makes n splats as training leaves them: unit quaternions with w not below 0, colours and opacities within what
// every format can hold.
func model(n, degree int) *scene.Splats {
	r := rand.New(rand.NewPCG(1, 2))
	s := scene.NewSplats(n, degree)
	for i := range n {
		length := 0.0
		for k := range 4 {
			s.Quats[4*i+k] = float32(r.NormFloat64())
			length += float64(s.Quats[4*i+k]) * float64(s.Quats[4*i+k])
		}
		sign := math.Copysign(1, float64(s.Quats[4*i]))
		for k := range 4 {
			s.Quats[4*i+k] = float32(sign * float64(s.Quats[4*i+k]) / math.Sqrt(length))
		}
		for k := range 3 {
			s.Means[3*i+k] = float32(r.NormFloat64())
			s.LogScales[3*i+k] = float32(-4 + r.NormFloat64())
		}
		s.LogitOpacities[i] = float32(1.5 * r.NormFloat64())
	}
	for i := range s.SH {
		s.SH[i] = float32(0.2 * r.NormFloat64())
	}
	return s
}

// again writes a model in a format and reads it.
func again(t *testing.T, f *Format, m Source, o WriteOptions) (*scene.Splats, Info) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model"+f.Extensions[len(f.Extensions)-1])
	if _, err := f.Write(path, m, o); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	read, err := Open(path)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	defer read.Close() // only read
	if read.Info().Format != f.Name {
		t.Errorf("%s was opened as %s", f.Name, read.Info().Format)
	}
	s, err := All(read)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	if g, ok := read.(Gatherer); ok {
		checkGather(t, g, s)
	}
	return s, read.Info()
}

// exactness is how far what a format gives back may be from what was written.
type exactness struct {
	position, scale, opacity, angle, dc, sh float64 // scale: of its logarithm; opacity: of 0 to 1; angle: in radians
	degree                                  int     // the highest that is kept
	antialiased                             bool    // the flag is kept
	look                                    bool    // what else says how the model is drawn, and its origin
}

// quantisation of the formats that can be written. A format without a line fails TestFormats: its writer says there
// what it loses.
var quantisation = map[string]exactness{
	"ply": {0, 0, 1e-7, 1e-3, 0, 0, 3, true, true},
	// 11 bits within 256 splats, bytes of colour
	"compressed-ply": {0.004, 0.005, 0.002, 0.005, 0.004, 0.017, 3, true, true},
	"splat":          {0, 1e-6, 0.002, 0.02, 0.008, 0, 0, false, false},
	// steps of 1/16 in log scales, 1/32 in spherical harmonics above degree 1
	"spz": {2e-4, 0.032, 0.002, 0.005, 0.014, 0.07, 3, true, false},
	// as SPZ, with what glTF says beside it
	"3d-tiles": {2e-4, 0.032, 0.002, 0.005, 0.014, 0.07, 3, true, true},
	"glb":      {0, 1e-6, 1e-6, 1e-3, 0, 0, 3, true, true},
	// spherical harmonics from a palette, and those of this model are noise
	"streamed-sog": {2e-4, 0.03, 0.002, 0.015, 0.007, 0.7, 3, true, true},
	"sog":          {2e-4, 0.03, 0.002, 0.015, 0.007, 0.7, 3, true, true},
}

// TestFormats writes one model in every format and compares what is read. Formats may put splats into another order:
// each is compared with the nearest.
func TestFormats(t *testing.T) {
	for _, f := range Formats() {
		if f.Write == nil || f.Open == nil {
			continue
		}
		q, known := quantisation[f.Name]
		if !known {
			t.Errorf("%s: there is no line in quantisation that says how exact it is", f.Name)
			continue
		}
		for degree := range scene.MaxSHDegree + 1 {
			want := model(2000, degree)
			meta := ply.Meta{Antialiased: true, Origin: &[3]float64{1, 2e5, 3}, Background: &[3]float32{1, 0.5, 0.25},
				Near: 0.05, Exposure: true}
			got, info := again(t, f, Memory(want, meta), WriteOptions{})
			if info.Meta.Antialiased != q.antialiased {
				t.Errorf("%s: antialiased is %v, want %v", f.Name, info.Meta.Antialiased, q.antialiased)
			}
			checkLook(t, f, info.Meta, meta, q.look)
			if got.N != want.N || got.Degree != min(degree, q.degree) {
				t.Fatalf("%s: %d splats of degree %d, want %d of %d", f.Name, got.N, got.Degree, want.N,
					min(degree, q.degree))
			}
			compare(t, f.Name, got, want, q)
		}
	}
}

// checkLook wants a file to say how a model is drawn as before, or nothing.
func checkLook(t *testing.T, f *Format, got, want ply.Meta, kept bool) {
	t.Helper()
	if !kept {
		want.Origin, want.Background, want.Near, want.Exposure = nil, nil, 0, false
	}
	look := func(m ply.Meta) string {
		text := must.Get(json.Marshal([]any{m.Origin, m.Background, m.Near, m.Exposure}))(t)
		return string(text)
	}
	if look(got) != look(want) {
		t.Errorf("%s: origin, background, near plane, exposure: %s, want %s", f.Name, look(got), look(want))
	}
}

// compare wants each splat of got near one of want.
func compare(t *testing.T, name string, got, want *scene.Splats, q exactness) {
	t.Helper()
	used := make([]bool, want.N)
	for i := range got.N {
		j := nearestMean(got.Means[3*i:3*i+3], want)
		if used[j] {
			t.Fatalf("%s: two splats are nearest to splat %d", name, j)
		}
		used[j] = true
		a, b := got.Slice(i, i+1), want.Slice(j, j+1)
		dot, length := 0.0, 0.0 // some formats leave rotations of other lengths
		for k := range 4 {
			dot += float64(a.Quats[k]) * float64(b.Quats[k])
			length += float64(a.Quats[k]) * float64(a.Quats[k])
		}
		dot /= math.Sqrt(length)
		angle := 2 * math.Sqrt(max(0, 2-2*math.Abs(dot))) // of a small one; |dot| is near 1
		n := min(len(a.SH), len(b.SH))
		for _, c := range []struct {
			what        string
			error, most float64
		}{
			{"position", apart(a.Means, b.Means), q.position},
			{"scale", apart(a.LogScales, b.LogScales), q.scale}, {"rotation", angle, q.angle},
			{"opacity", math.Abs(sigmoid(a.LogitOpacities[0]) - sigmoid(b.LogitOpacities[0])), q.opacity},
			{"colour", apart(a.SH[:3], b.SH[:3]), q.dc}, {"SH", apart(a.SH[3:n], b.SH[3:n]), q.sh},
		} {
			if !(c.error <= c.most) {
				t.Fatalf("%s: degree %d, splat %d: %s is off by %g, allowed is %g", name, want.Degree, j, c.what,
					c.error, c.most)
			}
		}
	}
}

func nearestMean(at []float32, s *scene.Splats) (best int) {
	least := math.Inf(1)
	for i := range s.N {
		d2 := 0.0
		for k, x := range at {
			d := float64(x) - float64(s.Means[3*i+k])
			d2 += d * d
		}
		if d2 < least {
			best, least = i, d2
		}
	}
	return best
}

// apart is the largest difference.
func apart(a, b []float32) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}

// TestOpenErrors wants every bad path refused with a hint and the right kind.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, os.WriteFile(path, []byte(content), 0o666))
		return path
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "nowhere"):          "no such file",
		dir:                                    "holds no model",
		write("empty.ply", ""):                 "empty",
		write("photo.ply", "\xff\xd8\xff\xe0"): "it is a photo",
		write("page.spz", "<!DOCTYPE html>"):   "it is a web page",
		write("x.bin", "nothing"):              "not a known format",
		write("mesh.ply", "ply\nformat ascii 1.0\nend_header\n"):     "no element vertex",
		write("x.safetensors", "nothing"):                            "safetensors",
		write("other", "\x02\x00\x00\x00\x00\x00\x00\x00{}"):         "no checkpoint of vksplat",
		write("hollow/point_cloud/iteration_7/other.ply", "nothing"): "safetensors",
	} {
		if strings.HasSuffix(path, "other.ply") {
			path, want = filepath.Join(dir, "hollow"), "holds no model"
		}
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.ErrData) ||
			fault.Hint(err) == "" {
			t.Errorf("%s: %v (hint %q), want %q", path, err, fault.Hint(err), want)
		}
	}
}

// TestOpenFolder wants the latest model of a run, or its checkpoint where that is later.
func TestOpenFolder(t *testing.T) {
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for _, path := range []string{at("point_cloud", "iteration_7", "point_cloud.ply"),
		at("point_cloud", "iteration_30", "point_cloud.ply"), at("checkpoints", "step_9.safetensors"),
		at("checkpoints", "step_x.safetensors")} {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, os.WriteFile(path, nil, 0o666))
	}
	if got, err := Find(dir); err != nil || got != at("point_cloud", "iteration_30", "point_cloud.ply") {
		t.Errorf("%s, %v", got, err)
	}
	must.Do(t, os.WriteFile(at("checkpoints", "step_31.safetensors"), nil, 0o666))
	if got, err := Find(dir); err != nil || got != at("checkpoints", "step_31.safetensors") {
		t.Errorf("%s, %v", got, err)
	}
	must.Do(t, os.WriteFile(at("checkpoints", "step_30.safetensors"), nil, 0o666))
	for step, want := range map[int]string{7: at("point_cloud", "iteration_7", "point_cloud.ply"),
		30: at("point_cloud", "iteration_30", "point_cloud.ply"), 9: at("checkpoints", "step_9.safetensors"), 8: ""} {
		got, err := FindStep(dir, step)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("step %d: %s, %v, want %s", step, got, err, want)
		}
		if err != nil && (!errors.Is(err, fault.ErrData) || !strings.Contains(fault.Hint(err), "vksplat info") ||
			!strings.Contains(err.Error(), "no model of step 8")) {
			t.Errorf("%v, hint %q", err, fault.Hint(err))
		}
	}
	must.Do(t, os.WriteFile(at("meta.json"), nil, 0o666))
	if got, err := Find(dir); err != nil || got != at("meta.json") {
		t.Errorf("%s, %v", got, err)
	}
}

// TestChoose wants the content to decide, and the name where the content says nothing.
func TestChoose(t *testing.T) {
	plyHead := []byte("ply\nformat ascii 1.0\n")
	for _, c := range []struct {
		name string
		head []byte
		want string
	}{
		{"a.ply", plyHead, "ply"}, {"a.splat", plyHead, "ply"}, {"a", plyHead, "ply"}, {"a.PLY", []byte("oops"), "ply"},
		{"a.txt", []byte("oops"), ""},
		{"a.ply", []byte("\x10\x00\x00\x00\x00\x00\x00\x00{\""), "checkpoint"}, {"a.ply", []byte("\x89PNG\r\n"), ""},
	} {
		got := ""
		if f := choose(c.name, c.head); f != nil {
			got = f.Name
		}
		if got != c.want {
			t.Errorf("%s with %q: %q, want %q", c.name, c.head, got, c.want)
		}
	}
}

// TestSpool compares a spool with the model it is of, and wants no file left.
func TestSpool(t *testing.T) {
	dir, want := t.TempDir(), model(PieceSplats+100, 2)
	s := must.Get(newSpool(Memory(want, ply.Meta{Antialiased: true}), dir))(t)
	got := must.Get(All(s))(t)
	if !slices.Equal(got.Means, want.Means) || !slices.Equal(got.SH, want.SH) || !slices.Equal(got.Quats, want.Quats) ||
		!s.Info().Meta.Antialiased {
		t.Error("the spool is not the model")
	}
	checkGather(t, s, want)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if _, err := newSpool(&failing{Memory(want, ply.Meta{}), broken}, dir); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	if _, err := newSpool(Memory(want, ply.Meta{}), filepath.Join(dir, "none")); !errors.Is(err, fault.ErrTryAgain) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestGatherable wants a model itself where it can be read in any order, a small one in memory, and a large one in a
// file.
func TestGatherable(t *testing.T) {
	small := Memory(model(100, 1), ply.Meta{Antialiased: true})
	if g, free, err := gatherable(small, "none"); err != nil || g != small || free() != nil {
		t.Errorf("%v, %v", g, err)
	}
	g, free, err := gatherable(WithDegree(small, 2), "none")
	if err != nil || g.Info().Degree != 2 || !g.Info().Meta.Antialiased || free() != nil {
		t.Fatalf("%v, %v", g, err)
	}
	checkGather(t, g, allOfDegree(t, small, 2))
	if _, _, err := gatherable(&counted{N: memoryBytes/56 + 1}, filepath.Join(t.TempDir(), "none")); !errors.Is(err,
		fault.ErrTryAgain) {
		t.Errorf("a large model went elsewhere than to a file: %v", err)
	}
}

// allOfDegree reads a model of another degree.
func allOfDegree(t *testing.T, m Source, degree int) *scene.Splats {
	t.Helper()
	s := must.Get(All(WithDegree(m, degree)))(t)
	return s
}

// failing is a model whose reading fails after the first piece.
type failing struct {
	Source
	err error
}

func (f *failing) Read(put func(*scene.Splats) error) error {
	return f.Source.Read(func(piece *scene.Splats) error { return errors.Join(put(piece), f.err) })
}

// TestPLYEncodings reads a file with properties in another order, big-endian, with an element before the vertices, as
// the same splats.
func TestPLYEncodings(t *testing.T) {
	names := strings.Fields("rot_3 rot_2 rot_1 rot_0 scale_2 scale_1 scale_0 opacity f_dc_2 f_dc_1 f_dc_0 z y x")
	values := []float64{0, 0, 0, 1, -3, -2, -1, 0.5, 0.3, 0.2, 0.1, 3, 2, 1}
	var first *scene.Splats
	for _, format := range []string{"ascii", "binary_little_endian", "binary_big_endian"} {
		var b bytes.Buffer
		b.WriteString("ply\nformat " + format + " 1.0\nelement extra 2\nproperty uchar n\nelement vertex 2\n")
		for _, n := range names {
			b.WriteString("property double " + n + "\n")
		}
		b.WriteString("end_header\n")
		encode(&b, format, values)
		path := filepath.Join(t.TempDir(), "m.ply")
		must.Do(t, os.WriteFile(path, b.Bytes(), 0o666))
		m := must.Get(Open(path))(t)
		s := must.Get(All(m))(t)
		if first == nil {
			first = s
		}
		if s.N != 2 || !slices.Equal(s.Means, []float32{1, 2, 3, 1, 2, 3}) || !slices.Equal(s.SH, first.SH) ||
			!slices.Equal(s.Quats, first.Quats) || m.Info().Encoding != format {
			t.Errorf("%s: %+v", format, s)
		}
		if g, ok := m.(Gatherer); ok != (format != "ascii") {
			t.Errorf("%s: any order is %v", format, ok)
		} else if ok {
			checkGather(t, g, s)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
