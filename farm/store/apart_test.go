package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
)

// TestApart refuses roots of results that are, or are in, those of inputs, or the other way round, by whatever name.
func TestApart(t *testing.T) {
	dir := t.TempDir()
	scans := filepath.Join(dir, "scans")
	must.Do(t, os.Mkdir(scans, 0o777))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(scans, link); err != nil {
		t.Skip("no links here: ", err)
	}
	for _, c := range []struct {
		in, out string
		apart   bool
	}{
		{scans, filepath.Join(dir, "results"), true},
		{scans, scans + "2", true},
		{scans, scans, false},
		{scans, "file://" + scans + "/results", false},
		{filepath.Join(scans, "2026"), scans, false},
		{link, scans, false},
		{"s3://farm/scans", "s3://farm/results", true},
		{"s3://farm/scans", "s3://farm/scans2", true},
		{"s3://farm/scans", "s3://farm/scans/results", false},
		{"s3://farm", "s3://farm/results/", false},
		{scans, "s3://farm/results", true},
	} {
		err := Roots{"inputs": {URL: c.in}, "outputs": {URL: c.out}}.Apart("inputs", "outputs")
		if (err == nil) != c.apart || err != nil && !errors.Is(err, ErrSetup) {
			t.Errorf("inputs %s, outputs %s: %v", c.in, c.out, err)
		}
	}
	if (Roots{}).Apart("inputs", "inputs") == nil {
		t.Error("one root for both")
	}
	if err := (Roots{"outputs": {URL: scans}}).Apart("inputs", "outputs"); err != nil {
		t.Errorf("a root that is not known here: %v", err)
	}
}
