//go:build unix

package desk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/scene/scenetest"
)

// link makes a symbolic link.
func link(t *testing.T, to, path string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must.Do(t, os.Symlink(to, path))
}

// TestLinkedOut has the folder of what is made, or one in it, be a link that leads out of the root: nothing is written,
// listed or served there.
func TestLinkedOut(t *testing.T) {
	run := filepath.Join("runs", "lost")
	for _, at := range []string{"vksplat", "vksplat/runs"} {
		b := openDesk(t)
		outside := t.TempDir()
		place := filepath.Join(outside, strings.TrimPrefix(strings.TrimPrefix(at, "vksplat"), "/"))
		link(t, outside, filepath.Join(b.root, at))
		fill(t, filepath.Join(outside, strings.TrimPrefix(run, "runs/"), output.StatsFile), "{}")
		fill(t, filepath.Join(outside, run, output.StatsFile), "{}")
		fill(t, filepath.Join(outside, "exports", "x.ply"), "secret")
		before := tree(t, outside)
		asks := map[string]string{"train": train}
		if at == "vksplat" {
			asks["capture"], asks["upload?folder=trip&file=a.mp4"] = `{"path":"garden"}`, "film"
		}
		for name, body := range asks {
			if status, text := b.ask(http.MethodPost, name, body, nil); status != 400 || !strings.Contains(text,
				"leads out") {
				t.Errorf("%s is a link to %s: %s: %d %s", at, place, name, status, text)
			}
		}
		if s := b.until("the state", func(s *seenState) bool { return s.Runs != nil }); len(s.Runs) != 0 {
			t.Errorf("%s: runs %+v", at, s.Runs)
		}
		if status, _ := b.ask(http.MethodGet, "file?path=vksplat/exports/x.ply", "", nil); status != 404 {
			t.Errorf("%s: a file of elsewhere: %d", at, status)
		}
		if after := tree(t, outside); !slices.Equal(before, after) {
			t.Errorf("%s: outside is %q, it was %q", at, after, before)
		}
	}
}

// TestLinkedIn has the folder of what is made be a link that stays in the root, which works.
func TestLinkedIn(t *testing.T) {
	b := openDesk(t)
	must.Do(t, os.Mkdir(filepath.Join(b.root, "large"), 0o777))
	link(t, "large", filepath.Join(b.root, "vksplat"))
	id := b.begin("train", strings.Replace(train, "garden", "short", 1))
	b.until("it is trained", func(s *seenState) bool { return s.job(id).State == stateDone && len(s.Runs) == 1 })
	spz := b.begin("export", `{"path":"large/runs/short-default","format":".spz"}`)
	s := b.until("it is exported", func(s *seenState) bool { return s.job(spz).State == stateDone })
	if status, text := b.ask(http.MethodGet, "file?path="+s.job(spz).Made, "", nil); status != 200 || text != "made" {
		t.Errorf("%s: %d %s", s.job(spz).Made, status, text)
	}
}

// TestLinkedRun has folders of a run be links: what leads out of the root is not written to.
func TestLinkedRun(t *testing.T) {
	b := openDesk(t)
	fill(t, filepath.Join(b.root, "run", output.StatsFile), "{}")
	fill(t, filepath.Join(b.root, "kept", output.BegunFile), "{}")
	link(t, "../kept", filepath.Join(b.root, "run", "checkpoints"))
	if _, err := b.runFolder("run"); err != nil {
		t.Errorf("a link that stays: %v", err)
	}
	link(t, t.TempDir(), filepath.Join(b.root, "run", "test"))
	for name, body := range map[string]string{"resume": `{"path":"run"}`, "export": `{"path":"run","format":".spz"}`,
		"flight": `{"run":"run","path":"orbit","seconds":5,"height":480}`} {
		if status, text := b.ask(http.MethodPost, name, body, nil); status != 400 || !strings.Contains(text,
			"leads out") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

// TestCurveOfNext shows the course of a run that is to replace another one, which is still there.
func TestCurveOfNext(t *testing.T) {
	b := openDesk(t)
	line := `{"event":"step","step":%d,"loss":1,"psnr":20,"splats":300}` + "\n"
	for i, name := range []string{"metrics.jsonl", output.NextFolder + "/metrics.jsonl"} {
		fill(t, filepath.Join(b.root, "run", output.StatsFile), "{}")
		fill(t, filepath.Join(b.root, "run", name), fmt.Sprintf(line, i+1))
		var c curve
		if b.must(http.MethodGet, "curve?run=run", "", &c); !slices.Equal(c.Steps, []int{i + 1}) {
			t.Errorf("%s: steps %v", name, c.Steps)
		}
	}
}

// tree lists what is below a folder.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		list = append(list, path)
		return err
	}))
	return list
}

// TestPipes has named pipes in place of all files of a run, which nobody writes to: every request is answered.
func TestPipes(t *testing.T) {
	b := openDesk(t)
	pipe := func(path string) {
		path = filepath.Join(b.root, path)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, syscall.Mkfifo(path, 0o666))
	}
	fill(t, filepath.Join(b.root, "run", "stats.json"), "{}")
	fill(t, filepath.Join(b.root, "other", "stats.json"), "{}")
	for _, name := range []string{"run/metrics.jsonl", "run/checkpoints/begun.json",
		"run/checkpoints/step_5.safetensors",
		"run/preview.jpg", "run/point_cloud/iteration_5/point_cloud.ply", "other/test/ours_5/a.png",
		"vksplat/exports/x.spz", "vksplat/flights/x.mp4", "walk.mp4", "model.ply", "blender/transforms_train.json",
		"nerf/transforms.json", "model/sparse/0/images.bin", "model/sparse/1/images.bin"} {
		pipe(name)
	}
	var c curve
	b.must(http.MethodGet, "curve?run=run", "", &c)
	if len(c.Steps) != 0 {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]int{"picture?run=run": 404, "picture?run=other": 404, "folder?path=": 200,
		"folder?path=run": 200, "folder?path=nerf": 200, "folder?path=model": 200, "folder?path=blender": 200,
		"file?path=vksplat/exports/x.spz": 404, "file?path=vksplat/flights/x.mp4": 404} {
		if status, text := b.ask(http.MethodGet, name, "", nil); status != want {
			t.Errorf("%s: %d %s, want %d", name, status, text, want)
		}
	}
	b.until("the runs are listed", func(s *seenState) bool { return len(s.Runs) == 2 })
}

// TestForeignScene has scenes read files outside of the root, by links and by names, and a run have one that stands
// there: none is inspected or trained. Those that stay inside start with random points, having none, without a verdict.
func TestForeignScene(t *testing.T) {
	b := openDesk(t)
	outside := t.TempDir()
	frames := scenetest.TinyFrames("images")
	write := func(dir string) (photos string) {
		for i := range scenetest.TinyPhotos {
			name := fmt.Sprintf("p%d.png", i)
			frames[i]["file_path"] = "images/" + name
			scenetest.WritePhoto(t, filepath.Join(dir, "images", name), scenetest.TinyWidth, scenetest.TinyHeight)
		}
		scenetest.PutJSON(t, filepath.Join(dir, "transforms.json"), scenetest.TinyTop().With("frames", frames))
		return filepath.Join(dir, "images")
	}
	own := write(filepath.Join(b.root, "own"))
	elsewhere := write(outside)
	link(t, own, filepath.Join(b.root, "shared", "images"))
	link(t, elsewhere, filepath.Join(b.root, "linked", "images"))
	link(t, filepath.Join(outside, "transforms.json"), filepath.Join(b.root, "json", "transforms.json"))
	link(t, elsewhere, filepath.Join(b.root, "between", "images")) // reached by a link that stays in the root
	link(t, "../between", filepath.Join(b.root, "twice", "inner"))
	top := scenetest.TinyTop().With("frames", frames)
	for _, name := range []string{"shared", "linked", "twice"} {
		scenetest.PutJSON(t, filepath.Join(b.root, name, "transforms.json"), top)
	}
	write(filepath.Join(b.root, "cloud"))
	fill(t, filepath.Join(outside, "points.ply"), "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\n"+
		"property float y\nproperty float z\nend_header\n")
	scenetest.PutJSON(t, filepath.Join(b.root, "cloud", "transforms.json"),
		top.With("ply_file_path", filepath.Join(outside, "points.ply")))
	write(filepath.Join(b.root, "named"))
	frames[1]["file_path"] = filepath.Join(elsewhere, "p1.png")
	must.Do(t, os.Remove(filepath.Join(b.root, "named", "images", "p1.png")))
	scenetest.PutJSON(t, filepath.Join(b.root, "named", "transforms.json"), top)
	fill(t, filepath.Join(b.root, "run", output.StatsFile), "{}")
	scenetest.PutJSON(t, filepath.Join(b.root, "run", output.CheckpointFolder, output.BegunFile),
		scenetest.JsonObject{"source": scenetest.JsonObject{"scene": outside}})
	if got, text := b.ask(http.MethodPost, "resume", `{"path":"run"}`, nil); got != 400 || !strings.Contains(text,
		errOutside.Error()) {
		t.Errorf("resume a run of a scene outside: %d %s", got, text)
	}
	for name, bad := range map[string]string{"own": "", "shared": "", "linked": "linked/images",
		"json": "json/transforms.json", "twice": "between/images", "cloud": "points.ply", "named": "p1.png"} {
		want, status := bad+" leads out", 400
		if bad == "" {
			want, status = "", 200
		}
		body := strings.Replace(train, "garden", name, 1)
		got, text := b.ask(http.MethodPost, "train", body, nil)
		if got != status || !strings.Contains(text, want) {
			t.Errorf("train %s: %d %s", name, got, text)
		}
		if bad == "" { // there are no points, and no verdict that says so
			var made struct{ Job string }
			must.Do(t, json.Unmarshal([]byte(text), &made))
			if args := b.queue.find(made.Job).args; !slices.Contains(args, "--init=random") {
				t.Errorf("train %s: %q", name, args)
			}
		}
		run := filepath.Join(b.root, "run of "+name)
		begun := scenetest.JsonObject{"source": scenetest.JsonObject{"scene": filepath.Join(b.root, name)}}
		fill(t, filepath.Join(run, output.StatsFile), "{}")
		scenetest.PutJSON(t, filepath.Join(run, output.CheckpointFolder, output.BegunFile), begun)
		body = `{"path":"run of ` + name + `"}`
		if got, text := b.ask(http.MethodPost, "resume", body, nil); got != status || !strings.Contains(text, want) {
			t.Errorf("resume %s: %d %s", name, got, text)
		}
		request := &trainRequest{Scene: name, Preset: "default"}
		for what, ask := range map[string]func() (check, error){
			"verdict": func() (check, error) { return b.verdict(name) },
			"plan":    func() (check, error) { return b.plan(request) }} {
			c, err := ask()
			for end := time.Now().Add(time.Minute); err == nil && !c.Ready && time.Now().Before(end); c, err = ask() {
				time.Sleep(10 * time.Millisecond)
			}
			if err != nil || !c.Ready || bad == "" && c.Error != "" || !strings.Contains(c.Error, want) {
				t.Errorf("%s of %s: %+v, %v", what, name, c, err)
			}
		}
	}
}
