package train

import (
	"fmt"
	"reflect"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline/recipe"
)

// adopt gives a run that is resumed the settings that it was begun with wherever the call says nothing: neither the
// same command line nor the same version of the presets is needed to go on. What the call does say is compared later.
func (r *Run) adopt() error {
	s := r.saver
	if r.by == nil || s.from == nil && s.o.Resume != ResumeAuto {
		return nil
	}
	if s.from == nil || s.ownPast() {
		s.begun = readBegun(s.dir)
	}
	var preset string
	var was recipe.Config
	switch {
	case s.from != nil:
		preset, was = s.from.Header.Preset, s.from.Header.Config
	case s.begun != nil:
		preset, was = s.begun.Preset, s.begun.Config
	default:
		return nil // there is nothing to go on with
	}
	if s.begun != nil {
		r.adoptCapture(s.begun)
	}
	if r.otherPreset(preset, &was) {
		return nil
	}
	if r.presetBy == "preset" && preset == "" {
		r.noteLater(fmt.Sprintf("an earlier version began this run and did not note its preset: it continues with its own "+
			"settings, whatever those of %s %s are", fault.Setting("preset"), r.Preset))
	}
	r.Preset = preset        // which the checkpoints to come name, as those so far
	r.BackgroundGiven = true // it follows the kind of capture no more
	r.adoptSettings(&was)
	return r.Check()
}

// adoptCapture brings how the capture is read, what is held out and where the origin is to what the run has.
func (r *Run) adoptCapture(b *begun) {
	if !r.SourceGiven {
		b.Source.Options(&r.Load, r.known)
	}
	r.Depth.adopt(&b.Depth, r.known)
	r.Normal.adopt(&b.Normal, r.known)
	if !r.known("eval") && !r.known("test-list") {
		r.Eval = b.Eval
	}
	if !r.known("test-every") {
		r.TestEvery = b.TestEvery
	}
	chosen := r.known("test-list") || r.known("test-every") && (r.TestEvery != b.TestEvery || b.TestList != "")
	if r.Eval && !chosen {
		r.TestList = b.TestList
	}
	if !chosen && r.Eval == b.Eval && r.Divided == nil {
		r.recorded = b.HeldOut
		if b.HeldOut == nil { // an earlier version began it, which counted no photo that cannot be read
			rec, err := captured.ReadRecord(r.Out)
			if r.formerSplit = err != nil || rec == nil; !r.formerSplit {
				r.recorded = rec.HeldOut
			}
		}
	}
	if !r.known("origin") {
		r.Options.Origin = captured.OriginFlag(b.Origin)
	}
}

// adoptSettings takes over the settings of the recipe, but for those that are given or follow what is given otherwise
// than the run was begun with: these are computed, and then compared.
func (r *Run) adoptSettings(was *recipe.Config) {
	var b begun
	if r.saver.begun != nil {
		b = *r.saver.begun
	}
	anew := func(name string, same bool) bool { return r.known(name) && (r.saver.begun == nil || !same) }
	share := anew("share-steps", r.ShareSteps == b.ShareSteps)
	scaled := share || anew("steps-scaler", r.StepsScaler == b.StepsScaler)
	isAnew := func(f factor) bool { return anew(f.name, f.value(&r.Factors).Equal(f.value(&b.Factors))) }
	c := &r.Config
	splats := r.known("splats") && c.Splats != was.Splats
	follows := func(s *recipe.Setting) bool {
		return scaled && isSchedule(s) || share && s.Rate || s.Name == "max_splats" && splats ||
			slices.ContainsFunc(factors, func(f factor) bool { return f.chooses(s) && isAnew(f) })
	}
	for i := range recipe.Settings {
		s := &recipe.Settings[i]
		if !follows(s) && !r.known(cli.Dashed(s.Name)) {
			reflect.ValueOf(s.Of(c)).Elem().Set(reflect.ValueOf(s.Of(was)).Elem())
		}
	}
	for _, f := range factors {
		if !isAnew(f) && (f.name != stepsFactor || !scaled) {
			f.value(&r.Factors).SetZero()
		}
	}
	r.adapts = r.adapts && (scaled || isAnew(factorNamed(stepsFactor)))
	if c.AbsGrad && !was.AbsGrad && !r.known("grow-grad2d") {
		c.GrowGrad2D = recipe.AbsGradThreshold
	}
}

// otherPreset reports whether another recipe is asked for than the run was begun with. Versions that did not note its
// preset noted at least its strategy.
func (r *Run) otherPreset(preset string, was *recipe.Config) bool {
	if preset == formerPreset {
		preset = defaultPreset
	}
	switch {
	case r.presetBy == "":
		return false
	case preset != "":
		return r.Preset != preset
	}
	return r.Config.Strategy != was.Strategy
}
