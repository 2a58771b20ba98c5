package task

import (
	"os"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestTable wants a table with the scores that a model has, and no others.
func TestTable(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	rows := []row{{"a|b", map[string]float64{"PSNR": 20, "SSIM": 0.5}}, {"c", map[string]float64{"PSNR": 21}}}
	must.Do(t, writeTable(dir, rows, nil, "\nviews\n"))
	text, err := dir.ReadFile("table.md")
	const want = "| model | PSNR | SSIM |\n|---|---:|---:|\n| a\\|b | 20.000 | 0.5000 |\n| c | 21.000 | n/a |\n\nviews\n"
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, text, want)
	}
	rows[1].scores["LPIPS"] = 0.25
	must.Do(t, writeTable(dir, rows, nil, ""))
	if text, err = dir.ReadFile("table.md"); err != nil || !strings.Contains(string(text), "| n/a | 0.2500 |") {
		t.Errorf("%v\n%s", err, text)
	}
}
