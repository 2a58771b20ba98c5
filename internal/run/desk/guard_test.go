package desk

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// TestGuard sends what a hostile page or program would: nothing begins.
func TestGuard(t *testing.T) {
	b := openDesk(t)
	header := func(name, value string) func(http.Header) {
		return func(h http.Header) {
			if value == "" {
				h.Del(name)
			} else {
				h.Set(name, value)
			}
		}
	}
	for _, c := range []struct {
		what, method, name, body string
		change                   func(http.Header)
		want                     int
	}{
		{"no cookie", "POST", "train", train, header("Cookie", ""), 403},
		{"a wrong cookie", "POST", "train", train, header("Cookie", "vksplat=x"), 403},
		{"no origin", "POST", "train", train, header("Origin", ""), 403},
		{"a foreign origin", "POST", "train", train, header("Origin", "http://evil.example"), 403},
		{"a foreign page", "POST", "train", train, header("Sec-Fetch-Site", "cross-site"), 403},
		{"a form", "POST", "train", train, header("Content-Type", "text/plain"), 400},
		{"an unknown key", "POST", "train", `{"scene":"garden","args":"x"}`, nil, 400},
		{"no JSON", "POST", "train", "{", nil, 400},
		{"a large body", "POST", "train", `{"scene":"` + strings.Repeat("x", maxBody) + `"}`, nil, 400},
		{"a name that only POST has", "GET", "train", "", nil, 404},
		{"a name that only GET has", "POST", "state", "{}", nil, 404},
		{"another method", "PUT", "train", train, nil, 405},
		{"a folder out", "POST", "train", strings.Replace(train, "garden", "../x", 1), nil, 400},
		{"an absolute folder", "POST", "train", strings.Replace(train, "garden", "/etc", 1), nil, 400},
		{"a limit", "POST", "train", strings.Replace(train, `"limit":0`, `"limit":-1`, 1), nil, 400},
		{"no cookie, reading", "GET", "state", "", header("Cookie", ""), 403},
		{"a viewer that is not there", "GET", "show/9/", "", nil, 404},
		{"a viewer that cannot be", "GET", "show/", "", nil, 404},
	} {
		if status, text := b.ask(c.method, c.name, c.body, c.change); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, status, text, c.want)
		}
	}
	s := b.until("the state", func(*seenState) bool { return true })
	if len(s.Jobs) != 0 {
		t.Errorf("%d jobs began", len(s.Jobs))
	}
}

// TestPlaces lists folders, and none outside of the root, by whatever name.
func TestPlaces(t *testing.T) {
	b := openDesk(t)
	outside := t.TempDir()
	for name, to := range map[string]string{"out": outside, "in": filepath.Join(b.root, "garden")} {
		if err := os.Symlink(to, filepath.Join(b.root, name)); err != nil {
			t.Skip(err)
		}
	}
	fill(t, filepath.Join(b.root, ".secret", "x"), "")
	fill(t, filepath.Join(b.root, "walk.mp4"), "")
	fill(t, filepath.Join(b.root, "model.spz"), "")
	fill(t, filepath.Join(b.root, "notes.txt"), "")
	fill(t, filepath.Join(b.root, "trip", "a.jpg"), "")
	fill(t, filepath.Join(b.root, "done", output.StatsFile), "{}")
	l := must.Get(b.list(""))(t)
	var got []string
	for _, e := range l.Entries {
		got = append(got, e.Name+" "+e.Kind)
	}
	want := []string{"bare scene", "crash scene", "done run", "garden scene", "in scene", "model.spz model", "out folder",
		"short scene", "trip footage", "walk.mp4 footage"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if l, err := b.list("trip"); err != nil || l.Kind != kindFootage || l.Photos != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := b.list("walk.mp4"); err != nil || l.Kind != kindFootage {
		t.Errorf("%+v, %v", l, err)
	}
	for _, rel := range []string{"..", "../..", "/", "/etc", "garden/../..", "out", "out/x", "none", "notes.txt", "\x00",
		"garden/../../" + filepath.Base(b.root)} {
		if l, err := b.list(rel); err == nil {
			t.Errorf("%q is %+v", rel, l)
		}
	}
	if path, err := b.absolute("in"); err != nil || path != filepath.Join(b.root, "garden") {
		t.Errorf("a link that stays inside: %s, %v", path, err)
	}
}

// TestFresh wants an end where no name can be looked up: it is found under the lock of everything.
func TestFresh(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 300) // more than a file's name may have
	none := func(string) bool { return false }
	if path := fresh(dir, long, "", none); filepath.Base(path) != long {
		t.Errorf("%s", path)
	}
}

// TestHostileRun has a run whose files name flags and pictures of elsewhere.
func TestHostileRun(t *testing.T) {
	b := openDesk(t)
	run := filepath.Join(b.root, "run")
	fill(t, filepath.Join(run, output.StatsFile), "{}")
	fill(t, filepath.Join(run, output.CaptureFile), `{"scene":"--python=x"}`)
	outside := filepath.Join(t.TempDir(), "secret.jpg")
	fill(t, outside, "secret")
	if err := os.Symlink(outside, filepath.Join(run, previewFile)); err != nil {
		t.Skip(err)
	}
	if status, text := b.ask("GET", "picture?run=run", "", nil); status != 404 {
		t.Errorf("a picture of elsewhere: %d %s", status, text)
	}
	must.Do(t, os.Remove(filepath.Join(run, previewFile)))
	id := b.begin("resume", `{"path":"run"}`)
	if args := b.queue.find(id).args; args[0] != "resume" || args[1] != filepath.Join(b.root, "run") ||
		slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "python") }) {
		t.Errorf("%q", args)
	}
}

// TestNoPermission wants to hear what to do about a root that nothing can be written to.
func TestNoPermission(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a folder that refuses all users")
	}
	_, err := places{"/sys"}.keep(runsFolder)
	if err == nil || !strings.Contains(err.Error(), "/sys/vksplat") || !strings.Contains(fault.Hint(err), "permission") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}
