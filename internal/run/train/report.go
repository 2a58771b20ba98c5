package train

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/report"
	"vksplat/pipeline"
	"vksplat/scene/photo"
)

// writeReport writes the page about the run so far, if there is to be one.
func (r *Run) writeReport(st *output.Stats) error {
	if !r.Report {
		return nil
	}
	page := &report.Page{Title: filepath.Base(output.Absolute(r.Scene)), Subtitle: report.Subtitle(st),
		Facts: report.Facts(st), Notices: r.Console.Notices(), Room: report.Bytes}
	if err := r.reportCurves(page); err != nil {
		return err
	}
	r.reportViews(page)
	page.Passes, page.PassSum = report.Passes(st.Passes)
	if r.Chapters != nil {
		page.Settings = r.Chapters(r.Options)
	}
	page.About = r.reportAbout(st)
	return atomicfile.Write(r.at(filepath.Join(r.Out, output.ReportFile)), page.Write)
}

// reportCurves reads what metrics.jsonl says, which outlives a resume.
func (r *Run) reportCurves(page *report.Page) error {
	f, err := os.Open(r.at(filepath.Join(r.Out, output.MetricsFile)))
	if errors.Is(err, os.ErrNotExist) {
		return fault.WithHint(fmt.Errorf("write report: %w", err),
			r.Out+" was removed or moved while the run went on; what was written since, the model too, is in a new "+
				"folder of that name")
	}
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	page.Curves = report.Curves{Steps: meter.ReadSteps(f, report.Points), Total: r.Config.Iterations,
		Budget: r.deviceBudget()}
	for _, e := range r.rec.metrics.evals {
		page.Curves.Evals = append(page.Curves.Evals, report.Eval{Step: e.Step, PSNR: e.PSNR, SSIM: e.SSIM})
	}
	return nil
}

// reportViews fills the table of held-out views, worst first, and the pictures of
// the worst and the best. A picture that cannot be read is left out.
func (r *Run) reportViews(page *report.Page) {
	evals := r.rec.metrics.evals
	if len(evals) == 0 {
		return
	}
	last := evals[len(evals)-1]
	page.EvalStep = last.Step
	folder := r.picturesFolder(last.Step)
	files := r.pictureFiles()
	views := slices.Clone(last.Views)
	slices.SortStableFunc(views, func(a, b meter.ViewLine) int { return cmp.Compare(a.PSNR, b.PSNR) })
	best := float64(views[len(views)-1].PSNR)
	nearest := r.nearest()
	for i, v := range views {
		row := report.View{Name: v.Name, PSNR: float64(v.PSNR), SSIM: float64(v.SSIM), Picture: -1,
			Nearest: nearest[v.Name], Share: 100 * max(0, float64(v.PSNR)) / max(best, 1)}
		if file, found := files[v.Name]; found {
			row.Link = (&url.URL{Path: "test/ours_" + fmt.Sprint(last.Step) + "/" + filepath.ToSlash(file)}).String()
			if i < report.Worst || i >= len(views)-report.Best {
				row.Picture = page.AddPicture(r.thumbnail(last.Step, v, filepath.Join(folder, file)))
			}
		}
		page.Views = append(page.Views, row)
	}
	page.Left = len(views) - len(page.Compare)
}

// thumbnail returns the pictures of a view: those that were made when it was measured, or made of its sheet, nil where
// that cannot be read.
func (r *Run) thumbnail(step int, v meter.ViewLine, file string) *report.Picture {
	pic := r.thumbs.Find(step, v.Name)
	if pic == nil {
		shot, render, err := photo.ReadSheet(file)
		if err != nil {
			return nil
		}
		if pic, err = report.NewPicture(v.Name, photo.Fit(shot, report.Side),
			photo.Fit(render, report.Side)); err != nil {
			return nil
		}
	}
	pic.PSNR, pic.SSIM = meter.Rounded(v.PSNR), meter.Rounded(v.SSIM)
	return pic
}

func (r *Run) reportAbout(st *output.Stats) []report.Row {
	words := make([]string, len(r.Console.Args))
	for i, w := range r.Console.Args {
		words[i] = cli.Quoted(w)
	}
	return []report.Row{
		{Key: "command", Value: "vksplat " + strings.Join(words, " ")},
		{Key: "version", Value: cli.VersionText()},
		{Key: "device", Value: st.Device},
		{Key: "driver", Value: r.device.Driver()},
		{Key: "memory budget", Value: pipeline.BytesText(r.deviceBudget())},
		{Key: "peak device memory",
			Value: fmt.Sprintf("%s in %s", pipeline.BytesText(st.PeakDeviceBytes),
				cli.Count(st.Allocations, "allocation"))},
		{Key: "peak memory of the process", Value: pipeline.BytesText(st.PeakRSSBytes)},
		{Key: "capture", Value: output.Absolute(r.Scene)},
		{Key: "model", Value: r.modelFile(st.Step)},
		{Key: "scores", Value: "of the model's file, drawn with " + r.drawn().String()},
	}
}
