package server

import (
	"path/filepath"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"vksplat/farm/queue"
)

// TestRestart stops and starts the server under a worker: leases go on, nothing is done twice.
func TestRestart(t *testing.T) {
	t.Parallel()
	options := testOptions(t, filepath.Join(t.TempDir(), "farm"))
	options.Listen = freeAddress(t)
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	f := &farm{t: t, server: s, user: connect(t, s, Submit)}
	f.worker = f.join("one")
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}, {Name: "b", Needs: []int{0}}}})
	lease := f.claim("a")
	s.Close()
	time.Sleep(testLease / 4)
	if s, err = Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	time.Sleep(2 * testLease) // more than long enough for others to steal it
	f.must(lease.Verify(t.Context()))
	f.must(lease.Succeed(t.Context(), "manifest"))
	f.succeed("b")
	f.ends("j", queue.JobSucceeded)
	if tasks := f.states("j", queue.Succeeded, queue.Succeeded); tasks[0].Entry.Attempt != 1 || tasks[1].Entry.Attempt != 1 {
		t.Error(tasks)
	}
}

// TestRestartWithin starts the NATS server again inside its process, as after a full disk: all connections come back to it, leases go on, and what the server is
// asked is done once.
func TestRestartWithin(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}, {Name: "b", Needs: []int{0}}}})
	lease := f.claim("a")
	for range 2 {
		f.must(f.server.restart())
	}
	f.must(lease.Verify(ctx))
	f.must(lease.Succeed(ctx, "manifest"))
	f.succeed("b") // which the server's own connection calls
	f.ends("j", queue.JobSucceeded)
	if tasks := f.states("j", queue.Succeeded, queue.Succeeded); tasks[0].Entry.Attempt != 1 || tasks[1].Entry.Attempt != 1 {
		t.Error(tasks)
	}
	asked := func() uint64 {
		all, err := f.server.nats.Load().Jsz(&natsserver.JSzOptions{Accounts: true})
		f.must(err)
		return all.AccountDetails[0].API.Total
	}
	before := asked()
	const most = 200
	for range most {
		_, err := f.server.nc.Request("$JS.API.STREAM.INFO.JOBS", nil, patience)
		f.must(err)
	}
	time.Sleep(100 * time.Millisecond)                      // what is done twice is done behind the answer
	if n := asked() - before; n < most || n > most+most/2 { // the reconciler asks now and then
		t.Errorf("%d requests were carried out, of %d", n, most)
	}
}

// TestTakeBack kills the only worker of a job, and now and then its server, again and again: who knows that it is dead takes its task back, which is begun at once, long before
// its lease has ended, and as often as it takes. A task that was canceled is not.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	options := testOptions(t, filepath.Join(t.TempDir(), "farm"))
	options.Farm.Lease = queue.Duration(time.Hour)
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Close() }()
	f := &farm{t: t, server: s, user: s.Queue()}
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a", MaxAttempts: 2}}})
	const kills = 5
	for n := 1; n <= kills; n++ {
		nc, err := s.Connect("worker")
		f.must(err)
		q, err := queue.Connect(t.Context(), nc, queue.Options{})
		f.must(err)
		f.worker, err = q.Join(t.Context(), queue.WorkerInfo{Node: "one", Home: "here"})
		f.must(err)
		if e := f.claim("a"); e.Attempt != n {
			t.Fatalf("attempt %d, want %d", e.Attempt, n)
		}
		if n == kills {
			f.must(f.user.Cancel(t.Context(), "j", queue.Selection{}))
		}
		nc.Close()
		if n%2 == 0 {
			s.Close()
			if s, err = Start(t.Context(), options); err != nil {
				t.Fatal(err)
			}
			f.user = s.Queue()
		}
		f.must(f.user.TakeBack(t.Context(), "j"))
		f.must(f.user.TakeBack(t.Context(), "j")) // of what nobody has
		want := queue.Queued
		if n == kills {
			want = queue.Canceled
		}
		if e := f.states("j", want)[0].Entry; e.Used > 0 && want == queue.Queued || len(e.Failures) > 0 || e.Claim != "" {
			t.Errorf("after %d kills: %+v", n, e)
		}
	}
	f.ends("j", queue.JobCanceled)
}
