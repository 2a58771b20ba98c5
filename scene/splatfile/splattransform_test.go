package splatfile

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
)

// npmConverter is an independent converter (https://github.com/playcanvas/splat-transform).
const npmConverter = "@playcanvas/splat-transform@3.7.0"

// converter runs it.
type converter func(t *testing.T, args ...string)

// TestSplatTransform wants an independent program to read what is written here as this program does, and the other way
// round.
func TestSplatTransform(t *testing.T) {
	_, run := npmTool(t, npmConverter)
	convert := func(t *testing.T, args ...string) {
		t.Helper()
		run(t, "node_modules/@playcanvas/splat-transform/bin/cli.mjs",
			append([]string{"--quiet", "--overwrite"}, args...)...)
	}
	for name, test := range map[string]func(*testing.T, converter){"packed": packedByConverter,
		"spz and glb": spzByConverter, "sog": sogByConverter, "streamed": streamedByConverter} {
		t.Run(name, func(t *testing.T) { test(t, convert) })
	}
}

func packedByConverter(t *testing.T, convert converter) {
	for _, c := range []struct {
		format *Format
		model  *scene.Splats
		equal  func(t *testing.T, got, want *scene.Splats)
	}{
		{compressedPLY, madeModel(600, 3, "spread"), func(t *testing.T, got, want *scene.Splats) {
			for i, x := range want.LogitOpacities {
				near(t, "logit", i, float64(got.LogitOpacities[i]), float64(x), 1e-6)
			}
			copy(got.LogitOpacities, want.LogitOpacities)
			sameModel(t, got, want)
		}},
		{compressedPLY, madeModel(257, 0, "huge"),
			func(t *testing.T, got, want *scene.Splats) { sameModel(t, got, want) }},
		{dotSplat, madeModel(300, 2, "spread"), func(t *testing.T, got, want *scene.Splats) {
			// It takes 255 parts for the range of rotations.
			checkBytesModel(t, got, want, 1.0/128)
		}},
	} {
		t.Run(c.format.Name, func(t *testing.T) {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "model"+c.format.Extensions[0]), filepath.Join(dir, "out.ply")
			must.Get(c.format.Write(in, Memory(c.model, ply.Meta{Antialiased: true}), WriteOptions{}))(t)
			want, _ := readModel(t, c.format, in)
			convert(t, in, out)
			got, _, err := ply.Read(out)
			if err != nil {
				t.Fatal(err)
			}
			c.equal(t, got, want)
		})
	}
}

// An independent converter reads our SPZ as we do. It takes SPZ's axes for those of PLY, so that its reading is turned
// over. The other way round, we read its SPZ and its GLB as the PLY file that they were made from.
func spzByConverter(t *testing.T, convert converter) {
	folder := t.TempDir()
	for _, degree := range []int{0, 3} {
		model := cut(madeModel(60, degree, "edges"))
		for _, version := range []int{3, 4} {
			path, _ := writeTemp(t, spz, "a.spz", model, ply.Meta{}, WriteOptions{Version: version})
			table := filepath.Join(folder, "a.csv")
			convert(t, path, table)
			theirs := csvModel(t, table)
			flip(theirs, 1, -1, -1)
			ours, _ := readModel(t, spz, path)
			compareModels(t, ours, theirs, sameReading)
			compareModels(t, theirs, model, spzTolerance(12))

			file, packed := filepath.Join(folder, "b.ply"), filepath.Join(folder, "b.spz")
			must.Do(t, plytest.Write(file, model, ply.Meta{}))
			convert(t, "--spz-version", strconv.Itoa(version), file, packed)
			read, _ := readModel(t, spz, packed)
			flip(read, 1, -1, -1)
			compareModels(t, read, model, spzTolerance(12))
		}
		file, binary := filepath.Join(folder, "c.ply"), filepath.Join(folder, "c.glb")
		must.Do(t, plytest.Write(file, model, ply.Meta{}))
		convert(t, file, binary)
		read, _ := readModel(t, glb, binary)
		// It turns the model about an axis in float32, and leaves the axes of splats half turned: the same ellipsoids.
		compareModels(t, read, model,
			tolerance{mean: 1e-5, quat: 1e-3, halfTurns: true, scale: 2e-6, opacity: 1e-6, dc: 1e-6, sh1: 1e-6,
				sh: 1e-6})
	}
}

// splat-transform reads what is written here as it is read here, and what it writes from it is read here.
func sogByConverter(t *testing.T, convert converter) {
	dir := t.TempDir()
	for degree := 0; degree <= scene.MaxSHDegree; degree += 3 {
		s := shinySplats(700, degree)
		for _, name := range []string{"a.sog", "meta.json"} {
			path, file := filepath.Join(dir, name), filepath.Join(dir, name+".ply")
			writeSOGModel(t, path, s, ply.Meta{Antialiased: true})
			got, _ := readModel(t, sogFormat, path)
			convert(t, path, file)
			want, info, err := ply.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			if !info.Meta.Antialiased {
				t.Error("splat-transform does not know that the splats are antialiased")
			}
			closeModel(t, got, want)
		}
		again := filepath.Join(dir, "again.sog")
		convert(t, "--gpu", "cpu", filepath.Join(dir, "a.sog.ply"), again)
		got, info := readModel(t, sogFormat, again)
		want, _ := readModel(t, sogFormat, filepath.Join(dir, "a.sog"))
		if !info.Meta.Antialiased || got.N != want.N || got.Degree != degree {
			t.Fatalf("%+v", info)
		}
		// It sorts along its own curve, rounds down where we round, and has a palette of its own: means find each
		// other.
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
