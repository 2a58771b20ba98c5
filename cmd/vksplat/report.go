package main

import (
	"cmp"
	_ "embed" // the page's frame
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
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
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/results"
)

// Bounds on what the page holds.
const (
	reportPoints   = 600     // of a curve, about
	reportWorst    = 12      // held-out views in pictures
	reportBest     = 4       // likewise
	reportSide     = 960     // pixels of their longer side
	reportBytes    = 8 << 20 // of all pictures
	reportQuality  = 88      // of their JPEGs
	reportLossless = 96 << 10
)

//go:embed report.tmpl
var reportFrame string

var reportTemplate = template.Must(template.New("report").Parse(reportFrame))

// reportPage is what the frame is filled with.
type reportPage struct {
	Title    string
	Subtitle string
	Facts    []reportFact
	Curves   reportCurves
	Compare  []reportPicture
	Views    []reportView
	EvalStep int
	Left     int // held-out views without a picture
	Passes   []reportPass
	PassSum  float64
	Settings []reportChapter
	About    []reportRow
	Notices  []cli.Notice

	room int // bytes left for pictures
}

// reportFact is one of the numbers at the top.
type reportFact struct{ Label, Value, Note string }

// reportCurves are the points of all curves; the page's script draws them.
type reportCurves struct {
	Steps  []meter.StepLine `json:"steps"`
	Evals  []reportEval     `json:"evals"`
	Total  int              `json:"total"`
	Budget int64            `json:"budget"`
}

type reportEval struct {
	Step int           `json:"step"`
	PSNR meter.Rounded `json:"psnr"`
	SSIM meter.Rounded `json:"ssim"`
}

// reportPicture is a held-out view with its pictures as data URIs.
type reportPicture struct {
	Name   string        `json:"name"`
	PSNR   meter.Rounded `json:"psnr"`
	SSIM   meter.Rounded `json:"ssim"`
	Width  int           `json:"width"`
	Height int           `json:"height"`
	Photo  string        `json:"photo"`
	Render string        `json:"render"`
}

// reportView is a row of the table of held-out views. Picture is its index in
// Compare, -1 for none.
type reportView struct {
	Name    string
	PSNR    float64
	SSIM    float64
	Share   float64 // of the best view's PSNR, in percent
	Link    string
	Picture int
}

type reportPass struct {
	Name  string
	MS    float64
	Share float64 // percent
}

type reportChapter struct {
	Title string
	Rows  []reportRow
}

type reportRow struct {
	Key, Value string
	Default    string // what it is otherwise, when Changed
	Changed    bool
}

// writeReport writes the page about the run so far, if there is to be one.
func (r *trainRun) writeReport(st *stats) error {
	if !r.report {
		return nil
	}
	page := &reportPage{Title: filepath.Base(output.Absolute(r.scene)), Subtitle: reportSubtitle(st), Facts: reportFacts(st), Notices: r.app.Notices(), room: reportBytes}
	if err := r.reportCurves(page); err != nil {
		return err
	}
	r.reportViews(page)
	page.Passes, page.PassSum = reportPasses(st.Passes)
	page.Settings = r.reportSettings()
	page.About = r.reportAbout(st)
	return atomicfile.Write(filepath.Join(r.out, output.ReportFile), func(w io.Writer) error { return reportTemplate.Execute(w, page) })
}

func reportSubtitle(st *stats) string {
	s := fmt.Sprintf("%s, %s", cli.Count(st.Step, "step"), st.Device)
	if st.Interrupted {
		s += ", interrupted"
	}
	return s
}

func reportFacts(st *stats) []reportFact {
	var list []reportFact
	if st.Scores != nil {
		list = append(list, reportFact{"PSNR", fmt.Sprintf("%.2f dB", st.PSNR), fmt.Sprintf("%s held out, median %.2f", cli.Count(st.TestImages, "photo"), st.PSNRMedian)},
			reportFact{"SSIM", fmt.Sprintf("%.4f", st.SSIM), fmt.Sprintf("median %.4f", st.SSIMMedian)})
	}
	rate, seconds, note := 0.0, max(st.TrainSeconds, st.LoopSeconds), ""
	steps := st.Step
	if st.Run != nil && st.Run.ResumedFrom > 0 {
		if note = ", all processes together"; !(st.TrainSeconds > st.LoopSeconds) { // nobody knows of the time before
			steps -= st.Run.ResumedFrom
			note = fmt.Sprintf(", this process alone, after step %d", st.Run.ResumedFrom)
		}
	}
	if seconds > 0 {
		rate = float64(steps) / seconds
	}
	return append(list,
		reportFact{"Splats", grouped(st.Splats), "from " + grouped(st.Points) + " points"},
		reportFact{"Training", cli.Duration(seconds), meter.RateText(rate) + note},
		reportFact{"Device memory", pipeline.BytesText(st.PeakDeviceBytes), "at most"},
		reportFact{"Photos", grouped(st.TrainImages), st.Resolution + " pixels" + firstSteps(&st.Config)})
}

// grouped prints a number with thin spaces between thousands.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u2009" + s[i:]
	}
	return s
}

// reportCurves reads what metrics.jsonl says, which outlives a resume.
func (r *trainRun) reportCurves(page *reportPage) error {
	f, err := os.Open(filepath.Join(r.out, output.MetricsFile))
	if errors.Is(err, os.ErrNotExist) {
		return &fault.HintedError{Err: fmt.Errorf("write report: %w", err), Hint: r.out + " was removed or moved while the run went on; what was written since, the model too, is in a new folder of that name"}
	}
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	page.Curves = reportCurves{Steps: readSteps(f, reportPoints), Total: r.config.Iterations, Budget: r.deviceBudget(), Evals: []reportEval{}}
	for _, e := range r.rec.metrics.evals {
		page.Curves.Evals = append(page.Curves.Evals, reportEval{e.Step, e.PSNR, e.SSIM})
	}
	return nil
}

// reportViews fills the table of held-out views, worst first, and the pictures of
// the worst and the best. A picture that cannot be read is left out.
func (r *trainRun) reportViews(page *reportPage) {
	evals := r.rec.metrics.evals
	if len(evals) == 0 {
		return
	}
	last := evals[len(evals)-1]
	page.EvalStep = last.Step
	folder := r.picturesFolder(last.Step)
	files := r.pictureFiles()
	views := slices.Clone(last.Views)
	slices.SortStableFunc(views, func(a, b viewLine) int { return cmp.Compare(a.PSNR, b.PSNR) })
	best := float64(views[len(views)-1].PSNR)
	for i, v := range views {
		row := reportView{Name: v.Name, PSNR: float64(v.PSNR), SSIM: float64(v.SSIM), Picture: -1, Share: 100 * max(0, float64(v.PSNR)) / max(best, 1)}
		if file, found := files[v.Name]; found {
			row.Link = (&url.URL{Path: "test/ours_" + fmt.Sprint(last.Step) + "/" + filepath.ToSlash(file)}).String()
			if i < reportWorst || i >= len(views)-reportBest {
				row.Picture = page.addPicture(r.thumbnail(last.Step, v, filepath.Join(folder, file)))
			}
		}
		page.Views = append(page.Views, row)
	}
	page.Left = len(views) - len(page.Compare)
}

// addPicture adds the pictures of a view, if there are any and the page has
// room, and returns their index, or -1.
func (p *reportPage) addPicture(pic *reportPicture) int {
	if pic == nil {
		return -1
	}
	size := len(pic.Photo) + len(pic.Render)
	if size > p.room {
		return -1
	}
	p.room -= size
	p.Compare = append(p.Compare, *pic)
	return len(p.Compare) - 1
}

// thumbnail returns the pictures of a view: those that were made when it was measured, or made of its sheet, nil where that cannot be read.
func (r *trainRun) thumbnail(step int, v viewLine, file string) *reportPicture {
	pic := r.thumbs.find(step, v.Name)
	if pic == nil {
		shot, render, err := photo.ReadSheet(file)
		if err != nil {
			return nil
		}
		if pic, err = newReportPicture(v.Name, photo.Fit(shot, reportSide), photo.Fit(render, reportSide)); err != nil {
			return nil
		}
	}
	pic.PSNR, pic.SSIM = meter.Rounded(v.PSNR), meter.Rounded(v.SSIM)
	return pic
}

// newReportPicture makes the pictures of a view of those of the page's size.
func newReportPicture(name string, photo, render scene.Image) (pic *reportPicture, err error) {
	pic = &reportPicture{Name: name, Width: photo.Width, Height: photo.Height}
	if pic.Photo, err = dataURI(photo); err == nil {
		pic.Render, err = dataURI(render)
	}
	return pic, err
}

// thumbnails are the page's pictures of one evaluation: those that it will show, and no more at any time.
type thumbnails struct {
	step   int
	sorted []thumbnail // worst first
}

type thumbnail struct {
	psnr    float64
	picture *reportPicture
}

// add takes in the pictures of a view; pic may be nil.
func (t *thumbnails) add(pic *reportPicture, view results.ViewScore) {
	if pic == nil {
		return
	}
	t.sorted = append(t.sorted, thumbnail{view.PSNR, pic})
	slices.SortStableFunc(t.sorted, func(a, b thumbnail) int { return cmp.Compare(a.psnr, b.psnr) })
	if len(t.sorted) > reportWorst+reportBest {
		t.sorted = slices.Delete(t.sorted, reportWorst, reportWorst+1) // enough are worse, and enough better
	}
}

// find returns the pictures of a view, or nil; t may be nil.
func (t *thumbnails) find(step int, name string) *reportPicture {
	if t == nil || t.step != step {
		return nil
	}
	for _, v := range t.sorted {
		if v.picture.Name == name {
			return v.picture
		}
	}
	return nil
}

// dataURI returns a picture as text: without loss where that is small.
func dataURI(img scene.Image) (string, error) {
	if 3*img.Width*img.Height <= 8*reportLossless { // no photo is packed better than that
		data, err := photo.PNG(img)
		if err != nil {
			return "", err
		}
		if len(data) <= reportLossless {
			return "data:image/png;base64," + base64.StdEncoding.EncodeToString(data), nil
		}
	}
	data, err := photo.JPEG(img, reportQuality)
	return "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(data), err
}

// reportPasses sorts the kernels by time.
func reportPasses(passes []passLine) (rows []reportPass, sum float64) {
	for _, p := range passes {
		sum += float64(p.MS)
	}
	for _, p := range passes {
		rows = append(rows, reportPass{p.Name, float64(p.MS), 100 * float64(p.MS) / max(sum, 1e-9)})
	}
	slices.SortStableFunc(rows, func(a, b reportPass) int { return cmp.Compare(b.MS, a.MS) })
	return rows, sum
}

// reportSettings lists all settings by chapter and marks those that are not the default.
func (r *trainRun) reportSettings() []reportChapter {
	var list []reportChapter
	standard := newTrainOptions().table()
	for i, g := range r.table() {
		ch := reportChapter{Title: g.title}
		for k, o := range g.options {
			if o.flag {
				continue
			}
			was := standard[i].options[k].value.String()
			row := reportRow{Key: o.key(), Value: o.value.String(), Default: was}
			row.Changed = row.Value != was
			ch.Rows = append(ch.Rows, row)
		}
		if len(ch.Rows) > 0 {
			list = append(list, ch)
		}
	}
	return list
}

func (r *trainRun) reportAbout(st *stats) []reportRow {
	words := make([]string, len(r.app.Args))
	for i, w := range r.app.Args {
		words[i] = cli.Quoted(w)
	}
	return []reportRow{
		{Key: "command", Value: "vksplat " + strings.Join(words, " ")},
		{Key: "version", Value: cli.VersionText()},
		{Key: "device", Value: st.Device},
		{Key: "driver", Value: r.device.Driver()},
		{Key: "memory budget", Value: pipeline.BytesText(r.deviceBudget())},
		{Key: "peak device memory", Value: fmt.Sprintf("%s in %s", pipeline.BytesText(st.PeakDeviceBytes), cli.Count(st.Allocations, "allocation"))},
		{Key: "peak memory of the process", Value: pipeline.BytesText(st.PeakRSSBytes)},
		{Key: "capture", Value: output.Absolute(r.scene)},
		{Key: "model", Value: r.modelFile(st.Step)},
		{Key: "scores", Value: "of the model's file, drawn with " + r.drawn().String()},
	}
}
