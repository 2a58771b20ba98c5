package main

import (
	"io"
	"strings"
	"testing"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/worker"
)

const doableJob = `version = 1
name = "j"
pool = "gpu24"
[[task]]
kind = "train"
id = "m"
source = "a"
[[task]]
kind = "render"
id = "v"
model = "@m"
trajectory = "orbit"
[[task]]
kind = "encode"
source = "@v"
`

// TestCheckHere refuses jobs that would wait on this machine for ever.
func TestCheckHere(t *testing.T) {
	job, err := spec.Parse("j.toml", []byte(doableJob))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := job.Plan()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "")
	for _, c := range []struct {
		devices, others int
		want            string // part of the error
		code            int
	}{{1, 1, "", exitOK}, {0, 1, "needs a device", exitUsage}, {1, 0, "beside those with a device", exitUsage}} {
		var said strings.Builder
		a := newApp(nil, io.Discard, &said)
		err := a.checkHere(&submitOptions{work: workFlags{others: c.others}}, plan, c.devices)
		if exitCode(err) != c.code || err != nil && (!strings.Contains(err.Error(), c.want) || hint(err) == "") {
			t.Errorf("%d devices, %d others: %v", c.devices, c.others, err)
		}
		if err == nil && strings.Count(said.String(), "ffmpeg") != 1 {
			t.Errorf("of ffmpeg it says %q", said.String())
		}
	}
}

// TestWaitsFor lists what no worker has.
func TestWaitsFor(t *testing.T) {
	job, err := spec.Parse("j.toml", []byte(doableJob))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := worker.JobPlan(job, "")
	if err != nil {
		t.Fatal(err)
	}
	node := func(change func(*queue.NodeRecord)) queue.NodeStatus {
		n := queue.NodeRecord{Pools: []string{"any", "any+gpu", "gpu24", "gpu24+gpu"}, Roots: []string{"inputs", "outputs"}}
		change(&n)
		return queue.NodeStatus{NodeRecord: n}
	}
	whole := node(func(*queue.NodeRecord) {})
	bare := node(func(n *queue.NodeRecord) { n.Roots = []string{"outputs"} })
	mute := node(func(n *queue.NodeRecord) { n.Lacks = []string{"encode"} })
	plain := node(func(n *queue.NodeRecord) { n.Pools = []string{"any", "any+gpu", "gpu24"} })
	for _, c := range []struct {
		nodes []queue.NodeStatus
		want  string // parts, with | between
	}{
		{nil, "no worker is there"}, {[]queue.NodeStatus{whole}, ""}, {[]queue.NodeStatus{bare}, `the root "inputs"`}, {[]queue.NodeStatus{bare, whole}, ""},
		{[]queue.NodeStatus{mute, bare}, ""}, {[]queue.NodeStatus{mute}, "ffmpeg"}, {[]queue.NodeStatus{plain}, `pool "gpu24": m and others`},
	} {
		got := waitsFor(job, plan.Tasks, c.nodes)
		if (len(got) == 0) != (c.want == "") || len(got) > 1 || len(got) == 1 && !strings.Contains(got[0], c.want) {
			t.Errorf("%+v: %q, want %q", c.nodes, got, c.want)
		}
	}
}

// TestWaitText shows why a task waits, before what its last attempt said, and once while that stays.
func TestWaitText(t *testing.T) {
	status := queue.TaskStatus{Name: "a", State: queue.Queued, Entry: queue.Entry{Error: "old", Declined: map[string]string{"two": "no root", "one": "no ffmpeg"}}}
	const want = "waits for another worker; one: no ffmpeg; two: no root"
	if got := waitText(status); got != want {
		t.Error(got)
	}
	var out strings.Builder
	a := newApp(nil, &out, io.Discard)
	if err := a.printJob(queue.JobStatus{}, []queue.TaskStatus{status}, false); err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v\n%s", err, out.String())
	}
	w := &watcher{waits: map[int]string{}}
	if first, second := w.news(status), w.news(status); first != want || second != "" {
		t.Errorf("%q, then %q", first, second)
	}
	status.State = queue.Running
	if waitText(status) != "" {
		t.Error("a running task waits")
	}
}
