//go:build linux

package lab

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/worker"
)

// document is a job of tasks by name with a number of points, and further lines of the document.
func document(job string, top string, points ...int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version = 1\nname = %q\n%s\n[retry]\nbackoff = \"50ms\"\n", job, top)
	for i, n := range points {
		fmt.Fprintf(&b, "[[task]]\nkind = \"demo\"\nid = \"t%d\"\npoints = %d\n", i, n)
	}
	return b.String()
}

// running waits until a task runs and has come to a step.
func (l *lab) running(q *queue.Queue, job string, step int64) queue.TaskStatus {
	l.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		_, tasks, err := q.Show(l.t.Context(), job)
		if err != nil {
			l.t.Fatal(err)
		}
		if e := tasks[0].Entry; tasks[0].State == queue.Running && e.Step >= step {
			return tasks[0]
		}
		if time.Since(began) > patience {
			l.t.Fatalf("the task does not run: %+v", tasks[0])
		}
	}
}

// TestWorker runs tasks to every end that there is.
func TestWorker(t *testing.T) {
	l := newLab(t)
	l.start("server")
	q := l.queue()
	l.start("one")
	ends := l.submit(q, document("ends", "", 200, pointsBad, pointsCrash))
	_, tasks := l.wait(q, ends.Name, patience)
	l.check(ends, tasks, map[string]string{"t1": "no photos"})
	if e := tasks[2].Entry; e.Attempt != 2 {
		t.Errorf("a task that crashed once was done in attempt %d, want 2", e.Attempt)
	}
	if e := tasks[1].Entry; e.Attempt != 1 {
		t.Errorf("a task with bad data was tried %d times, want 1", e.Attempt)
	}

	// One that needs more than there is stays in the queue and says why.
	l.submit(q, document("huge", "[limits]\ndisk_min_gb = 1000000", 200))
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, tasks, err := q.Show(t.Context(), "huge")
		if err != nil {
			t.Fatal(err)
		}
		if e := tasks[0].Entry; tasks[0].State == queue.Queued && strings.Contains(e.Message, "GB of disk") && e.Used == 0 {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("a task that fits nowhere is %+v", tasks[0])
		}
	}

	// One that is canceled stops; tried again by hand it goes on and ends.
	long := l.submit(q, document("long", "", pointsLong))
	l.running(q, long.Name, 15)
	if err := q.Cancel(t.Context(), long.Name, queue.Selection{}); err != nil {
		t.Fatal(err)
	}
	if status, _ := l.wait(q, long.Name, patience); status.State != queue.JobCanceled {
		t.Fatalf("a canceled job is %s", status.State)
	}
	if err := q.Retry(t.Context(), long.Name, queue.Selection{}); err != nil {
		t.Fatal(err)
	}
	_, tasks = l.wait(q, long.Name, patience)
	l.check(long, tasks, nil)

	// Done anew on demand: the results are of the new attempt.
	before := tasks[0].Entry.Attempt
	if err := q.Retry(t.Context(), long.Name, queue.Selection{Redo: true}); err != nil {
		t.Fatal(err)
	}
	_, tasks = l.wait(q, long.Name, patience)
	l.check(long, tasks, nil)
	data, err := os.ReadFile(l.path("outputs/long/t0/out/MANIFEST.json"))
	if err != nil || !strings.Contains(string(data), fmt.Sprintf("\"attempt\": %d", before+1)) {
		t.Errorf("the results are not of attempt %d: %s %v", before+1, data, err)
	}
}

// TestWorkerShows hands the picture of a task on, and nothing that is none.
func TestWorkerShows(t *testing.T) {
	l := newLab(t)
	l.start("server")
	q := l.queue()
	l.start("one")
	job := l.submit(q, document("show", "", pointsShow))
	_, tasks := l.wait(q, job.Name, patience)
	l.check(job, tasks, nil)
	data, err := q.Preview(t.Context(), job.Name, 0)
	if err != nil || !bytes.Equal(data, stubPicture()) {
		t.Errorf("a picture of %d bytes, %v", len(data), err)
	}
	if e := tasks[0].Entry; e.Unit != "" && e.Unit != "pictures" || e.Rate != 0 || e.Took <= 0 {
		t.Errorf("at its end: %+v", e)
	}
	nodes, err := q.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || len(nodes[0].Use) != 1 || nodes[0].Use[0].Name != "Test GPU" || nodes[0].Use[0].Budget != 8<<30 || nodes[0].Use[0].Job != "" {
		t.Errorf("%+v, %v", nodes, err)
	}
}

// TestWorkerStops hands back what runs on SIGTERM, and when the node is drained at once; the attempts do not count.
func TestWorkerStops(t *testing.T) {
	l := newLab(t)
	l.start("server")
	q := l.queue()
	l.start("one")
	job := l.submit(q, document("long", "", pointsLong))
	l.running(q, job.Name, 5)
	l.kill("one", syscall.SIGTERM)
	<-l.ended["one"]
	if code := l.parts["one"].ProcessState.ExitCode(); code != 75 {
		t.Errorf("the worker ended with exit code %d, want 75", code)
	}
	_, tasks, err := q.Show(t.Context(), job.Name)
	if err != nil {
		t.Fatal(err)
	}
	if e := tasks[0].Entry; tasks[0].State != queue.Queued || e.Used != 0 {
		t.Errorf("after SIGTERM the task is %s, %d attempts count", tasks[0].State, e.Used)
	}
	l.start("two")
	_, tasks = l.wait(q, job.Name, patience)
	l.check(job, tasks, nil)

	drained := l.submit(q, document("drained", "", pointsLong))
	l.running(q, drained.Name, 5)
	if err := q.Drain(t.Context(), "two", true); err != nil {
		t.Fatal(err)
	}
	l.start("three")
	_, tasks = l.wait(q, drained.Name, patience)
	l.check(drained, tasks, nil)
	if node := tasks[0].Entry.Node; node != "three" {
		t.Errorf("a drained node's task was done by %s", node)
	}
}

// TestAlive has a task make no step for longer than the queue waits: what shows signs of life is left alone, what shows none is tried again.
func TestAlive(t *testing.T) {
	l := newLab(t)
	l.start("server")
	q := l.queue()
	l.start("one")
	job, err := spec.Parse("test.toml", []byte(document("alive", "", pointsQuiet, pointsHang)))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := worker.JobPlan(job, "tester")
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan.Tasks {
		plan.Tasks[i].Stall = quietFor / 2 // more than a busy machine takes to start a task
	}
	if err := q.Submit(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	_, tasks := l.wait(q, job.Name, patience)
	l.check(job, tasks, nil)
	for i, want := range []int{1, 2} {
		if e := tasks[i].Entry; e.Attempt != want {
			t.Errorf("%s was done in attempt %d, want %d", tasks[i].Name, e.Attempt, want)
		}
	}
}

// TestBadNode has a node without a disk to work on claim a task first: it does not fail for good, another node does it.
func TestBadNode(t *testing.T) {
	l := newLab(t)
	l.start("server")
	q := l.queue()
	if err := os.Mkdir(l.path("work-bad"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path("work-bad/jobs"), nil, 0o666); err != nil { // where a folder would have to be
		t.Fatal(err)
	}
	l.start("bad")
	job := l.submit(q, document("spared", "", 200))
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		_, tasks, err := q.Show(t.Context(), job.Name)
		if err != nil {
			t.Fatal(err)
		}
		if e := tasks[0].Entry; tasks[0].State.Ended() {
			t.Fatalf("the bad node ended the task: %+v", e)
		} else if len(e.Failures) > 0 {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("nothing is said of the bad node: %+v", tasks[0])
		}
	}
	l.start("good")
	_, tasks := l.wait(q, job.Name, patience)
	l.check(job, tasks, nil)
	if e := tasks[0].Entry; e.Node != "good" || len(e.Failures) == 0 || e.Failures[0].Node != "bad" || e.Failures[0].Permanent {
		t.Errorf("done by %s after %+v", e.Node, e.Failures)
	}
}
