//go:build unix

package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
)

// reportOf reads what a command left for programs.
func reportOf(t *testing.T, o *Options) (r Report) {
	t.Helper()
	data, err := os.ReadFile(o.in(reportFile))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "null") {
		t.Errorf("a list is null in %s", data)
	}
	return r
}

// TestProgressJSON wants stages as lines of JSON, which are alone on standard output.
func TestProgressJSON(t *testing.T) {
	o := withPhotos(t, 4)
	o.Progress = meter.JSON
	var out, text bytes.Buffer
	console := cli.Within(t.Context(), nil)
	console.Stdout, console.Stderr = &out, &text
	must.Do(t, Run(console, o))
	var stages []string
	for line := range strings.Lines(out.String()) {
		var l Stage
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Event != meter.EventStep {
			t.Fatalf("%q: %v", line, err)
		}
		if !slices.Contains(stages, l.Name) {
			stages = append(stages, l.Name)
		}
	}
	if got := strings.Join(stages, " "); got != "photos features matches mapping model" {
		t.Errorf("the stages are %s", got)
	}
	if !strings.Contains(text.String(), "cameras:  4 of 4 photos") {
		t.Errorf("people read %s", text.String())
	}
}

// TestReport wants the facts of the verdict in a file, and the exit code of what failed.
func TestReport(t *testing.T) {
	install(t, "3.8", "colmap")
	dir := photosIn(t, 15)
	cutShort(t, filepath.Join(dir, "p14.jpg"))
	o := optionsOf(t, dir)
	t.Setenv(fakeComponents, "5,6")
	said, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, o.Out, "coverage.png")
	r := reportOf(t, o)
	if r.ExitCode != 0 || r.Error != "" || r.Colmap != "3.8" || r.Photos != 14 || r.Registered != 6 ||
		r.Taken.Number != 1 || r.Taken.Error != 0.5 || len(r.Others) != 1 || r.Others[0].Photos != 5 ||
		len(r.Dropped) != 8 || len(r.LeftOut) != 1 || len(r.Advice) != 2 || len(r.Stages) != 5 || !r.Stages[4].Done ||
		r.Coverage != coverageFile {
		t.Errorf("it has %+v", r)
	}
	for _, d := range r.Dropped[:mostNamed] {
		if !strings.Contains(said, d.Photo+": "+d.Why) {
			t.Errorf("%v is not said:\n%s", d, said)
		}
	}
	o.MaxSize = 900
	t.Setenv(fakeFails, "exhaustive_matcher")
	_, err = run(t.Context(), o)
	r = reportOf(t, o)
	if err == nil || r.ExitCode != fault.ExitCode(err) || r.ExitCode == 0 || r.Error != err.Error() ||
		r.Hint != fault.Hint(err) || r.Taken != nil {
		t.Errorf("of %v it has %+v", err, r)
	}
	must.Do(t, os.WriteFile(o.in(reportFile), []byte("mine"), 0o666))
	if _, err = run(t.Context(), o); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), reportFile) {
		t.Errorf("another one's file is replaced: %v", err)
	}
}
