package server

import (
	"os"
	"path/filepath"
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
	f.repairs(nil, "it cannot be read")
	if jobs, err := f.user.List(t.Context()); err != nil || len(jobs) != 1 || jobs[0].Name != "k" {
		t.Errorf("%+v, %v", jobs, err)
	}
	f.submit(queue.JobPlan{Name: "j", Document: []byte("doc"), Tasks: []queue.Task{{Name: "a"}}})
	f.succeed("a")
	f.ends("j", queue.JobSucceeded)
}
