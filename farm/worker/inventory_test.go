package worker

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/scene"
)

// TestSweptJobIsForgotten mirrors two documents of a name and one of another, and sweeps the first job.
func TestSweptJobIsForgotten(t *testing.T) {
	dir := t.TempDir()
	roots := store.Roots{"outputs": {URL: dir}}
	root, err := roots.Open("outputs")
	if err != nil {
		t.Fatal(err)
	}
	var jobs []*job
	for _, text := range []string{`"a.b"` + "\npriority = \"low\"", `"a.b"`, `"a"`} {
		parsed, err := spec.Parse("job.toml", []byte("version = 1\nname = "+text+"\n[[task]]\nkind = \"demo\"\nid = \"t\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		j := &job{Job: parsed}
		if err := errors.Join(j.mirror(root, says(fate{Owner: "ann"})), j.mirror(root, says(fate{Owner: "ann", Canceled: text == `"a"`}))); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	if err := store.Outdate(root, "a.b/t", 3); err != nil {
		t.Fatal(err)
	}
	var plans []queue.JobPlan
	var unusable []string
	names := func() (list []string) {
		plans, unusable = nil, nil
		v, err := NewInventory(roots)
		if err == nil {
			err = v.Jobs(t.Context(), func(p queue.JobPlan, bad error) error {
				if bad != nil {
					unusable = append(unusable, p.Name)
					return nil
				}
				list = append(list, p.Name)
				plans = append(plans, p)
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := names(); len(got) != 3 {
		t.Fatal(got)
	}
	for _, p := range plans {
		if p.Owner != "ann" || p.Canceled != (p.Name == "a") {
			t.Errorf("%s: owner %q, canceled %v", p.Name, p.Owner, p.Canceled)
		}
	}
	// A document that is none, as of a later version, keeps no other job from being there.
	if err := root.Put(mirrorFolder+"/bad.json", func(w io.Writer) error { _, err := io.WriteString(w, "{"); return err }); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 3 || len(unusable) != 1 || !strings.HasSuffix(unusable[0], "/bad.json") {
		t.Error(got, unusable)
	}
	if err := root.Delete(mirrorFolder + "/bad.json"); err != nil {
		t.Fatal(err)
	}
	u := &store.Uploads{Root: root, Task: "a.b/t", Dir: openDir(t, "state"), Until: 9}
	if err := u.Save(t.Context(), []string{"state"}, store.Made{Hash: "of a task that failed", Step: 10, Attempt: 9}); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(roots, jobs[0].Job); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 1 || got[0] != "a" {
		t.Error(got)
	}
	if list, err := root.List(mirrorFolder); err != nil || len(list) != 2 {
		t.Error(list, err)
	}
	if _, err := root.Stat("a.b/t/ckpt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("checkpoints of a failed task have no owner: %v", err)
	}
	if n, err := store.Generation(root, "a.b/t"); err != nil || n != 3 {
		t.Errorf("generation %d, %v: attempts that still sleep would have results", n, err)
	}
}

// says gives the same answer whenever it is asked what holds of a job.
func says(is fate) func() (fate, error) { return func() (fate, error) { return is, nil } }

// TestLateFates has a worker read that a job is canceled, and then sleep: before it writes that, or while the store does. Meanwhile the job is tried again, and a task of
// it tells the store.
func TestLateFates(t *testing.T) {
	parsed, err := spec.Parse("job.toml", []byte("version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Job: parsed}
	canceled, active := fate{"ann", true}, fate{"ann", false}
	for name, sleeps := range map[string]func(r *sleepyRoot, retry func()){
		"before it looks": func(r *sleepyRoot, retry func()) { r.look = retry },
		"as it writes":    func(r *sleepyRoot, retry func()) { r.write = retry },
	} {
		root, err := store.Open(store.Options{URL: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.mirror(root, says(active)); err != nil {
			t.Fatal(err)
		}
		head, sleepy := canceled, &sleepyRoot{Root: root}
		sleeps(sleepy, func() {
			head = active
			if err := j.mirror(root, says(active)); err != nil {
				t.Error(err)
			}
		})
		if err := j.mirror(sleepy, func() (fate, error) { return head, nil }); err != nil {
			t.Fatal(err)
		}
		if is, err := readFate(root, mirrorKey(parsed)); err != nil || is != active || head != active {
			t.Errorf("%s: a rebuilt queue would not have the job: %+v, %v", name, is, err)
		}
	}
	gone := errors.New("gone")
	root, err := store.Open(store.Options{URL: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.mirror(root, func() (fate, error) { return canceled, gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
	if is, err := readFate(root, mirrorKey(parsed)); err != nil || is != (fate{}) {
		t.Errorf("%+v, %v", is, err)
	}
}

// sleepyRoot has things happen before what it does with a job's state.
type sleepyRoot struct {
	store.Root
	look, write func()
}

func happens(what *func()) {
	if do := *what; do != nil {
		*what = nil
		do()
	}
}

func (s *sleepyRoot) Open(key string) (io.ReadCloser, error) {
	happens(&s.look)
	return s.Root.Open(key)
}

func (s *sleepyRoot) Put(key string, write func(io.Writer) error) error {
	happens(&s.write)
	return s.Root.Put(key, write)
}

// TestLongCanceled wants the store to be asked about jobs that were canceled lately, or that nobody dates.
func TestLongCanceled(t *testing.T) {
	now := time.Now()
	var list []queue.JobStatus
	for name, ago := range map[string]time.Duration{"new": time.Hour, "old": 2 * fateWithin, "tried again": 2 * fateWithin} {
		list = append(list, queue.JobStatus{Head: queue.Head{Name: name, Canceled: name != "tried again"}, Changed: now.Add(-ago)})
	}
	if got := longCanceled(list, now); len(got) != 1 || !got["old"].Canceled {
		t.Errorf("%+v", got)
	}
}

// openDir is a folder with a file.
func openDir(t *testing.T, name string) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	if err := dir.WriteFile(name, []byte(name), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOutdatedResultsAreNoResults wants a rebuild to see what counts, and of which generation it is.
func TestOutdatedResultsAreNoResults(t *testing.T) {
	roots := store.Roots{"outputs": {URL: t.TempDir()}}
	root, err := roots.Open("outputs")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := spec.Parse("job.toml", []byte("version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\nid = \"t\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Job: parsed}
	if j.plan, err = parsed.Plan(); err != nil {
		t.Fatal(err)
	}
	v, err := NewInventory(roots)
	if err := errors.Join(err, j.mirror(root, says(fate{}))); err != nil {
		t.Fatal(err)
	}
	if err := v.Jobs(t.Context(), func(queue.JobPlan, error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	commit := func(generation int) {
		t.Helper()
		if _, own, err := store.Commit(t.Context(), root, "j/t", openDir(t, "model"), []string{"model"}, store.Made{Hash: j.plan.Hash(0), Generation: generation}); err != nil || !own {
			t.Fatal(own, err)
		}
	}
	check := func(want bool, of int) {
		t.Helper()
		sum, generation, err := v.Manifest(t.Context(), parsed.Hash(), 0, queue.Task{})
		if err != nil || (sum != "") != want || generation != of {
			t.Errorf("manifest %q of generation %d, %v", sum, generation, err)
		}
	}
	attempts := func(want int) {
		t.Helper()
		if n, err := v.Attempts(t.Context(), parsed.Hash(), 0); err != nil || n != want {
			t.Errorf("the last attempt is %d, %v; want %d", n, err, want)
		}
	}
	attempts(0)
	if err := root.Put("j/t/log/a004.log", func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	attempts(4)
	u := &store.Uploads{Root: root, Task: "j/t", Dir: openDir(t, "state"), Until: 5}
	if err := u.Save(t.Context(), []string{"state"}, store.Made{Attempt: 5, Step: 1}); err != nil {
		t.Fatal(err)
	}
	attempts(5)
	check(false, 0)
	if err := store.Outdate(root, "j/t", 2); err != nil {
		t.Fatal(err)
	}
	commit(2)
	check(true, 2)
	// One that slept before its publishing has put old results there.
	if err := errors.Join(root.Delete("j/t/out"), root.Delete("j/t/redo")); err != nil {
		t.Fatal(err)
	}
	commit(0)
	if err := root.Put("j/t/redo/000001.json", func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	check(false, 0)
}

// TestEmptyFolderIsNoStore has tasks whose needs are done begin where the store knows of the job, not in an empty folder as an unmounted share leaves it: there they would
// fail, attempt after attempt.
func TestEmptyFolderIsNoStore(t *testing.T) {
	roots := store.Roots{"outputs": {URL: t.TempDir()}}
	root, err := roots.Open("outputs")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := spec.Parse("job.toml", []byte("version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\nid = \"made\"\n[[task]]\nkind = \"train\"\nid = \"model\"\nsource = \"@made\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Job: parsed}
	if j.plan, err = parsed.Plan(); err != nil {
		t.Fatal(err)
	}
	on := func(index int, mirrors bool) *run {
		return &run{node: &node{Options: Options{Mirror: mirrors}}, job: j, task: &j.plan.Tasks[index], outputs: root}
	}
	begins := func(when string) {
		t.Helper()
		if err := on(1, true).astray(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	var e *scene.Error
	if err := on(1, true).astray(); judgeError(err, false) != declined || !errors.As(err, &e) || e.Hint == "" || !strings.Contains(err.Error(), "is it mounted?") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := errors.Join(on(0, true).astray(), on(1, false).astray()); err != nil {
		t.Error("a task that needs none, and a machine alone, which keeps no documents:", err)
	}
	if err := j.mirror(root, says(fate{})); err != nil {
		t.Fatal(err)
	}
	begins("the job's document is there")
	if err := root.Delete(mirrorFolder); err != nil {
		t.Fatal(err)
	}
	if _, own, err := store.Commit(t.Context(), root, "j/made", openDir(t, "model"), []string{"model"}, store.Made{Hash: j.plan.Hash(0)}); err != nil || !own {
		t.Fatal(own, err)
	}
	begins("what it needs is there")
}
