package train

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/report"
	"vksplat/pipeline"
	"vksplat/scene/photo"
)

// reportFile is report.html.
type reportFile struct {
	o       *Options
	console *cli.Console
	started *Started
	mu      sync.Mutex
	thumbs  *report.Thumbnails // of the last evaluation of this process
}

func newReport(o *Options, console *cli.Console) (Observer, error) {
	if !o.Report {
		return nil, nil
	}
	return &reportFile{o: o, console: console}, nil
}

// Observe keeps small pictures, and writes the page with all that is known whenever there are scores.
func (r *reportFile) Observe(e Event) error {
	switch e := e.(type) {
	case *Started:
		r.started = e
	case *Compared:
		return r.compared(e)
	case *Scored:
		return r.write(e.Stats)
	case *Finished:
		if err := r.write(e.Stats); err != nil {
			return err
		}
		e.Report = filepath.Join(r.o.Out, output.ReportFile)
	}
	return nil
}

// Close does nothing.
func (r *reportFile) Close() error { return nil }

// compared keeps the pictures of a held-out photo.
func (r *reportFile) compared(e *Compared) error {
	made := photo.FromFloats(e.Render, e.Photo.Width, e.Photo.Height)
	pic, err := report.NewPicture(e.View.Name, photo.Fit(e.Photo, report.Side), photo.Fit(made, report.Side))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.thumbs == nil || r.thumbs.Step != e.Step {
		r.thumbs = &report.Thumbnails{Step: e.Step}
	}
	r.thumbs.Add(pic, e.View)
	return err
}

// write writes the page about the run so far.
func (r *reportFile) write(st *output.Stats) error {
	page := &report.Page{Title: filepath.Base(output.Absolute(r.o.Scene)), Subtitle: report.Subtitle(st),
		Facts: report.Facts(st), Notices: r.console.Notices(), Room: report.Bytes}
	if err := r.curves(page); err != nil {
		return err
	}
	r.views(page)
	if cal := r.started.Calibrated; cal != nil && cal.Before != nil {
		var svg strings.Builder
		if err := cal.WritePicture(&svg); err != nil {
			return err
		}
		page.Errors = template.HTML(svg.String()) // which escapes the names of photos
	}
	page.Passes, page.PassSum = report.Passes(st.Passes)
	if r.o.Chapters != nil {
		page.Settings = r.o.Chapters(r.o)
	}
	page.About = r.about(st)
	return atomicfile.Write(r.started.At(filepath.Join(r.o.Out, output.ReportFile)), page.Write)
}

// curves reads what metrics.jsonl says, which outlives a resume.
func (r *reportFile) curves(page *report.Page) error {
	f, err := os.Open(r.started.At(filepath.Join(r.o.Out, output.MetricsFile)))
	if errors.Is(err, os.ErrNotExist) {
		return fault.WithHint(fmt.Errorf("write report: %w", err),
			r.o.Out+" was removed or moved during the run; what was written since, including the model, is in a new "+
				"folder of that name")
	}
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	page.Curves = report.Curves{Steps: meter.ReadSteps(f, report.Points), Total: r.o.Config.Iterations,
		Budget: r.started.Line.BudgetBytes}
	for _, e := range r.started.Past.evals {
		page.Curves.Evals = append(page.Curves.Evals, report.Eval{Step: e.Step, PSNR: e.PSNR, SSIM: e.SSIM})
	}
	return nil
}

// views fills the table of held-out views, worst first, and the pictures of
// the worst and the best. A picture that cannot be read is left out.
func (r *reportFile) views(page *report.Page) {
	evals := r.started.Past.evals
	if len(evals) == 0 {
		return
	}
	last := evals[len(evals)-1]
	page.EvalStep = last.Step
	folder := picturesFolder(r.o.Out, last.Step)
	files := pictureFiles(r.started.Capture, r.started.Test)
	views := slices.Clone(last.Views)
	slices.SortStableFunc(views, func(a, b meter.ViewLine) int { return cmp.Compare(a.PSNR, b.PSNR) })
	best := float64(views[len(views)-1].PSNR)
	nearest := r.started.Nearest()
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
func (r *reportFile) thumbnail(step int, v meter.ViewLine, file string) *report.Picture {
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

func (r *reportFile) about(st *output.Stats) []report.Row {
	words := make([]string, len(r.console.Args))
	for i, w := range r.console.Args {
		words[i] = cli.Quoted(w)
	}
	return []report.Row{
		{Key: "command", Value: "vksplat " + strings.Join(words, " ")},
		{Key: "version", Value: cli.VersionText()},
		{Key: "device", Value: st.Device},
		{Key: "driver", Value: r.started.Driver},
		{Key: "memory budget", Value: pipeline.BytesText(r.started.Line.BudgetBytes)},
		{Key: "peak device memory",
			Value: fmt.Sprintf("%s in %s", pipeline.BytesText(st.PeakDeviceBytes),
				cli.Count(st.Allocations, "allocation"))},
		{Key: "peak memory of the process", Value: pipeline.BytesText(st.PeakRSSBytes)},
		{Key: "capture", Value: output.Absolute(r.o.Scene)},
		{Key: "model", Value: modelFile(r.o.Out, st.Step)},
		{Key: "scores", Value: fmt.Sprint("of the model's file, drawn with ",
			drawnBy(r.o, r.started.Capture, r.started.Test))},
	}
}
