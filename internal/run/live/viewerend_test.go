package live

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/frames"
	"vksplat/pipeline"
	"vksplat/view"
)

// TestViewerAlone wants a pause that nobody watches to end after a while, and one that somebody comes back to, to go
// on.
func TestViewerAlone(t *testing.T) {
	const patience = 300 * time.Millisecond
	var said bytes.Buffer
	l := &training{console: cli.New(nil, io.Discard, &said), between: pipeline.NewInterludes(),
		patience: patience}
	l.Watched(1)
	l.Watched(2)
	must.Do(t, l.Do(t.Context(), view.CommandPause))
	l.Watched(1)
	time.Sleep(2 * patience)
	l.Watched(0)
	l.Watched(1)
	time.Sleep(2 * patience)
	if !l.between.Held() {
		t.Error("it goes on although somebody watches")
	}
	l.Watched(0)
	for begin := time.Now(); l.between.Held(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatal("it is held for nobody")
		}
	}
	l.mu.Lock() // what is said is said by then
	defer l.mu.Unlock()
	if text := said.String(); !strings.Contains(text, "paused from the viewer") ||
		strings.Count(text, "without a viewer") != 2 {
		t.Errorf("said is %s", text)
	}
}

// TestFramePace wants training to go on for frameShare times what a frame cost, what the first unit after it waited for
// included.
func TestFramePace(t *testing.T) {
	var p frames.Pace
	if w := p.Wait(time.Hour); w != 0 {
		t.Errorf("before the first frame: %v", w)
	}
	begin := time.Now()
	p.Observe(1000, false, begin.Add(-20*time.Millisecond), 3*time.Second)
	for cost, want := range map[time.Duration]time.Duration{20 * time.Millisecond: 220 * time.Millisecond,
		50 * time.Millisecond: 550 * time.Millisecond} {
		if w := p.Wait(3*time.Second + cost); w > want || w < want-time.Since(begin) {
			t.Errorf("a cost of %v: a wait of %v, want %v", cost, w, want)
		}
	}
	p.Observe(100_000, true, time.Now().Add(-time.Second), 3*time.Second)
	for still, want := range map[bool]int{false: 240 * 180, true: 200_000} {
		q := view.FrameQuery{Width: 1000, Height: 1000, Still: still}
		if p.Fit(&q, true); math.Abs(float64(q.Width*q.Height-want)) > 5000 {
			t.Errorf("still %v: a frame of %dx%d pixels", still, q.Width, q.Height)
		}
	}
}
