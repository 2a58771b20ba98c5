package bench

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline/bench"
	"vksplat/scene/synth"
)

// benchSample is what bench makes of two rounds of four steps of a tiny scene.
func benchSample() *benchFile {
	rounds := []bench.Round{
		{WallSeconds: 0.04, HostSeconds: 0.004, Visible: 100, Isects: 300, Passes: []bench.PassSample{
			{Name: "begin", MS: 0.5, MeanMS: 0.5, Dispatches: 1},
			{Name: "rasterize", MS: 6, MeanMS: 7.5, Dispatches: 1}}},
		{WallSeconds: 0.08, HostSeconds: 0.002, Visible: 110, Isects: 310, Passes: []bench.PassSample{
			{Name: "begin", MS: 0.75, MeanMS: 0.75, Dispatches: 1},
			{Name: "rasterize", MS: 8, MeanMS: 9.25, Dispatches: 1}}},
	}
	counts := bench.Counts{Splats: 200, Pixels: 1000, Tiles: 4, Bands: 1, Visible: 100, Isects: 300, SeenIsects: 250,
		SeenPairs: 20_000, BlendedPairs: 5_000,
		SortBits: 8, DepthBits: 31, TileBits: 2}
	f := &benchFile{Format: benchFormat, Version: "test",
		Device: benchDevice{Name: "a device", Type: "cpu", SubgroupSize: 8},
		Rates:  bench.Rates{CopyBytes: 1e9, Instructions: 1e8}, Rounds: 2}
	s := &benchScene{Name: "tiny", Resolution: "50x20", Counts: counts, Steps: 4, StepsPerS: spread{50, 50, 100},
		WallMS: spread{10, 10, 20}, HostMS: spread{0.5, 0.5, 1}}
	s.addPasses(rounds, 4)
	s.addFloors(f.Rates)
	f.Scenes = append(f.Scenes, s)
	return f
}

func TestBenchSums(t *testing.T) {
	s := benchSample().Scenes[0]
	if s.PassesMS != (spread{9, 8, 10}) || s.GapMS != (spread{6, 2, 10}) {
		t.Errorf("passes %v, gap %v", s.PassesMS, s.GapMS)
	}
	begin, rasterize := s.Passes[0], s.Passes[1]
	if begin.FloorMS != 0 || begin.Share != 0.625/9 || begin.MS != (spread{0.625, 0.5, 0.75}) {
		t.Errorf("%+v", begin)
	}
	// 20 instructions of each pair that is looked at and 8 of each that is blended, at 1e8 a second, take longer than
	// the bytes.
	floor := 1e3 * (20*20_000 + 8*5_000) / 1e8
	if math.Abs(rasterize.FloorMS-floor) > 1e-9 || math.Abs(rasterize.OverFloor-7/floor) > 1e-9 ||
		rasterize.Share != 8.375/9 || s.FloorMS != rasterize.FloorMS {
		t.Errorf("%+v, want a floor of %g ms", rasterize, floor)
	}
	if want := rasterize.Bytes / 7e-3; math.Abs(rasterize.BytesPerS-want) > 1e-6*want ||
		math.Abs(rasterize.OfCopy-want/1e9) > 1e-9 {
		t.Errorf("%+v", rasterize)
	}
}

func TestBenchFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	f := benchSample()
	if err := writeBench(path, f); err != nil {
		t.Fatal(err)
	}
	got, err := readBench(path)
	if err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%v: wrote %+v, read %+v", err, f, got)
	}
	for _, text := range []string{"", "{}", "[]", `{"format": 2}`, `{"format": 1, "scenes": [null]}`,
		`{"format": 1, "scenes": [{"name": "x", "wall_ms": {"median": 0}}]}`,
		`{"format": 1, "scenes": {}}`, `{"format": "1"}`} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := readBench(path); fault.ExitCode(err) != fault.ExitUsage || fault.Hint(err) == "" ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%q: error %v", text, err)
		}
	}
	huge := filepath.Join(t.TempDir(), "huge")
	if err := errors.Join(os.WriteFile(huge, nil, 0o666), os.Truncate(huge, maxBenchFile+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := readBench(huge); err == nil {
		t.Error("a file without end is read")
	}
}

func TestBenchCompare(t *testing.T) {
	before, now := benchSample(), benchSample()
	now.Scenes[0].WallMS.Median = 15
	now.Scenes[0].Passes[1].MS.Median = 3
	before.Scenes[0].Passes[0].Name = "gone\x1b[31m"
	now.Scenes = append(now.Scenes, &benchScene{Name: "unknown", WallMS: spread{1, 1, 1}})
	now.Device.Driver = "another"
	compare := func(most float64) (stdout, stderr string, err error) {
		var out, warnings bytes.Buffer
		err = compareBench(cli.New(nil, &out, &warnings), before, now, most)
		return out.String(), warnings.String(), err
	}
	stdout, stderr, err := compare(0)
	if err != nil {
		t.Error(err)
	}
	for _, line := range []string{`rasterize +7\.0000 +3\.0000 +0\.429`, `begin +0\.0000 +0\.6250 +new`,
		`gone\S+ +0\.6250 +0\.0000 +gone`, `step +10\.0000 +15\.0000 +1\.500`} {
		if !regexp.MustCompile(`(?m)^ *` + line + ` *$`).MatchString(stdout) {
			t.Errorf("no line %s in\n%s", line, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("the file's names reach the terminal as they are")
	}
	if !strings.Contains(stderr, "unknown is not in the results") || !strings.Contains(stderr, "a device") {
		t.Errorf("warnings:\n%s", stderr)
	}
	if _, _, err := compare(1.6); err != nil {
		t.Error(err)
	}
	_, _, err = compare(1.4)
	if fault.ExitCode(err) != fault.ExitFailure || fault.Hint(err) == "" || !strings.Contains(err.Error(),
		"1.500 times as long") {
		t.Errorf("error %v", err)
	}
}

func TestBenchNames(t *testing.T) {
	f := benchSample()
	for _, want := range []string{"tiny (2)", "tiny (3)"} {
		if got := f.name("tiny"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		f.Scenes = append(f.Scenes, &benchScene{Name: want})
	}
}

// TestMadeUpModels wants, of the suites' models, about the overlap of trained ones whatever their number: tiles a
// splat, splats in view.
func TestMadeUpModels(t *testing.T) {
	for _, m := range []madeUp{{2000, 192, 108}, {20_000, 192, 108}, {2000, 480, 270}} {
		synth, err := synth.New(synth.Options{Images: madeUpViews, Width: m.width, Height: m.height, Points: m.splats,
			Seed: suiteSeed})
		if err != nil {
			t.Fatal(err)
		}
		s := synth.Splats(1)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if again := synth.Splats(1); !reflect.DeepEqual(s, again) {
			t.Error("the same options make another model")
		}
		c := synth.Cameras()[0]
		inView, area := 0, 0.0
		for i := range s.N {
			var p [3]float64
			for r := range 3 {
				p[r] = c.T[r]
				for k := range 3 {
					p[r] += c.R[3*r+k] * float64(s.Means[3*i+k])
				}
			}
			x, y := c.Fx*p[0]/p[2]+c.Cx, c.Fy*p[1]/p[2]+c.Cy
			if p[2] > 0 && x >= 0 && y >= 0 && x < float64(c.Width) && y < float64(c.Height) {
				inView++
				size := func(k int) float64 { return c.Fx / p[2] * math.Exp(float64(s.LogScales[3*i+k])) }
				area += 2 * math.Pi * size(0) * size(1)
			}
		}
		layers := area / float64(m.width*m.height)
		t.Logf("%s: %d in view, %.1f layers", m.name(), inView, layers)
		if inView < s.N/3 || layers < 3 || layers > 30 {
			t.Errorf("%s: %d in view, %.1f layers", m.name(), inView, layers)
		}
	}
}
