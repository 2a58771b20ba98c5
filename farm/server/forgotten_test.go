package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"vksplat/farm/queue"
)

// TestForgottenStaysSo forgets a job, kills the server, and submits another job of the name, before and after: the server (2.15) finds values again that keys had before they
// were purged, and none of them may count.
func TestForgottenStaysSo(t *testing.T) {
	ctx := t.Context()
	f := newFarm(t)
	old := queue.JobPlan{Name: "j", Document: []byte("old"), Tasks: []queue.Task{{Name: "a"}, {Name: "b", Needs: []int{0}}, {Name: "c"}}}
	next := queue.JobPlan{Name: "j", Document: []byte("new"), Tasks: []queue.Task{{Name: "x"}, {Name: "y", Needs: []int{0}}}}
	f.submit(queue.JobPlan{Name: "other", Tasks: []queue.Task{{Name: "o"}, {Name: "p", Pool: "elsewhere"}}}) // which keeps what is written in one file with it
	f.succeed("o")
	f.submit(old)
	for range 2 { // what comes back then has succeeded, too
		for _, name := range []string{"a", "c", "b"} {
			f.succeed(name)
		}
		f.ends("j", queue.JobSucceeded)
		if f.states("j", queue.Succeeded, queue.Succeeded, queue.Succeeded)[0].Entry.Attempt == 1 {
			f.must(f.user.Retry(ctx, "j", queue.Selection{Redo: true}))
		}
	}
	f.must(f.admin.Delete(ctx, "j"))
	killed := f.killed()
	if jobs, err := killed.user.List(ctx); err != nil || len(jobs) != 1 || jobs[0].Name != "other" {
		t.Errorf("after the kill there are %+v, %v", jobs, err)
	}
	if found, err := killed.admin.Fsck(ctx, nil, true); err != nil || len(found) > 0 {
		t.Errorf("after the kill: %+v, %v", found, err)
	}
	killed.succeedsAnew(next)
	f.submit(next)
	f.killed().succeedsAnew(next)
	f.succeedsAnew(next)
}

// succeedsAnew submits a job, unless it is there, of which nothing is done yet, and does it.
func (f *farm) succeedsAnew(plan queue.JobPlan) {
	f.t.Helper()
	f.submit(plan)
	_, tasks, err := f.user.Show(f.t.Context(), plan.Name)
	if err != nil || tasks[0].State != queue.Queued || tasks[1].State != queue.Blocked || tasks[0].Entry.Node+tasks[1].Entry.Node != "" {
		f.t.Errorf("of a job that was just submitted, %+v, %v", tasks, err)
	}
	for _, task := range plan.Tasks {
		f.succeed(task.Name)
	}
	f.ends(plan.Name, queue.JobSucceeded)
}

// killed is another farm on what a killed server would leave now.
func (f *farm) killed() *farm {
	f.t.Helper()
	dir := filepath.Join(f.t.TempDir(), "farm")
	f.must(os.CopyFS(dir, os.DirFS(f.server.options.Dir)))
	s, err := Start(f.t.Context(), testOptions(f.t, dir))
	f.must(err)
	f.t.Cleanup(s.Close)
	next := &farm{t: f.t, server: s, user: connect(f.t, s, Submit), admin: connect(f.t, s, Admin)}
	next.worker = next.join("two", "gpu24")
	return next
}

// TestPlanLost loses plan and document of a job: the others are listed all the same, and a repair forgets it, as nobody has them any more.
func TestPlanLost(t *testing.T) {
	f := newFarm(t)
	for _, name := range []string{"j", "k"} {
		f.submit(queue.JobPlan{Name: name, Document: []byte("doc"), Tasks: []queue.Task{{Name: "a", Pool: "elsewhere"}}})
	}
	_, err := f.server.nc.Request("$JS.API.STREAM.PURGE.KV_job", []byte(`{"filter":"$KV.job.j.>"}`), patience)
	f.must(err)
	jobs, err := f.user.List(t.Context())
	if err != nil || len(jobs) != 2 || jobs[0].State != queue.JobBroken || jobs[1].State != queue.JobActive {
		t.Errorf("%+v, %v", jobs, err)
	}
	if found, err := f.admin.Fsck(t.Context(), nil, true); err != nil || len(found) == 0 || found[0].Repaired {
		t.Errorf("without a store, which may have them: %+v, %v", found, err)
	}
	f.repairs(&shelf{}, "it cannot be read")
	if jobs, err := f.user.List(t.Context()); err != nil || len(jobs) != 1 || jobs[0].Name != "k" {
		t.Errorf("%+v, %v", jobs, err)
	}
	f.submit(queue.JobPlan{Name: "j", Document: []byte("doc"), Tasks: []queue.Task{{Name: "a"}}})
	f.succeed("a")
	f.ends("j", queue.JobSucceeded)
}

// TestForgottenTwice has two submit the same large job at once, over one of the name that was forgotten: neither keeps the other from it.
func TestForgottenTwice(t *testing.T) {
	f := newFarm(t)
	plan := queue.JobPlan{Name: "j", Document: []byte("doc")}
	for i := range 3000 {
		plan.Tasks = append(plan.Tasks, queue.Task{Name: fmt.Sprint(i), Pool: "elsewhere"})
	}
	f.submit(plan)
	f.must(f.user.Cancel(t.Context(), "j", queue.Selection{}))
	f.ends("j", queue.JobCanceled)
	f.must(f.admin.Delete(t.Context(), "j"))
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var group sync.WaitGroup
	for _, q := range []*queue.Queue{f.user, f.admin} {
		group.Go(func() {
			if err := q.Submit(ctx, plan); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestDamagedEntryIsFound damages the entry of a task whose results the store has: one repair finds both, and the attempts go on behind those that the store knows.
func TestDamagedEntryIsFound(t *testing.T) {
	f := newFarm(t)
	plan := queue.JobPlan{Name: "j", Document: []byte("doc"), Tasks: []queue.Task{{Name: "a"}, {Name: "b", Pool: "elsewhere"}}}
	f.submit(plan)
	f.succeed("a")
	_, err := f.server.nc.Request("$KV.task.j.0", []byte("{"), patience)
	f.must(err)
	found, err := f.admin.Fsck(t.Context(), &shelf{plans: []queue.JobPlan{plan}, manifests: map[string]string{"j/a": "hash of a"}, attempts: 3}, true)
	if err != nil || len(found) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	if e := f.states("j", queue.Succeeded, queue.Queued)[0].Entry; e.Attempt != 3 || e.Manifest != "hash of a" {
		t.Errorf("%+v", e)
	}
}

// busyShelf is a store that does something when it is asked for attempts.
type busyShelf struct {
	shelf
	busy func()
}

func (s *busyShelf) Attempts(context.Context, string, int) (int, error) {
	s.busy()
	return 0, nil
}

// TestForgottenBesideFsck forgets a job while a repair goes on, and submits one with more tasks under its name: what these do is not taken for entries of no task.
func TestForgottenBesideFsck(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", Document: []byte("old"), Tasks: []queue.Task{{Name: "a"}}})
	f.succeed("a")
	f.ends("j", queue.JobSucceeded)
	var lease *queue.Lease
	store := &busyShelf{shelf{plans: []queue.JobPlan{{Name: "lost", Document: []byte("lost"), Tasks: []queue.Task{{Name: "t", Pool: "elsewhere"}}}}}, func() {
		f.must(f.admin.Delete(t.Context(), "j"))
		f.submit(queue.JobPlan{Name: "j", Document: []byte("new"), Tasks: []queue.Task{{Name: "x", Pool: "elsewhere"}, {Name: "y"}}})
		lease = f.claim("y")
	}}
	if _, err := f.admin.Fsck(t.Context(), store, true); err != nil {
		t.Fatal(err)
	}
	f.must(lease.Succeed(t.Context(), "manifest of y"))
	f.states("j", queue.Queued, queue.Succeeded)
}
