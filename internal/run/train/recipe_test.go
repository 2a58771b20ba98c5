package train

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/BurntSushi/toml"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// field is a setting of these tests: a number, a switch or a text.
type field struct{ p any }

func (f field) String() string { return fmt.Sprint(reflect.ValueOf(f.p).Elem()) }

func (f field) Set(text string) error {
	if s, isText := f.p.(*string); isText {
		*s = text
		return nil
	}
	_, err := fmt.Sscan(text, f.p)
	return err
}

// vocabulary names settings as the command does.
var vocabulary = Vocabulary{
	Setting: func(o *Options, name string) Setting {
		own := map[string]any{"preset": &o.Preset, "steps-scaler": &o.StepsScaler, "splats-factor": &o.SplatsFactor,
			"iterations-factor": &o.IterationsFactor, "few-photos": &o.FewPhotos}
		if p, is := own[name]; is {
			return field{p}
		}
		for i := range recipe.Settings {
			if s := &recipe.Settings[i]; cli.Dashed(s.Name) == name {
				return field{s.Of(&o.Config)}
			}
		}
		return nil
	},
	Preset: func(name string) (map[string]string, error) {
		var values map[string]any
		_, err := toml.DecodeFS(Presets, "presets/"+name+".toml", &values)
		texts := map[string]string{}
		for key, v := range values {
			texts[cli.Dashed(key)] = fmt.Sprint(v)
		}
		return texts, err
	},
}

// texts are settings by name.
type texts map[string]string

// resolved returns the options of a call with flags and a configuration file.
func resolved(t *testing.T, flags, file texts) *Options {
	t.Helper()
	o := NewOptions()
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		must.Do(t, vocabulary.Setting(o, name).Set(flags[name]))
	}
	must.Do(t, o.Resolve(vocabulary, file, slices.Collect(maps.Keys(flags))))
	return o
}

// photographed is a capture of so many photos.
func photographed(photos int) *scene.Capture {
	c := &scene.Capture{Cameras: make([]scene.Camera, photos), Points: make([]scene.Point, 1000)}
	for i := range c.Cameras {
		c.Cameras[i] = scene.Camera{Name: fmt.Sprint(i), Width: 640, Height: 480}
	}
	return c
}

// followsFactor returns the configuration of a run that follows a capture of so many photos.
func followed(o *Options, photos int) recipe.Config {
	r := NewRun(o, &cli.Console{})
	r.training = photographed(photos)
	r.setup.followCapture()
	return r.Config
}

// TestFollowSteps wants the whole schedule to stretch with the number of photos, but for what was given.
func TestFollowSteps(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		flags, file              texts
		photos                   int
		iterations, stop, degree int // refine_stop and sh_degree_interval
	}{
		{"default", nil, nil, 125, 9125, 7603, 303},
		{"scaled", texts{"steps-scaler": "0.5"}, nil, 125, 4562, 3801, 151},
		{"a factor", texts{"iterations-factor": "100"}, nil, 64, 1600, 1333, 53},
		{"a number stays", texts{"refine-stop": "5000"}, nil, 125, 9125, 5000, 303},
		{"a number stays, scaled", texts{"refine-stop": "5000", "steps-scaler": "0.5"}, nil, 125, 4562, 2500, 151},
		{"a number of the file stays", nil, texts{"refine-stop": "5000"}, 125, 9125, 5000, 303},
		{"a file's factor stretches the file's numbers", nil,
			texts{"iterations": "1000", "iterations-factor": "200", "refine-stop": "600"}, 125, 5000, 3000, 166},
		{"but no flag", texts{"refine-stop": "600"},
			texts{"iterations": "1000", "iterations-factor": "200", "sh-degree-interval": "40"}, 125, 5000, 600, 200},
		{"a factor goes before a file's number", texts{"iterations-factor": "200"}, texts{"iterations": "1000"}, 125,
			5000, 4166, 166},
		{"a number goes before a file's factor", texts{"iterations": "1000"}, texts{"iterations-factor": "200"}, 100,
			1000, 833, 33},
		{"a number", texts{"iterations": "3500"}, nil, 100, 3500, 2916, 116},
		{"published", texts{"preset": "3dgs"}, nil, 100, 30000, 15000, 1000},
		{"published in other steps", texts{"preset": "3dgs", "iterations": "7000"}, nil, 100, 7000, 15000, 1000},
	} {
		c := followed(resolved(t, tt.flags, tt.file), tt.photos)
		// Numbers that are rounded down twice may be one less.
		near := func(got, want int) bool { return got == want || got == want+1 || got == want-1 }
		if c.Iterations != tt.iterations || !near(c.RefineStop, tt.stop) || !near(c.SHInterval, tt.degree) {
			t.Errorf("%s: %d steps, refined until %d, a degree every %d, want %d, %d, %d", tt.name, c.Iterations,
				c.RefineStop, c.SHInterval, tt.iterations, tt.stop, tt.degree)
		}
	}
}

// TestStartLarger wants a schedule for the capture to begin with photos that show enough, and others as they are.
func TestStartLarger(t *testing.T) {
	for _, tt := range []struct {
		flags         texts
		width, height int
		want          int
	}{
		{nil, 2000, 1024, 3}, {nil, 2000, 512, 2}, {nil, 2000, 511, 1}, {nil, 255, 300, 0},
		{texts{"num-downscales": "2"}, 64, 64, 2}, {texts{"iterations": "900"}, 64, 64, 0},
		{texts{"preset": "3dgs"}, 64, 64, 0},
	} {
		r := NewRun(resolved(t, tt.flags, nil), &cli.Console{})
		cams := []scene.Camera{{Width: 4000, Height: 4000}, {Width: tt.width, Height: tt.height}}
		r.training = &scene.Capture{Cameras: cams}
		r.setup.followCapture()
		if r.Config.NumDownscales != tt.want {
			t.Errorf("%v, %dx%d: halved %d times, want %d", tt.flags, tt.width, tt.height, r.Config.NumDownscales,
				tt.want)
		}
	}
}

// TestFollowStepsOfBlock gives a block with a quarter of the photos a quarter of the whole's schedule, and without
// ShareSteps that of a capture of its own.
func TestFollowStepsOfBlock(t *testing.T) {
	plan := &plans.Plan{Photos: 100}
	if err := json.Unmarshal([]byte(`[{"trained":25}]`), &plan.Blocks); err != nil || plan.Share(0) != 0.25 {
		t.Fatal(plan.Share(0), err)
	}
	whole, alone := followed(resolved(t, nil, nil), 100), followed(resolved(t, nil, nil), 25)
	for _, share := range []bool{false, true} {
		o := resolved(t, nil, nil)
		o.Divided, o.Block, o.ShareSteps = plan, 0, share
		o.configure()
		got, want := followed(o, 25), alone
		if share {
			want = whole.ForShare(0.25)
		}
		// a quarter of a rounded number, or a rounded quarter
		if math.Abs(float64(got.Iterations-want.Iterations)) > 1 ||
			math.Abs(float64(got.RefineStop-want.RefineStop)) > 2 ||
			math.Abs(float64(got.ResolutionSchedule-want.ResolutionSchedule)) > 2 || got.LRMeans != want.LRMeans {
			t.Errorf("shared %v: %+v\nwant %+v", share, got, want)
		}
	}
}

// TestRaisePenalties raises them for few photos, unless they are given.
func TestRaisePenalties(t *testing.T) {
	twelve := 0.01 * math.Sqrt(5) * math.Sqrt(8) // sqrt(60 / 12) (24 / 12)^1.5
	for _, tt := range []struct {
		flags, file    texts
		photos         int
		opacity, scale float64
	}{
		{nil, nil, 60, 0.01, 0.01},
		{nil, nil, 24, 0.01 * math.Sqrt(2.5), 0.01 * math.Sqrt(2.5)},
		{nil, nil, 12, twelve, twelve},
		{nil, nil, 5, 0.1, 0.1},
		{texts{"opacity-reg": "0.02"}, nil, 12, 0.02, twelve},
		{nil, texts{"scale-reg": "0.005"}, 12, twelve, 0.005},
		{nil, texts{"scale-reg": "0.005", "few-photos": "60"}, 12, twelve, twelve / 2}, // as --print-config writes them
		{texts{"scale-reg": "0.005"}, texts{"scale-reg": "1", "few-photos": "60"}, 12, twelve, 0.005},
		{texts{"few-photos": "0"}, nil, 5, 0.01, 0.01},
		{texts{"preset": "mcmc"}, nil, 5, 0.01, 0.01},
	} {
		c := followed(resolved(t, tt.flags, tt.file), tt.photos)
		if math.Abs(c.OpacityReg-tt.opacity) > 1e-12 || math.Abs(c.ScaleReg-tt.scale) > 1e-12 {
			t.Errorf("%v, file %v, %d photos: %g and %g, want %g and %g", tt.flags, tt.file, tt.photos, c.OpacityReg,
				c.ScaleReg, tt.opacity, tt.scale)
		}
	}
}

// TestChosenPreset wants the preset that settings imply, and whether somebody chose it.
func TestChosenPreset(t *testing.T) {
	for _, tt := range []struct {
		flags, file texts
		preset, by  string
	}{
		{nil, nil, "default", ""},
		{texts{"preset": "default"}, nil, "default", "preset"},
		{nil, texts{"preset": "mcmc"}, "mcmc", "preset"},
		{texts{"strategy": "mcmc"}, nil, "mcmc", "strategy"},
		{nil, texts{"strategy": "3dgs"}, "3dgs", "config"},
		{texts{"absgrad": "true"}, nil, "3dgs", ""},
		{nil, texts{"grow-grad2d": "0.0003"}, "3dgs", ""},
		{nil, texts{"grow-grad2d": "0", "reset-every": "0"}, "default", ""},
		{texts{"reset-every": "0"}, texts{"reset-every": "3000"}, "3dgs", ""},
	} {
		o := resolved(t, tt.flags, tt.file)
		if o.Preset != tt.preset || o.presetBy() != tt.by {
			t.Errorf("%v, file %v: preset %s by %q, want %s by %q", tt.flags, tt.file, o.Preset, o.presetBy(),
				tt.preset, tt.by)
		}
	}
}

// TestAdopt wants a run that is resumed to have the checkpoint's settings but for those that the call gives.
func TestAdopt(t *testing.T) {
	begun := followed(resolved(t, texts{"seed": "9", "carve": "0"}, nil), 20)
	begun.Background = [3]float32{0, 0, 1}
	for _, tt := range []struct {
		name        string
		before      string // the preset that the checkpoint names
		flags, file texts
		change      func(c *recipe.Config) // from what the run began with
		preset      string
	}{
		{"nothing", "default", nil, nil, func(*recipe.Config) {}, "default"},
		{"nothing, of an older version", "", nil, nil, func(*recipe.Config) {}, ""},
		{"its preset", "default", texts{"preset": "default"}, nil, func(*recipe.Config) {}, "default"},
		{"a preset with its strategy, of an older version", "", texts{"preset": "default"}, nil,
			func(*recipe.Config) {}, ""},
		{"its preset by its former name", "fast", texts{"preset": "default"}, nil, func(*recipe.Config) {}, "fast"},
		{"nothing, of another preset", "fast", nil, nil, func(*recipe.Config) {}, "fast"},
		{"a flag", "default", texts{"seed": "3"}, nil, func(c *recipe.Config) { c.Seed = 3 }, "default"},
		{"a key", "default", nil, texts{"near": "0.5"}, func(c *recipe.Config) { c.Near = 0.5 }, "default"},
		{"more steps", "default", texts{"iterations": "9000"}, nil, func(c *recipe.Config) { c.Iterations = 9000 },
			"default"},
		{"its factors", "default", texts{"iterations-factor": "365", "splats-factor": "0.6", "few-photos": "60"}, nil,
			func(*recipe.Config) {}, "default"},
		{"a scale of steps", "default", texts{"steps-scaler": "2"}, nil, func(c *recipe.Config) {
			*c = followed(resolved(t, texts{"steps-scaler": "2", "seed": "9", "carve": "0"}, nil), 20)
			c.Background = begun.Background
		}, "default"},
	} {
		r := NewRun(resolved(t, tt.flags, tt.file), &cli.Console{})
		r.training = photographed(20)
		r.prev.from = &checkpoint.File{Header: checkpoint.Header{Config: begun, Preset: tt.before}}
		must.Do(t, r.prev.adopt())
		r.setup.followCapture()
		want := begun
		tt.change(&want)
		if changes := want.Changes(r.Config); len(changes) > 0 || r.Preset != tt.preset || !r.BackgroundChosen() ||
			r.Config.Iterations != want.Iterations {
			t.Errorf("%s: preset %q, %v", tt.name, r.Preset, changes)
		}
	}
}

// TestAdoptBegun goes on with a run that has no checkpoint yet: all that it was begun with holds, but for what the call
// gives.
func TestAdoptBegun(t *testing.T) {
	dir := t.TempDir()
	first := NewRun(resolved(t, texts{"preset": "3dgs", "seed": "7", "steps-scaler": "0.5"}, nil), &cli.Console{})
	first.Eval, first.TestEvery, first.Options.Origin, first.Load.Downscale = true, 5, "1,2,3", 4
	first.prev.dir = dir
	must.Do(t, first.prev.remember(first.place.at))
	again := func(flags texts) *Run {
		t.Helper()
		r := NewRun(resolved(t, flags, nil), &cli.Console{})
		r.Checkpoints.Resume = ResumeAuto
		r.prev.dir = dir
		must.Do(t, r.prev.adopt())
		return r
	}
	r := again(nil)
	changes := first.Config.Changes(r.Config)
	if len(changes) > 0 || r.Preset != "3dgs" || !r.Eval || r.TestEvery != 5 ||
		r.Options.Origin != "1,2,3" || r.Load.Downscale != 4 || r.Config.Iterations != 15000 {
		t.Errorf("%v, preset %s, %+v", changes, r.Preset, r.Options)
	}
	r = again(texts{"steps-scaler": "0.5", "seed": "8"})
	if r.Config.Iterations != 15000 || r.Config.Seed != 8 || !r.Eval || r.Options.Origin != "1,2,3" {
		t.Errorf("%d steps, seed %d, held out %v", r.Config.Iterations, r.Config.Seed, r.Eval)
	}
	if r = again(texts{"preset": "mcmc"}); r.Config.Strategy != recipe.StrategyMCMC || r.Config.Seed != 42 {
		t.Errorf("strategy %s, seed %d", r.Config.Strategy, r.Config.Seed)
	}
}

// TestFollowStepsOnce wants numbers of steps to be rounded down once, however many factors there are, and flags to
// stay.
func TestFollowStepsOnce(t *testing.T) {
	c := followed(resolved(t, texts{"steps-scaler": "0.08", "iterations-factor": "12500"}, nil), 8)
	if want := 69 * c.Iterations / 7000; c.Iterations != 4000 || c.RefineEvery != want {
		t.Errorf("refines every %d of %d steps, want %d", c.RefineEvery, c.Iterations, want)
	}
	c = followed(resolved(t, texts{"iterations-factor": "1250", "refine-stop": "3000"}, nil), 8)
	if c.Iterations != 5000 || c.RefineStop != 3000 {
		t.Errorf("%d steps, refined until %d", c.Iterations, c.RefineStop)
	}
	c = followed(resolved(t, texts{"iterations-factor": "1250", "iterations": "500"}, nil), 8)
	if c.Iterations != 500 {
		t.Errorf("%d steps", c.Iterations)
	}
}

// TestAdoptNothing keeps what is asked for where another recipe is.
func TestAdoptNothing(t *testing.T) {
	begun := resolved(t, texts{"preset": "3dgs"}, nil).Config
	for _, tt := range []struct {
		before string
		flags  texts
	}{
		{"3dgs", texts{"preset": "default"}}, {"3dgs", texts{"strategy": "mcmc"}}, {"", texts{"preset": "default"}},
	} {
		r := NewRun(resolved(t, tt.flags, nil), &cli.Console{})
		r.prev.from = &checkpoint.File{Header: checkpoint.Header{Config: begun, Preset: tt.before}}
		was := r.Config
		if err := r.prev.adopt(); err != nil || r.Config != was || r.Preset == "3dgs" {
			t.Errorf("%v on preset %q: %v, %v", tt.flags, tt.before, was.Changes(r.Config), err)
		}
	}
}

// TestAsTrained wants settings that were given compared with those of a block that is done, and those that follow its
// photos not.
func TestAsTrained(t *testing.T) {
	for _, tt := range []struct {
		begun, again texts
		same         bool
	}{
		{nil, nil, true},
		{nil, texts{"sh-degree": "1"}, false},
		{nil, texts{"refine-stop": "5000"}, false},
		{texts{"refine-stop": "5000"}, texts{"refine-stop": "5000"}, true},
		{nil, texts{"num-downscales": "2"}, false},                       // where the photos allow 1
		{nil, texts{"iterations": "2000"}, false},                        // which scales the other numbers
		{texts{"iterations": "2000"}, texts{"iterations": "2000"}, true}, // with photos that are halved once
		{nil, texts{"splats": "5000"}, false},
		{texts{"splats": "5000"}, texts{"splats": "5000"}, true},
		{texts{"splats": "0"}, texts{"splats": "0"}, true}, // which asks for what follows the capture
		{nil, texts{"max-splats": "70"}, false},
		{texts{"max-splats": "70"}, texts{"max-splats": "70"}, true},
		{nil, texts{"opacity-reg": "0.01"}, false},
		{texts{"opacity-reg": "0.01"}, texts{"opacity-reg": "0.01"}, true},
		{nil, texts{"preset": "3dgs"}, false},
	} {
		st := &output.Stats{Config: followed(resolved(t, tt.begun, nil), 25)}
		o := resolved(t, tt.again, nil)
		if err := o.AsTrained(3, st, o.Config); (err == nil) != tt.same {
			t.Errorf("begun with %v, then %v: %v", tt.begun, tt.again, err)
		}
	}
}
