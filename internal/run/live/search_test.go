package live

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture"
	"vksplat/internal/run/reconstruct"
	"vksplat/internal/run/train"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/view/playtest"
)

// foundAt gets what a search shows, with the model.
func foundAt(t *testing.T, client *http.Client, at *url.URL) (f found) {
	t.Helper()
	r := must.Get(client.Get(at.JoinPath("search").String()))(t)
	defer r.Body.Close()
	must.Do(t, json.NewDecoder(r.Body).Decode(&f))
	return f
}

// TestSearchFailed has a training fail before it begins: who watches the search for cameras gets to know.
func TestSearchFailed(t *testing.T) {
	console := cli.New(nil, io.Discard, io.Discard)
	s := must.Get(NewSearch(&train.ViewerOptions{Address: "0"}, "photos <i>", console))(t)
	client, at, err := playtest.Visit(s.port.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	page := must.Get(client.Get(at.String()))(t)
	if text := string(must.Get(io.ReadAll(page.Body))(t)); !strings.Contains(text, "photos &lt;i&gt;") {
		t.Errorf("the page is %s", text)
	}
	page.Body.Close()
	draft := &reconstruct.Sketch{Points: make([]colmap.Point, 5),
		Cameras: []scene.Camera{{Width: 4, Height: 3, Fx: 3, Fy: 3, R: [9]float64{0: 1, 4: 1, 8: 1}}}}
	looks := 0
	grow := func(last bool) {
		s.Growing(func() *reconstruct.Sketch {
			looks++
			return draft
		}, last)
	}
	searching := make(chan struct{})
	go func() {
		defer close(searching)
		for i := range 200 {
			s.Stage(&capture.Stage{Name: "mapping", Step: i, Total: 200})
			grow(false)
			time.Sleep(time.Millisecond)
		}
		grow(true)
		draft.Cameras[0].T[0] = math.NaN() // the model before stays
		grow(true)
	}()
	for f := foundAt(t, client, at); f.Version < 1; f = foundAt(t, client, at) {
		time.Sleep(time.Millisecond)
	}
	<-searching
	f := foundAt(t, client, at)
	if looks > 10 || f.Version != looks-1 || len(f.Stages) != 1 || f.Stages[0].Step != 199 {
		t.Errorf("after %d looks there is version %d; the stages are %+v", looks, f.Version, f.Stages)
	}
	l := must.Get(s.Train(nil, console))(t)
	must.Do(t, l.Observe(&train.Ended{Err: errors.New("no memory")}))
	must.Do(t, l.Close())
	if f := foundAt(t, client, at); len(f.Stages) != 2 || f.Trains || f.End != "" {
		t.Errorf("before the end it is %+v", f)
	}
	closed := make(chan error)
	go func() { closed <- s.Close(errors.New("no memory")) }()
	for ; f.End == ""; f = foundAt(t, client, at) {
	}
	if f.End != "no memory" {
		t.Errorf("the end is %+v", f)
	}
	must.Do(t, <-closed)
}
