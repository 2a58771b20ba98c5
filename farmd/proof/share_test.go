//go:build linux

package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/farm/client"
	"vksplat/farm/local"
	"vksplat/farm/pass"
)

// small are n tasks without a device, that take some tenths of a second each.
func small(id string, n int, more string) string {
	return fmt.Sprintf("[[task]]\nkind = \"demo\"\nid = %q\nimages = 3\nsize = [16, 16]\npoints = 4\n%smatrix.seed = [%s]\n", id,
		more, numbers(n))
}

func numbers(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return strings.Join(list, ", ")
}

// begun are the tasks that a machine began, in order.
func (m *machine) begun() (list []string) {
	text, _ := m.said.all()
	for line := range strings.Lines(text) {
		if name, is := strings.CutSuffix(strings.TrimSpace(line), ": begins"); is {
			list = append(list, strings.TrimPrefix(name, "vksplat: note: "))
		}
	}
	return list
}

// TestFairShare submits 300 tasks of anna and then one of ben, which begins within one task's time.
func TestFairShare(t *testing.T) {
	f := newTeam(t)
	anna, ben := f.pass("--role", "submit", "--name", "anna"), f.pass("--role", "submit", "--name", "ben")
	m := f.worker("one", "any", "--devices", "none")
	f.must(anna, "farm", "submit", f.write("many", small("many", 300, "")), "--roots", f.file)
	m.says(": begins", 3)
	before := len(m.begun())
	f.must(ben, "farm", "submit", f.write("one", small("mine", 1, "")), "--roots", f.file)
	after := len(m.begun())
	m.says("mine/seed=0: begins", 1)
	at := slices.Index(m.begun(), "mine/seed=0")
	t.Logf("ben submitted after %d to %d tasks of anna, his was number %d", before, after, at)
	// While he submits, tasks of hers begin. From then on it takes the one that runs, and one that a turn of hers is.
	if at > after+2 {
		t.Errorf("ben waited for %d tasks", at-after)
	}
	f.must(anna, "farm", "cancel", "many")
	if said, code := f.run(anna, "farm", "wait", "many"); code != 130 {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// TestFairClasses is the same of tasks that ask for different sizes of device memory, on one device.
func TestFairClasses(t *testing.T) {
	f := newTeam(t)
	anna, ben := f.pass("--role", "submit", "--name", "anna"), f.pass("--role", "submit", "--name", "ben")
	f.must(anna, "farm", "submit", f.write("made",
		"[[task]]\nkind = \"demo\"\nid = \"made\"\nimages = 4\nsize = [16, 16]\n"+
			"points = 20\n"), "--roots", f.file)
	m := f.worker("one", "any")
	if said, code := f.run(anna, "farm", "wait", "made"); code != 0 {
		t.Fatal(said)
	}
	out := filepath.Join(f.outputs(), "made", "made", "out")
	if err := os.CopyFS(filepath.Join(f.roots["inputs"].URL, "photos"), os.DirFS(out)); err != nil {
		t.Fatal(err)
	}
	train := func(id string, n int, more string) string {
		return fmt.Sprintf("[[task]]\nkind = \"train\"\nid = %q\nsource = \"photos\"\nset.iterations = 20\nmatrix.seed = [%s]\n%s",
			id, numbers(n), more)
	}
	f.must(anna, "farm", "submit", f.write("many", train("many", 30, "")), "--roots", f.file)
	m.says("many/seed=", 4) // two began and were done
	f.must(ben, "farm", "submit", f.write("one", train("mine", 1, "limits.vram_min_mb = 1000\n")), "--roots", f.file)
	after := len(m.begun())
	m.says("mine/seed=0: begins", 1)
	at := slices.Index(m.begun(), "mine/seed=0")
	t.Logf("ben submitted when %d tasks had begun, his was number %d", after, at)
	if at > after+2 {
		t.Errorf("ben waited for %d tasks", at-after)
	}
}

// TestSteer pauses, resumes, bounds, moves and cancels a job, and gives it another priority, by the commands.
func TestSteer(t *testing.T) {
	f := newTeam(t)
	anna := f.pass("--role", "submit", "--name", "anna")
	document := f.write("steered", trainings(1, 1_000_000)+ // it does not end by itself
		"[[task]]\nkind = \"demo\"\nid = \"film\"\nimages = 3\nsize = [16, 16]\n"+
		"points = 4\nmatrix.seed = ["+numbers(12)+"]\n")
	f.must(anna, "farm", "submit", document, "--roots", f.file, "--paused", "--max", "1", "--priority", "low")
	one := f.worker("one", "any")
	j := f.until(anna, "steered", "planned", func(j *client.Job) bool { return j.State.Waiting == 15 })
	if j.Status != client.Paused || len(one.begun()) > 0 || j.State.Max != 1 || j.State.Priority != "low" {
		t.Errorf("%+v, %+v, %q", j, j.State, one.begun())
	}
	f.must(anna, "farm", "resume", "steered")
	one.says(": begins", 2)
	if j := f.show(anna, "steered"); j.State.Queued > 1 {
		t.Errorf("%d tasks are queued, want 1", j.State.Queued)
	}
	f.must(anna, "farm", "set", "steered", "--max", "0", "--priority", "high")
	f.until(anna, "steered", "unbound", func(j *client.Job) bool { return j.State.Queued > 1 || j.State.Done > 10 })

	task, step := f.trained("steered", nil)
	f.must(anna, "farm", "pause", "steered")
	f.until(anna, "steered", "paused", func(j *client.Job) bool { return j.State.Queued == 0 })
	paused := f.stored("steered", task)
	begun := len(one.begun())
	if said, code := f.run(anna, "farm", "set", "steered", "--pool", "big"); code == 0 ||
		!strings.Contains(said, `no machine has the pool "big"`) {
		t.Errorf("a pool of no machine: exit code %d, %s", code, said)
	}
	big := f.worker("two", "big")
	f.must(anna, "farm", "set", "steered", "--pool", "big")
	f.must(anna, "farm", "resume", "steered")
	big.says(task+": begins", 1)
	f.until(anna, "steered", "going on", func(j *client.Job) bool {
		return slices.ContainsFunc(j.Now, func(n client.Task) bool { return n.Task == task && n.Step > paused })
	})
	if len(one.begun()) != begun {
		t.Errorf("a machine of another pool began %q", one.begun()[begun:])
	}
	t.Logf("saved at step %d, paused at %d", step, paused)
	if paused < step {
		t.Errorf("the pause lost steps: %d, before %d", paused, step)
	}
	big.stop() // saves, and hands the task back
	f.must(anna, "farm", "set", "steered", "--pool", "any")
	stopped := f.stored("steered", task)
	one.says(task+": begins", 2)
	f.until(anna, "steered", "going on again", func(j *client.Job) bool {
		return slices.ContainsFunc(j.Now, func(n client.Task) bool { return n.Task == task && n.Step > stopped })
	})
	f.until(anna, "steered", "done but for it", func(j *client.Job) bool { return j.State.Done == 13 })
	f.must(anna, "farm", "cancel", "steered")
	if said, code := f.run(anna, "farm", "wait", "steered"); code != 130 {
		t.Errorf("exit code %d\n%s", code, said)
	}
	starts := f.starts("steered", task)
	if starts[2] < paused || starts[3] < starts[2] || len(starts) != 3 {
		t.Errorf("attempts began at %v, paused at %d", starts, paused)
	}
	if said := f.must(anna, "farm", "logs", "steered", task, "--roots", f.file); !strings.Contains(said, " of 1000000, ") {
		t.Errorf("its log: %s", said)
	}
	var list []client.Job
	if err := json.Unmarshal([]byte(f.must(anna, "farm", "list", "--all", "--json")), &list); err != nil ||
		len(list) != 1 ||
		list[0].Status != client.Canceled || list[0].Tasks != 15 {
		t.Errorf("%v, %+v", err, list)
	}
	if said := f.must(anna, "farm", "list"); !strings.Contains(said, "no job is running") ||
		!strings.Contains(said, "--all") {
		t.Errorf("a list without jobs that run says %q", said)
	}
	f.record(anna, "2", "anna/steered", "anna/steered/0")
}

// TestEmptyServer loses the server's folder, or has it of another version of Temporal. Its owner submits the job again:
// what is done is not done again. After a loss machines join again, in place of their old passes.
func TestEmptyServer(t *testing.T) {
	for name, lost := range map[string]bool{"lost": true, "another version": false} {
		t.Run(name, func(t *testing.T) {
			f := newTeam(t)
			anna := f.pass("--role", "submit", "--name", "anna")
			document := f.write("again", small("film", 8, ""))
			f.must(anna, "farm", "submit", document, "--roots", f.file, "--max", "2")
			one := f.worker("one", "any", "--devices", "none")
			one.says(": done", 3)
			f.server.kill()
			if lost {
				if err := os.RemoveAll(f.server.data); err != nil {
					t.Fatal(err)
				}
			} else {
				f.server.pragma("user_version=1031004")
			}
			f.server.start()
			if lost {
				one.says("the farm refuses this machine: it is not the farm of this machine's pass", 1)
				one.stop()
				if said, code := f.run(anna, "farm", "list"); code != 78 || !strings.Contains(said, "--overwrite") {
					t.Errorf("exit code %d\n%s", code, said)
				}
				f.must(anna, "farm", "join", f.token("--role", "submit", "--name", "anna"), "--overwrite")
				f.must(one.pass, "farm", "join", f.token("--role", "worker", "--name", "one"), "--overwrite")
				f.server.kill()
				one.start()
				one.says("waiting for the farm", 1)
				f.server.start()
			}
			before := len(one.begun())
			f.must(anna, "farm", "submit", document, "--roots", f.file)
			if said, code := f.run(anna, "farm", "wait", "again"); code != 0 {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			j := f.show(anna, "again")
			if j.State.Before < 3 || j.State.Before+len(one.begun())-before > 8 {
				t.Errorf("%d results were kept, %d tasks ran: %+v", j.State.Before, len(one.begun())-before, j.State)
			}
		})
	}
}

// TestFails says why a task failed, and what is done.
func TestFails(t *testing.T) {
	f := newTeam(t)
	anna := f.pass("--role", "submit", "--name", "anna")
	f.worker("one", "any")
	if err := os.WriteFile(filepath.Join(f.roots["inputs"].URL, "nothing.ply"), []byte("ply\nno\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	document := f.write("fails", "[[task]]\nkind = \"convert\"\nid = \"bad\"\nmodel = \"nothing.ply\"\nto = \"spz\"\n"+
		"[[task]]\nkind = \"convert\"\nid = \"in vain\"\nmodel = \"@bad\"\nto = \"splat\"\n"+small("film", 2, ""))
	f.must(anna, "farm", "submit", document, "--roots", f.file)
	said, code := f.run(anna, "farm", "wait", "fails")
	if code != 1 || !strings.Contains(said, "1 of 4 tasks failed: bad") || !strings.Contains(said, "nothing.ply") ||
		!strings.Contains(said, "2 done, 1 failed, 1 skipped") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	// submitted again, it tries again what failed, and nothing else
	began := time.Now()
	f.must(anna, "farm", "submit", document, "--roots", f.file)
	if _, code := f.run(anna, "farm", "wait", "fails"); code != 1 || time.Since(began) > time.Minute {
		t.Errorf("again: exit code %d", code)
	}
	f.record(anna, "2", "anna/fails", "anna/fails/0")
}

// TestFollow tells for the job's page what runs where, and how it ended.
func TestFollow(t *testing.T) {
	f := newTeam(t)
	anna := f.pass("--role", "submit", "--name", "anna")
	f.must(anna, "farm", "submit", f.write("watched", trainings(1, 1_000_000)), "--roots", f.file)
	p, err := pass.Load(anna)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), client.Options{Address: p.Address, Namespace: p.Namespace, Owner: p.Owner,
		TLS: p.TLS.Clone()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if ask, err := c.Follow(t.Context(), f.roots["outputs"], "other"); ask != nil || err != nil {
		t.Errorf("a job that there is not: %v", err)
	}
	ask, err := c.Follow(t.Context(), f.roots["outputs"], "watched")
	if err != nil || ask == nil {
		t.Fatal("the job is not found: ", err)
	}
	f.worker("one", "any")
	task := func(is func(*local.Status, *local.TaskStatus) bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			s, err := ask(t.Context())
			if err == nil && is(s, &s.Tasks[1]) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%+v, %v", s, err)
			}
		}
	}
	task(func(s *local.Status, t *local.TaskStatus) bool {
		return !s.Ended && t.State == local.Running && t.Step > 0 && t.Of == 1_000_000 && t.Device != "" &&
			strings.HasPrefix(t.Task, "model")
	})
	f.must(anna, "farm", "cancel", "watched")
	task(func(s *local.Status, t *local.TaskStatus) bool { return s.Ended && t.State == local.Skipped })
}
