package train

import (
	"reflect"

	"vksplat/internal/cli"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
)

// adopt gives a run that is resumed the settings of its checkpoint wherever the call says nothing: neither the same
// command line nor the same version of the presets is needed to go on. What the call does say is compared later.
func (r *Run) adopt() error {
	if r.saver.from == nil || r.known == nil || r.otherPreset(&r.saver.from.Header) {
		return nil
	}
	follow := []struct {
		name   string
		factor any
		sets   func(s *recipe.Setting) bool // what follows the capture by it
	}{
		{"iterations-factor", &r.IterationsFactor, func(s *recipe.Setting) bool {
			return s.Steps || s.Name == "num_downscales"
		}},
		{"steps-scaler", nil, func(s *recipe.Setting) bool { return s.Steps }},
		{"splats-factor", &r.SplatsFactor, func(s *recipe.Setting) bool { return s.Name == "splats" }},
		{"few-photos", &r.FewPhotos, func(s *recipe.Setting) bool {
			return s.Name == "opacity_reg" || s.Name == "scale_reg"
		}},
	}
	if r.presetBy == "" {
		r.Preset = r.saver.from.Header.Preset // which the checkpoints to come name, as those so far
	}
	r.BackgroundGiven = true // it follows the kind of capture no more
	was := r.saver.from.Header.Config
	for i := range recipe.Settings {
		s, followed := &recipe.Settings[i], false
		for _, f := range follow {
			followed = followed || f.sets(s) && r.known(f.name)
		}
		if !followed && !r.known(cli.Dashed(s.Name)) {
			reflect.ValueOf(s.Of(&r.Config)).Elem().Set(reflect.ValueOf(s.Of(&was)).Elem())
		}
	}
	scaled := r.known("steps-scaler")
	for _, f := range follow {
		if f.factor != nil && !r.known(f.name) && !(scaled && f.factor == &r.IterationsFactor) {
			reflect.ValueOf(f.factor).Elem().SetZero()
		}
	}
	return r.Check()
}

// otherPreset reports whether another recipe is asked for than the run was begun with. Checkpoints of versions that did
// not say which name at least its strategy.
func (r *Run) otherPreset(h *checkpoint.Header) bool {
	switch {
	case r.presetBy == "":
		return false
	case h.Preset != "":
		return r.Preset != h.Preset
	}
	return r.Config.Strategy != h.Config.Strategy
}
