package report

import (
	"fmt"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene/results"
)

// TestThumbnails wants the pictures that the page shows to be kept, whatever the order in which views are measured, and
// no more at any time.
func TestThumbnails(t *testing.T) {
	const views = 40
	kept := &Thumbnails{Step: 7}
	for i := range views {
		psnr := float64(i * 17 % views)
		kept.Add(&Picture{Name: fmt.Sprint(psnr)}, results.ViewScore{PSNR: psnr})
		if n := len(kept.sorted); n > Worst+Best {
			t.Fatalf("%d pictures are kept", n)
		}
	}
	for i := range views {
		if found, want := kept.Find(7, fmt.Sprint(i)) != nil, i < Worst || i >= views-Best; found != want {
			t.Errorf("the view of rank %d is kept: %v", i, found)
		}
	}
	if kept.Find(8, "0") != nil || (*Thumbnails)(nil).Find(7, "0") != nil {
		t.Error("pictures of another step are shown")
	}
}

// TestPageOfNothing wants the data of a run that was stopped before its first line to be lists, as the page's script
// takes them.
func TestPageOfNothing(t *testing.T) {
	var b strings.Builder
	must.Do(t, new(Page).Write(&b))
	for _, want := range []string{`const data = {"steps":[],"evals":[],`, "const pictures = [];"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
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
