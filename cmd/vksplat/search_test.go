package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/runtest"
	"vksplat/view"
	"vksplat/view/playtest"
)

// searched is what a browser gets of a search for cameras.
type searched struct {
	Stages []struct {
		Stage, Text string
		Step, Total int
		ETA         *float64 `json:"eta_s"`
		Done        bool
	}
	Version int
	Model   *struct {
		Cameras         []view.LiveCamera
		Points          []byte
		Up, Eye, Middle [3]float64
	}
	Trains bool
	End    string
}

// drawnPhotos are photos that a search finds the cameras of.
func drawnPhotos(t *testing.T) (dir string) {
	t.Helper()
	runtest.NeedDevice(t)
	dir = filepath.Join(t.TempDir(), "photos")
	must.Do(t, os.Mkdir(dir, 0o777))
	must.Do(t, capturetest.Photos(dir, 8, 200, 150, capturetest.Pinhole))
	return dir
}

// ask gets what there is of a search after a version of the model.
func ask(t *testing.T, client *http.Client, at *url.URL, version int) (s searched) {
	t.Helper()
	r := must.Get(client.Get(at.JoinPath("search").String() + fmt.Sprintf("?version=%d", version)))(t)
	defer r.Body.Close()
	must.Do(t, json.NewDecoder(r.Body).Decode(&s))
	return s
}

// TestViewerSearch watches a run that finds the cameras of its photos first: stages, cameras and points come before
// frames, and the run has the bytes of one that nobody watches.
func TestViewerSearch(t *testing.T) {
	photos, dir := drawnPhotos(t), t.TempDir()
	args := append(endless("20"), photos)
	const model = "point_cloud/iteration_20/point_cloud.ply"
	alone, watched := filepath.Join(dir, "alone"), filepath.Join(dir, "watched")
	trainUntil(t, filepath.Join(alone, model), append([]string{"-m", alone}, args...)...)
	t.Setenv(stepFloorVariable, "100ms") // so that the pause comes before the model
	v := startViewed(t, append([]string{"-m", watched, "--viewer"}, args...)...)
	client, at, err := playtest.Visit(v.address)
	if err != nil {
		t.Fatal(err)
	}
	var s searched
	var names []string // of stages
	timed, version, cameras := 0, 0, 0
	for ; !s.Trains; time.Sleep(5 * time.Millisecond) {
		s = ask(t, client, at, version)
		for _, stage := range s.Stages {
			if !slices.Contains(names, stage.Stage) {
				names = append(names, stage.Stage)
			}
			if stage.ETA != nil && stage.Step > 0 && stage.Total > 0 {
				timed++
			}
		}
		if (s.Model == nil) != (s.Version == version) || s.Version < version {
			t.Fatalf("version %d after %d has a model: %v", s.Version, version, s.Model != nil)
		}
		if m := s.Model; m != nil {
			version, cameras = s.Version, len(m.Cameras)
			if len(m.Points) < 15*50 || len(m.Points)%15 != 0 || m.Eye == m.Middle {
				t.Errorf("%d bytes of points; seen from %v about %v", len(m.Points), m.Eye, m.Middle)
			}
			if c := m.Cameras[0]; c.Width != 200 || c.Tangent < 0.2 || c.Tangent > 0.5 {
				t.Errorf("a camera is %+v", c)
			}
		}
	}
	if got := strings.Join(names, " "); got != "photos features matches mapping model training" || timed == 0 {
		t.Errorf("the stages are %s; %d times it is known how long one takes", got, timed)
	}
	if version == 0 || cameras != 8 {
		t.Errorf("model %d, the last one, has %d cameras of 8", version, cameras)
	}
	v.watchUntil(t, filepath.Join(watched, model), 1, 100, 80)
	for _, name := range []string{model, "capture/sparse/0/points3D.bin"} {
		filetest.Same(t, filepath.Join(alone, name), filepath.Join(watched, name))
	}
}

// TestViewerSearchStopped stops a search by Ctrl-C: the browser gets to know, and the viewer ends with it.
func TestViewerSearchStopped(t *testing.T) {
	for name, args := range map[string][]string{"train": {"train", "-m"}, "capture": {"capture", "-o"}} {
		args = append(args, filepath.Join(t.TempDir(), "out"), drawnPhotos(t), "--viewer")
		v := startShown(t, "watch it in a browser: ", args...)
		client, at, err := playtest.Visit(v.address)
		if err != nil {
			t.Fatal(err)
		}
		for s := (searched{}); len(s.Stages) == 0; time.Sleep(5 * time.Millisecond) {
			s = ask(t, client, at, 0)
		}
		must.Do(t, v.cmd.Process.Signal(os.Interrupt))
		var s searched
		for ; s.End == ""; time.Sleep(5 * time.Millisecond) {
			s = ask(t, client, at, 0)
		}
		if s.End != "Stopped." || s.Trains {
			t.Errorf("%s: it ended as %+v", name, s)
		}
		<-v.rest
		_ = v.cmd.Wait()
		if code := v.cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}
