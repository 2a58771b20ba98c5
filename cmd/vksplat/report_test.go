package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/jpeg"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/results"
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
	if err := photo.WriteSheet(path, shot, photo.FloatRGB(shot)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReportPictures wants pictures no larger than the page takes, as many as it
// takes, and those that cannot be read to be left out.
func TestReportPictures(t *testing.T) {
	// Small pictures and a small page: scripts measure the memory of programs that
	// begin as copies of this process.
	const room = 1 << 20
	p, r := reportPage{room: room}, &trainRun{}
	if p.addPicture(r.thumbnail(7, viewLine{}, filepath.Join(t.TempDir(), "none.png"))) != -1 {
		t.Error("a picture that is not there was added")
	}
	path := sheetOf(t, 1200, 100)
	shown := 0
	for range 12 {
		if at := p.addPicture(r.thumbnail(7, viewLine{Name: "v"}, path)); at >= 0 {
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
	if shown == 0 || shown == 12 || size > room || p.room != room-size {
		t.Errorf("%d pictures of %d bytes", shown, size)
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Compare[0].Photo, "data:image/jpeg;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil || img.Bounds().Dx() != reportSide || img.Bounds().Dy() != 80 {
		t.Errorf("a picture of %v, %v", img.Bounds(), err)
	}
	small := reportPage{room: room}
	small.addPicture(r.thumbnail(7, viewLine{}, sheetOf(t, 60, 40)))
	if !strings.HasPrefix(small.Compare[0].Render, "data:image/png;base64,") {
		t.Errorf("a small picture is %.30s", small.Compare[0].Render)
	}
}

// TestThumbnails wants the pictures that the page shows to be kept, whatever the order in which views are measured, and no more at any time.
func TestThumbnails(t *testing.T) {
	const views = 40
	kept := &thumbnails{step: 7}
	for i := range views {
		psnr := float64(i * 17 % views)
		kept.add(&reportPicture{Name: fmt.Sprint(psnr)}, results.ViewScore{PSNR: psnr})
		if n := len(kept.sorted); n > reportWorst+reportBest {
			t.Fatalf("%d pictures are kept", n)
		}
	}
	for i := range views {
		if found, want := kept.find(7, fmt.Sprint(i)) != nil, i < reportWorst || i >= views-reportBest; found != want {
			t.Errorf("the view of rank %d is kept: %v", i, found)
		}
	}
	if kept.find(8, "0") != nil || (*thumbnails)(nil).find(7, "0") != nil {
		t.Error("pictures of another step are shown")
	}
}

// TestReportPage wants the page to need no network, and what comes from files to
// stay text.
func TestReportPage(t *testing.T) {
	const evil = `</script><img src=x onerror=alert(1)>"'`
	page := &reportPage{Title: evil, Subtitle: evil, Notices: []cli.Notice{{Kind: cli.KindWarning, Text: evil}}, EvalStep: 7,
		Facts:    reportFacts(&stats{Step: 10, LoopSeconds: 4, Splats: 1234567, Scores: &Scores{PSNR: 30.125}}),
		Curves:   reportCurves{Steps: []meter.StepLine{{Step: 1}}, Evals: []reportEval{{Step: 1}}},
		Compare:  []reportPicture{{Name: evil, Photo: "data:image/png;base64,AAAA", Render: "data:image/png;base64,BBBB"}},
		Views:    []reportView{{Name: evil, Link: "test/a%20b.png", Picture: 0}, {Name: "second", Picture: -1}},
		Settings: []reportChapter{{Title: "Loss", Rows: []reportRow{{Key: "l1", Value: evil, Default: "0", Changed: true}}}},
	}
	page.Passes, page.PassSum = reportPasses([]passLine{{"quick", 1}, {"slow", 3}})
	var b bytes.Buffer
	if err := reportTemplate.Execute(&b, page); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	if n := strings.Count(html, "</script>"); n != 1 || strings.Contains(html, "<img src=x") {
		t.Errorf("a name got out of its place: %d scripts end", n)
	}
	for _, link := range regexp.MustCompile(`(?:https?:)?//[a-z][^\s"'<]*`).FindAllString(html, -1) {
		if link != "http://www.w3.org/2000/svg" { // a name, not an address
			t.Errorf("the page points to %s", link)
		}
	}
	for _, want := range []string{"30.12 dB", "1\u2009234\u2009567", "2.50 steps/s", "75.0 %", "base64,AAAA", "base64,BBBB", `title="default: 0"`} {
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

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1\u2009000", 1234567: "1\u2009234\u2009567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestReportIsOneFile wants the frame to hold no reference to another file but the pictures' links.
func TestReportIsOneFile(t *testing.T) {
	for _, bad := range []string{"<link", "@import", "url(", "fetch(", "XMLHttpRequest", "import("} {
		if strings.Contains(reportFrame, bad) {
			t.Errorf("the frame holds %s", fmt.Sprintf("%q", bad))
		}
	}
}

// TestReportRate wants the rate of a resumed run to be that of the steps whose time is known.
func TestReportRate(t *testing.T) {
	for _, tt := range []struct {
		st   stats
		want string
	}{
		{stats{Step: 100, LoopSeconds: 4}, "25 steps/s"},
		{stats{Step: 100, LoopSeconds: 4, TrainSeconds: 4, Run: &runLog{ResumedFrom: 80}}, "5.00 steps/s, this process alone, after step 80"},
		{stats{Step: 100, Run: &runLog{ResumedFrom: 100}}, "0.00 steps/s, this process alone, after step 100"},
		{stats{Step: 100, LoopSeconds: 4, TrainSeconds: 20, Run: &runLog{ResumedFrom: 80}}, "5.00 steps/s, all processes together"},
	} {
		if got := reportFacts(&tt.st)[1].Note; got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
