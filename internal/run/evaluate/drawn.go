package evaluate

import (
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/models"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// A score is one of the exported file, drawn alone. What decides pixels beside the splats stands in the file where the
// format can say it, and beside the score in any case: results.Drawn.

// takeLook makes the settings of drawing those of training, as far as the file or its run knows them and no flag says
// otherwise.
func (j *Job) takeLook(synthetic bool) error {
	model, err := splatfile.Open(j.file)
	if err != nil {
		return err
	}
	info := model.Info()
	if err := model.Close(); err != nil {
		return err
	}
	o := &j.o
	look, err := captured.LookOf(j.file, &info.Meta)
	if err != nil {
		return err
	}
	look.Take(&o.Config, o.Given, synthetic)
	if o.Config.Antialiased = info.Meta.Antialiased; o.Given("antialiased") {
		o.Config.Antialiased = o.Antialiased
	}
	if j.origin = models.OriginOf(&info); o.Given("origin") {
		j.origin, err = j.capture.Origin(string(o.Origin))
	}
	return err
}

// below is the note below a table: what decides its scores besides the file, and what they are worth.
func (j *Job) below() (text string) {
	if d := j.Result.Drawn; d != nil {
		text = fmt.Sprintf("%s: measured with %s.\n", j.name, d)
	}
	if warning := j.trainedOnText(); warning != "" {
		text += fmt.Sprintf("\n**%s: %s.**\n", j.name, warning)
	}
	return text
}

// seenSamples is about how many splats are looked for in the views.
const seenSamples = 2000

// warnElsewhere warns of a model that no view sees: it is in another frame than the capture.
func (j *Job) warnElsewhere(s *scene.Splats) {
	stride, n, seen := 1+s.N/seenSamples, 0, 0
	for i := 0; i < s.N; i += stride {
		p := [3]float64{float64(s.Means[3*i]), float64(s.Means[3*i+1]), float64(s.Means[3*i+2])}
		n++
		for k := range j.cams {
			if j.cams[k].Sees(p) {
				seen++
				break
			}
		}
	}
	if n > 0 && seen*100 < n {
		j.console.Warn(fmt.Sprintf(
			"%s: of %s checked, %d are in a view: the model is not in the capture's frame, or was "+
				"moved; %s, %s, %s and %s choose a frame", j.name, cli.Count(n, "splat"), seen,
			fault.Setting("origin"), fault.Setting("model"), fault.Setting("format"),
			fault.Setting("undo-applied-transform")))
	}
}
