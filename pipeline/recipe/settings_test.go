package recipe

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"vksplat/pipeline/ref"
	"vksplat/shaders/layout"
)

// firstConfig is the default configuration's JSON from before there was a schema: its keys are in checkpoints and
// stats.json.
const firstConfig = `{"iterations":30000,"seed":42,"sh_degree":3,"sh_degree_interval":1000,"background":[0,0,0],` +
	`"random_background":false,"precision":"full","antialiased":false,"near":0.01,"carve":0.7,"num_downscales":0,` +
	`"resolution_schedule":3000,"ssim_same":false,"ssim_lambda":0.2,"alpha_loss":0,"opacity_reg":0,"scale_reg":0,` +
	`"exposure":false,"lr_means":0.00016,` +
	`"lr_means_final":0.01,"lr_log_scales":0.005,"lr_quats":0.001,"lr_logit_opacities":0.05,"lr_sh0":0.0025,` +
	`"lr_shn":0.000125,"init_opacity":0.1,"init_scale":1,"strategy":"3dgs","max_splats":0,"splats":0,` +
	`"refine_start":500,"refine_stop":15000,"refine_every":100,"reset_every":3000,"absgrad":false,` +
	`"revised_opacity":false,"grow_grad2d":0.0002,"grow_scale":0.01,"prune_opacity":0.005,"prune_scale":0.1,` +
	`"reset_opacity":0.01,"grow_factor":1.05,"noise_lr":500000`

// TestConfigJSON wants new settings to come after those that checkpoints have.
func TestConfigJSON(t *testing.T) {
	data, err := json.Marshal(Default())
	if err != nil || !strings.HasPrefix(string(data), firstConfig) {
		t.Errorf("%s, error %v\nwant at the start\n%s", data, err, firstConfig)
	}
}

// TestConfigRanges sets each number to the ends of its range and beyond them.
func TestConfigRanges(t *testing.T) {
	for i := range Settings {
		s := &Settings[i]
		try := func(x float64, allowed bool) {
			t.Helper()
			c := Default()
			switch p := s.Of(&c).(type) {
			case *int:
				*p = int(x)
			case *float64:
				*p = x
			case *[3]float32:
				p[2] = float32(x)
			default:
				return
			}
			err := s.Check(&c, s.Name, s.Range)
			if (err == nil) != allowed || err != nil && !strings.HasPrefix(err.Error(), s.Name+" is ") {
				t.Errorf("%s = %g: error %v", s.Name, x, err)
			}
			if !allowed && c.Validate() == nil {
				t.Errorf("%s = %g is valid", s.Name, x)
			}
		}
		r := s.Range
		try(r.Least, !r.AboveLeast)
		try(r.Least-1, false)
		if r.Most < math.MaxInt64 {
			try(r.Most, !r.BelowMost)
			try(2*r.Most+1, false)
		}
		if _, isReal := s.Of(&Config{}).(*float64); isReal {
			try(math.NaN(), false)
			try(math.Inf(1), false)
		}
	}
	c := Default()
	c.Strategy, c.Precision = "adc", "half"
	const want = `strategy is "adc"; it must be one of 3dgs, mcmc`
	err := c.Validate()
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "precision") {
		t.Errorf("error %v", err)
	}
	if Default().Validate() != nil || MCMC().Validate() != nil {
		t.Errorf("the recipes: %v, %v", Default().Validate(), MCMC().Validate())
	}
}

// TestSplatRates wants every learning rate of the model's schema to be among SplatRates.
func TestSplatRates(t *testing.T) {
	c := Default()
	for _, rate := range c.SplatRates() {
		*rate = 0
	}
	var got layout.StepParams
	c.settingParams(&got, 1, 1)
	want := got
	ref.Rates{}.Put(&want)
	if got != want || c.LRMeans != 0 {
		t.Errorf("without learning rates: %+v", got)
	}
}

func TestRangeText(t *testing.T) {
	for want, r := range map[string]Range{
		"from 0 to 10":                    {Most: 10},
		"from 1 to 2147483647":            {Least: 1, Most: math.MaxInt32},
		"at least 1":                      {Least: 1, Most: math.Inf(1)},
		"above 0 and below 1":             {Most: 1, AboveLeast: true, BelowMost: true},
		"above 0 and at most 3.4e+38":     {Most: math.MaxFloat32, AboveLeast: true},
		"at least 0.25 and below 1":       {Least: 0.25, Most: 1, BelowMost: true},
		"above 0.000125 and at most 1000": {Least: 1.25e-4, Most: 1000, AboveLeast: true},
	} {
		if got := r.String(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// TestConfigNeeds gives settings what they need and takes it away.
func TestConfigNeeds(t *testing.T) {
	for _, c := range []struct {
		need Need
		text string
		set  func(c *Config, on bool)
	}{
		{Need{"exposure", ""}, "{exposure}", func(c *Config, on bool) { c.Exposure = on }},
		{Need{"exposure", "or vignetting"}, "{exposure} or {vignetting}",
			func(c *Config, on bool) { c.Vignetting = on }},
		{Need{"strategy", "mcmc"}, "{strategy} mcmc", func(c *Config, on bool) {
			c.Strategy = map[bool]string{true: "mcmc", false: "default"}[on]
		}},
		{Need{"reset_every", ""}, "{reset_every} above 0", func(c *Config, on bool) {
			c.ResetEvery = map[bool]int{true: 5}[on]
		}},
		{Need{"carve", ""}, "{carve} above 0", func(c *Config, on bool) { c.Carve = map[bool]float64{true: 0.5}[on] }},
	} {
		for _, on := range []bool{false, true} {
			cfg := Default()
			c.set(&cfg, on)
			if c.need.Met(&cfg) != on || c.need.String() != c.text {
				t.Errorf("%v with %t: met %t", c.need, on, c.need.Met(&cfg))
			}
		}
	}
}

// TestFormerWords reads the configuration of a version that called the strategy 3dgs default.
func TestFormerWords(t *testing.T) {
	c := MCMC()
	if err := json.Unmarshal([]byte(`{"strategy":"default","splats":7}`), &c); err != nil ||
		c.Strategy != Strategy3DGS || c.Splats != 7 || c.MaxSplats != MCMC().MaxSplats {
		t.Errorf("%+v, error %v", c, err)
	}
	if err := json.Unmarshal([]byte(`{"splats":"many"}`), &c); err == nil {
		t.Error("a text is not a number of splats")
	}
}

// TestAppearanceRates wants nothing learnt before the start, rates that fall to their last share, and steps of a photo
// that grow with the number of photos and not beyond their bound.
func TestAppearanceRates(t *testing.T) {
	c := Default()
	at := func(step, photos int) (p layout.StepParams) {
		c.AppearanceParams(&p, step, photos, 1)
		return p
	}
	if p := at(c.AppearanceStart-1, 100); !(p.LrAppearance < 0) {
		t.Errorf("before the start the rate is %g", p.LrAppearance)
	}
	first, last := at(c.AppearanceStart, 100), at(c.Iterations, 100)
	if share := last.LrAppearance / first.LrAppearance; math.Abs(float64(share)-c.LRAppearanceFinal) > 1e-5 {
		t.Errorf("a share of %g is left at the end, want %g", share, c.LRAppearanceFinal)
	}
	one := at(c.AppearanceStart, 1)
	ratio := first.LrAppearance / one.LrAppearance
	if !(ratio > 9 && ratio < 10) || one.LrVignetting != first.LrVignetting {
		t.Errorf("among 100 photos a step is %g times that of one", ratio)
	}
	if got := math.Pow(layout.AdamBeta2, 100); math.Abs(float64(first.AppearanceBeta2)-got) > 1e-6 {
		t.Errorf("beta2 is %g, want %g", first.AppearanceBeta2, got)
	}
	c.Iterations = 600
	if p := at(c.AppearanceStart, 100); p.LrAppearance != mostPhotoStep || p.LrVignetting != mostCameraStep {
		t.Errorf("rates of a short run: %g and %g", p.LrAppearance, p.LrVignetting)
	}
}
