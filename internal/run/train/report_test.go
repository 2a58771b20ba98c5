package train

import (
	"bytes"
	"encoding/base64"
	"image/jpeg"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/report"
	"vksplat/internal/run/runtest"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// sheetOf writes a held-out view of noise, which compresses badly.
func sheetOf(t *testing.T, width, height int) string {
	t.Helper()
	pix := make([]byte, 4*width*height)
	x := uint32(1)
	for i := range pix {
		x = x*1664525 + 1013904223
		pix[i] = byte(x >> 24)
	}
	shot := scene.Image{Width: width, Height: height, Pix: pix}
	path := filepath.Join(t.TempDir(), "view.png")
	must.Do(t, photo.WriteSheet(path, shot, photo.FloatRGB(shot)))
	return path
}

// TestReportPictures wants pictures no larger than the page takes, as many as it
// takes, and those that cannot be read to be left out.
func TestReportPictures(t *testing.T) {
	// Small pictures and a small page: scripts measure the memory of programs that
	// begin as copies of this process.
	const room = 1 << 20
	p, r := report.Page{Room: room}, &reportFile{}
	if p.AddPicture(r.thumbnail(7, meter.ViewLine{}, filepath.Join(t.TempDir(), "none.png"))) != -1 {
		t.Error("a picture that is not there was added")
	}
	path := sheetOf(t, 1200, 100)
	shown := 0
	for range 12 {
		if at := p.AddPicture(r.thumbnail(7, meter.ViewLine{Name: "v"}, path)); at >= 0 {
			if at != shown {
				t.Errorf("picture %d got the number %d", shown, at)
			}
			shown++
		}
	}
	size := 0
	for _, c := range p.Compare {
		size += len(c.Photo) + len(c.Render)
	}
	if shown == 0 || shown == 12 || size > room || p.Room != room-size {
		t.Errorf("%d pictures of %d bytes", shown, size)
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Compare[0].Photo, "data:image/jpeg;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil || img.Bounds().Dx() != report.Side || img.Bounds().Dy() != 80 {
		t.Errorf("a picture of %v, %v", img.Bounds(), err)
	}
	small := report.Page{Room: room}
	small.AddPicture(r.thumbnail(7, meter.ViewLine{}, sheetOf(t, 60, 40)))
	if !strings.HasPrefix(small.Compare[0].Render, "data:image/png;base64,") {
		t.Errorf("a small picture is %.30s", small.Compare[0].Render)
	}
}

// TestReportPage wants the page to need no network, and what comes from files to
// stay text.
func TestReportPage(t *testing.T) {
	const evil = `</script><img src=x onerror=alert(1)>"'`
	page := &report.Page{Title: evil, Subtitle: evil, Notices: []cli.Notice{{Kind: cli.KindWarning, Text: evil}},
		EvalStep: 7,
		Facts: report.Facts(&output.Stats{Step: 10, LoopSeconds: 4, Splats: 1234567,
			Scores: &output.Scores{PSNR: 30.125}}),
		Curves: report.Curves{Steps: []meter.StepLine{{Step: 1}}, Evals: []report.Eval{{Step: 1}}},
		Compare: []report.Picture{{Name: evil, Photo: "data:image/png;base64,AAAA",
			Render: "data:image/png;base64,BBBB"}},
		Views: []report.View{{Name: evil, Link: "test/a%20b.png", Picture: 0}, {Name: "second", Picture: -1}},
		Settings: []report.Chapter{{Title: "Loss",
			Rows: []report.Row{{Key: "l1", Value: evil, Default: "0", Changed: true}}}},
	}
	page.Passes, page.PassSum = report.Passes([]output.PassLine{{Name: "quick", MS: 1}, {Name: "slow", MS: 3}})
	var b bytes.Buffer
	must.Do(t, page.Write(&b))
	html := b.String()
	if n := strings.Count(html, "</script>"); n != 1 || strings.Contains(html, "<img src=x") {
		t.Errorf("a name got out of its place: %d scripts end", n)
	}
	for _, link := range regexp.MustCompile(`(?:https?:)?//[a-z][^\s"'<]*`).FindAllString(html, -1) {
		if link != "http://www.w3.org/2000/svg" { // a name, not an address
			t.Errorf("the page points to %s", link)
		}
	}
	for _, want := range []string{"30.12 dB", "1\u2009234\u2009567", "2.50 steps/s", "75.0 %", "base64,AAAA",
		"base64,BBBB", `title="default: 0"`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Index(html, "slow") > strings.Index(html, "quick") {
		t.Error("the slowest pass is not the first")
	}
	if strings.Contains(html, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
}

// TestReportRate wants the rate of a resumed run to be that of the steps whose time is known.
func TestReportRate(t *testing.T) {
	for _, tt := range []struct {
		st   output.Stats
		want string
	}{
		{output.Stats{Step: 100, LoopSeconds: 4}, "25 steps/s"},
		{output.Stats{Step: 100, LoopSeconds: 4, TrainSeconds: 4, Run: &output.RunLog{ResumedFrom: 80}},
			"5.00 steps/s, this process alone, after step 80"},
		{output.Stats{Step: 100, Run: &output.RunLog{ResumedFrom: 100}},
			"0.00 steps/s, this process alone, after step 100"},
		{output.Stats{Step: 100, LoopSeconds: 4, TrainSeconds: 20, Run: &output.RunLog{ResumedFrom: 80}},
			"5.00 steps/s, all processes together"},
	} {
		if got := report.Facts(&tt.st)[1].Note; got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestReportFails wants no line that names a report that could not be written.
func TestReportFails(t *testing.T) {
	o := NewOptions()
	o.Scene, o.Out, o.Report = runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out"), true
	o.Config.Iterations = 2
	o.Observers = append(o.Observers, func(o *Options, _ *cli.Console) (Observer, error) {
		return Observe(func(e Event) error {
			if _, trained := e.(*Trained); trained { // the page cannot be written without what was logged
				return os.Remove(filepath.Join(o.Out, output.MetricsFile))
			}
			return nil
		}), nil
	})
	var said bytes.Buffer
	_, err := Do(cli.New(nil, &said, &said), o)
	if err == nil || !strings.Contains(err.Error(), "write report") || strings.Contains(said.String(), "report: ") ||
		!strings.Contains(said.String(), "model: ") {
		t.Errorf("%v: %s", err, &said)
	}
}
