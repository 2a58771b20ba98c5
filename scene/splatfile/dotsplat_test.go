package splatfile

import (
	"bytes"
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
)

// checkDotSplat compares a model with the one that was written.
func checkDotSplat(t *testing.T, got, want *scene.Splats, worst worstErrors) {
	t.Helper()
	order := must.Get(importanceOrder(Memory(want, ply.Meta{})))(t)
	k := 3 * want.K()
	for i, id := range order {
		from := int(id)
		for axis := range 3 {
			if got.Means[3*i+axis] != want.Means[3*from+axis] {
				t.Fatalf("splat %d is at %v, want %v", from, got.Means[3*i:3*i+3], want.Means[3*from:3*from+3])
			}
			near(t, "scale", from, float64(got.LogScales[3*i+axis]), float64(want.LogScales[3*from+axis]), 4e-6)
			color := min(max(colorOf(want.SH[k*from+axis]), 0), 1)
			near(t, "colour", from, colorOf(got.SH[3*i+axis]), color, 0.5/255+1e-6)
			worst.add("colour", math.Abs(colorOf(got.SH[3*i+axis])-color))
		}
		near(t, "opacity", from, sigmoid(got.LogitOpacities[i]), sigmoid(want.LogitOpacities[from]), 0.5/255+1e-6)
		worst.add("opacity", math.Abs(sigmoid(got.LogitOpacities[i])-sigmoid(want.LogitOpacities[from])))
		// Half a step of 1/128, a whole one for 1 itself; the length that differs from 1 adds as much again at most.
		e := quatError(got.Quats[4*i:4*i+4], want.Quats[4*from:4*from+4])
		near(t, "rotation", from, e, 0, 1.5/128)
		worst.add("rotation", e)
	}
}

func TestDotSplat(t *testing.T) {
	worst := worstErrors{}
	for _, kind := range []string{"spread", "point", "huge"} {
		for _, n := range []int{0, 1, 255, 256, 257, 2500} {
			for degree := range scene.MaxSHDegree + 1 {
				s := madeModel(n, degree, kind)
				once, info, lost := written(t, dotSplat, s, ply.Meta{}, WriteOptions{})
				checkDotSplat(t, once, s, worst)
				if told := strings.Contains(fmt.Sprint(lost), "harmonics"); told != (degree > 0) || info.Degree != 0 {
					t.Errorf("degree %d became %d, told of %q", degree, info.Degree, lost)
				}
				twice, _, lost := written(t, dotSplat, once, info.Meta, WriteOptions{})
				checkDotSplat(t, twice, once, worstErrors{})
				if len(lost) != 0 {
					t.Errorf("a model from .splat loses %q", lost)
				}
			}
		}
	}
	t.Logf("greatest errors: %v", worst)
}

func TestDotSplatLost(t *testing.T) {
	s := madeModel(3, 0, "spread")
	copy(s.SH, []float32{-2, 2, 0})
	meta := ply.Meta{Antialiased: true, Origin: &[3]float64{1, 2, 3}}
	_, _, lost := written(t, dotSplat, s, meta, WriteOptions{})
	for _, what := range []string{"2 colour values", "antialiased", "origin"} {
		if !strings.Contains(fmt.Sprint(lost), what) {
			t.Errorf("%q says nothing of %s", lost, what)
		}
	}
}

// TestDotSplatBytes fixes the layout.
func TestDotSplatBytes(t *testing.T) {
	s := scene.NewSplats(1, 0)
	copy(s.Means, []float32{1, -2, 0.5})
	copy(s.LogScales, []float32{0, float32(math.Log(2)), -ply.InfiniteLog})
	copy(s.SH, []float32{byteColors[10], byteColors[0], byteColors[255]})
	s.LogitOpacities[0] = ply.InfiniteLog
	copy(s.Quats, []float32{2, 0, -2, 0})
	path := filepath.Join(t.TempDir(), "a.splat")
	must.Get(dotSplat.Write(path, Memory(s, ply.Meta{}), WriteOptions{}))(t)
	got, err := os.ReadFile(path)
	want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}
	if err != nil || !bytes.HasPrefix(got, want) || !bytes.Equal(got[24:], []byte{10, 0, 255, 255, 219, 128, 37, 128}) {
		t.Errorf("% x, %v", got, err)
	}
}

func TestDotSplatForeign(t *testing.T) {
	got, _ := readModel(t, dotSplat, foreignSplats(t, "splat-transform/minimal.splat"))
	want, _, err := ply.Read(foreignSplats(t, "converted_by_splat-transform/minimal.splat.ply"))
	if err != nil {
		t.Fatal(err)
	}
	// That program takes 255 parts for the range of rotations.
	checkBytesModel(t, got, want, 1.0/128)
}

// checkBytesModel compares models of degree 0 of the same order from a format with exact positions.
func checkBytesModel(t *testing.T, got, want *scene.Splats, quat float64) {
	t.Helper()
	if got.N != want.N || got.Degree != want.Degree || got.N == 0 {
		t.Fatalf("%d splats of degree %d, want %d of %d", got.N, got.Degree, want.N, want.Degree)
	}
	for i := range got.N {
		for axis := range 3 {
			near(t, "position", i, float64(got.Means[3*i+axis]), float64(want.Means[3*i+axis]), 0)
			near(t, "scale", i, float64(got.LogScales[3*i+axis]), float64(want.LogScales[3*i+axis]), 1e-6)
			near(t, "colour", i, float64(got.SH[3*i+axis]), float64(want.SH[3*i+axis]), 1e-6)
		}
		near(t, "opacity", i, sigmoid(got.LogitOpacities[i]), sigmoid(want.LogitOpacities[i]), 1e-6)
		near(t, "rotation", i, quatError(got.Quats[4*i:4*i+4], want.Quats[4*i:4*i+4]), 0, quat)
	}
}

func TestDotSplatRefused(t *testing.T) {
	refused(t, dotSplat, "half a splat", make([]byte, 48))
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none.splat")} {
		for _, f := range []*Format{dotSplat, ksplat, compressedPLY} {
			if _, err := f.Open(path); err == nil || !strings.Contains(err.Error(), path) || fault.Hint(err) == "" {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
	}
}

func FuzzDotSplat(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0x7f, 0x80, 0, 255}, 16))
	fuzzReader(f, dotSplat)
}
