package train

import (
	"fmt"
	"path/filepath"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/pipeline/recipe"
)

// adopt gives a run that is resumed the settings that it was begun with wherever the call says nothing: neither the
// same command line nor the same version of the presets is needed to go on. What the call does say is compared later.
func (p *previous) adopt() error {
	if !isResolved(p.Options) || p.from == nil && p.Checkpoints.Resume != ResumeAuto {
		return nil
	}
	if p.from == nil || p.ownPast() {
		p.begun = readBegun(p.dir)
	}
	var preset string
	var was recipe.Config
	switch {
	case p.from != nil:
		preset, was = p.from.Header.Preset, p.from.Header.Config
	case p.begun != nil:
		preset, was = p.begun.Preset, p.begun.Config
	default:
		return nil // there is nothing to resume
	}
	switch {
	case p.begun != nil:
		p.adoptCapture(p.begun)
	case p.Divided == nil: // the checkpoint is another run's, or an earlier version began this one
		dir, source := filepath.Dir(p.from.Path()), &captured.Source{}
		if b := readBegun(dir); b != nil {
			source = &b.Source
		}
		captured.Adopt(p.Asked, "cameras", &p.Load.Cameras, source.CamerasIn(filepath.Dir(dir)))
	}
	if p.otherPreset(preset, &was) {
		return nil
	}
	if p.presetBy() == "preset" && preset == "" {
		p.noteLater(fmt.Sprintf("an earlier version began this run and did not note its preset: it continues with its own "+
			"settings, whatever those of %s %s are", fault.Setting("preset"), p.Preset))
	}
	p.Preset = preset // which the checkpoints to come name, as those so far
	p.adoptSettings(&was)
	return p.Check()
}

// adoptCapture brings how the capture is read, what is held out and where the origin is to what the run has.
func (p *previous) adoptCapture(b *begun) {
	if !p.Given(WholeSource) {
		b.Source.Options(&p.Load, output.Current(p.Out), p.Asked)
	} else { // of which the cameras are no part
		p.Load.Cameras = b.Source.CamerasIn(output.Current(p.Out))
	}
	p.Depth.adopt(&b.Depth, p.Asked)
	p.Normal.adopt(&b.Normal, p.Asked)
	if !p.Asked("eval") && !p.Asked("test-list") {
		p.Eval = b.Eval
	}
	captured.Adopt(p.Asked, "test-every", &p.TestEvery, b.TestEvery)
	chosen := p.Asked("test-list") || p.Asked("test-every") && (p.TestEvery != b.TestEvery || b.TestList != "")
	if p.Eval && !chosen {
		p.TestList = b.TestList
	}
	if !chosen && p.Eval == b.Eval && p.Divided == nil {
		p.data.recorded = b.HeldOut
		if rec, err := captured.ReadRecord(p.Out); b.HeldOut == nil && err == nil && rec != nil {
			p.data.recorded = rec.HeldOut // an earlier version began it
		}
	}
	captured.Adopt(p.Asked, "origin", &p.Options.Origin, captured.OriginFlag(b.Origin))
}

// adoptSettings takes over the settings of the recipe, but for those that are given or follow what is given otherwise
// than the run was begun with: these are computed, and then compared.
func (p *previous) adoptSettings(was *recipe.Config) {
	var b begun
	if p.begun != nil {
		b = *p.begun
	}
	differs := func(name string, same bool) bool { return p.Asked(name) && (p.begun == nil || !same) }
	share := differs("share-steps", p.ShareSteps == b.ShareSteps)
	scaled := share || differs("steps-scaler", p.StepsScaler == b.StepsScaler)
	splats := p.Asked("splats") && p.Config.Splats != was.Splats
	var other []factor // than the run's
	for _, f := range factors {
		if differs(f.name, f.value(&p.Factors).Equal(f.value(&b.Factors))) {
			other = append(other, f)
		} else if f.name != recipe.StepsFactor || !scaled {
			f.value(&p.Factors).SetZero()
		}
	}
	p.choices.adapts = p.choices.adapts && (scaled || slices.ContainsFunc(other, isStepsFactor))
	p.choices.resumed = recipe.Resumed(*was, func(s *recipe.Setting) bool {
		return scaled && isSchedule(s) || share && s.Rate || s.Name == "max_splats" && splats ||
			slices.ContainsFunc(other, func(f factor) bool { return f.chooses(s) })
	})
	p.configure()
}

// otherPreset reports whether another recipe is asked for than the run was begun with. Versions that did not note its
// preset noted at least its strategy.
func (p *previous) otherPreset(preset string, was *recipe.Config) bool {
	if preset == "fast" { // of old checkpoints
		preset = defaultPreset
	}
	switch {
	case p.presetBy() == "":
		return false
	case preset != "":
		return p.Preset != preset
	}
	return p.Config.Strategy != was.Strategy
}
