package report

import (
	"cmp"
	_ "embed" // the page's frame
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/results"
)

// Bounds on what the page holds.
const (
	Points         = 600     // of a curve, about
	Worst          = 12      // held-out views in pictures
	Best           = 4       // likewise
	Side           = 960     // pixels of their longer side
	Bytes          = 8 << 20 // of all pictures
	reportQuality  = 88      // of their JPEGs
	reportLossless = 96 << 10
)

//go:embed report.tmpl
var reportFrame string

var frame = template.Must(template.New("report").Parse(reportFrame))

// Write writes the page. Its script takes lists of nothing, and no nulls: of a run that was stopped early there are no
// steps, of one without held-out photos no evaluations.
func (p *Page) Write(w io.Writer) error {
	p.Curves.Steps = append([]meter.StepLine{}, p.Curves.Steps...)
	p.Curves.Evals = append([]Eval{}, p.Curves.Evals...)
	p.Compare = append([]Picture{}, p.Compare...)
	return frame.Execute(w, p)
}

type Page struct {
	Title    string
	Subtitle string
	Facts    []Fact
	Curves   Curves
	Compare  []Picture
	Views    []View
	EvalStep int
	Left     int // held-out views without a picture
	Passes   []Pass
	PassSum  float64
	Settings []Chapter
	About    []Row
	Notices  []cli.Notice
	Errors   template.HTML // of the cameras, as SVG; "" without

	Room int // bytes left for pictures
}

type Fact struct{ Label, Value, Note string }

// Curves are the points of all curves; the page's script draws them.
type Curves struct {
	Steps  []meter.StepLine `json:"steps"`
	Evals  []Eval           `json:"evals"`
	Total  int              `json:"total"`
	Budget int64            `json:"budget"`
}

type Eval struct {
	Step int           `json:"step"`
	PSNR meter.Rounded `json:"psnr"`
	SSIM meter.Rounded `json:"ssim"`
}

// Picture is a held-out view with its pictures as data URIs.
type Picture struct {
	Name   string        `json:"name"`
	PSNR   meter.Rounded `json:"psnr"`
	SSIM   meter.Rounded `json:"ssim"`
	Width  int           `json:"width"`
	Height int           `json:"height"`
	Photo  string        `json:"photo"`
	Render string        `json:"render"`
}

// View is a row of the table of held-out views. Picture is its index in
// Compare, -1 for none.
type View struct {
	Name    string
	PSNR    float64
	SSIM    float64
	Nearest scene.Nearest
	Share   float64 // of the best view's PSNR, in percent
	Link    string
	Picture int
}

type Pass struct {
	Name  string
	MS    float64
	Share float64 // percent
}

type Chapter struct {
	Title string
	Rows  []Row
}

type Row struct {
	Key, Value string
	Default    string // what it is otherwise, when Changed
	Changed    bool
}

func Subtitle(st *output.Stats) string {
	s := fmt.Sprintf("%s, %s", cli.Count(st.Step, "step"), st.Device)
	if st.Interrupted {
		s += ", interrupted"
	}
	return s
}

func Facts(st *output.Stats) []Fact {
	var list []Fact
	if st.Scores != nil {
		list = append(list, Fact{"PSNR", fmt.Sprintf("%.2f dB", st.PSNR),
			fmt.Sprintf("%s held out, median %.2f", cli.Count(st.Measured, "photo"), st.PSNRMedian)},
			Fact{"SSIM", fmt.Sprintf("%.4f", st.SSIM), fmt.Sprintf("median %.4f", st.SSIMMedian)})
		if st.AlignedPSNR != nil {
			list = append(list, Fact{"PSNR aligned", fmt.Sprintf("%.2f dB", *st.AlignedPSNR),
				fmt.Sprintf("cameras moved to where their photos fit; SSIM %.4f", *st.AlignedSSIM)})
		}
		if st.LensPSNR != nil {
			list = append(list, Fact{"PSNR through the lens", fmt.Sprintf("%.2f dB", *st.LensPSNR),
				fmt.Sprintf("darkened as the cameras do; SSIM %.4f", *st.LensSSIM)})
		}
	}
	rate, seconds, note := 0.0, max(st.TrainSeconds, st.LoopSeconds), ""
	steps := st.Step
	if st.Run != nil && st.Run.ResumedFrom > 0 {
		if note = ", all processes together"; !(st.TrainSeconds > st.LoopSeconds) { // the time before is unknown
			steps -= st.Run.ResumedFrom
			note = fmt.Sprintf(", this process alone, after step %d", st.Run.ResumedFrom)
		}
	}
	if seconds > 0 {
		rate = float64(steps) / seconds
	}
	return append(list,
		Fact{"Splats", grouped(st.Splats), "from " + grouped(st.Points) + " points"},
		Fact{"Training", cli.Duration(seconds), meter.RateText(rate) + note},
		Fact{"Device memory", pipeline.BytesText(st.PeakDeviceBytes), "at most"},
		Fact{"Photos", grouped(st.TrainImages), st.Resolution + " pixels" + captured.FirstSteps(&st.Config)})
}

// grouped prints a number with thin spaces between thousands.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u2009" + s[i:]
	}
	return s
}

// AddPicture adds the pictures of a view, if there are any and the page has
// room, and returns their index, or -1.
func (p *Page) AddPicture(pic *Picture) int {
	if pic == nil {
		return -1
	}
	size := len(pic.Photo) + len(pic.Render)
	if size > p.Room {
		return -1
	}
	p.Room -= size
	p.Compare = append(p.Compare, *pic)
	return len(p.Compare) - 1
}

// NewPicture makes the pictures of a view of those of the page's size.
func NewPicture(name string, photo, render scene.Image) (pic *Picture, err error) {
	pic = &Picture{Name: name, Width: photo.Width, Height: photo.Height}
	if pic.Photo, err = dataURI(photo); err == nil {
		pic.Render, err = dataURI(render)
	}
	return pic, err
}

// Thumbnails are the page's pictures of one evaluation: those that it will show, and no more at any time.
type Thumbnails struct {
	Step   int
	sorted []thumbnail // worst first
}

type thumbnail struct {
	psnr    float64
	picture *Picture
}

// Add takes in the pictures of a view; pic may be nil.
func (t *Thumbnails) Add(pic *Picture, view results.ViewScore) {
	if pic == nil {
		return
	}
	t.sorted = append(t.sorted, thumbnail{view.PSNR, pic})
	slices.SortStableFunc(t.sorted, func(a, b thumbnail) int { return cmp.Compare(a.psnr, b.psnr) })
	if len(t.sorted) > Worst+Best {
		t.sorted = slices.Delete(t.sorted, Worst, Worst+1) // enough are worse, and enough better
	}
}

// Find returns the pictures of a view, or nil; t may be nil.
func (t *Thumbnails) Find(step int, name string) *Picture {
	if t == nil || t.Step != step {
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

// Passes sorts the kernels by time.
func Passes(passes []output.PassLine) (rows []Pass, sum float64) {
	for _, p := range passes {
		sum += float64(p.MS)
	}
	for _, p := range passes {
		rows = append(rows, Pass{p.Name, float64(p.MS), 100 * float64(p.MS) / max(sum, 1e-9)})
	}
	slices.SortStableFunc(rows, func(a, b Pass) int { return cmp.Compare(b.MS, a.MS) })
	return rows, sum
}
