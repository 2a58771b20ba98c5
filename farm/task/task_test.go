//go:build unix

package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/internal/child"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
	must "vksplat/internal/musttest"
	"vksplat/scene/results"
)

// fakeVariable in the environment makes this test the program that tasks run: its value says what goes wrong.
const fakeVariable = "VKSPLAT_FAKE_CHILD"

func TestMain(m *testing.M) {
	if how, fake := os.LookupEnv(fakeVariable); fake && len(os.Args) > 1 {
		child.Begin()
		os.Exit(fakeChild(how, os.Args[1:]))
	}
	os.Exit(m.Run())
}

const fakeSteps = 40

// fakeChild behaves like train, or like render, without a device.
func fakeChild(how string, args []string) int {
	flags := map[string]string{}
	for _, a := range args[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[name] = value
	}
	if file, notes := strings.CutPrefix(how, notesIn); notes {
		if err := fakeCommand(file, args, flags); err != nil {
			return fakeError(err)
		}
		return 0
	}
	switch how {
	case "hangs":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "refuses":
		fmt.Fprintln(os.Stderr, "the capture is bad")
		return fakeError(fault.Data("", "", "make a better one", "the capture is bad"))
	case "falls":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Second)
	}
	switch args[0] {
	case "render":
		return fakeRender(how, flags)
	case "capture":
		return fakeCapture(how, flags["output"])
	case "eval":
		fakeScores(flags["output"], 1)
		child.Report(child.Event{Event: child.EventTable, Text: "\n" + args[len(args)-1] + ": drawn with care."})
		return 0
	}
	_ = os.WriteFile(flags["preview"], fakePreview, 0o666)
	_ = os.MkdirAll(flags["model-path"], 0o777)
	record, written := filepath.Join(flags["model-path"], "cfg_args"), filepath.Join(flags["model-path"], ".written")
	if mark, err := os.ReadFile(written); err == nil {
		if text, _ := os.ReadFile(record); !bytes.Equal(text, mark) {
			return fakeError(fault.Usagef("", "cfg_args was not written by this program, or changed since"))
		}
	}
	text := fmt.Appendf(nil, "source_path=%s, model_path=%s", args[len(args)-1], flags["model-path"])
	_ = errors.Join(os.WriteFile(record, text, 0o666), os.WriteFile(written, text, 0o666))
	fmt.Println("model:", flags["model-path"]+"/model")
	return fakeTrain(how, flags["model-path"])
}

// fakeTrain counts steps. A checkpoint is a file with the number of the step.
func fakeTrain(how, out string) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	dir := filepath.Join(out, checkpointFolder)
	_ = os.MkdirAll(dir, 0o777)
	measures, pause := strings.HasSuffix(how, "measures"), 20*time.Millisecond
	if strings.HasSuffix(how, quick) {
		pause = 0
	}
	step := 0
	for _, name := range globbed(dir, "*"+checkpointSuffix) {
		step = max(step, checkpointStep(checkpointFolder+"/"+filepath.Base(name)))
	}
	child.Report(child.Event{Event: "start", Step: step, Total: fakeSteps})
	fmt.Printf("went on from %d\n", step)
	save := func() {
		name := filepath.Join(dir, checkpointPrefix+strconv.Itoa(step)+checkpointSuffix)
		_ = os.WriteFile(name+".new", []byte(fmt.Sprint("state ", step)), 0o666)
		_ = os.Rename(name+".new", name)
		_ = os.Remove(filepath.Join(dir, checkpointPrefix+strconv.Itoa(step-20)+checkpointSuffix))
	}
	model := func() {
		for _, folder := range []string{modelFolder, pictureFolder} {
			dir := filepath.Join(out, filepath.FromSlash(folder)+strconv.Itoa(step))
			_ = os.MkdirAll(dir, 0o777)
			_ = os.WriteFile(filepath.Join(dir, "file"), []byte(fmt.Sprint("of step ", step)), 0o666)
		}
		if measures {
			fakeScores(out, step)
		}
	}
	for ; step < fakeSteps; step++ {
		// there is a checkpoint
		for file, waits := strings.CutPrefix(how, waitsFor); waits && step == 15 &&
			len(stop) == 0; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(file); err == nil {
				break
			}
			fmt.Println("waits")
		}
		select {
		case <-stop:
			save()
			model()
			return 130
		case <-time.After(pause):
		}
		child.Report(child.Event{Event: "step", Step: step + 1, Total: fakeSteps, Rate: 50, DeviceBytes: 1000})
		if step%10 == 0 && step > 0 {
			save()
		}
		if measures && step == fakeEvalAt {
			fakeScores(out, step)
		}
		if how == "stalls" && step == 25 {
			time.Sleep(time.Hour)
		}
	}
	model()
	_ = os.WriteFile(filepath.Join(out, "model"), []byte("a model of 40 steps"), 0o666)
	return 0
}

// fakeEvalAt is the step on the way at which a training that measures does so.
const fakeEvalAt = 5

// fakeScores measures the model of a step.
func fakeScores(out string, step int) {
	dir := filepath.Join(out, filepath.FromSlash(pictureFolder)+strconv.Itoa(step))
	_ = os.MkdirAll(dir, 0o777)
	_ = os.WriteFile(filepath.Join(dir, "picture"), []byte(fmt.Sprint("of step ", step)), 0o666)
	_, _ = results.MergeResults(out,
		&results.Result{Method: results.MethodName(step), Protocol: "gsplat",
			Views: []results.ViewScores{{Name: "view",
				Scores: []results.Score{{Name: "PSNR", Value: float64(step), Known: true}}}}})
	_ = os.WriteFile(filepath.Join(out, "stats.json"), fmt.Appendf(nil, `{"eval_at": [%d]}`, fakeEvalAt), 0o666)
}

// waitsFor in front of a file's name, or of what else it is to do, has a fake training wait for such a file in its
// middle.
const waitsFor = "waits for "

// quick, alone or behind waitsFor, has a fake training take no time for its steps.
const quick = "quick"

// fakePreview is what a fake training leaves as its picture: nobody looks into it here.
var fakePreview = []byte("a picture")

// fakeRender writes the pictures that are not there.
func fakeRender(how string, flags map[string]string) int {
	f, _ := spec.ParseFrames(flags["frames"])
	if how == "replaced" && len(globbed(flags["output"], "frame_*")) > 0 {
		return fakeError(fault.Usagef("--overwrite it", "frame_000005.png is of another render"))
	}
	for i := f.First; i <= f.Last; i += f.Step {
		name := filepath.Join(flags["output"], fmt.Sprintf("frame_%06d.png", i))
		if _, err := os.Stat(name); err == nil {
			continue
		}
		if how == "dies" && i == f.First+3 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			time.Sleep(time.Second)
		}
		fmt.Printf("drew %d\n", i)
		_ = os.WriteFile(name, []byte(fmt.Sprint("picture ", i)), 0o666)
	}
	return 0
}

func globbed(dir, pattern string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, pattern))
	return names
}

// farm is a store with a job, and places to work.
type farm struct {
	t   *testing.T
	top string
	job *spec.Job
}

func newFarm(t *testing.T, limits string) *farm {
	t.Helper()
	top := t.TempDir()
	must.Do(t, errors.Join(os.MkdirAll(filepath.Join(top, "in", "scan"), 0o777),
		os.MkdirAll(filepath.Join(top, "results"), 0o777),
		os.WriteFile(filepath.Join(top, "in", "scan", "photo"), []byte("x"), 0o666)))
	job, _ := spectest.Job(t, "version = 1\nname = \"job\"\n[limits]\n"+limits+
		"\n[[task]]\nkind = \"train\"\nsource = \"scan\"\n[[task]]\nkind = \"render\"\nmodel = "+
		"\"scan\"\ntrajectory = \"interp\"\nframes = \"5-12\"\n")
	return &farm{t, top, job}
}

func (f *farm) options(index, attempt int, work string) Options {
	f.t.Helper()
	plan, err := f.job.Plan()
	if err != nil {
		f.t.Fatal(err)
	}
	return Options{Job: f.job, Plan: plan, Index: index, Attempt: attempt, Work: filepath.Join(f.top, work),
		Program: os.Args[0], Version: "1", Selected: Device{Name: "GPU", UUID: "77", Driver: "9"},
		Roots: store.Roots{"inputs": {URL: filepath.Join(f.top, "in")},
			"outputs": {URL: filepath.Join(f.top, "results")}}}
}

func (f *farm) read(parts ...string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{f.top, "results", "job"}, parts...)...))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// runUntil runs a task, and ends it for a reason once there is a checkpoint of step 10, behind which it waits for that.
func (f *farm) runUntil(o Options, reason error) (*store.Manifest, error) {
	how := os.Getenv(fakeVariable)
	f.t.Setenv(fakeVariable, waitsFor+how)
	defer f.t.Setenv(fakeVariable, how)
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	go func() {
		for ctx.Err() == nil {
			if len(globbed(o.Work, "*/out/checkpoints/step_10.safetensors")) > 0 {
				end(reason)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return Run(ctx, o)
}

func TestStopsAndGoesOn(t *testing.T) {
	f := newFarm(t, `checkpoint_every = "1h"`)
	if _, err := f.runUntil(f.options(0, 1, "a"), ErrStopped); !errors.Is(err, ErrStopped) ||
		ExitOf(err) != fault.ExitTryAgain {
		t.Fatal(err)
	}
	m, err := Run(context.Background(), f.options(0, 2, "b"))
	if err != nil || m.Mixed || m.Attempt != 2 || m.Device != "GPU" ||
		f.read("train", "out", "model") != "a model of 40 steps" {
		t.Fatalf("%+v, %v", m, err)
	}
	if log := f.read("train", "log", "a00002.log"); strings.Contains(log, "from 0\n") ||
		!strings.Contains(log, "went on from ") {
		t.Errorf("it began anew: %s", log)
	}
	// What is done is not done again, whatever the program.
	o := f.options(0, 3, "c")
	o.Program = "/nowhere"
	if again, err := Run(context.Background(), o); err != nil || again.Attempt != 2 {
		t.Errorf("%+v, %v", again, err)
	}
	if left := globbed(filepath.Join(f.top, "results", "job", "train"), "*"); len(left) != 2 { // log, out
		t.Errorf("left: %q", left)
	}
}

// TestStopBudget wants containers to be stopped such that there is time to upload after a child has saved.
func TestStopBudget(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))
	found := regexp.MustCompile(`--stop-timeout (\d+)`).FindSubmatch(data)
	if err != nil || found == nil {
		t.Fatal(found, err)
	}
	if seconds, err := strconv.Atoi(string(found[1])); err != nil || time.Duration(seconds)*time.Second <= StopWithin {
		t.Errorf("it kills after %d s, before the tasks have saved: %v", seconds, err)
	}
}

func TestMixed(t *testing.T) {
	for change, mixed := range map[Device]bool{{Name: "GPU", UUID: "78", Driver: "9"}: false,
		{Name: "GPU", Driver: "10"}: true, {Name: "other", Driver: "9"}: true} {
		f := newFarm(t, `checkpoint_every = "1h"`)
		if _, err := f.runUntil(f.options(0, 1, "a"), ErrCanceled); !errors.Is(err, ErrCanceled) ||
			ExitOf(err) != fault.ExitInterrupted {
			t.Fatal(err)
		}
		o := f.options(0, 2, "a") // the same machine with another device
		o.Selected = change
		m, err := Run(context.Background(), o)
		if err != nil || m.Mixed != mixed || (len(m.Notes) > 0) != mixed || m.Driver != change.Driver ||
			m.UUID != change.UUID {
			t.Errorf("%+v: %+v, %v", change, m, err)
		}
	}
}

func TestHangs(t *testing.T) {
	for how, test := range map[string]struct {
		limits string
		want   error
	}{"hangs": {`stall_timeout = "300ms"`, errStalled},
		"stalls": {"stall_timeout = \"3s\"\ncheckpoint_every = \"200ms\"", errStalled},
		waitsFor: {`task_timeout = "500ms"`, errTimeout}} {
		t.Setenv(fakeVariable, how)
		f := newFarm(t, test.limits)
		_, err := Run(context.Background(), f.options(0, 1, "a"))
		if !errors.Is(err, test.want) || ExitOf(err) != fault.ExitTryAgain || fault.Hint(err) == "" {
			t.Errorf("%q: %v", how, err)
		}
		if how == "hangs" {
			continue
		}
		t.Setenv(fakeVariable, "")
		if m, err := Run(context.Background(), f.options(0, 2, "b")); how == "stalls" &&
			(err != nil || strings.Contains(f.read("train", "log", "a00002.log"), "from 0\n")) {
			t.Errorf("%q: after it %+v, %v", how, m, err)
		}
	}
}

// TestFramesAreKept has a render die: what it drew is not drawn again, unless it was damaged.
func TestFramesAreKept(t *testing.T) {
	t.Setenv(fakeVariable, "dies")
	f := newFarm(t, "")
	_, err := Run(context.Background(), f.options(1, 1, "a"))
	var c *child.Failure
	if !errors.As(err, &c) || c.Code != 128+9 || ExitOf(err) != fault.ExitTryAgain {
		t.Fatal(err)
	}
	t.Setenv(fakeVariable, "")
	contents := globbed(filepath.Join(f.top, "results/job/render/ckpt/a00001"), "[0-9a-f]*")
	if len(contents) != 3 {
		t.Fatalf("pictures in the store: %q", contents)
	}
	m, err := Run(context.Background(), f.options(1, 2, "b"))
	if err != nil || len(m.Files) != 8 || m.Step != 8 {
		t.Fatalf("%+v, %v", m, err)
	}
	log := f.read("render", "log", "a00002.log")
	if strings.Contains(log, "drew 7\n") || !strings.Contains(log, "drew 8\n") || strings.Count(log, "drew ") != 5 {
		t.Errorf("drawn: %s", log)
	}
}

func TestZombies(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "100ms"`)
	var group sync.WaitGroup
	var lock sync.Mutex
	attempts := map[int]int{}
	for i := range 4 {
		o := f.options(0, i+1, fmt.Sprint("machine ", i))
		group.Go(func() {
			m, err := Run(context.Background(), o)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			attempts[m.Attempt]++
		})
	}
	group.Wait()
	var m store.Manifest
	if err := json.Unmarshal([]byte(f.read("train", "out", store.ManifestName)), &m); err != nil ||
		len(attempts) != 1 || attempts[m.Attempt] != 4 {
		t.Errorf("attempts %v, the manifest is of %d, %v", attempts, m.Attempt, err)
	}
	// A second process on one machine waits, and does it again only if need be.
	o := f.options(1, 1, "machine 0")
	_, file := workFolder(o.Work, o.Job, &o.Plan.Tasks[1], o.Plan.Hash(1))
	unlock := must.Get(lockfile.Wait(context.Background(), file, lockfile.Exclusive))(t)
	time.AfterFunc(300*time.Millisecond, unlock)
	if _, err := Run(context.Background(), o); err != nil {
		t.Error(err)
	}
	// The same task of somebody else's job waits for nobody.
	unlock = must.Get(lockfile.Wait(context.Background(), file, lockfile.Exclusive))(t)
	defer unlock()
	f.job.Name = "another's"
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience/2)
	defer cancel()
	if _, err := Run(ctx, f.options(1, 1, "machine 0")); err != nil {
		t.Error(err)
	}
}

func TestFailuresOfChildren(t *testing.T) {
	f := newFarm(t, "")
	for how, test := range map[string]struct {
		exit int
		text string
		hint string
	}{"refuses": {65, "vksplat train: the capture is bad", "make a better one"},
		"falls": {75, "it crashed", ""}} {
		t.Setenv(fakeVariable, how)
		_, err := Run(context.Background(), f.options(0, 1, how))
		var c *child.Failure
		if !errors.As(err, &c) || ExitOf(err) != test.exit || !strings.Contains(err.Error(), test.text) ||
			fault.Hint(err) != test.hint {
			t.Errorf("%s: %v, exit %d", how, err, ExitOf(err))
		}
		if log := f.read("train", "log", "a00001.log"); how == "refuses" &&
			!strings.Contains(log, "the capture is bad") {
			t.Errorf("log: %q", log)
		}
	}
	o := f.options(0, 1, "x")
	o.Program = filepath.Join(f.top, "nowhere")
	if _, err := Run(context.Background(), o); err == nil || ExitOf(err) != fault.ExitTryAgain {
		t.Error(err)
	}
}

func TestExitCodes(t *testing.T) {
	for code, want := range map[int]bool{0: false, 1: false, 2: true, 65: true, 75: false, 78: true, 130: false,
		137: false, 143: false, -1: false} {
		if IsFinal(code) != want {
			t.Errorf("code %d: final %v", code, !want)
		}
	}
	for err, want := range map[error]int{
		nil: 0, ErrStopped: 75, ErrCanceled: 130, errStalled: 75, context.Canceled: 75, spec.ErrSpec: 78,
		&child.Failure{Code: 2, Text: "x", Causes: []error{fault.ErrUsage}}: 2, &child.Failure{Code: 2}: 75,
		&child.Failure{Code: 130}: 75,
		&child.Failure{Code: 137}: 75, &child.Failure{Code: 1}: 75,
		&fault.Error{Kind: store.ErrSetup}: 78, &fault.Error{Kind: fault.ErrUsage}: 2, &fault.Error{}: 65,
		errors.New("else"):                      75,
		store.Explain("x", "y", syscall.ENOSPC): 75, store.Explain("x", "y", syscall.EROFS): 78,
		errors.Join(ErrCanceled, store.Explain("x", "y", syscall.ENOSPC)): 130,
	} {
		if ExitOf(err) != want {
			t.Errorf("%v: exit code %d, want %d", err, ExitOf(err), want)
		}
	}
}

// TestCopiesLeaveTheCache puts folders together that have a file of the same name: none of them changes.
func TestCopiesLeaveTheCache(t *testing.T) {
	top := t.TempDir()
	together := filepath.Join(top, "together")
	from := map[string]string{"first": "one", "second": "two"}
	for dir, text := range from {
		must.Do(t, errors.Join(os.Mkdir(filepath.Join(top, dir), 0o777),
			os.WriteFile(filepath.Join(top, dir, recordOfRender), []byte(text), 0o666)))
	}
	for _, written := range []bool{false, true} {
		for _, dir := range []string{"first", "second"} {
			must.Do(t, copyTree(filepath.Join(top, dir), together, written))
			if data, err := os.ReadFile(filepath.Join(together, recordOfRender)); err != nil ||
				string(data) != from[dir] {
				t.Errorf("copied %q, %v; want %q", data, err, from[dir])
			}
		}
		for dir, text := range from {
			if data, err := os.ReadFile(filepath.Join(top, dir, recordOfRender)); err != nil || string(data) != text {
				t.Errorf("%s has %q now, %v", dir, data, err)
			}
		}
	}
}
