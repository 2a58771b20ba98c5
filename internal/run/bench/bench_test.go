package bench

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/pipeline/bench"
	"vksplat/scene/synth"
)

// benchSample is what bench makes of two rounds of four steps of a tiny scene.
func benchSample() *benchFile {
	rounds := []bench.Round{
		{Steps: 4, WallSeconds: 0.04, HostSeconds: 0.004, TimedSeconds: 0.048, Visible: 100, Isects: 300,
			Passes: []bench.PassSample{{Name: "begin", MS: 0.5, Dispatches: 2, Launches: 1},
				{Name: "rasterize", MS: 7.5, Dispatches: 1, Launches: 1}}},
		{Steps: 4, WallSeconds: 0.032, HostSeconds: 0.002, TimedSeconds: 0.056, Visible: 110, Isects: 310,
			Passes: []bench.PassSample{{Name: "begin", MS: 0.75, Dispatches: 2, Launches: 1},
				{Name: "rasterize", MS: 9.25, Dispatches: 1, Launches: 1}}},
	}
	counts := bench.Counts{Splats: 200, Pixels: 1000, Tiles: 4, Bands: 1, Visible: 100, Isects: 300, SeenIsects: 250,
		SeenPairs: 20_000, BlendedPairs: 5_000, Visits: 500, VisitsBwd: 400, Lanes: 32, LanesBwd: 16,
		SortBits: 8, DepthBits: 31, TileBits: 2}
	f := &benchFile{Format: benchFormat, Version: "test",
		Device: benchDevice{Name: "a device", Type: "cpu", SubgroupSize: 8},
		Rates:  bench.Rates{CopyBytes: 1e9, Instructions: 2e8, SharedWords: 1e9, Shuffles: 1e9, LaunchSeconds: 1e-5},
		Rounds: 2}
	s := &benchScene{Name: "tiny", Resolution: "50x20", Counts: counts, Steps: 4,
		StepsPerS: spread{1000 / 9.0, 100, 125}, WallMS: each(rounds, (*bench.Round).WallMS),
		HostMS: each(rounds, (*bench.Round).HostMS)}
	s.addPasses(rounds)
	s.addFloors(f.Rates)
	f.Scenes = append(f.Scenes, s)
	return f
}

func TestBenchSums(t *testing.T) {
	s := benchSample().Scenes[0]
	// In the second round timestamps slow passes down so much that they take longer than a step without.
	if s.WallMS != (spread{9, 8, 10}) || s.PassesMS != (spread{9, 8, 10}) || s.GapMS != (spread{0, -2, 2}) ||
		s.TimedMS != (spread{13, 12, 14}) {
		t.Errorf("step %v, passes %v, gap %v, with timestamps %v", s.WallMS, s.PassesMS, s.GapMS, s.TimedMS)
	}
	begin, rasterize := s.Passes[0], s.Passes[1]
	if begin.FloorMS != 1e3*1e-5 || begin.Bound != bench.BoundLaunch || begin.Share != 0.625/9 ||
		begin.MS != (spread{0.625, 0.5, 0.75}) || begin.MeanMS != 0.625 {
		t.Errorf("%+v", begin)
	}
	// 240 instructions of each isect and 36 of each of a visit's lanes, at 2e8 a second, take longer than the bytes.
	floor := 1e3 * ((250*240+500*32*36)/2e8 + 1e-5)
	if math.Abs(rasterize.FloorMS-floor) > 1e-9 || math.Abs(rasterize.OverFloor-8.375/floor) > 1e-9 ||
		rasterize.Bound != bench.BoundArithmetic || rasterize.Share != 8.375/9 ||
		s.FloorMS != begin.FloorMS+rasterize.FloorMS {
		t.Errorf("%+v, want a floor of %g ms", rasterize, floor)
	}
	if want := rasterize.Bytes / 8.375e-3; math.Abs(rasterize.BytesPerS-want) > 1e-6*want ||
		math.Abs(rasterize.OfCopy-want/1e9) > 1e-9 {
		t.Errorf("%+v", rasterize)
	}
}

// TestBenchAddsUp wants the rows of the printed table to add up to the step without timestamps.
func TestBenchAddsUp(t *testing.T) {
	var out bytes.Buffer
	printScene(cli.New(nil, &out, &out), benchSample().Scenes[0])
	row := regexp.MustCompile(`(?m)^ *(\S.*?)  +(-?\d+\.\d{4}) .*?(-?\d+\.\d)%`)
	names, sum, share, step := []string{}, 0.0, 0.0, 0.0
	for _, m := range row.FindAllStringSubmatch(out.String(), -1) {
		ms, _ := strconv.ParseFloat(m[2], 64)
		percent, _ := strconv.ParseFloat(m[3], 64)
		if m[1] == "step" {
			step = ms
			break
		}
		names, sum, share = append(names, m[1]), sum+ms, share+percent
	}
	if want := []string{"begin", "rasterize", "gaps", "less timestamp inflation"}; !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
	if step != 9 || math.Abs(sum-step) > 1e-3 || math.Abs(share-100) > 0.3 {
		t.Errorf("rows add up to %g ms and %g%%, a step is %g ms:\n%s", sum, share, step, out.String())
	}
}

// TestBenchOldFile compares with a file of the version before steps without timestamps were measured.
func TestBenchOldFile(t *testing.T) {
	before := must.Get(readBench(filepath.Join("testdata", "old.json")))(t)
	now := benchSample()
	now.Scenes[0].Name = before.Scenes[0].Name
	var out, warnings bytes.Buffer
	must.Do(t, compareBench(cli.New(nil, &out, &warnings), before, now, 0))
	for _, line := range []string{`begin +0\.0051 +0\.6250 +\S+`, `rasterize +0\.2222 +8\.3750 +\S+`,
		`step +1\.7967 +9\.0000 +5\.009`} {
		if !regexp.MustCompile(`(?m)^ *` + line + ` *$`).MatchString(out.String()) {
			t.Errorf("no line %s in\n%s", line, out.String())
		}
	}
}

func TestWholeEpochs(t *testing.T) {
	for _, tt := range [][3]int{{200, 37, 222}, {200, 127, 254}, {200, 25, 200}, {200, 201, 200}, {50, 1, 50}} {
		if got := wholeEpochs(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%d steps of %d photos become %d, want %d", tt[0], tt[1], got, tt[2])
		}
	}
}

// TestWarm wants rounds to begin with an epoch where the run is long enough, also with thousands of photos.
func TestWarm(t *testing.T) {
	for _, tt := range []struct{ done, settle, n, room, want int }{
		{1000, 50, 37, 1000, 1073 - 1000},
		{1000, 500, 1400, 5000, 1800},
		{1000, 500, 1400, 1000, 1000}, // --iterations 1000: what most reserves
		{1000, 500, 3000, 1000, 500},
		{0, 50, 7, 1000, 56},
		{4, 3, 8, 2, 3},
	} {
		if got := warm(tt.done, tt.settle, tt.n, tt.room); got != tt.want {
			t.Errorf("%+v: %d steps", tt, got)
		}
	}
}

func TestBenchFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	f := benchSample()
	must.Do(t, output.WriteJSON(path, f))
	got, err := readBench(path)
	if err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%v: wrote %+v, read %+v", err, f, got)
	}
	for _, text := range []string{"", "{}", "[]", `{"format": 2}`, `{"format": 1, "scenes": [null]}`,
		`{"format": 1, "scenes": [{"name": "x", "wall_ms": {"median": 0}}]}`,
		`{"format": 1, "scenes": {}}`, `{"format": "1"}`} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o666))
		if _, err := readBench(path); fault.ExitCode(err) != fault.ExitUsage || fault.Hint(err) == "" ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%q: error %v", text, err)
		}
	}
	huge := filepath.Join(t.TempDir(), "huge")
	must.Do(t, errors.Join(os.WriteFile(huge, nil, 0o666), os.Truncate(huge, strictjson.MaxFile+1)))
	if _, err := readBench(huge); err == nil {
		t.Error("a file without end is read")
	}
}

func TestBenchCompare(t *testing.T) {
	before, now := benchSample(), benchSample()
	now.Scenes[0].WallMS.Median = 15
	now.Scenes[0].Passes[1].MeanMS = 3
	before.Scenes[0].Passes[0].Name = "gone\x1b[31m"
	now.Scenes = append(now.Scenes, &benchScene{Name: "unknown", WallMS: spread{1, 1, 1}})
	now.Scenes[0].Precision, now.Device.Driver = "other", "another"
	compare := func(most float64) (stdout, stderr string, err error) {
		var out, warnings bytes.Buffer
		err = compareBench(cli.New(nil, &out, &warnings), before, now, most)
		return out.String(), warnings.String(), err
	}
	stdout, stderr, err := compare(0)
	if err != nil {
		t.Error(err)
	}
	for _, line := range []string{`rasterize +8\.3750 +3\.0000 +0\.358`, `begin +0\.0000 +0\.6250 +new`,
		`gone\S+ +0\.6250 +0\.0000 +gone`, `step +9\.0000 +15\.0000 +1\.667`} {
		if !regexp.MustCompile(`(?m)^ *` + line + ` *$`).MatchString(stdout) {
			t.Errorf("no line %s in\n%s", line, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("the file's names reach the terminal as they are")
	}
	if !strings.Contains(stderr, "unknown is not in the results") || !strings.Contains(stderr, "a device") ||
		!strings.Contains(stderr, "it is other now") {
		t.Errorf("warnings:\n%s", stderr)
	}
	if _, _, err := compare(1.7); err == nil || !strings.Contains(err.Error(), "unknown is not in the results") {
		t.Errorf("error %v", err)
	}
	now.Scenes = now.Scenes[:1]
	if _, _, err := compare(1.7); err != nil {
		t.Error(err)
	}
	_, _, err = compare(1.4)
	if fault.ExitCode(err) != fault.ExitFailure || fault.Hint(err) == "" || !strings.Contains(err.Error(),
		"1.667 times as long") {
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
		must.Do(t, s.Validate())
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
