package train

import (
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

// followCapture chooses what follows the photos and points that training knows: steps, splats and penalties, and notes
// what it chose. No point was dropped in empty space yet, so that a run that is resumed finds the same numbers.
func (r *Run) followCapture() {
	cams, points := r.training.Cameras, len(r.training.Points)
	if r.Init.Kind == initial.InitRandom {
		points = 0 // what is random says nothing of the capture
	}
	f := &recipe.Followed{Factors: r.Factors, Photos: len(cams), Smallest: shorterSide(cams), Adapts: r.choices.adapts,
		Scaler: r.StepsScaler, Share: r.stepsShare(),
		Splats: func(factor float64) int { return recipe.SplatsFor(cams, points, factor) }}
	if from := r.prev.from; from != nil { // which may have begun with less: see makePlan
		if h := &from.Header; h.Config.Splats > 0 && h.Config.Splats == h.SplatCeiling {
			f.Ceiling = h.SplatCeiling
		}
	}
	r.choices.followed = f
	r.configure()
	r.noteFollowed(f)
}

// splatsFollow reports whether the number of splats was chosen for the capture.
func (o *Options) splatsFollow() bool {
	return o.choices.resolved != nil && o.choices.resolved.Origin("splats") == recipe.FromCapture
}

// noteFollowed says what follows the capture.
func (r *Run) noteFollowed(f *recipe.Followed) {
	var said, raised []string
	if f.IterationsFactor > 0 {
		said = append(said, cli.Count(r.Config.Iterations, "step"))
	}
	if r.splatsFollow() {
		said = append(said, cli.Count(r.Config.Splats, "splat"))
	}
	what := "recipe"
	if r.choices.adapts {
		what = r.Preset + " recipe"
	}
	if len(said) > 0 {
		r.noteLater(fmt.Sprintf("%s for %s: %s", what, captureText(r.training), strings.Join(said, ", ")))
	}
	for _, name := range []string{"opacity", "scale"} {
		if r.choices.resolved.Origin(name+"-reg") == recipe.FromCapture {
			raised = append(raised, name)
		}
	}
	if len(raised) > 0 {
		r.detailLater(fmt.Sprintf("few photos: penalties of %s are %.2g times as large", strings.Join(raised, " and "),
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
func captureText(c *scene.Capture) string {
	return fmt.Sprintf("%s of %s and %s", cli.Count(len(c.Cameras), "photo"), captured.Resolution(c.Cameras),
		cli.Count(len(c.Points), "point"))
}

// stepsShare is the share of the steps that a block is trained for; 1 for all others.
func (o *Options) stepsShare() float64 {
	if o.Divided == nil || !o.ShareSteps {
		return 1
	}
	return o.Divided.Share(int(o.Block))
}

// makePlan plans what memory is used for. Where it has no room for the number of splats that the capture suggests, and
// that nobody asked for, the model ends with as many as there is room for.
func (r *Run) makePlan(cams []scene.Camera, splats int, o pipeline.TrainerOptions) (err error) {
	r.plan, err = r.device.Plan(cams, splats, r.Config, o)
	if !r.splatsFollow() || !errors.Is(err, pipeline.ErrTooSmall) {
		return err
	}
	one := r.Config
	one.Splats = 1 // which never is too many, and takes what every other number does
	plan, least := r.device.Plan(cams, splats, one, o)
	if least != nil {
		return err
	}
	r.plan, r.choices.room = plan, plan.Ceiling
	r.configure()
	r.noteLater(fmt.Sprintf("memory has room for %s: the model ends with as many (raise %s, use smaller photos with "+
		"%s, or %s mixed)", cli.Count(plan.Ceiling, "splat"), fault.Setting(r.device.MemorySetting()),
		fault.Setting("downscale"), fault.Setting("precision")))
	return nil
}

// Choose reads the capture in the folder dir and sets what follows it, as a run from the start would, so that a
// configuration that is printed holds the numbers. It says what it chose and why, "" for nothing.
func (o *Options) Choose(dir string) (said string, err error) {
	r := NewRun(o, &cli.Console{})
	o.Scene = dir
	if err := r.load(); err != nil {
		return "", err
	}
	r.list = nil // training prints these notes again
	r.followCapture()
	o.Factors = Factors{}
	var texts []string
	for _, n := range r.list {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, "; "), nil
}
