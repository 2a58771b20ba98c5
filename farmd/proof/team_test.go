//go:build linux

package proof

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/client"
	"vksplat/internal/filetest"
)

// TestTeamKilled runs trainings on two machines. One is killed in a training, then the server, then both: each time
// once a checkpoint is in the store. All is done in the end, with the bytes of the same job that nobody disturbed, and
// each attempt went on from the newest checkpoint.
func TestTeamKilled(t *testing.T) {
	f := newTeam(t)
	document := f.write("killed", trainings(3, 750))
	want := f.undisturbed(document)
	t.Setenv(stepFloor, "10ms")
	one, two := f.worker("one", "any"), f.worker("two", "any")
	anna := f.pass("--role", "submit", "--name", "anna")
	f.must(anna, "farm", "submit", document, "--roots", f.file)
	saved := map[string]int{}

	task, _ := f.trained("killed", saved) // a worker
	victim := f.has(task)
	if victim == nil {
		t.Fatalf("nobody has %s", task)
	}
	victim.kill()
	at := map[string]int{task: f.stored("killed", task)} // newest checkpoints of attempts that were killed
	first := task
	t.Logf("%s killed with %s, saved at step %d", victim.name, task, at[task])
	victim.start()

	saved[task] = at[task]
	task, step := f.trained("killed", saved) // the server
	f.server.kill()
	f.server.start()
	t.Logf("the server killed with %s, saved at step %d", task, step)

	saved[task] = step
	task, _ = f.trained("killed", saved) // all
	one.kill()
	f.server.kill()
	two.kill()
	if n := f.stored("killed", task); task != first {
		at[task] = n
	}
	t.Logf("all killed with %s, saved at step %d", task, f.stored("killed", task))
	f.server.start()
	t.Setenv(stepFloor, "") // nothing is left to disturb
	one.start()
	two.start()
	if said, code := f.run(anna, "farm", "wait", "killed"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	resumed := 0
	for task, step := range at {
		starts := f.starts("killed", task)
		t.Logf("attempts at %s began at %v", task, starts)
		if starts[2] < step {
			t.Errorf("%s went on from step %d, the store had %d", task, starts[2], step)
		}
		for n, start := range starts {
			if n > 1 && start > 0 {
				resumed++
			}
		}
	}
	if resumed == 0 {
		t.Error("nothing was gone on with: nothing was tested")
	}
	f.compare("killed", want)
	if j := f.show(anna, "killed"); j.State.Done != 7 || j.Status != client.Done {
		t.Errorf("%+v, %+v", j, j.State)
	}
}

// TestTeamAway has the server away for longer than a worker may be silent: killed, and asleep with its machine. A
// training goes on where it runs, though another machine has nothing to do, and no attempt is lost.
func TestTeamAway(t *testing.T) {
	const silent = 8 * time.Second // this is no test of busy machines
	for name, away := range map[string]func(*server){
		"killed": func(s *server) { s.kill(); time.Sleep(2 * silent); s.start() },
		"asleep": func(s *server) { s.signal(syscall.SIGSTOP); time.Sleep(2 * silent); s.signal(syscall.SIGCONT) },
	} {
		t.Run(name, func(t *testing.T) {
			if name != "killed" && !filetest.Long() {
				t.Skip("VKSPLAT_LONG=1 has the server's machine sleep, too")
			}
			t.Setenv(heartbeatSetting, silent.String())
			f := newTeam(t)
			document := f.write("away", trainings(1, 1000))
			want := f.undisturbed(document)
			t.Setenv(stepFloor, "5ms")
			f.worker("one", "any")
			f.worker("two", "any")
			anna := f.pass("--role", "submit", "--name", "anna")
			f.must(anna, "farm", "submit", document, "--roots", f.file)
			task, _ := f.trained("away", nil)
			machine := f.has(task)
			if machine == nil {
				t.Fatalf("nobody has %s", task)
			}
			for _, pid := range childrenOf(machine.cmd.Process.Pid) { // however fast machines are
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
			before := f.show(anna, "away").Now
			away(f.server)
			time.Sleep(5 * silent / 2) // the other machine would have begun
			now := f.show(anna, "away").Now
			if f.has(task) != machine || len(before) != 1 || len(now) != 1 || !now[0].Running {
				t.Fatalf("%+v, then %+v", before, now)
			}
			if from, since := before[0].Since, now[0].Since; from == "" || since == from {
				t.Errorf("the worker knows of no outage: the server was there since %q, then since %q", from, since)
			}
			for _, pid := range childrenOf(machine.cmd.Process.Pid) {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
			if said, code := f.run(anna, "farm", "wait", "away"); code != 0 {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			if n := f.starts("away", task); len(n) != 1 {
				t.Errorf("attempts began at %v", n)
			}
			f.compare("away", want)
		})
	}
}

// TestTeamChaos kills workers and the server at random moments under a longer job, until it is done.
func TestTeamChaos(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 kills machines at random moments")
	}
	for _, name := range []string{"SQLite", "Postgres"} {
		t.Run(name, func(t *testing.T) {
			var args []string
			if name == "Postgres" {
				args = []string{"--postgres", postgres(t) + "/team"}
			}
			seed := uint64(time.Now().UnixNano())
			t.Log("seed", seed)
			random := rand.New(rand.NewPCG(seed, 25))
			f := newTeam(t, args...)
			document := f.write("chaos", strings.Replace(trainings(4, 4000), "[retry]\n",
				"[retry]\nmax_attempts = 1000\n", 1))
			want := f.undisturbed(document)
			f.worker("one", "any")
			f.worker("two", "any")
			anna := f.pass("--role", "submit", "--name", "anna")
			f.must(anna, "farm", "submit", document, "--roots", f.file)
			kills := 0
			for deadline := time.Now().Add(30 * time.Minute); ; {
				time.Sleep(time.Duration(2000+random.IntN(8000)) * time.Millisecond)
				if time.Now().After(deadline) {
					t.Fatal("the job does not end")
				}
				if f.show(anna, "chaos").Over() {
					break
				}
				switch n := random.IntN(3); n {
				case 2:
					f.server.kill()
					f.server.start()
				default:
					f.workers[n].kill()
					f.workers[n].start()
				}
				kills++
			}
			t.Logf("done after %d kills", kills)
			if said, code := f.run(anna, "farm", "wait", "chaos"); code != 0 {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			f.compare("chaos", want)
			if kills < 5 {
				t.Error("too few kills: nothing was tested")
			}
		})
	}
}
