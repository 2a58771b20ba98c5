package main

import (
	"cmp"
	_ "embed" // the page's frame
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
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
