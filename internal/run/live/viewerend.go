package live

import (
	"errors"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline/checkpoint"
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
	since *time.Timer   // runs when nobody watches a paused training
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

// goOnAlone ends a pause that nobody watches.
func (l *training) goOnAlone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.here.n == 0 && l.between.Held() {
		l.r.Console.Note("paused, and nobody has watched for " + cli.Duration(l.patience.Seconds()) + ": continuing")
		l.between.Release()
	}
}

// Saving reports on the checkpoint that a viewer asked for: see train.Viewer.
func (l *training) Saving(w *checkpoint.Write, path string, step int, err error) {
	if w == nil || err != nil {
		l.setSave(path, step, err)
		return
	}
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

// Over tells those who watch how the run ended, by its error, and waits until they have gone, if not for long.
func (l *training) Over(err error) {
	if l.ended == nil {
		return
	}
	end := &view.End{State: view.EndFinished, Model: l.r.Written(),
		Text: fault.Command("view "+cli.Quoted(l.r.Out)) + " shows it"}
	switch {
	case errors.Is(err, fault.ErrInterrupted):
		end.State, end.Text = view.EndStopped, fault.Hint(err)
	case err != nil:
		end.State, end.Text = view.EndFailed, err.Error()
	case l.r.Limited() != "":
		end.State, end.Text = view.EndStopped, l.r.Limited()
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
