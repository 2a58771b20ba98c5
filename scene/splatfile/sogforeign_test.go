package splatfile

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vksplat/scene"
)

const sogForeignSplats = "../../../shared/data/splats"

// Files of splat-transform, where a checkout has them, with its own reading of one as PLY.
func TestSOGForeign(t *testing.T) {
	if _, err := os.Stat(sogForeignSplats); err != nil {
		t.Skip("no folder of splat files beside the repository")
	}
	for name, n := range map[string]int{"playbot_sog_3_0": 31000, "playbot_sog_4_0": 8406, "playbot_sog_6_0": 1873} {
		for _, path := range []string{name, name + "/meta.json"} {
			s, info := sogReadModel(t, filepath.Join(sogForeignSplats, "playcanvas-engine", path))
			if s.N != n || info.Degree != 2 || info.Meta.Generator != "splat-transform v0.16.0" {
				t.Errorf("%s: %+v", name, info)
			}
			if err := s.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	s, _ := sogReadModel(t, filepath.Join(sogForeignSplats, "playcanvas-engine/playbot_sog_6_0"))
	want, _, err := scene.ReadPLY(filepath.Join(sogForeignSplats, "converted_by_splat-transform/playbot6.ply"))
	if err != nil {
		t.Fatal(err)
	}
	sogSameModel(t, s, want)
	// Scales, opacities and harmonics that came from a SOG lose nothing when they are written again: each is one of those that the format has. Means get another
	// box, and of two largest components of a rotation the other may be left out.
	again, _ := writeModel(t, filepath.Join(t.TempDir(), "again.sog"), s, scene.PLYMeta{})
	checkMeans(t, again, s)
	checkRest(t, again, s)
	copy(again.Means, s.Means)
	copy(again.Quats, s.Quats)
	sogSameModel(t, again, s)
}

// sogSameModel compares two readings of the same file: equal but for the last digits of logarithms and exponentials.
func sogSameModel(t *testing.T, got, want *scene.Splats) {
	t.Helper()
	if got.N != want.N || got.Degree != want.Degree {
		t.Fatalf("%d splats of degree %d, want %d of %d", got.N, got.Degree, want.N, want.Degree)
	}
	for _, part := range []struct {
		name      string
		got, want []float32
	}{{"means", got.Means, want.Means}, {"quats", got.Quats, want.Quats}, {"log_scales", got.LogScales, want.LogScales},
		{"logit_opacities", got.LogitOpacities, want.LogitOpacities}, {"sh", got.SH, want.SH}} {
		for i := range part.want {
			if d := math.Abs(float64(part.got[i]) - float64(part.want[i])); !(d <= 1e-6*max(1, math.Abs(float64(part.want[i])))) {
				t.Fatalf("%s: number %d is %v, want %v", part.name, i, part.got[i], part.want[i])
			}
		}
	}
}

// splatTransform runs the program that defines the format, from the npm registry.
func splatTransform(t *testing.T, args ...string) {
	t.Helper()
	npx, err := exec.LookPath("npx")
	if err != nil {
		t.Skip("no npx: splat-transform cannot be asked")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{"--yes", "@playcanvas/splat-transform@3.7.0", "--quiet", "--overwrite"}, args...)
	if out, err := exec.CommandContext(ctx, npx, "--yes", "@playcanvas/splat-transform@3.7.0", "--version").CombinedOutput(); err != nil {
		t.Skipf("splat-transform cannot be fetched or run: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(ctx, npx, args...).CombinedOutput(); err != nil {
		t.Fatalf("splat-transform %q: %v\n%s", args, err, out)
	}
}

// splat-transform reads what is written here as it is read here, and what it writes from it is read here.
func TestSOGSplatTransform(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	dir := t.TempDir()
	for degree := 0; degree <= scene.MaxSHDegree; degree += 3 {
		s := shinySplats(700, degree)
		for _, name := range []string{"a.sog", "meta.json"} {
			path, ply := filepath.Join(dir, name), filepath.Join(dir, name+".ply")
			writeModel(t, path, s, scene.PLYMeta{Antialiased: true})
			got, _ := sogReadModel(t, path)
			splatTransform(t, path, ply)
			want, info, err := scene.ReadPLY(ply)
			if err != nil {
				t.Fatal(err)
			}
			if !info.Meta.Antialiased {
				t.Error("splat-transform does not know that the splats are antialiased")
			}
			sogSameModel(t, got, want)
		}
		again := filepath.Join(dir, "again.sog")
		splatTransform(t, "--gpu", "cpu", filepath.Join(dir, "a.sog.ply"), again)
		got, info := sogReadModel(t, again)
		want, _ := sogReadModel(t, filepath.Join(dir, "a.sog"))
		if !info.Meta.Antialiased || got.N != want.N || got.Degree != degree {
			t.Fatalf("%+v", info)
		}
		// It sorts along its own curve, rounds down where we round, and has a palette of its own: means find each other.
		at := map[[3]int]int{}
		for i := range want.N {
			at[meanKey(want, i)] = i
		}
		found := 0
		for i := range got.N {
			if _, ok := at[meanKey(got, i)]; ok {
				found++
			}
		}
		if found < got.N*8/10 {
			t.Errorf("%d of %d means are among those that it was given", found, got.N)
		}
	}
}

func meanKey(s *scene.Splats, i int) (key [3]int) {
	for axis := range 3 {
		key[axis] = int(math.Round(float64(s.Means[3*i+axis]) * 50))
	}
	return key
}
