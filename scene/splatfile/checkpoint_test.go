package splatfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/safetensors"
	"vksplat/shaders/layout"
)

// writeTensors writes a model of degree 1 in the layout of a checkpoint, with a header of any content.
func writeTensors(t *testing.T, path, header string, s *scene.Splats) {
	t.Helper()
	var tensors []safetensors.TensorData
	for _, p := range scene.SplatParts(s.Degree) {
		info := safetensors.TensorInfo{Name: p.Name, DType: "F32", Shape: append([]int{s.N}, p.Shape...)}
		write := func(w io.Writer) error {
			data, stride, from := p.Of(s)
			for i := range s.N {
				if err := binary.Write(w, binary.LittleEndian, data[i*stride+from:][:p.Width]); err != nil {
					return err
				}
			}
			return nil
		}
		if p.Name == "shN" {
			info.DType = "F16"
			write = func(w io.Writer) error { return binary.Write(w, binary.LittleEndian, make([]uint16, p.Width*s.N)) }
		}
		tensors = append(tensors, safetensors.TensorData{TensorInfo: info, Write: write})
	}
	must.Do(t, safetensors.Write(path, CheckpointMetadata(header), tensors))
}

// TestCheckpoint reads one back in the capture's frame: x / scale + centre - origin. That the files of train are read
// as train writes their models is tested by the command's scripts.
func TestCheckpoint(t *testing.T) {
	want := model(50, 1)
	path := filepath.Join(t.TempDir(), "step_5.safetensors")
	writeTensors(t, path, `{"vksplat_version":"7","step":5,"splats":50,"sh_degree":1,"frame":{"center":[1,2,3],"scale":2,"origin":[10,0,0]},"config":{"antialiased":true}}`, want)
	m := must.Get(Open(path))(t)
	defer m.Close() // only read
	got := must.Get(All(m))(t)
	info := m.Info()
	if info.Format != "checkpoint" || !info.Meta.Antialiased || info.Meta.Step != 5 ||
		*info.Meta.Origin != [3]float64{10, 0, 0} || info.Meta.Generator != "vksplat 7" {
		t.Errorf("%+v", info)
	}
	for i := range got.N {
		for k, shift := range []float64{1 - 10, 2, 3} {
			if x := float64(want.Means[3*i+k])/2 + shift; math.Abs(x-float64(got.Means[3*i+k])) > 1e-5 {
				t.Fatalf("splat %d: %g, want %g", i, got.Means[3*i+k], x)
			}
			if l := float64(want.LogScales[3*i+k]) - math.Ln2; math.Abs(l-float64(got.LogScales[3*i+k])) > 1e-6 {
				t.Fatalf("splat %d: log scale %g, want %g", i, got.LogScales[3*i+k], l)
			}
		}
		if got.SH[12*i] != want.SH[12*i] || got.SH[12*i+3] != 0 || got.Quats[4*i] != want.Quats[4*i] {
			t.Fatalf("splat %d differs", i)
		}
	}
	checkGather(t, m.(Gatherer), got)
}

// TestDamagedCheckpoint wants that a file whose bytes are not those that were written gives no splat, whatever is
// damaged.
func TestDamagedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "step_4.safetensors")
	writeTensors(t, good, `{"vksplat_version":"7","step":5,"splats":50,"sh_degree":1,"frame":{"scale":2}}`,
		model(50, 1))
	whole := must.Get(os.ReadFile(good))(t)
	with := func(at int, b byte) []byte {
		data := slices.Clone(whole)
		data[at] ^= b
		return data
	}
	for name, data := range map[string][]byte{
		"first tensor": with(len(whole)-50*4*(11+3)-50*2*9, 1), "last byte": with(len(whole)-1, 0x80),
		"header": with(bytes.Index(whole, []byte(`"7\"`))+1, 1),
		"cut":    whole[:len(whole)-1], "longer": append(slices.Clone(whole), 0),
		"no hash": bytes.Replace(whole, []byte(`"sha256"`), []byte(`"sha257"`), 1),
	} {
		path := filepath.Join(dir, "step_10.safetensors")
		must.Do(t, os.WriteFile(path, data, 0o666))
		for use, err := range map[string]error{
			"read": readFirst(path), "gather": gatherFirst(path),
			"write": writeFrom(path, filepath.Join(dir, "out.spz")),
		} {
			if !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
				t.Errorf("%s: %s: error %v, hint %q", name, use, err, fault.Hint(err))
			}
			if errors.Is(err, safetensors.ErrHash) && !strings.Contains(fault.Hint(err), good) {
				t.Errorf("%s: %s: hint %q does not name %s", name, use, fault.Hint(err), good)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*out.spz*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

// readFirst, gatherFirst and writeFrom use a model of degree 1, and return the first error.
func readFirst(path string) error {
	m, err := Open(path)
	if err != nil {
		return err
	}
	_, err = All(m)
	return errors.Join(err, m.Close())
}

func gatherFirst(path string) error {
	m, err := Open(path)
	if err != nil {
		return err
	}
	return errors.Join(m.(Gatherer).Gather([]uint32{3}, scene.NewSplats(1, 1)), m.Close())
}

func writeFrom(path, to string) error {
	m, err := Open(path)
	if err != nil {
		return err
	}
	_, err = ByName(to).Write(to, m, WriteOptions{})
	return errors.Join(err, m.Close())
}

// TestEarlierCheckpoint looks for steps, not names in alphabetical order.
func TestEarlierCheckpoint(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"step_9.safetensors", "step_10.safetensors", "step_100.safetensors",
		"other.safetensors"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	for name, want := range map[string]string{"step_100.safetensors": "step_10.safetensors",
		"step_10.safetensors": "step_9.safetensors", "step_9.safetensors": "", "other.safetensors": ""} {
		if got := earlierCheckpoint(filepath.Join(dir, name)); got != "" && filepath.Base(got) != want || got == "" &&
			want != "" {
			t.Errorf("before %s: %q, want %q", name, got, want)
		}
	}
}

func TestHalfValue(t *testing.T) {
	for h, want := range map[uint16]float32{0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: 1.0 / (1 << 24),
		0x0400: 1.0 / (1 << 14), 0x3555: 0.333251953125} {
		if got := layout.HalfValue(h); got != want {
			t.Errorf("%#x is %g, want %g", h, got, want)
		}
	}
	if got := layout.HalfValue(0x7c00); !math.IsInf(float64(got), 1) {
		t.Errorf("infinity is %g", got)
	}
}
