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
	gpu, other := worker.Device{ID: "a-1", Name: "GPU", Driver: "1.2"}, worker.Device{ID: "b-2", Name: "Other", Driver: "1.2"}
	both := []worker.Device{gpu, other}
	for _, c := range []struct {
		devices []worker.Device
		others  int
		pin     spec.Pin
		want    string // part of the error
		code    int
	}{
		{both[:1], 1, spec.Pin{}, "", exitOK}, {nil, 1, spec.Pin{}, "needs a device", exitUsage}, {both[:1], 0, spec.Pin{}, "beside those with a device", exitUsage},
		{both, 1, spec.Pin{Device: "Other"}, "", exitOK}, {both, 1, spec.Pin{Device: "b-2", Driver: "1.2"}, "", exitOK},
		{both[:1], 1, spec.Pin{Device: "Other"}, "task m (train) would wait for ever here: it is pinned to the device Other, this is GPU", exitUsage},
		{both, 1, spec.Pin{Driver: "1.3"}, "pinned to the driver 1.3", exitUsage}, {nil, 1, spec.Pin{Device: "GPU"}, "needs a device", exitUsage},
	} {
		var said strings.Builder
		a := newApp(nil, io.Discard, &said)
		for i := range plan.Tasks {
			plan.Tasks[i].Pin = c.pin
		}
		err := a.checkHere(&submitOptions{work: workFlags{others: c.others}}, plan, c.devices)
		if exitCode(err) != c.code || err != nil && (!strings.Contains(err.Error(), c.want) || hint(err) == "") {
			t.Errorf("%v, %d others, %v: %v", c.devices, c.others, c.pin, err)
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
