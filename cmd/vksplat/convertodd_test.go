package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// TestConvertOddFiles converts models as other programs leave them.
func TestConvertOddFiles(t *testing.T) {
	const names = "x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 rot_0 rot_1 rot_2 rot_3"
	text := func(names string, rows ...string) string {
		return fmt.Sprintf("ply\nformat ascii 1.0\nelement vertex %d\nproperty float %s\nend_header\n%s\n", len(rows),
			strings.Join(strings.Fields(names), "\nproperty float "), strings.Join(rows, "\n"))
	}
	const row = "1 2 3 0 0 0 1 -3 -3 1 0 0 0"
	broken := text(names+" scale_2", row+" -3", "-nan(ind)"+row[1:]+" -3", row+" 1.#INF", row+" -inf")
	dir := t.TempDir()
	for i, c := range []struct {
		text, flag string
		code       int
		want       string
	}{
		{broken, "", 0, "2 splats left out: numbers that are NaN or infinite"},
		{broken, "--strict", 65, "2 splats: numbers that are NaN or infinite"},
		{text(names, row, row), "--strict", 0, "in2.ply: the splats are flat disks (2DGS)"},
		{text(names+" scale_2", row+" -3 7", row+" -3 7"), "", 65, "1 for each of the 2: rows have 15, not 14"},
		{"\x1f\x8b\x08", "", 65, "it is compressed with gzip"},
	} {
		in, out := filepath.Join(dir, fmt.Sprint("in", i, ".ply")), filepath.Join(dir, fmt.Sprint("out", i, ".ply"))
		must.Do(t, os.WriteFile(in, []byte(c.text), 0o666))
		args := append([]string{"convert", in, out}, strings.Fields(c.flag)...)
		var stdout, stderr bytes.Buffer
		code := run(args, &stdout, &stderr)
		said := stdout.String() + stderr.String()
		if code != c.code || !strings.Contains(said, c.want) || code != 0 && !strings.Contains(said, "hint:") ||
			output.IsFile(out) != (code == 0) {
			t.Errorf("%q: exit %d, want %d with %q:\n%s", args, code, c.code, c.want, said)
		}
	}
}
