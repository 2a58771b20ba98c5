package server

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// eventually waits until something holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to that")
		}
	}
}

// TestPreviews keeps the last small picture of each task, for everybody who may look, until its job is deleted.
func TestPreviews(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "a job", Tasks: []queue.Task{{Name: "a"}, {Name: "b"}}})
	pictures := make([][]byte, 2)
	for i := range pictures {
		img := scene.Image{Width: 40 + i, Height: 30, Pix: make([]uint8, 4*30*(40+i))}
		var err error
		pictures[i], err = img.JPEG(80)
		f.must(err)
	}
	lease := f.claim("a")
	f.must(lease.Preview(pictures[0]))
	f.must(lease.Preview(pictures[1]))
	f.must(lease.Succeed(ctx, "manifest"))
	if err := lease.Preview([]byte("<svg>")); !errors.Is(err, queue.ErrPreview) {
		t.Error("what is no picture is sent:", err)
	}
	viewer, err := queue.Connect(ctx, raw(t, f.server, View), queue.Options{Patience: patience})
	f.must(err)
	eventually(t, func() bool {
		data, err := viewer.Preview(ctx, "a job", 0)
		f.must(err)
		return bytes.Equal(data, pictures[1])
	})
	if data, err := viewer.Preview(ctx, "a job", 1); data != nil || err != nil {
		t.Error("of a task that made none:", len(data), err)
	}
	if has, err := viewer.Previews(ctx, "a job"); err != nil || len(has) != 1 || !has[0] {
		t.Error(has, err)
	}
	if has, err := viewer.Previews(ctx, "a"); err != nil || len(has) != 0 {
		t.Error("of no job:", has, err)
	}
	// The server itself refuses what is too long, and keys of no task are none's.
	worker := raw(t, f.server, Work)
	answer, err := worker.Request("$KV.preview.x.0", make([]byte, queue.MaxPreview+2<<10), patience)
	f.must(err)
	if !strings.Contains(string(answer.Data), "10054") {
		t.Errorf("too long: %s", answer.Data)
	}
	f.succeed("b")
	f.ends("a job", queue.JobSucceeded)
	f.must(f.admin.Delete(ctx, "a job"))
	if has, err := viewer.Previews(ctx, "a job"); err != nil || len(has) != 0 {
		t.Error("after its job was deleted:", has, err)
	}
}

// TestOutlookAndUse shows what a worker says of its pace and of its devices.
func TestOutlookAndUse(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	half := 0.5
	w, err := connect(t, f.server, Work).Join(ctx, queue.WorkerInfo{Node: "gpu", Use: func() []queue.DeviceUse {
		return []queue.DeviceUse{{Device: "uuid", Name: "card", Busy: &half, Bytes: 1, Budget: 2, Job: "j", Task: "a"}}
	}})
	f.must(err)
	defer w.Leave()
	nodes, err := f.user.Nodes(ctx)
	f.must(err)
	if len(nodes) != 2 || len(nodes[0].Use) != 1 || *nodes[0].Use[0].Busy != 0.5 || nodes[0].Use[0].Task != "a" || nodes[1].Use != nil {
		t.Errorf("%+v", nodes)
	}
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "m/a"}, {Name: "m/b"}}})
	lease := f.claim("m/a")
	lease.Pace(4, "steps")
	lease.Progress(10, 410, "train")
	eventually(t, func() bool { // a heartbeat
		job, tasks, err := f.user.Show(ctx, "j")
		f.must(err)
		left := time.Duration(tasks[0].Left)
		return left == 100*time.Second && job.Rates["steps"] == 4 && time.Duration(job.Left) >= 200*time.Second
	})
	f.must(lease.Succeed(ctx, "manifest"))
	job, tasks, err := f.user.Show(ctx, "j")
	f.must(err)
	if tasks[0].Left != 0 || tasks[0].Entry.Rate != 0 || tasks[0].Entry.Took <= 0 || len(job.Rates) != 0 {
		t.Errorf("after it: %+v, %v", tasks[0], job.Rates)
	}
}
