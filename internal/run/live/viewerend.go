package live

import (
	"errors"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/train"
	"vksplat/view"
)

const (
	// aloneFor is how long a training that was paused from the viewer stays so without anybody watching: machines are
	// rented by the hour.
	aloneFor = 10 * time.Minute
	// farewell is how long browsers have to take in how the run ended.
	farewell = 2 * time.Second
)

// attendance is who watches a run.
type attendance struct {
	n     int           // browsers
	since *time.Timer   // runs while a paused training has no viewer
	none  chan struct{} // a value: n has become 0
}

// Watched implements view.Training.
func (l *training) Watched(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.here.n = n
	if l.here.since != nil {
		l.here.since.Stop()
	}
	if n > 0 {
		return
	}
	select {
	case l.here.none <- struct{}{}:
	default:
	}
	if l.between.Held() {
		l.here.since = time.AfterFunc(l.patience, l.goOnAlone)
	}
}

// goOnAlone ends a pause without a viewer.
func (l *training) goOnAlone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.here.n == 0 && l.between.Held() {
		l.console.Note("paused for " + cli.Duration(l.patience.Seconds()) + " without a viewer: continuing")
		l.between.Release()
	}
}

// saved shows what becomes of a checkpoint, which may still be written in the background.
func (l *training) saved(e *train.Saved) {
	if e.Write == nil || e.Err != nil {
		l.setSave(e.Path, e.Step, e.Err)
		return
	}
	w, path, step := e.Write, e.Path, e.Step
	go func() { l.setSave(path, step, w.Wait()) }()
}

func (l *training) setSave(path string, step int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Save = view.Save{State: view.SaveDone, Step: step, Text: path}
	if err != nil {
		l.status.Save = view.Save{State: view.SaveFailed, Text: err.Error()}
	}
}

// over shows those who watch how the run ended, and waits until they have gone, if not for long.
func (l *training) over(e *train.Ended) {
	if l.run == nil {
		return
	}
	end := &view.End{State: view.EndFinished, Model: e.Model,
		Text: fault.Command("view "+cli.Quoted(l.run.Options.Out)) + " shows it"}
	switch err := e.Err; {
	case errors.Is(err, fault.ErrInterrupted):
		end.State, end.Text = view.EndStopped, fault.Hint(err)
	case err != nil:
		end.State, end.Text = view.EndFailed, err.Error()
	case e.Then != "":
		end.State, end.Text = view.EndStopped, e.Then
	}
	l.mu.Lock()
	l.status.End, l.status.Save = end, view.Save{}
	here := l.here.n
	l.mu.Unlock()
	close(l.told)
	for late := time.After(farewell); here > 0; {
		select {
		case <-l.here.none:
			l.mu.Lock()
			here = l.here.n
			l.mu.Unlock()
		case <-late:
			return
		}
	}
}
