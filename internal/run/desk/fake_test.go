package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/view"
)

// fakeVariable makes this test program one that behaves as vksplat does, without a device.
const fakeVariable = "DESK_TEST_FAKE"

func TestMain(m *testing.M) {
	if os.Getenv(fakeVariable) != "" {
		child.Begin()
		os.Exit(fake(os.Args[1:]))
	}
	os.Setenv(fakeVariable, "1") // for the children
	os.Exit(m.Run())
}

// fakeArgs are a command line taken apart.
type fakeArgs struct {
	words []string
	flags map[string]string
}

func parseFake(args []string) fakeArgs {
	a := fakeArgs{flags: map[string]string{}}
	for _, arg := range args {
		if name, is := strings.CutPrefix(arg, "--"); is {
			name, value, _ := strings.Cut(name, "=")
			a.flags[name] = value
		} else {
			a.words = append(a.words, arg)
		}
	}
	return a
}

func (a fakeArgs) has(flag string) bool {
	_, has := a.flags[flag]
	return has
}

func fake(args []string) int {
	a := parseFake(args)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	switch a.words[0] {
	case "inspect":
		if filepath.Base(a.words[1]) == "slow" {
			<-stop
			return 1
		}
		if filepath.Base(a.words[1]) == "bare" {
			fmt.Println(`{"problems": [{"severity": "warning", "code": "no-points", "text": "there are none"}]}`)
			return 0
		}
		fmt.Println(`{"root": "/secret/place", "photos": 7, "points": 9, "cameras": [{"name": "a"}],`)
		fmt.Println(`"problems": [{"severity": "warning", "code": "x", "text": "dark", "remedy": "light"}]}`)
	case "train":
		if a.has("dry-run") {
			return fakePlan(a)
		}
		return fakeTraining(a, a.flags["model-path"], a.words[1], stop)
	case "resume":
		return fakeTraining(a, a.words[1], "garden", stop)
	case "view":
		s := fakeViewer(a.flags)
		child.Report(child.Event{Event: child.EventViewer, URL: s.URL()})
		<-stop
	case "convert":
		return fakeFile(a.words[2])
	case "render":
		child.Report(child.Event{Event: meter.EventStep, Step: 3, Total: 10})
		return fakeFile(a.flags["video"])
	case "capture":
		child.Report(child.Event{Event: meter.EventStep, Stage: "features", Text: "3 of 7 photos", Step: 3, Total: 7})
		if err := os.MkdirAll(filepath.Join(a.flags["output"], "images"), 0o777); err != nil {
			return 1
		}
	}
	return 0
}

func fakeFile(path string) int {
	if os.WriteFile(path, []byte("made"), 0o666) != nil {
		return 1
	}
	return 0
}

func fakePlan(a fakeArgs) int {
	fmt.Print(`{"ceiling": 1000, "device": {"total": 5, "budget": 50}`)
	if a.has("time-limit") {
		fmt.Print(`, "prediction": {"steps": 100, "seconds": 12.5}`)
	}
	fmt.Println("}")
	return 0
}

// fakeViewer answers for the viewer of a training or a model, started with these flags.
func fakeViewer(flags map[string]string) *view.Server {
	s, err := view.Listen(view.ServerOptions{})
	if err != nil {
		panic(err)
	}
	s.Handle("", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "the fake viewer")
	}))
	if _, edits := flags["edit"]; edits {
		s.HandlePost("edit", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s in %s", body, filepath.Base(flags["export-to"]))
		}))
	}
	go func() { _ = s.Serve(context.Background()) }()
	return s
}

// fakeTraining takes steps until it is stopped; a scene named crash ends it, and one named short lets it finish.
func fakeTraining(a fakeArgs, out, scene string, stop <-chan os.Signal) int {
	checkpoints := filepath.Join(out, output.CheckpointFolder)
	write := func(path string, v any) {
		data, err := json.Marshal(v)
		if err != nil || os.WriteFile(path, data, 0o666) != nil {
			os.Exit(1)
		}
	}
	step := 0
	if list, _ := output.ListCheckpoints(checkpoints); a.words[0] == "resume" && len(list) > 0 {
		step = list[len(list)-1].Step
	}
	if os.MkdirAll(checkpoints, 0o777) != nil {
		return 1
	}
	write(filepath.Join(checkpoints, output.BegunFile), map[string]any{"preset": a.flags["preset"],
		"config": map[string]any{"iterations": 1000},
		"source": map[string]any{"scene": scene}})
	child.Report(child.Event{Event: child.EventViewer, URL: fakeViewer(nil).URL()})
	child.Report(child.Event{Event: meter.EventStart, Step: step, Total: 1000})
	if filepath.Base(scene) == "crash" {
		child.Report(child.Event{Event: child.EventError, Text: "device lost", Hint: "try again", Kind: "device-lost"})
		return 75
	}
	for {
		step++
		child.Report(json.RawMessage(fmt.Sprintf(
			`{"event":"step","step":%d,"total":1000,"loss":0.5,"splats":10,"steps_per_s":null}`, step)))
		if filepath.Base(scene) == "short" && step >= 3 {
			write(filepath.Join(out, output.StatsFile), map[string]any{"step": 1000, "splats": 10, "psnr": 30.5, "ssim": 0.9,
				"train_seconds": 2.5, "interrupted": a.has("time-limit"), "config": map[string]any{"iterations": 1000}})
			return 0
		}
		select {
		case <-stop:
			write(filepath.Join(checkpoints, fmt.Sprintf("step_%d.safetensors", step)), nil)
			return fault.ExitInterrupted
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// tested is a desk that serves, and a browser that was let in.
type tested struct {
	*desk
	t      *testing.T
	base   string // address of the page
	cookie string
	end    func()
}

// openDesk opens a folder with some scenes. change prepares the desk before it serves.
func openDesk(t *testing.T, change ...func(d *desk)) *tested {
	t.Helper()
	root := t.TempDir()
	for _, scene := range []string{"garden", "crash", "short", "bare"} {
		fill(t, filepath.Join(root, scene, "transforms.json"), "{}")
	}
	ctx, cancel := context.WithCancel(context.Background())
	d, err := newDesk(ctx, &Options{Folder: root, Program: os.Args[0], MaxUpload: 100, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s := must.Get(view.Listen(view.ServerOptions{}))(t)
	for _, f := range change {
		f(d)
	}
	over := make(chan error, 1)
	go func() { over <- d.serve(ctx, s) }()
	b := &tested{desk: d, t: t}
	ended := false
	b.end = func() {
		if cancel(); ended {
			return
		}
		ended = true
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(b.end)
	r := must.Get(http.Get(s.URL()))(t)
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	_, rest, found := strings.Cut(string(page), "url=")
	place, _, _ := strings.Cut(rest, `"`)
	if err != nil || !found || len(r.Cookies()) != 1 {
		t.Fatalf("%s: %q, %v", r.Status, page, err)
	}
	b.base, b.cookie = strings.TrimSuffix(s.URL()[:strings.Index(s.URL(), "?")], "/")+place, r.Cookies()[0].String()
	return b
}

func fill(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must.Do(t, os.WriteFile(path, []byte(text), 0o666))
}

// ask sends a request as the page does; headers are changed by change.
func (b *tested) ask(method, name, body string, change func(h http.Header)) (int, string) {
	b.t.Helper()
	r, err := http.NewRequest(method, b.base+name, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Cookie", strings.Split(b.cookie, ";")[0])
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://"+r.Host)
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r.Header)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// must sends a request that is answered with JSON.
func (b *tested) must(method, name, body string, v any) {
	b.t.Helper()
	status, text := b.ask(method, name, body, nil)
	if status != http.StatusOK {
		b.t.Fatalf("%s %s %s: %d %s", method, name, body, status, text)
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		b.t.Fatalf("%s: %v in %s", name, err, text)
	}
}

// seenState is what the page reads.
type seenState struct {
	Jobs []*job
	Runs []runSummary
}

// until waits until the state is as wanted, and returns it.
func (b *tested) until(what string, wanted func(s *seenState) bool) *seenState {
	b.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		s := new(seenState)
		b.must(http.MethodGet, "state", "", s)
		if wanted(s) {
			return s
		}
		if time.Since(began) > 20*time.Second {
			text, err := json.Marshal(s)
			b.t.Fatalf("%s: not within 20 s: %s, %v", what, text, err)
		}
	}
}

// begin starts a job and returns its number.
func (b *tested) begin(name, body string) string {
	b.t.Helper()
	var made struct{ Job string }
	b.must(http.MethodPost, name, body, &made)
	return made.Job
}

func (s *seenState) job(id string) *job {
	for _, j := range s.Jobs {
		if j.ID == id {
			return j
		}
	}
	return &job{}
}
