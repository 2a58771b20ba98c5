package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/results"
	"vksplat/scene/splatfile"
)

// A score is one of the exported file, drawn alone. What decides pixels beside the splats stands in the file where the
// format can say it, and beside the score in any case: results.Drawn.

// drawn says how this run's scores come about.
func (r *trainRun) drawn() *results.Drawn {
	c := &r.config
	config := pipeline.RenderConfig{Background: c.Background, Near: c.Near, Antialiased: c.Antialiased}
	return drawnOf(&config, c.Exposure, r.capture, r.test)
}

// drawnOf is of views of a capture, which is in the training frame.
func drawnOf(config *pipeline.RenderConfig, exposure bool, c *scene.Capture, views []int) *results.Drawn {
	cams := pick(c.Cameras, views)
	return &results.Drawn{Near: config.Near, NearUnits: config.Near / c.Frame.Scale, Background: config.Background,
		Antialiased: config.Antialiased, Exposure: exposure, Masked: anyMasked(cams), Photos: resolution(cams)}
}

func anyMasked(cams []scene.Camera) bool {
	for i := range cams {
		if cams[i].Mask != "" {
			return true
		}
	}
	return false
}

// takeLook makes the settings of drawing those of training, as far as the file or its run knows them and no flag says
// otherwise.
func (j *evalJob) takeLook(synthetic bool) error {
	model, err := splatfile.Open(j.file)
	if err != nil {
		return err
	}
	info := model.Info()
	if err := model.Close(); err != nil {
		return err
	}
	o := &j.o
	look, err := trainedLookOf(j.file, &info.Meta)
	if err != nil {
		return err
	}
	look.take(&o.config, o.given, synthetic)
	if o.config.Antialiased = info.Meta.Antialiased; o.given("antialiased") {
		o.config.Antialiased = o.antialiased
	}
	if !o.given("exposure") {
		o.exposure = o.exposure || info.Meta.Exposure
	}
	if j.origin = originOf(&info); o.given("origin") {
		j.origin, err = j.capture.Origin(string(o.origin))
	}
	return err
}

// printDrawn names below a table what decides its scores beside the file.
func (j *evalJob) printDrawn() {
	if d := j.result.Drawn; d != nil {
		j.app.printf("%s: drawn with %s.\n", j.name, d)
	}
}

// seenSamples is about how many splats are looked for in the views.
const seenSamples = 2000

// warnElsewhere warns of a model that no view sees: it is in another frame than the capture.
func (j *evalJob) warnElsewhere(s *scene.Splats) {
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
		j.app.warn(fmt.Sprintf("%s: of %s that were looked at %d are in a view: the model is in another frame than "+
			"the capture, or was moved; --origin, --model, --format and --undo-applied-transform choose a frame",
			j.name, count(n, "splat"), seen))
	}
}

// hiddenScores says which scores in the folder of a run are not those of its files, "" for none. Earlier versions left
// out, photo by photo, splats within the empty space before the camera (--clearance), which other renderers draw.
func hiddenScores(out string, rec *captureRecord) string {
	if rec == nil {
		return ""
	}
	methods, err := results.UndrawnMethods(out)
	if err != nil || len(methods) == 0 {
		return "" // what is wrong with results.json is said by those who need it
	}
	how := "which does not say how it drew the model"
	if rec.Clearance > 0 {
		how = fmt.Sprintf("with a near plane of its own for each view (clearance %g), which the model's file does not hold",
			rec.Clearance)
	}
	return fmt.Sprintf("%s: the scores of %s are by an earlier version, %s; vksplat eval %s --iteration N measures again",
		filepath.Join(out, "results.json"), strings.Join(methods, ", "), how, quoted(out))
}
