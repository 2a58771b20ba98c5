package view

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	must "vksplat/internal/musttest"
)

// fakeTraining is a training that nobody trains.
type fakeTraining struct {
	mu       sync.Mutex
	queries  []FrameQuery
	commands []Command
	drawing  atomic.Int32  // frames that are being drawn
	slow     chan struct{} // frames wait for a value, if it is not nil
	paused   atomic.Bool
	watchers atomic.Int32
	ended    chan struct{} // nil: it goes on for ever
}

func (f *fakeTraining) Cameras() []LiveCamera {
	return []LiveCamera{{Name: "a.jpg", Width: 40, Height: 30, Tangent: 0.5},
		{Name: "b.jpg", Held: true, Width: 40, Height: 30, Tangent: 0.5}}
}

func (f *fakeTraining) Frame(ctx context.Context, q FrameQuery) ([]byte, error) {
	f.drawing.Add(1)
	defer f.drawing.Add(-1)
	if f.slow != nil {
		select {
		case <-f.slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queries = append(f.queries, q)
	if q.Mode == ModeDepth {
		return nil, errors.New("no depth today")
	}
	return []byte("jpeg"), nil
}

func (f *fakeTraining) Photo(_ context.Context, camera int) ([]byte, error) {
	if camera == 1 {
		return nil, errors.New("cut short")
	}
	return []byte("photo"), nil
}

func (f *fakeTraining) Watched(n int)          { f.watchers.Store(int32(n)) }
func (f *fakeTraining) Ended() <-chan struct{} { return f.ended }
func (f *fakeTraining) Status() Status {
	s := Status{Step: 7, Steps: 10, Paused: f.paused.Load()}
	select {
	case <-f.ended:
		s.End = &End{State: EndFinished, Model: "out/model.ply"}
	default:
	}
	return s
}
func (f *fakeTraining) History() []Moment  { return []Moment{{Step: 7, Loss: 0.5}} }
func (f *fakeTraining) Losses() []ViewLoss { return []ViewLoss{{Camera: 0, Step: 7, Loss: 0.5}} }
func (f *fakeTraining) Do(_ context.Context, c Command) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commands = append(f.commands, c)
	if c == CommandSave {
		return errors.New("the disk is full")
	}
	return nil
}

// watched serves f without a guard: that has its own tests.
func watched(t *testing.T, f *fakeTraining) string {
	t.Helper()
	return served(t, newWatch(f, f))
}

func served(t *testing.T, h *watch) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

func dial(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func say(t *testing.T, c *websocket.Conn, text string) {
	t.Helper()
	must.Do(t, c.Write(t.Context(), websocket.MessageText, []byte(text)))
}

// hear reads until something passes.
func hear(t *testing.T, c *websocket.Conn, want func(kind websocket.MessageType, data []byte, m *message) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		kind, data, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var m message
		if kind == websocket.MessageText {
			if err := json.Unmarshal(data, &m); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
		}
		if want(kind, data, &m) {
			return
		}
	}
}

func isFrame(kind websocket.MessageType, data []byte, _ *message) bool {
	return kind == websocket.MessageBinary && string(data) == "jpeg"
}

const freeView = `{"view":{"camera":-1,"quaternion":[0,0,0,2],"position":[1,2,3],"tangent":0.5,"width":64,"height":48,"mode":"picture"}}`

func TestWatch(t *testing.T) {
	f := &fakeTraining{}
	c := dial(t, watched(t, f))
	hear(t, c, func(_ websocket.MessageType, _ []byte, m *message) bool {
		return m.Status != nil && m.Status.Step == 7 && len(m.History) == 1 && len(m.Losses) == 1
	})
	say(t, c, freeView)
	hear(t, c, isFrame)
	f.mu.Lock()
	q := f.queries[0]
	f.mu.Unlock()
	if q.Camera != -1 || q.Position != [3]float64{1, 2, 3} || q.Rotation != [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1} ||
		q.Width != 64 || q.Mode != ModePicture {
		t.Errorf("asked for %+v", q)
	}
	say(t, c, strings.Replace(freeView, "picture", "depth", 1))
	hear(t, c, func(_ websocket.MessageType, _ []byte, m *message) bool { return m.Error == "no depth today" })
	for _, command := range []string{"pause", "resume", "save", "stop"} {
		say(t, c, `{"command":"`+command+`"}`)
	}
	hear(t, c, func(_ websocket.MessageType, _ []byte, m *message) bool { return m.Error == "the disk is full" })
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		f.mu.Lock()
		done := slices.Equal(f.commands, []Command{CommandPause, CommandResume, CommandSave, CommandStop})
		f.mu.Unlock()
		if done {
			break
		}
		if time.Since(begin) > patience {
			t.Fatalf("commands %q", f.commands)
		}
	}
}

// A camera turned about x by a quarter: world z is its -y.
func TestWatchRotation(t *testing.T) {
	w := wireQuery{Camera: -1, Quaternion: [4]float64{0.5, 0, 0, 0.5}, Tangent: 1, Width: 32, Height: 32,
		Mode: ModePicture}
	q := must.Get(w.query(0))(t)
	for i, want := range [9]float64{1, 0, 0, 0, 0, 1, 0, -1, 0} {
		if d := q.Rotation[i] - want; d > 1e-12 || d < -1e-12 {
			t.Fatalf("rotation %v", q.Rotation)
		}
	}
}

// A frame is not sent before those before it were shown, whatever the number of requests, and the newest request
// counts.
func TestWatchDropsFrames(t *testing.T) {
	f := &fakeTraining{}
	c := dial(t, watched(t, f))
	for range 30 {
		say(t, c, freeView)
		time.Sleep(5 * time.Millisecond)
	}
	drawn := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.queries)
	}
	for begin := time.Now(); drawn() < framesWaiting &&
		time.Since(begin) < patience; time.Sleep(10 * time.Millisecond) {
	}
	time.Sleep(3 * refreshEvery) // nothing more comes
	if n := drawn(); n != framesWaiting {
		t.Errorf("%d frames were drawn for a browser that showed none, want %d", n, framesWaiting)
	}
	say(t, c, `{"shown":1}`)
	seen := 0
	hear(t, c, func(kind websocket.MessageType, data []byte, m *message) bool {
		if isFrame(kind, data, m) {
			seen++
		}
		return seen == framesWaiting+1
	})
}

// Who watches hears how the training ended, and then nothing more; who comes late, as well.
func TestWatchEnd(t *testing.T) {
	f := &fakeTraining{ended: make(chan struct{})}
	url := watched(t, f)
	early := dial(t, url)
	say(t, early, freeView)
	hear(t, early, isFrame)
	if n := f.watchers.Load(); n != 1 {
		t.Errorf("%d watch, not 1", n)
	}
	close(f.ended)
	for _, c := range []*websocket.Conn{early, dial(t, url)} {
		hear(t, c, func(_ websocket.MessageType, _ []byte, m *message) bool {
			return m.Status != nil && m.Status.End != nil && m.Status.End.Model == "out/model.ply" &&
				len(m.History) == 1
		})
		for {
			if _, _, err := c.Read(t.Context()); err != nil {
				if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
					t.Errorf("after the end: %v", err)
				}
				break
			}
		}
	}
	for begin := time.Now(); f.watchers.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatalf("%d watch", f.watchers.Load())
		}
	}
}

// A browser that has gone leaves no frame that is waited for, and its place.
func TestWatchGone(t *testing.T) {
	f := &fakeTraining{slow: make(chan struct{})}
	url := watched(t, f)
	for range 3 * maxWatchers {
		c := dial(t, url)
		say(t, c, freeView)
		for f.drawing.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		must.Do(t, c.CloseNow())
		for begin := time.Now(); f.drawing.Load() > 0; time.Sleep(time.Millisecond) {
			if time.Since(begin) > patience {
				t.Fatal("a frame is drawn for nobody")
			}
		}
	}
}

func TestWatchHostile(t *testing.T) {
	long := `{"command":"` + strings.Repeat("x", maxMessage) + `"}`
	for _, text := range []string{
		"", "x", "[]", "{}", `{"view":7}`, `{"command":"delete"}`, long,
		strings.Replace(freeView, "64", "1e9", 1), strings.Replace(freeView, "64", "100000", 1),
		strings.Replace(freeView, "48", "0", 1),
		strings.Replace(freeView, "48", "-48", 1), strings.Replace(freeView, "-1", "2", 1),
		strings.Replace(freeView, "-1", "-2", 1),
		strings.Replace(freeView, "picture", "error", 1), strings.Replace(freeView, "picture", "passwords", 1),
		strings.Replace(freeView, "[0,0,0,2]", "[0,0,0,0]", 1),
		strings.Replace(freeView, "[0,0,0,2]", "[1e300,0,0,0]", 1),
		strings.Replace(freeView, "[1,2,3]", "[1e300,0,0]", 1), strings.Replace(freeView, "[1,2,3]", "[null,NaN,0]", 1),
		strings.Replace(freeView, "0.5", "0", 1),
	} {
		f := &fakeTraining{}
		c := dial(t, watched(t, f))
		say(t, c, text)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		for {
			if _, _, err := c.Read(ctx); err != nil {
				if ctx.Err() != nil {
					t.Errorf("%.60s: still connected", text)
				}
				break
			}
		}
		cancel()
		if len(f.queries)+len(f.commands) > 0 {
			t.Errorf("%.60s: %v %v", text, f.queries, f.commands)
		}
	}
}

func TestWatchTooFast(t *testing.T) {
	c := dial(t, watched(t, &fakeTraining{}))
	for range 20 * messagesSecond {
		if c.Write(t.Context(), websocket.MessageText, []byte(`{"shown":1}`)) != nil {
			break
		}
	}
	hung := make(chan bool)
	go func() {
		for {
			if _, _, err := c.Read(context.Background()); err != nil {
				close(hung)
				return
			}
		}
	}()
	select {
	case <-hung:
	case <-time.After(patience):
		t.Error("still connected")
	}
}

func TestWatchTooMany(t *testing.T) {
	url := watched(t, &fakeTraining{})
	for range maxWatchers {
		hear(t, dial(t, url), func(_ websocket.MessageType, _ []byte, m *message) bool { return m.Status != nil })
	}
	_, answer, err := websocket.Dial(t.Context(), url, nil)
	if err == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %v", err)
	}
}

func TestWatchForeignOrigin(t *testing.T) {
	_, answer, err := websocket.Dial(t.Context(), watched(t, &fakeTraining{}),
		&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"http://evil.test"}}})
	if err == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another server: %v", err)
	}
}

func TestPhotos(t *testing.T) {
	h := photoHandler(&fakeTraining{}, 2)
	for query, want := range map[string]int{"camera=0": 200, "camera=1": 500, "camera=2": 404, "camera=-1": 404,
		"camera=": 404, "": 404, "camera=../etc": 404} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/photo?"+query, nil))
		if w.Code != want {
			t.Errorf("%q: %d, want %d", query, w.Code, want)
		}
	}
}
