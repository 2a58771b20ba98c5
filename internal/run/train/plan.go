package train

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
)

// showPlan prints the plan, for people below what it is of where the program chose that or where it is of several
// devices.
func (r *Run) showPlan() error {
	if c := &r.Config; c.Strategy == recipe.StrategyMCMC && c.Splats > 0 { // it begins with no more than it ends with
		r.plan.Splats = min(r.plan.Splats, c.Splats)
	}
	resumed := resumptionOf(r.Options, &r.dataset, r.prev.from)
	if r.PlanJSON {
		return r.Console.PrintJSON(planJSON{r.plan, r.limit.predicted, resumed})
	}
	if resumed != nil {
		r.Console.Sayf("%s\n", resumed)
	}
	if r.chosen != "" || len(r.others) > 0 {
		r.Console.Sayf("%s\n", r.deviceNames())
	}
	printPlan(r.Console, r.plan)
	if r.limit.predicted != nil {
		r.Console.Sayf("time  %s\n", r.limit.predicted.text(r.TimeLimit))
	}
	return nil
}

// resumption is the report of a dry run about a resumed run.
type resumption struct {
	Checkpoint  string `json:"checkpoint,omitempty"` // none: it begins once more
	Step        int    `json:"step"`
	Iterations  int    `json:"iterations"`
	Preset      string `json:"preset,omitempty"`
	Capture     string `json:"capture"`
	TrainImages int    `json:"train_images"`
	TestImages  int    `json:"test_images"`
}

// resumptionOf is nil of a run from the start.
func resumptionOf(o *Options, d *dataset, from *checkpoint.File) *resumption {
	if o.Checkpoints.Resume == "" {
		return nil
	}
	p := &resumption{Iterations: o.Config.Iterations, Preset: o.Preset, Capture: output.Absolute(o.Scene),
		TrainImages: len(d.Train), TestImages: len(d.Test)}
	if from != nil {
		p.Checkpoint, p.Step = from.Path(), from.Header.Step
	}
	return p
}

// String says it for people.
func (p *resumption) String() string {
	text := fmt.Sprintf("resumes after step %d of %d, from %s", p.Step, p.Iterations, p.Checkpoint)
	switch {
	case p.Checkpoint == "":
		text = "starts from the beginning, as no checkpoint was written: " + cli.Count(p.Iterations, "step")
	case p.Step >= p.Iterations:
		text += "; all steps are done; " + fault.Setting("iterations") + " N trains further"
	}
	text += fmt.Sprintf("\ntrains on %s of %s, %d held out", cli.Count(p.TrainImages, "photo"), p.Capture, p.TestImages)
	if p.Preset != "" {
		text += ", preset " + p.Preset
	}
	return text
}

// printPlan prints what training would use memory for.
func printPlan(console *cli.Console, p *pipeline.Plan) {
	d, h := &p.Device, &p.Host
	console.Sayf("%s to start with, at most %d; %d (tile, splat) pairs at once\n", cli.Count(p.Splats, "splat"),
		p.Ceiling, p.Isects)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	row := func(name string, bytes int64, note string) {
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", name, pipeline.BytesText(bytes), note)
	}
	held := fmt.Sprintf("%s kept there", cli.Count(d.PhotoFits, "photo"))
	if d.PhotoAll {
		held = "all photos kept there"
	}
	each := ""
	switch {
	case p.Shares != nil:
		each = fmt.Sprintf(", on the first device; the model may grow to %s splats on them", cli.SharesText(p.Shares))
	case p.Devices > 1:
		each = fmt.Sprintf(", on each of %d devices", p.Devices)
	}
	_, _ = fmt.Fprintf(w, "device memory\t%s\tof %s%s\n", pipeline.BytesText(d.Total), pipeline.BytesText(d.Budget),
		each)
	row("model", d.Model, fmt.Sprintf("parameters, moments and statistics at the ceiling, %d bytes per splat",
		p.SplatBytes))
	row("scratch", d.Scratch, fmt.Sprintf(
		"buffers between the passes of a step: %d bytes per splat, and pixels and pairs", p.StepBytes))
	row("photos", d.Photos, held)
	where := "mapped RAM, on its way to the device and back"
	if p.Unified {
		where = "on its way to the device and back"
	}
	row("staging", d.Staging, where)
	row("slack", d.Slack, "lost between blocks")
	_, _ = fmt.Fprintf(w, "  at the start\t%s\t\n", pipeline.BytesText(d.Start))
	decoded := "decoded photos; others are decoded again, or read from " + fault.Setting("image-cache")
	if h.CacheAll {
		decoded = "decoded photos, all of them"
	}
	_, _ = fmt.Fprintf(w, "RAM\t%s\tbudget\n", pipeline.BytesText(h.Budget))
	row("process", h.Process, "program, driver and points")
	if p.Devices > 1 {
		row("transfers", h.Staging, "packets between the devices, and what is mapped for each")
	}
	row("photos", h.Cache, decoded)
	row("decoding", h.Decode, fmt.Sprintf("%s, several photos at once", cli.Count(h.Workers, "worker")))
	row("picture", h.Picture, "a render and its photo, when they are compared, in place of most photos")
	row("model", h.Readback, "a piece of it at a time, when it is written")
	row("margin", h.Margin, "for garbage and for what the driver takes later")
	_ = w.Flush() // a strings.Builder never fails
	console.Table(b.String())
}
