package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/farm/queue"
)

// TestPowerLoss copies what is on disk while jobs are submitted and run, and starts a server on the copy: what was acknowledged before the copy was begun is
// there. A copy of a running server's files is torn like those of a machine that lost power, but for pages that only the kernel held; those the server has
// synced before it acknowledged (SyncAlways), which TestPowerCut of package lab shows where it may mount.
func TestPowerLoss(t *testing.T) {
	f := newFarm(t)
	ctx, cancel := context.WithCancel(t.Context())
	var lock sync.Mutex
	acknowledged := map[string]queue.State{}
	ahead := make(chan bool, 30) // jobs that are submitted and not done: more would only keep the disk from the tests beside this one
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			select {
			case ahead <- true:
			case <-ctx.Done():
			}
			name := fmt.Sprintf("job-%d", i)
			if f.user.Submit(ctx, queue.JobPlan{Name: name, Document: []byte(name), Tasks: []queue.Task{{Name: "t"}}}) == nil {
				lock.Lock()
				if acknowledged[name] == "" {
					acknowledged[name] = queue.Queued
				}
				lock.Unlock()
			}
		}
	})
	group.Go(func() {
		for ctx.Err() == nil {
			lease, err := f.worker.Claim(ctx, queue.Slot{})
			if err == nil && lease.Succeed(ctx, "manifest of "+lease.Job) == nil {
				lock.Lock()
				acknowledged[lease.Job] = queue.Succeeded
				lock.Unlock()
				<-ahead
			}
		}
	})
	for round := range 3 {
		known := map[string]queue.State{}
		for done := 0; done < 10*(round+1); time.Sleep(10 * time.Millisecond) {
			done = 0
			lock.Lock()
			for name, state := range acknowledged {
				if known[name] = state; state == queue.Succeeded {
					done++
				}
			}
			lock.Unlock()
		}
		copied := filepath.Join(t.TempDir(), fmt.Sprint(round))
		copyTorn(t, f.server.options.Dir, copied)
		checkCopy(t, copied, known)
	}
	cancel()
	group.Wait()
}

// copyTorn copies a folder that is being written. Files may vanish meanwhile.
func copyTorn(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkCopy(t *testing.T, dir string, known map[string]queue.State) {
	t.Helper()
	s, err := Start(t.Context(), testOptions(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	succeeded := 0
	for name, state := range known {
		doc, err := s.Queue().Document(t.Context(), name)
		if err != nil || string(doc) != name {
			t.Errorf("%s is lost: %q, %v", name, doc, err)
			continue
		}
		_, tasks, err := s.Queue().Show(t.Context(), name)
		if err != nil || state == queue.Succeeded && (tasks[0].State != state || tasks[0].Entry.Manifest != "manifest of "+name) {
			t.Errorf("%s: %v, %v, want %s", name, tasks, err, state)
		}
		if state == queue.Succeeded {
			succeeded++
		}
	}
	t.Logf("%d jobs, %d of them done, are all there", len(known), succeeded)
	if succeeded == 0 {
		t.Error("nothing was done")
	}
}

// shelf is a store in memory.
type shelf struct {
	plans     []queue.JobPlan
	added     [][]byte
	manifests map[string]string // by job/task

	generation int // of all of them
	attempts   int // at each task
}

func (s *shelf) Attempts(context.Context, string, int) (int, error) { return s.attempts, nil }

func (s *shelf) Jobs(_ context.Context, fn func(queue.JobPlan, error) error) error {
	for _, plan := range s.plans {
		if err := fn(plan, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *shelf) Manifest(_ context.Context, document string, _ int, task queue.Task) (string, int, error) {
	for _, plan := range s.plans {
		if sum := sha256.Sum256(plan.Document); hex.EncodeToString(sum[:]) == document {
			return s.manifests[plan.Name+"/"+task.Name], s.generation, nil
		}
	}
	for _, added := range s.added {
		if sum := sha256.Sum256(added); hex.EncodeToString(sum[:]) == document {
			return s.manifests["j/"+task.Name], s.generation, nil
		}
	}
	return "", 0, nil
}

// Add takes in the document of a job of the name j.
func (s *shelf) Add(document []byte) error {
	s.added = append(s.added, document)
	return nil
}

// TestRebuild gives a new, empty server the store of another.
func TestRebuild(t *testing.T) {
	f := newFarm(t)
	plan := queue.JobPlan{Name: "old job", Owner: "ann", Document: []byte("doc"), Tasks: []queue.Task{{Name: "a"}, {Name: "b"}, {Name: "c", Needs: []int{0, 1}}}}
	store := &shelf{plans: []queue.JobPlan{plan}, manifests: map[string]string{"old job/a": "hash of a"}}
	found, err := f.admin.Fsck(t.Context(), store, false)
	if err != nil || len(found) != 1 || found[0].Repaired {
		t.Fatal(found, err)
	}
	if _, _, err := f.user.Show(t.Context(), plan.Name); !errors.Is(err, queue.ErrNoJob) {
		t.Error("a check without repair changes something:", err)
	}
	f.repairs(store, "the store has it", "valid manifest")
	f.succeed("b")
	f.succeed("c")
	f.ends(plan.Name, queue.JobSucceeded)
	if status, _, err := f.user.Show(t.Context(), plan.Name); err != nil || status.Owner != "ann" {
		t.Error(status, err)
	}
	if doc, err := f.user.Document(t.Context(), plan.Name); err != nil || string(doc) != "doc" {
		t.Errorf("%q, %v", doc, err)
	}
}

// TestRebuildGoesOnCounting rebuilds a job whose results are of a late generation: who wants them anew gets a later one. So does who finds them by doing the task.
func TestRebuildGoesOnCounting(t *testing.T) {
	f := newFarm(t)
	plan := queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}, {Name: "b"}}}
	store := &shelf{plans: []queue.JobPlan{plan}, manifests: map[string]string{"j/a": "manifest"}, generation: 5, attempts: 3}
	f.repairs(store, "the store has it", "valid manifest")
	found := f.claim("b")
	if found.Attempt != 4 {
		t.Errorf("attempt %d, after 3 in the store", found.Attempt)
	}
	found.Generation = 7
	found.Progress(305, 500, "counting")
	f.must(found.Succeed(t.Context(), "manifest of b"))
	if e := f.states("j", queue.Succeeded, queue.Succeeded)[1].Entry; e.Step != 500 || e.Of != 500 || e.Message != "counting" {
		t.Errorf("a task that is done is at step %d of %d: %q", e.Step, e.Of, e.Message)
	}
	f.ends("j", queue.JobSucceeded)
	f.must(f.user.Retry(t.Context(), "j", queue.Selection{Redo: true}))
	generations := map[string]int{}
	for range plan.Tasks { // in any order: a message of before the repair may come
		lease := f.claimAny()
		generations[lease.Task.Name] = lease.Generation
	}
	if generations["a"] != 6 || generations["b"] != 8 {
		t.Errorf("generations %v: the store has 5 and 7 already", generations)
	}
	// What is wanted anew is not done by what there is.
	if found, err := f.admin.Fsck(t.Context(), store, true); err != nil || len(found) > 0 {
		t.Error(found, err)
	}
}

// TestRedoKeepsOrder does a job of many tasks again while a worker waits: they come in their order, though they are queued some at a time.
func TestRedoKeepsOrder(t *testing.T) {
	f := newFarm(t)
	plan := queue.JobPlan{Name: "j"}
	for i := range 40 {
		plan.Tasks = append(plan.Tasks, queue.Task{Name: strconv.Itoa(i)})
	}
	f.submit(plan)
	for _, task := range plan.Tasks {
		f.succeed(task.Name)
	}
	f.ends("j", queue.JobSucceeded)
	retried := make(chan error)
	go func() { retried <- f.user.Retry(t.Context(), "j", queue.Selection{Redo: true}) }()
	for _, task := range plan.Tasks[:20] {
		f.succeed(task.Name)
	}
	f.must(<-retried)
}

// TestRebuildCanceled rebuilds a job that was canceled when one of its two tasks was done: nothing of it starts until somebody retries it.
func TestRebuildCanceled(t *testing.T) {
	f := newFarm(t)
	plan := queue.JobPlan{Name: "j", Canceled: true, Document: []byte("doc"), Tasks: []queue.Task{{Name: "a"}, {Name: "b"}}}
	f.repairs(&shelf{plans: []queue.JobPlan{plan}, manifests: map[string]string{"j/a": "hash of a"}}, "the store has it", "valid manifest")
	f.ends("j", queue.JobCanceled)
	f.states("j", queue.Succeeded, queue.Canceled)
	f.nothing()
	f.must(f.user.Retry(t.Context(), "j", queue.Selection{}))
	f.succeed("b")
	f.ends("j", queue.JobSucceeded)
}

// TestStoreAway checks the queue against the folder of a share that is not mounted: it is said, and not even a repair does anything again.
func TestStoreAway(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Document: []byte("doc"), Tasks: []queue.Task{{Name: "a"}, {Name: "b"}}})
	f.succeed("a")
	for _, repair := range []bool{false, true} {
		found, err := f.admin.Fsck(ctx, &shelf{}, repair)
		if err != nil || len(found) != 1 || found[0].Repaired || !strings.Contains(found[0].What, "nor has it results of tasks that succeeded (1 of 1)") {
			t.Errorf("repair %v: %+v, %v", repair, found, err)
		}
	}
	f.states("j", queue.Succeeded, queue.Queued)
	// The same folder without documents, where the results are.
	if found, err := f.admin.Fsck(ctx, &shelf{manifests: map[string]string{"j/a": "manifest"}}, true); err != nil || len(found) > 0 {
		t.Error(found, err)
	}
}

// repairs runs a repair that must find these things, and repeats it until there is nothing to find.
func (f *farm) repairs(store queue.Inventory, want ...string) {
	f.t.Helper()
	found, err := f.admin.Fsck(f.t.Context(), store, true)
	f.must(err)
	for _, text := range want {
		if !slices.ContainsFunc(found, func(x queue.Finding) bool { return strings.Contains(x.What, text) && x.Repaired }) {
			f.t.Errorf("no finding %q in %v", text, found)
		}
	}
	for end := time.Now().Add(patience); len(found) > 0; { // workers and reconciler may still act on what they saw before
		found, err = f.admin.Fsck(f.t.Context(), store, true)
		f.must(err)
		if time.Now().After(end) {
			f.t.Fatalf("still wrong: %v", found)
		}
	}
}

// TestDamage loses and breaks what the queue stores, piece by piece.
func TestDamage(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	plan := queue.JobPlan{Name: "j", Document: []byte("doc"), Tasks: []queue.Task{{Name: "a"}, {Name: "b"}}}
	store := &shelf{plans: []queue.JobPlan{plan}, manifests: map[string]string{"j/a": "manifest"}}
	f.submit(plan)
	f.succeed("a")
	lease := f.claim("b")
	nc, err := f.server.Connect("damage")
	f.must(err)
	defer nc.Close()
	say := func(subject, text string) {
		_, err := nc.Request(subject, []byte(text), patience)
		f.must(err)
	}
	say("$JS.API.STREAM.PURGE.JOBS", "")
	f.repairs(store, "message is lost")
	say("$KV.task.nobody.0", "{}")
	say("jobs.high.any.nobody.7", `{"job":"nobody","index":7}`)
	f.repairs(store, "an entry of no job", "a message of no task")
	delete(store.manifests, "j/a")
	f.repairs(store, queue.LacksResults)
	if again := f.claim("a"); again.Generation != 1 {
		t.Errorf("%+v", again)
	} else {
		f.must(again.Succeed(ctx, "new"))
	}
	store.manifests["j/a"] = "newer"
	f.repairs(store, "another one than the queue knows")
	f.must(lease.Succeed(ctx, "b"))
	store.manifests["j/b"] = "b"
	f.ends("j", queue.JobSucceeded)
	say("$JS.API.STREAM.PURGE.KV_task", "")
	f.repairs(store, "valid manifest")
	f.ends("j", queue.JobSucceeded)
	say("$KV.job.j", "not JSON")
	f.repairs(store, "cannot be read")
	f.ends("j", queue.JobSucceeded)
}

// TestEntryGone removes the entry of a task under its worker, and with it the job: the lease is lost, and the server is not asked without end.
func TestEntryGone(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}})
	lease := f.claim("a")
	for _, stream := range []string{"KV_job", "JOBS", "KV_task"} {
		_, err := f.server.nc.Request("$JS.API.STREAM.PURGE."+stream, nil, patience)
		f.must(err)
	}
	varz, err := f.server.nats.Load().Varz(nil)
	f.must(err)
	cause(t, lease, queue.ErrLost)
	after, err := f.server.nats.Load().Varz(nil)
	f.must(err)
	if n := after.InMsgs - varz.InMsgs; n > 500 {
		t.Errorf("%d messages about an entry that is gone", n)
	}
	if err := lease.Succeed(t.Context(), "manifest"); !errors.Is(err, queue.ErrLost) {
		t.Error(err)
	}
}

// arrival is a store that takes so long to read that a job is submitted and begun meanwhile.
type arrival struct {
	*shelf
	comes func()
}

func (a arrival) Manifest(ctx context.Context, document string, index int, task queue.Task) (string, int, error) {
	a.comes()
	return a.shelf.Manifest(ctx, document, index, task)
}

// TestArrival submits a job while a repair is under way that knows nothing of it.
func TestArrival(t *testing.T) {
	f := newFarm(t)
	plan := queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}}
	f.submit(plan)
	f.succeed("a")
	var late *queue.Lease
	found, err := f.admin.Fsck(t.Context(), arrival{&shelf{plans: []queue.JobPlan{plan}, manifests: map[string]string{"j/a": "manifest"}}, func() {
		f.submit(queue.JobPlan{Name: "late", Tasks: []queue.Task{{Name: "b"}}})
		late = f.claim("b")
	}}, true)
	if err != nil || len(found) > 0 {
		t.Error(found, err)
	}
	f.must(late.Succeed(t.Context(), "manifest"))
	f.ends("late", queue.JobSucceeded)
}

// TestEditedDocument has a store that knows only an older job of the name: it says nothing about the one that ran.
func TestEditedDocument(t *testing.T) {
	f := newFarm(t)
	old := queue.JobPlan{Name: "j", Document: []byte("old"), Tasks: []queue.Task{{Name: "a"}}}
	edited := queue.JobPlan{Name: "j", Document: []byte("edited"), Tasks: []queue.Task{{Name: "a"}}}
	f.submit(edited)
	f.succeed("a")
	f.ends("j", queue.JobSucceeded)
	store := &shelf{plans: []queue.JobPlan{old}, manifests: map[string]string{"j/a": "manifest"}}
	if found, err := f.admin.Fsck(t.Context(), store, true); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	// Of several the last is the one that a lost queue is filled with.
	f.must(f.admin.Delete(t.Context(), "j"))
	store.plans = append(store.plans, edited)
	f.repairs(store, "the store has it")
	if doc, err := f.user.Document(t.Context(), "j"); err != nil || string(doc) != "edited" {
		t.Errorf("%q, %v", doc, err)
	}
}
