package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/farm/local"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/view"
)

// shown is a job that is served, and a browser that has shown the token.
type shown struct {
	t       *testing.T
	dir     string
	root    store.Root
	live    Live
	url     string
	browser *http.Client
}

func (s *shown) write(name string, data []byte) {
	s.t.Helper()
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, data, 0o666)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shown) status(status *local.Status) {
	s.t.Helper()
	data, err := json.Marshal(status)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("j/@run/status.json", data)
}

func (s *shown) get(path string) (code int, header http.Header, body string) {
	s.t.Helper()
	r, err := s.browser.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, r.Header, string(data)
}

func serve(t *testing.T, status *local.Status) *shown {
	s := &shown{t: t, dir: t.TempDir()}
	s.status(status)
	s.open()
	return s
}

// open opens the page of the folder.
func (s *shown) open() {
	t := s.t
	t.Helper()
	s.root = must.Get(store.Open(store.Options{URL: s.dir}))(t)
	server := must.Get(view.Listen(view.ServerOptions{}))(t)
	must.Do(t, Show(server, s.root, "j", s.live))
	go func() { _ = server.Serve(t.Context()) }() // the test's end ends it
	jar := must.Get(cookiejar.New(nil))(t)
	s.browser = &http.Client{Jar: jar}
	r := must.Get(s.browser.Get(server.URL()))(t)
	defer r.Body.Close()
	entry := must.Get(io.ReadAll(r.Body))(t)
	_, prefix, _ := strings.Cut(string(entry), "url=")
	prefix, _, _ = strings.Cut(prefix, `"`)
	s.url = "http://" + r.Request.URL.Host + prefix
}

func tiny(t *testing.T) []byte {
	var b bytes.Buffer
	must.Do(t, jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8)), nil))
	return b.Bytes()
}

// TestPage shows a job that runs: tasks, how far they are, small pictures, logs; and nothing that is none.
func TestPage(t *testing.T) {
	status := &local.Status{Job: "j<b>", Began: time.Now(), Updated: time.Now(), Tasks: []local.TaskStatus{
		{Index: 0, Task: "a=1/x", State: local.Running, Step: 30, Of: 70, Rate: 2, Unit: "steps", Preview: true,
			Message: "train"},
		{Index: 1, Task: "<script>", State: local.Failed, Error: "bad & broken", Hint: "mend it"}}}
	s := serve(t, status)
	s.write("j/@run/preview/0.jpg", tiny(t))
	s.write("j/a=1/x/log/a00001.log", []byte("first words\n"))
	s.write("j/a=1/x/log/a00002.log", []byte("last <words>\n"))
	s.write("j/a=1/x/log/a00003.log", nil)
	wants := func(path string, code int, words ...string) {
		t.Helper()
		got, _, body := s.get(path)
		if got != code {
			t.Errorf("%q: %d, want %d: %s", path, got, code, body)
		}
		for _, word := range words {
			if !strings.Contains(body, word) {
				t.Errorf("%q: %q is not in %s", path, word, body)
			}
		}
		if strings.Contains(body, "<script") {
			t.Errorf("%q: a name is not escaped", path)
		}
	}
	wants("", 200, "j&lt;b&gt;", "30/70", "2 steps/s", "20 s", "bad &amp; broken", "preview?index=0", "running")
	wants("?state=failed", 200, "bad &amp; broken")
	if _, _, body := s.get("?state=failed"); strings.Contains(body, "a=1/x") {
		t.Error("a state alone is asked for")
	}
	wants("task?name=a%3d1/x", 200, "last &lt;words&gt;", "Log of attempt 2")
	wants("task?name=%3Cscript%3E", 200, "mend it", "It has written no log")
	for _, path := range []string{"task?name=b", "task", "task?name=..", "preview?index=1",
		"preview?index=../x", "picture?name=a%3d1/x", "picture?name=..", "nowhere"} {
		if code, _, _ := s.get(path); code != 404 {
			t.Errorf("%q: %d", path, code)
		}
	}
	if code, header, _ := s.get("preview?index=0"); code != 200 || header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("the picture: %d %q", code, header.Get("Content-Type"))
	}
	s.write("j/@run/preview/0.jpg", []byte("<html>"))
	if code, _, _ := s.get("preview?index=0"); code != 404 {
		t.Errorf("what is not a picture: %d", code)
	}
}

// TestSilence tells a job whose process was killed from one that runs, and from one that has ended.
func TestSilence(t *testing.T) {
	status := &local.Status{Job: "j", Updated: time.Now(), Tasks: []local.TaskStatus{{Task: "a", State: local.Running,
		Step: 1, Of: 2}}}
	s := serve(t, status)
	says := func(want string) {
		t.Helper()
		s.status(status)
		if _, _, body := s.get(""); !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	says("tasks done, running")
	status.Updated = time.Now().Add(-time.Hour)
	says("no status since")
	status.Ended, status.Tasks[0].State = true, local.Done
	says("tasks done, done")
	status.Tasks[0].State = local.Failed
	says("tasks done, failed")
}

// TestClocks tells a job that runs from one that was killed also where the clock of its machine is ten minutes ahead,
// or behind, once it was looked at twice.
func TestClocks(t *testing.T) {
	for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		now := time.Now()
		p := &pages{now: func() time.Time { return now }}
		s := &local.Status{Updated: now.Add(skew), Tasks: make([]local.TaskStatus, 1)}
		p.verdict(s)
		for range 30 {
			now = now.Add(5 * time.Second)
			s.Updated = now.Add(skew)
			if verdict, runs := p.verdict(s); !runs {
				t.Fatalf("%v ahead: it runs, and is shown as %s", skew, verdict)
			}
		}
		now = now.Add(2 * silent)
		if verdict, runs := p.verdict(s); runs {
			t.Errorf("%v ahead: it was killed, and is shown as %s", skew, verdict)
		}
	}
}

// TestWithoutStatus shows a job whose tasks a scheduler runs: no farm run writes how far they are.
func TestWithoutStatus(t *testing.T) {
	s := serve(t, &local.Status{Job: "j"})
	must.Do(t, os.RemoveAll(filepath.Join(s.dir, "j", local.Folder)))
	s.write("j/works/a=1/log/a00001.log", []byte("still at it\n"))
	s.write("j/done/log/a00001.log", []byte("that was it\n"))
	picture := s.commit("j/done")
	for path, words := range map[string][]string{
		"": {"<b>1</b> of <b>2</b> tasks done", "of the tasks that have started", "works/a=1",
			"some GPU"},
		"?state=begun":            {"works/a=1", "last status at"},
		"task?name=done":          {"that was it", "picture?name=done"},
		"task?name=works%2Fa%3D1": {"still at it", `class="state begun"`},
		"?state=done&from=0":      {"some GPU"},
	} {
		if code, _, body := s.get(path); code != 200 {
			t.Errorf("%q: %d %s", path, code, body)
		} else {
			for _, word := range words {
				if !strings.Contains(body, word) {
					t.Errorf("%q: %q is not in %s", path, word, body)
				}
			}
		}
	}
	if _, _, body := s.get("picture?name=done"); body != string(picture) {
		t.Error("the picture of its results is not there")
	}
}

// commit gives a task results, a picture.
func (s *shown) commit(key string) []byte {
	s.t.Helper()
	made, picture := s.t.TempDir(), tiny(s.t)
	if err := os.WriteFile(filepath.Join(made, "frame.jpg"), picture, 0o666); err != nil {
		s.t.Fatal(err)
	}
	dir, err := os.OpenRoot(made)
	if err != nil {
		s.t.Fatal(err)
	}
	defer dir.Close()
	if _, _, err := store.Commit(s.t.Context(), s.root, key, dir, []string{"frame.jpg"},
		store.Made{Attempt: 1, Device: "some GPU"}); err != nil {
		s.t.Fatal(err)
	}
	return picture
}

// TestFarm shows what a farm's server says, and as done what has results; and what the store has while the server does
// not answer.
func TestFarm(t *testing.T) {
	defer func(before time.Duration) { askEvery = before }(askEvery)
	askEvery = 10 * time.Millisecond
	s := &shown{t: t, dir: t.TempDir()}
	now := local.Status{Job: "j", Updated: time.Now(), Tasks: []local.TaskStatus{
		{Index: 0, Task: "a", State: local.Waiting}, {Index: 1, Task: "b", State: local.Running, Device: "atlas"},
		{Index: 2, Task: "c", State: local.Waiting}}}
	away, asked := false, 0
	s.live = func() (*local.Status, error) {
		asked++
		if away {
			return nil, errors.New("away")
		}
		one := now
		one.Tasks = slices.Clone(now.Tasks)
		return &one, nil
	}
	s.write("j/b/log/a00001.log", []byte("still at it\n"))
	s.write("j/@run/preview/1.jpg", tiny(t))
	s.open()
	s.commit("j/a")
	says := func(words ...string) {
		t.Helper()
		time.Sleep(askEvery) // until then what was said stays
		_, _, body := s.get("")
		for _, word := range words {
			if !strings.Contains(body, word) {
				t.Errorf("%q is not in %s", word, body)
			}
		}
	}
	now.Tasks[1].State = local.Retrying // what runs has changed: the store is read again
	says("<b>1</b> of <b>3</b> tasks done, running", "some GPU", "retrying", "preview?index=1")
	away = true
	says("<b>1</b> of <b>2</b> tasks done", "last status at")
	away, now.Ended = false, true
	now.Tasks[1].State, now.Tasks[2].State = local.Failed, local.Skipped
	says("<b>1</b> of <b>3</b> tasks done, failed", "skipped")
	time.Sleep(askEvery)
	away, asked, askEvery = true, 0, time.Hour
	s.get("")
	if s.get(""); asked != 1 {
		t.Errorf("a server that does not answer was asked %d times", asked)
	}
}

// TestGuard answers nobody who does not show the token.
func TestGuard(t *testing.T) {
	s := serve(t, &local.Status{Job: "secret job"})
	r := must.Get(http.Get(s.url))(t)
	defer r.Body.Close()
	if data, err := io.ReadAll(r.Body); err != nil || r.StatusCode == 200 || strings.Contains(string(data), "secret") {
		t.Errorf("%v, %d, %s", err, r.StatusCode, data)
	}
}

// TestNoJob refuses a folder in which no job was run.
func TestNoJob(t *testing.T) {
	root := must.Get(store.Open(store.Options{URL: t.TempDir()}))(t)
	if err := Show(nil, root, "j", nil); !errors.Is(err, fault.ErrUsage) || fault.Hint(err) == "" {
		t.Error(err)
	}
}
