package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/initial"
)

// followCapture chooses what follows the photos, in the size that they are trained on, and the points that training
// knows: steps, splats and penalties, and notes what it chose. No point was dropped in empty space yet, so that a run
// that is resumed finds the same numbers.
func (s *setup) followCapture() {
	cams, points := s.training.Cameras, len(s.training.Points)
	if taken, _, err := scene.AsTaken(cams); s.Config.NativeLens && err == nil { // an error ends the run later
		cams = taken
	}
	text := captureText(cams, points)
	if s.Init.Kind == initial.InitRandom {
		points = 0 // what is random says nothing of the capture
	}
	f := &recipe.Followed{Factors: s.Factors, Photos: len(cams), Smallest: shorterSide(cams), Adapts: s.choices.adapts,
		Scaler: s.StepsScaler, Share: s.stepsShare(),
		Splats: func(factor float64) int { return recipe.SplatsFor(cams, points, factor) }}
	if from := s.prev.from; from != nil { // which may have begun with less: see makePlan
		if h := &from.Header; h.Config.Splats > 0 && h.Config.Splats == h.SplatCeiling {
			f.Ceiling = h.SplatCeiling
		}
	}
	s.choices.followed = f
	s.configure()
	s.noteFollowed(f, text)
}

// splatsFollow reports whether the number of splats was chosen for the capture.
func (o *Options) splatsFollow() bool {
	return o.choices.resolved != nil && o.choices.resolved.Origin("splats") == recipe.FromCapture
}

// noteFollowed says what follows the capture, which a text describes.
func (s *setup) noteFollowed(f *recipe.Followed, capture string) {
	var said, raised []string
	if f.IterationsFactor > 0 {
		said = append(said, cli.Count(s.Config.Iterations, "step"))
	}
	if s.splatsFollow() {
		said = append(said, cli.Count(s.Config.Splats, "splat"))
	}
	what := "recipe"
	if s.choices.adapts {
		what = s.Preset + " recipe"
	}
	if len(said) > 0 {
		s.noteLater(fmt.Sprintf("%s for %s: %s", what, capture, strings.Join(said, ", ")))
	}
	for _, name := range []string{"opacity", "scale"} {
		if s.choices.resolved.Origin(name+"-reg") == recipe.FromCapture {
			raised = append(raised, name)
		}
	}
	if len(raised) > 0 {
		s.detailLater(fmt.Sprintf("few photos: penalties of %s are %.2g times as large", strings.Join(raised, " and "),
			f.Penalty()))
	}
}

// shorterSide is that of the smallest of some photos, in pixels.
func shorterSide(cams []scene.Camera) int {
	least := math.MaxInt
	for i := range cams {
		least = min(least, cams[i].Width, cams[i].Height)
	}
	return least
}

// captureText says by what the numbers of a run were chosen.
func captureText(cams []scene.Camera, points int) string {
	return fmt.Sprintf("%s of %s and %s", cli.Count(len(cams), "photo"), captured.Resolution(cams),
		cli.Count(points, "point"))
}

// stepsShare is the share of the steps that a block is trained for; 1 for all others.
func (o *Options) stepsShare() float64 {
	if o.Divided == nil || !o.ShareSteps {
		return 1
	}
	return o.Divided.Share(int(o.Block))
}

// makePlan plans what memory is used for. Where it has no room for the number of splats that the capture suggests, and
// that was not requested, the model ends with as many as there is room for.
func (s *setup) makePlan(cams []scene.Camera, splats int, o pipeline.TrainerOptions) (err error) {
	s.plan, err = s.device.Plan(cams, splats, s.Config, o)
	if !s.splatsFollow() || !errors.Is(err, pipeline.ErrTooSmall) {
		return err
	}
	one := s.Config
	one.Splats = 1 // which never is too many, and takes what every other number does
	plan, least := s.device.Plan(cams, splats, one, o)
	if least != nil {
		return err
	}
	s.plan, s.choices.room = plan, plan.Ceiling
	s.configure()
	s.noteLater(fmt.Sprintf("memory has room for %s: the model ends with as many (raise %s, use smaller photos with "+
		"%s, or %s mixed)", cli.Count(plan.Ceiling, "splat"), fault.Setting(s.device.MemorySetting()),
		fault.Setting("downscale"), fault.Setting("precision")))
	return nil
}

// Choose reads the capture in the folder dir and sets what follows it, as a run from the start would, so that a
// configuration that is printed holds the numbers. It says what it chose and why, "" for nothing.
func (o *Options) Choose(dir string) (said string, err error) {
	r := NewRun(o, &cli.Console{})
	o.Scene = dir
	defer func(as captured.Options) { o.Load = as }(o.Load) // training calibrates cameras itself
	if err := r.load(context.Background()); err != nil {
		return "", err
	}
	r.list = nil // training prints these notes again
	r.setup.followCapture()
	o.Factors = Factors{}
	var texts []string
	for _, n := range r.list {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, "; "), nil
}
