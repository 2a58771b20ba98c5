package evaluate

import (
	"strings"
	"testing"

	"vksplat/scene/results"
)

func TestBestInBold(t *testing.T) {
	known := func(name string, v float64) results.Score { return results.Score{Name: name, Value: v, Known: true} }
	for _, c := range []struct {
		row  []results.Score
		want string
	}{
		{[]results.Score{known("PSNR", 20), known("PSNR", 21), known("PSNR", 21)}, "20.000 **21.000** 21.000"},
		{[]results.Score{known("LPIPS", 0.2), {Name: "LPIPS"}, known("LPIPS", 0.1)}, "0.2000 n/a **0.1000**"},
		{[]results.Score{{Name: "SSIM"}, {Name: "SSIM"}}, "n/a n/a"},
	} {
		if got := strings.Join(bestInBold(c.row), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestMarkdownTable(t *testing.T) {
	table := &MarkdownTable{}
	table.Add("view", "PSNR")
	table.Add("a|b.jpg", "20.5")
	const want = "| view     | PSNR |\n|----------|-----:|\n| a\\|b.jpg | 20.5 |\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
