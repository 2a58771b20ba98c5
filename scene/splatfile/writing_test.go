package splatfile

import (
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
	"vksplat/shaders/layout"
)

func TestBytes(t *testing.T) {
	for b := range 256 {
		if got := opacityByte(byteLogits[b]); int(got) != b {
			t.Errorf("opacity %d/255 becomes %d/255", b, got)
		}
		if got := unit(colorOf(byteColors[b]), 255); int(got) != b {
			t.Errorf("colour %d/255 becomes %d/255", b, got)
		}
	}
	for _, c := range []struct {
		half uint16
		want float64
	}{{0, 0}, {0x3c00, 1}, {0xc000, -2}, {0x7bff, 65504}, {1, math.Ldexp(1, -24)}, {0x03ff, math.Ldexp(1023, -24)},
		{0x0400, math.Ldexp(1, -14)},
		{0x3555, 0.333251953125}, {0x7c00, math.Inf(1)}, {0xfc00, math.Inf(-1)}} {
		if got := float64(layout.HalfValue(c.half)); got != c.want {
			t.Errorf("half %#x is %v, want %v", c.half, got, c.want)
		}
	}
	if got := layout.HalfValue(0x7e00); got == got {
		t.Errorf("half 0x7e00 is %v, want NaN", got)
	}
}

func TestImportanceOrder(t *testing.T) {
	s := scene.NewSplats(6, 0)
	for i, v := range [][2]float32{{0, 0}, {0, 1}, {-3, 0}, {0, 0}, {5, -1}, {-80, -80}} { // logit, log of each axis
		s.LogitOpacities[i] = v[0]
		for axis := range 3 {
			s.LogScales[3*i+axis] = v[1]
		}
	}
	order, err := importanceOrder(Memory(s, ply.Meta{}))
	if want := "[1 0 3 4 2 5]"; err != nil || fmt.Sprint(order) != want {
		// 0.5 e^3, 0.5 twice in their order, 0.993 e^-3, 0.047, nothing.
		t.Errorf("order %v, want %s, %v", order, want, err)
	}
}

func TestNotWritable(t *testing.T) {
	for _, f := range []*Format{compressedPLY, dotSplat} {
		for what, spoil := range map[string]func(s *scene.Splats){
			"position": func(s *scene.Splats) { s.Means[3*7+1] = float32(math.NaN()) },
			"scale":    func(s *scene.Splats) { s.LogScales[3*7+2] = float32(math.Inf(-1)) },
			"sh":       func(s *scene.Splats) { s.SH[12*7+11] = float32(math.Inf(1)) },
			"rotation": func(s *scene.Splats) { clear(s.Quats[4*7 : 4*8]) },
		} {
			s := madeModel(20, 1, "spread")
			spoil(s)
			path := filepath.Join(t.TempDir(), "model")
			_, err := f.Write(path, Memory(s, ply.Meta{}), WriteOptions{})
			if err == nil || !strings.Contains(err.Error(), "splat 7: ") || !strings.Contains(err.Error(), what) {
				t.Errorf("%s with a bad %s: %v", f.Name, what, err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s with a bad %s: the file was made", f.Name, what)
			}
		}
	}
}

// TestShrunk reads files that were cut short after their headers were read.
func TestShrunk(t *testing.T) {
	data, _ := madeKsplat(1, madeModel(40, 1, "spread"))
	path := filepath.Join(t.TempDir(), "model")
	for _, f := range []*Format{compressedPLY, dotSplat, ksplat} {
		if f.Write == nil || f.Open == nil {
			must.Do(t, os.WriteFile(path, data, 0o600))
		} else if _, err := f.Write(path, Memory(madeModel(40, 1, "spread"), ply.Meta{}), WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		source := must.Get(f.Open(path))(t)
		info := must.Get(os.Stat(path))(t)
		must.Do(t, os.Truncate(path, info.Size()-1))
		if _, err := All(source); !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: read: %v", f.Name, err)
		}
		if err := source.(Gatherer).Gather([]uint32{39}, scene.NewSplats(1, source.Info().Degree)); !errors.Is(err,
			fault.ErrData) {
			t.Errorf("%s: gathered: %v", f.Name, err)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPackedNames(t *testing.T) {
	for name, want := range map[string]*Format{"splat": dotSplat, "dir.splat/A.KSPLAT": ksplat, "a.splat": dotSplat,
		"a.b.compressed.ply": compressedPLY, "compressed-ply": compressedPLY} {
		if got := ByName(name); got != want {
			t.Errorf("%s is %v, want %s", name, got, want.Name)
		}
	}
}
