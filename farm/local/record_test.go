package local

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/farm/store/s3test"
	"vksplat/farm/task"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// within fails the test where something does not happen: the job hangs then.
func within(t *testing.T, what string, happens <-chan struct{}) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(time.Minute):
		t.Error(what)
	}
}

// TestSilentStore runs another task while the store does not take note of a failure.
func TestSilentStore(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"demo\"\nid = \"a\"\n[[task]]\nkind = \"demo\"\nid = \"b\"\n")
	s3 := s3test.New("lab")
	defer s3.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	outputs := store.Options{URL: "s3://lab", Endpoint: s3.URL}
	r.o.Roots["outputs"] = outputs
	var err error
	r.root = must.Get(store.Open(outputs))(t)
	begins := make(chan struct{})
	s3.SetFault(func(_ http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodPut && strings.HasSuffix(q.URL.Path, failedName) {
			within(t, "the other task waits until the store has taken note", begins)
		}
		return false
	})
	r.do = func(_ context.Context, _ task.Options, name string) error {
		if name == "a" {
			return dataError("bad")
		}
		close(begins)
		return nil
	}
	s, err := r.run(t.Context())
	r.want(s, err, "a failed, b done", "a", "b")
	s, err = r.run(t.Context())
	r.want(s, err, "a failed, b done")
}

// TestBusyReport has a task go on while nobody takes in what it says, and loses nothing that is said once.
func TestBusyReport(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"demo\"\nid = \"a\"\n")
	picture := filepath.Join(r.dir, "preview.jpg")
	must.Do(t, os.WriteFile(picture, []byte("picture"), 0o666))
	goesOn := make(chan struct{})
	r.reported = func(s TaskStatus) {
		if s.Step == 1 {
			within(t, "the task waits for who listens", goesOn)
		}
	}
	r.do = func(_ context.Context, o task.Options, _ string) error {
		o.Report(task.Progress{Step: 1})
		o.Report(task.Progress{Step: 2, Preview: picture})
		o.Report(task.Progress{Step: 3})
		close(goesOn)
		return nil
	}
	s, err := r.run(t.Context())
	r.want(s, err, "a done", "a")
	if !s.Tasks[0].Preview || s.Tasks[0].Step != 3 {
		t.Errorf("it was not heard: %+v", s.Tasks[0])
	}
}

// TestStatus finds in the store how the job stands, and the small picture of a task.
func TestStatus(t *testing.T) {
	r := newRig(t, chain)
	picture := filepath.Join(r.dir, "preview.jpg")
	must.Do(t, os.WriteFile(picture, []byte("picture"), 0o666))
	r.do = func(_ context.Context, o task.Options, name string) error {
		o.Report(task.Progress{Task: name, Step: 3, Of: 7, Preview: picture})
		return nil
	}
	must.Get(r.run(t.Context()))(t)
	var s Status
	filetest.ReadJSON(t, filepath.Join(r.dir, "outputs", "j", Folder, statusName), &s)
	if !s.Ended || s.Counts()[Done] != 3 || s.Tasks[1].Of != 7 || !s.Tasks[1].Preview {
		t.Errorf("%+v", s)
	}
	if data, err := os.ReadFile(filepath.Join(r.dir, "outputs", "j", filepath.FromSlash(PreviewKey(1)))); err != nil ||
		!bytes.Equal(data, []byte("picture")) {
		t.Errorf("%q, %v", data, err)
	}
}
