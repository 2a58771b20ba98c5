package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/view"
	"vksplat/view/playtest"
)

// watched is a run with a viewer in this process.
type watched struct {
	address string
	between *pipeline.Interludes
	err     chan error // of the run, when it has ended
}

// startWatched starts a run of so many steps and waits for its address. The run is held until there is a commander, or
// it would end before. It is stopped when the test ends.
func startWatched(t *testing.T, scene, out string, steps int, limit train.LimitFlag) *watched {
	t.Helper()
	o := train.NewOptions()
	o.Scene, o.Out, o.Config.Iterations, o.Progress, o.Viewer.Address = scene, out, steps, meter.None, "127.0.0.1:0"
	o.TimeLimit = limit
	must.Do(t, o.Checkpoints.Every.Set("0"))
	stop, w := func() {}, &watched{err: make(chan error, 1)}
	spy := train.Observe(func(e train.Event) error {
		if s, is := e.(*train.Started); is {
			stop, w.between = s.Control.Stop, s.Control.Between()
			w.between.Hold()
		}
		return nil
	})
	o.Observers = append(o.Observers,
		func(*train.Options, *cli.Console) (train.Observer, error) { return spy, nil }, New)
	read, write := io.Pipe()
	ended := make(chan struct{})
	go func() {
		_, err := train.Do(cli.New(nil, write, io.Discard), o)
		w.err <- err
		write.Close() // it never fails
		close(ended)
	}()
	lines := bufio.NewScanner(read)
	for w.address == "" && lines.Scan() {
		_, w.address, _ = strings.Cut(lines.Text(), "watch it in a browser: ")
	}
	if w.address == "" {
		t.Fatal("no address was printed: ", <-w.err)
	}
	t.Cleanup(func() {
		stop()
		<-ended
	})
	go func() { _, _ = io.Copy(io.Discard, read) }() // until the run closes it
	return w
}

// commander is somebody who watches a run and gives orders.
type commander struct {
	t   *testing.T
	ctx context.Context
	c   *websocket.Conn
}

func (w *watched) commander(t *testing.T) *commander {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	c := must.Get(playtest.Enter(ctx, w.address))(t)
	t.Cleanup(func() { _ = c.CloseNow() })
	w.between.Release()
	return &commander{t, ctx, c}
}

func (o *commander) order(what string) {
	o.t.Helper()
	if err := o.c.Write(o.ctx, websocket.MessageText, []byte(`{"command":"`+what+`"}`)); err != nil {
		o.t.Fatal(err)
	}
}

// until reads until a status passes.
func (o *commander) until(what string, reached func(s view.Status) bool) view.Status {
	o.t.Helper()
	for {
		_, data, err := o.c.Read(o.ctx)
		if err != nil {
			o.t.Fatalf("%s: %v", what, err)
		}
		var m struct{ Status *view.Status }
		if json.Unmarshal(data, &m) == nil && m.Status != nil && reached(*m.Status) {
			return *m.Status
		}
	}
}

// over reads until the connection is closed, in good order.
func (o *commander) over() {
	o.t.Helper()
	for {
		if _, _, err := o.c.Read(o.ctx); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				o.t.Errorf("after the end: %v", err)
			}
			return
		}
	}
}

// TestViewerCommands pauses a run, saves it meanwhile, lets it go on, and stops it. The page is told what became of
// each.
func TestViewerCommands(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	w := startWatched(t, runtest.SmallScene(t, 300), out, 1_000_000, 0)
	o := w.commander(t)
	if s := o.until("first steps",
		func(s view.Status) bool { return s.Step > 3 && s.Doing == "training" }); s.Save != (view.Save{}) ||
		s.End != nil {
		t.Errorf("nothing was asked for: %+v", s)
	}
	o.order("pause")
	at := o.until("pause", func(s view.Status) bool { return s.Paused && s.Doing == "paused" }).Step
	for range 3 {
		if s := o.until("still", func(view.Status) bool { return true }); s.Step != at || s.Doing != "paused" {
			t.Errorf("paused at step %d: %+v", at, s)
		}
	}
	folder := filepath.Join(out, output.CheckpointFolder)
	if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o666)); err != nil { // in its place
		t.Fatal(err)
	}
	o.order("save")
	if s := o.until("no save",
		func(s view.Status) bool { return s.Save.State == view.SaveFailed }); !strings.Contains(s.Save.Text, folder) {
		t.Errorf("a save that failed: %+v", s.Save)
	}
	must.Do(t, os.Remove(folder))
	o.order("save")
	saved := filepath.Join(folder, fmt.Sprintf("%s%d%s", output.CheckpointPrefix, at, output.CheckpointSuffix))
	if s := o.until("save", func(s view.Status) bool { return s.Save.State == view.SaveDone }); s.Save.Text != saved ||
		s.Save.Step != at || !output.IsFile(saved) || !s.Paused {
		t.Errorf("saved is %+v, wanted %s", s, saved)
	}
	o.order("resume")
	o.until("resume", func(s view.Status) bool { return !s.Paused && s.Step > at })
	last := at
	for range 2 { // with the first, more than are kept unasked
		o.order("save")
		last = o.until("save",
			func(s view.Status) bool { return s.Save.State == view.SaveDone && s.Save.Step > last }).Save.Step
		if !output.IsFile(saved) {
			t.Errorf("%s is gone after that of step %d", saved, last)
		}
	}
	o.order("stop")
	end := o.until("the end", func(s view.Status) bool { return s.End != nil }).End
	if end.State != view.EndStopped || !output.IsFile(end.Model) || !strings.HasPrefix(end.Model, out) ||
		!strings.Contains(end.Text, "resume") {
		t.Errorf("stopped: %+v", end)
	}
	o.over()
	if err := <-w.err; !errors.Is(err, fault.ErrInterrupted) {
		t.Errorf("stopped: %v", err)
	}
	if list, err := output.ListCheckpoints(folder); err != nil || len(list) == 0 || list[len(list)-1].Step <= at {
		t.Errorf("after the stop there are %v, %v", list, err)
	}
}

// TestViewerEnd lets a run come to its end, its limit end another, and one fail: who watches is told.
func TestViewerEnd(t *testing.T) {
	scene, out := runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out")
	o := startWatched(t, scene, out, 120, 0).commander(t)
	end := o.until("the end", func(s view.Status) bool { return s.End != nil })
	if end.End.State != view.EndFinished || end.End.Model != filepath.Join(out, "point_cloud", "iteration_120",
		"point_cloud.ply") || !output.IsFile(end.End.Model) ||
		!strings.Contains(end.End.Text, "vksplat view "+cli.Quoted(out)) || end.Step != 120 {
		t.Errorf("finished: %+v, %+v", end, end.End)
	}
	o.over()
	t.Setenv("VKSPLAT_STEP_TIMES", "4s,20s")
	out = filepath.Join(t.TempDir(), "out")
	o = startWatched(t, scene, out, 1000, train.LimitFlag(1000*time.Second)).commander(t)
	end = o.until("the limit", func(s view.Status) bool { return s.End != nil })
	if end.End.State != view.EndStopped || !strings.Contains(end.End.Text, "continue with") ||
		!output.IsFile(end.End.Model) {
		t.Errorf("ended by its limit: %+v", end.End)
	}
	o.over()
	t.Setenv("VKSPLAT_STEP_TIMES", "")
	out = filepath.Join(t.TempDir(), "out")
	o = startWatched(t, scene, out, 1_000_000, 0).commander(t)
	o.until("first steps", func(s view.Status) bool { return s.Step > 0 })
	if err := os.WriteFile(filepath.Join(out, "point_cloud"), nil, 0o666); err != nil { // in the folder's place
		t.Fatal(err)
	}
	o.order("stop")
	end = o.until("the failure", func(s view.Status) bool { return s.End != nil })
	if end.End.State != view.EndFailed || end.End.Model != "" || !strings.Contains(end.End.Text, "point_cloud") {
		t.Errorf("failed: %+v", end.End)
	}
}
