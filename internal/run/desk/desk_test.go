package desk

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/run/output"
)

const train = `{"scene":"garden","preset":"default","score":true,"limit":0,"name":""}`

// TestLifecycle queues two trainings, stops the first, which saves, has the second run, and continues the first.
func TestLifecycle(t *testing.T) {
	b := openDesk(t)
	first, second := b.begin("train", train), b.begin("train", strings.Replace(train, "default", "mcmc", 1))
	s := b.until("both are there", func(s *seenState) bool { return s.job(first).Step > 2 && s.job(first).Watch })
	if s.job(second).State != stateQueued || s.job(first).Run != "vksplat/runs/garden-default" ||
		s.job(first).Splats != 10 {
		t.Errorf("first %+v, second %+v", s.job(first), s.job(second))
	}
	var none struct{}
	b.must(http.MethodPost, "stop", `{"job":"`+first+`"}`, &none)
	s = b.until("the second runs", func(s *seenState) bool { return s.job(second).Step > 0 })
	if j := s.job(first); j.State != stateStopped || j.Error != "" {
		t.Errorf("stopped: %+v", j)
	}
	list, err := output.ListCheckpoints(filepath.Join(b.root, "vksplat/runs/garden-default/checkpoints"))
	if err != nil || len(list) != 1 {
		t.Fatalf("checkpoints %v, %v", list, err)
	}
	again := b.begin("resume", `{"path":"vksplat/runs/garden-default"}`)
	if status, text := b.ask(http.MethodPost, "resume", `{"path":"vksplat/runs/garden-mcmc"}`, nil); status != 400 ||
		!strings.Contains(text, "is being trained") {
		t.Errorf("resuming what trains: %d %s", status, text)
	}
	b.must(http.MethodPost, "stop", `{"job":"`+second+`"}`, &none)
	s = b.until("the first goes on", func(s *seenState) bool { return s.job(again).Step > list[0].Step })
	if s.job(again).Preset() != "" {
		t.Error("the settings of a run that goes on are its own")
	}
	for _, r := range s.Runs {
		if r.Path == "vksplat/runs/garden-mcmc" && (r.Step == 0 || !r.Resumable || r.Scene != "garden") {
			t.Errorf("the run that was stopped: %+v", r)
		}
	}
}

// Preset is the preset of a job's command line, "" for none.
func (j *job) Preset() string { return parseFake(j.args).flags["preset"] }

// TestQueued takes a training out of the queue, and forgets it.
func TestQueued(t *testing.T) {
	b := openDesk(t)
	first, second := b.begin("train", train), b.begin("train", train)
	var none struct{}
	b.must(http.MethodPost, "stop", `{"job":"`+second+`"}`, &none)
	b.must(http.MethodPost, "dismiss", `{"job":"`+second+`"}`, &none)
	b.must(http.MethodPost, "dismiss", `{"job":"`+first+`"}`, &none)
	s := b.until("the first runs", func(s *seenState) bool { return s.job(first).Step > 0 })
	if len(s.Jobs) != 1 {
		t.Errorf("%d jobs", len(s.Jobs))
	}
	if _, err := os.Stat(filepath.Join(b.root, "vksplat/runs/garden-default-2")); err == nil {
		t.Error("a training that never began made a folder")
	}
	if status, _ := b.ask(http.MethodPost, "stop", `{"job":"77"}`, nil); status != 400 {
		t.Errorf("a job that is not there: %d", status)
	}
}

// TestCrash has a training fail: the page says why, and the next one runs.
func TestCrash(t *testing.T) {
	b := openDesk(t)
	bad := b.begin("train", strings.Replace(train, "garden", "crash", 1))
	good := b.begin("train", strings.Replace(train, "garden", "short", 1))
	s := b.until("both are over", func(s *seenState) bool { return s.job(good).State == stateDone })
	if j := s.job(bad); j.State != stateFailed || j.Error != "device lost" || j.Hint != "try again" || j.Watch {
		t.Errorf("%+v", j)
	}
	s = b.until("the run is listed", func(s *seenState) bool {
		return len(s.Runs) == 2 && s.Runs[0].Splats+s.Runs[1].Splats > 0
	})
	for _, r := range s.Runs {
		if r.Name == "short-default" && (r.PSNR != 30.5 || r.Seconds != 2.5 || r.Resumable || r.Preset != "default") {
			t.Errorf("%+v", r)
		}
	}
}

// TestLimited wants a training that its time limit ended to be stopped, not done: it can be continued.
func TestLimited(t *testing.T) {
	b := openDesk(t)
	id := b.begin("train", strings.NewReplacer("garden", "short", `"limit":0`, `"limit":60`).Replace(train))
	s := b.until("it is over", func(s *seenState) bool { return s.job(id).Ended != 0 })
	if s.job(id).State != stateStopped {
		t.Errorf("%+v", s.job(id))
	}
}

// TestEnd ends the desk while a training runs: that saves first.
func TestEnd(t *testing.T) {
	b := openDesk(t)
	id := b.begin("train", train)
	b.until("it trains", func(s *seenState) bool { return s.job(id).Step > 0 })
	b.end()
	list, err := output.ListCheckpoints(filepath.Join(b.root, "vksplat/runs/garden-default/checkpoints"))
	if err != nil || len(list) != 1 {
		t.Errorf("checkpoints %v, %v", list, err)
	}
}

// TestRelay watches a training and opens a model through the desk.
func TestRelay(t *testing.T) {
	b := openDesk(t)
	id := b.begin("train", train)
	b.until("it can be watched", func(s *seenState) bool { return s.job(id).Watch })
	if status, text := b.ask(http.MethodGet, "show/"+id+"/", "", nil); status != 200 || text != "the fake viewer" {
		t.Errorf("the viewer of a training: %d %s", status, text)
	}
	if status, _ := b.ask(http.MethodGet, "show/"+id+"/../../../etc/passwd", "", nil); status != 404 {
		t.Errorf("a path out of the viewer: %d", status)
	}
	var at struct{ At string }
	b.must(http.MethodPost, "show", `{"path":"vksplat/runs/garden-default"}`, &at)
	if status, text := b.ask(http.MethodGet, at.At, "", nil); status != 200 || text != "the fake viewer" {
		t.Errorf("the viewer of a model: %d %s", status, text)
	}
	if status, _ := b.ask(http.MethodPost, at.At+"edit", `{"do":"undo"}`, nil); status != 405 {
		t.Errorf("an edit where nothing is edited: %d", status)
	}
	b.must(http.MethodPost, "show", `{"path":"vksplat/runs/garden-default","edit":true}`, &at)
	if status, text := b.ask(http.MethodPost, at.At+"edit", `{"do":"undo"}`, nil); status != 200 ||
		text != `{"do":"undo"} in exports` {
		t.Errorf("an edit: %d %s", status, text)
	}
	if status, _ := b.ask(http.MethodPost, at.At+"edit", `{"do":"undo"}`, func(h http.Header) {
		h.Set("Origin", "http://evil.example")
	}); status != 403 {
		t.Errorf("an edit by a foreign page: %d", status)
	}
	var none struct{}
	b.must(http.MethodPost, "stop", `{"job":"`+id+`"}`, &none)
	b.until("it has ended", func(s *seenState) bool { return s.job(id).State == stateStopped })
	if status, _ := b.ask(http.MethodGet, "show/"+id+"/", "", nil); status != 404 {
		t.Errorf("the viewer of a training that is over: %d", status)
	}
}

// TestMade exports, renders a flight and finds cameras, and downloads what was made, and nothing else.
func TestMade(t *testing.T) {
	b := openDesk(t, func(d *desk) { d.DeviceArgs = []string{"--device=1"} })
	run := b.begin("train", strings.Replace(train, "garden", "short", 1))
	b.until("it is trained", func(s *seenState) bool { return s.job(run).State == stateDone })
	const path = `"vksplat/runs/short-default"`
	spz := b.begin("export", `{"path":`+path+`,"format":".spz","upright":true,"splats":5}`)
	film := b.begin("flight", `{"run":`+path+`,"path":"orbit","seconds":5,"height":720}`)
	cameras := b.begin("capture", `{"path":"garden"}`)
	s := b.until("all is made", func(s *seenState) bool {
		return s.job(spz).State == stateDone && s.job(film).State == stateDone && s.job(cameras).State == stateDone
	})
	if j := s.job(film); j.Step != 3 || j.Total != 10 {
		t.Errorf("%+v", j)
	}
	if j := s.job(cameras); j.Step != 3 || j.Total != 7 || j.Doing != "" {
		t.Errorf("%+v", j)
	}
	if list := b.queue.find(cameras).args; !slices.Contains(list, "--viewer=0") ||
		!slices.Contains(list, "--device=1") {
		t.Errorf("the page cannot show the search, or it is on any device: %q", list)
	}
	for _, id := range []string{spz, film} {
		if status, text := b.ask(http.MethodGet, "file?path="+s.job(id).Made, "", nil); status != 200 || text != "made" {
			t.Errorf("%s: %d %s", s.job(id).Made, status, text)
		}
	}
	if made := s.job(cameras).Made; made != "vksplat/scenes/garden" || !output.IsFolder(filepath.Join(b.root, made)) {
		t.Errorf("cameras: %s", made)
	}
	if list := b.queue.find(spz).args; !slices.Equal(list[3:], []string{"--orient=up", "--max-splats=5"}) {
		t.Errorf("%q", list)
	}
	for _, name := range []string{"file?path=garden/transforms.json", "file?path=vksplat/exports",
		"file?path=../etc/passwd", "picture?run=../..", "picture?run=garden", "curve?run=/etc"} {
		if status, _ := b.ask(http.MethodGet, name, "", nil); status < 400 {
			t.Errorf("%s: %d", name, status)
		}
	}
	for name, body := range map[string]string{"export": `{"path":` + path + `,"format":".exe"}`,
		"flight": `{"run":` + path + `,"path":"--video=/x","seconds":5,"height":720}`,
		"train":  strings.Replace(train, "default", "--config=/etc/passwd", 1), "resume": `{"path":"garden"}`} {
		if status, _ := b.ask(http.MethodPost, name, body, nil); status != 400 {
			t.Errorf("%s %s: %d", name, body, status)
		}
	}
}

// TestChecks asks for the verdict and the plan: with a time where the device is free, without while a training has it.
func TestChecks(t *testing.T) {
	b := openDesk(t)
	ready := func(name string) check {
		var c check
		b.until(name, func(*seenState) bool {
			b.must(http.MethodGet, name, "", &c)
			return c.Ready
		})
		return c
	}
	c := ready("verdict?path=garden")
	if c.Report == nil || c.Report.Photos != 7 || len(c.Report.Problems) != 1 || c.Cameras != 1 || c.Report.Root != "garden" {
		t.Errorf("verdict %+v", c)
	}
	c = ready("plan?path=garden&preset=default&score=1&size=4")
	if c.Plan == nil || c.Plan.Prediction == nil || c.Plan.Prediction.Seconds != 12.5 || c.Plan.Device.Total != 5 {
		t.Errorf("plan %+v", c.Plan)
	}
	id := b.begin("train", strings.Replace(train, "{", `{"size":4,`, 1))
	b.until("it trains", func(s *seenState) bool { return s.job(id).Step > 0 })
	if args := b.queue.find(id).args; !slices.Contains(args, "--downscale=4") {
		t.Errorf("%q", args)
	}
	ready("verdict?path=bare")
	bare := b.begin("train", strings.Replace(train, "garden", "bare", 1))
	if with, without := b.queue.find(bare).args, b.queue.find(id).args; !slices.Contains(with, "--init=random") ||
		slices.Contains(without, "--init=random") {
		t.Errorf("without points %q, with some %q", with, without)
	}
	if c = ready("plan?path=garden&preset=mcmc"); c.Plan == nil || c.Plan.Prediction != nil || !c.Plan.Busy {
		t.Errorf("plan while it trains %+v", c.Plan)
	}
	if status, _ := b.ask(http.MethodGet, "verdict?path=../x", "", nil); status != 400 {
		t.Errorf("a path out: %d", status)
	}
}

// TestUnwanted asks for a verdict that takes for ever, leaves it, and asks for another, which comes.
func TestUnwanted(t *testing.T) {
	b := openDesk(t)
	fill(t, filepath.Join(b.root, "slow", "transforms.json"), "{}")
	var c check
	b.must(http.MethodGet, "verdict?path=slow", "", &c)
	b.until("the verdict on another", func(*seenState) bool {
		b.checks.mu.Lock()
		if slow := b.checks.byKey["verdict "+filepath.Join(b.root, "slow")]; slow != nil {
			slow.wanted = time.Time{} // nobody has asked for long
		}
		b.checks.mu.Unlock()
		b.must(http.MethodGet, "verdict?path=garden", "", &c)
		return c.Ready
	})
	if c.Report == nil || c.Error != "" {
		t.Errorf("%+v", c)
	}
	b.must(http.MethodGet, "verdict?path=slow", "", &c)
	if c.Ready {
		t.Errorf("what was left has an answer: %+v", c)
	}
}

// TestKilled kills the process of a training before its first checkpoint: the page stays, says so, and the run can be
// continued.
func TestKilled(t *testing.T) {
	b := openDesk(t)
	id := b.begin("train", train)
	b.until("it trains", func(s *seenState) bool { return s.job(id).Step > 0 })
	b.queue.find(id).child.Kill()
	const path = "vksplat/runs/garden-default"
	s := b.until("it has failed", func(s *seenState) bool {
		return s.job(id).State == stateFailed && len(s.Runs) == 1
	})
	if !strings.Contains(s.job(id).Error, "its process was ended by signal 9") || !s.Runs[0].Resumable {
		t.Errorf("%+v, %+v", s.job(id), s.Runs[0])
	}
	again := b.begin("resume", `{"path":"`+path+`"}`)
	b.until("it goes on", func(s *seenState) bool { return s.job(again).Step > 0 && s.job(id).ID == "" })
}
