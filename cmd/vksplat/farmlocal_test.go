package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/farm/client"
	"vksplat/farm/local"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
	must "vksplat/internal/musttest"
)

// TestLocalJobs has list, show and logs know the jobs of farm run on a machine that has joined no farm.
func TestLocalJobs(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	r := newJobRig(t, twoDemos)
	ask := func(args ...string) (code int, said string) {
		var stdout, stderr bytes.Buffer
		code = run(append([]string{"farm"}, args...), &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	if code, said := ask("list"); code != 0 || !strings.HasPrefix(said, "no job is running") {
		t.Errorf("before any job: %d, %s", code, said)
	}
	r.done(0)
	r.done(1)
	if code, said := r.run(); code != 0 {
		t.Fatal(code, said)
	}
	log := filepath.Join(r.dir, "j", "a", "log", "a00001.log")
	must.Do(t, os.MkdirAll(filepath.Dir(log), 0o777))
	must.Do(t, os.WriteFile(log, []byte("hello\n"), 0o666))
	for _, c := range []struct{ args, want string }{{"list --all", "\nj    done    2      2     0 "},
		{"list --all --json", `"root": "` + r.dir + `/j"`}, {"show j", "job j: done; 2 tasks: 2 done\nresults: " + r.dir + "/j"},
		{"show j --local --json", `"status": "done"`}, {"logs j a", "hello"}} {
		if code, said := ask(strings.Fields(c.args)...); code != 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: %d, %s; want %q", c.args, code, said, c.want)
		}
	}
	if code, said := ask("logs", "night", "a"); code != fault.ExitUsage || !strings.Contains(said,
		`farm run has not run a job "night" on this machine`) {
		t.Errorf("%d, %s", code, said)
	}
	if code, said := ask("show", "j", "--pass", r.dir); code != fault.ExitSetup || !strings.Contains(said, "read pass") {
		t.Errorf("a pass was named: %d, %s", code, said)
	}
}

// TestLocalKilled has a run of this machine that was killed be known at once, by its lock, and one of another not.
func TestLocalKilled(t *testing.T) {
	j := localJob{"j", store.Options{URL: t.TempDir()}}
	results, _, lock, err := j.place()
	must.Do(t, err)
	must.Do(t, os.MkdirAll(results, 0o777))
	host, _ := os.Hostname()
	s := &local.Status{Host: host, Updated: time.Now()}
	unlock := must.Get(lockfile.Try(lock, lockfile.Exclusive))(t)
	if j.isDead(s) {
		t.Error("a run that holds its lock is dead")
	}
	unlock()
	if !j.isDead(s) {
		t.Error("a run that was killed is not known")
	}
	if _, err := os.Lstat(lock); err == nil {
		t.Error("the question leaves a lock behind")
	}
	for _, s := range []*local.Status{{Host: "other." + host}, {}, {Host: host, Ended: true}} {
		if j.isDead(s) {
			t.Errorf("%+v is dead", s)
		}
	}
}

// TestLocalStatus tells a run that has ended from one that goes on, and from one that was killed.
func TestLocalStatus(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		ended   bool
		dead    bool
		updated time.Time
		states  []local.State
		want    string
		over    bool
	}{
		{true, false, now, []local.State{local.Done, local.Excluded}, client.Done, true},
		{true, false, now, []local.State{local.Done, local.Failed, local.Skipped}, client.Failed, true},
		{true, false, now, []local.State{local.Done, local.Ready, local.Waiting}, stoppedJob, false},
		{false, false, now, []local.State{local.Done, local.Running, local.Retrying}, client.Running, false},
		{false, false, now.Add(-time.Hour), []local.State{local.Done, local.Running}, stoppedJob, false},
		{false, true, now, []local.State{local.Done, local.Running}, stoppedJob, false},
	} {
		s := &local.Status{Job: "j", Ended: c.ended, Updated: c.updated}
		running := 0
		for _, state := range c.states {
			s.Tasks = append(s.Tasks, local.TaskStatus{State: state})
			if c.want == client.Running && state != local.Done {
				running++
			}
		}
		if j := jobOfStatus(s, c.dead); j.Status != c.want || j.Over() != c.over || len(j.Now) != running {
			t.Errorf("%v: %s, over %v, %d run; want %s", c.states, j.Status, j.Over(), len(j.Now), c.want)
		}
	}
}
