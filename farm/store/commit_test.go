package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestFirstCommitWins has many attempts end at once.
func TestFirstCommitWins(t *testing.T) { onRoots(t, testFirstCommitWins) }

func testFirstCommitWins(t *testing.T, r *rig) {
	ctx := context.Background()
	var group sync.WaitGroup
	var lock sync.Mutex
	winners, seen := 0, map[int]bool{}
	for i := range 16 {
		dir := work(t, map[string]string{"model.ply": fmt.Sprint("attempt ", i), "a/b.png": "same"})
		group.Go(func() {
			m, own, err := Commit(ctx, r, "job/task", dir, []string{"a/b.png", "model.ply"}, Made{Attempt: i})
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			seen[m.Attempt] = true
			if own {
				winners++
			}
		})
	}
	group.Wait()
	m, err := Result(ctx, r, "job/task")
	if err != nil || m == nil || winners != 1 || len(seen) != 1 || !seen[m.Attempt] ||
		getText(t, r, r.result(t, "job/task", "model.ply")) != fmt.Sprint("attempt ", m.Attempt) {
		t.Fatalf("%d winners, seen %v, %+v, %v", winners, seen, m, err)
	}
	if r.has("job/task/tmp") {
		t.Error("the folder of what is on its way stays behind")
	}
	// Damage is noticed, moved away, and made good by the next.
	for _, damage := range []func(){
		func() { putText(t, r, r.result(t, "job/task", "model.ply"), "attempt x") },
		func() { _ = r.Delete(r.result(t, "job/task", "a/b.png")) },
		func() { putText(t, r, "job/task/out/MANIFEST.json", "{") },
		func() { _ = r.Delete("job/task/out") },
		func() {
			putText(t, r, "job/task/out/MANIFEST.json", `{"version":1,"files":[{"name":"../../../x","size":1}]}`)
		},
	} {
		damage()
		m, own, err := Commit(ctx, r, "job/task", work(t, map[string]string{"model.ply": "again", "a/b.png": "same"}),
			[]string{"a/b.png", "model.ply"}, Made{Attempt: 99})
		if err != nil || !own || m.Attempt != 99 || getText(t, r, r.result(t, "job/task", "model.ply")) != "again" {
			t.Errorf("after damage: %+v, %v, %v", m, own, err)
		}
	}
}

// TestEmptyFoldersGo has many put files into a folder, and remove it as they take them away.
func TestEmptyFoldersGo(t *testing.T) {
	r := newFolder(t, Options{})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 25 {
				from, to := fmt.Sprintf("t/tmp/a%d-%d", i, n), fmt.Sprintf("t/o%d-%d", i, n)
				putText(t, r, from+"/file", from)
				if err := r.Publish(from, to); err != nil || getText(t, r, to+"/file") != from {
					t.Errorf("%s: %v", to, err)
				}
				putText(t, r, from, "x")
				if err := r.Delete(from); err != nil {
					t.Errorf("%s: %v", from, err)
				}
			}
		})
	}
	group.Wait()
	if exists(filepath.Join(r.dir, "t/tmp")) {
		t.Error("the empty folder is still there")
	}
	if err := r.Publish("t/nothing", "t/new/place"); !errors.Is(err, fs.ErrNotExist) ||
		exists(filepath.Join(r.dir, "t/new")) {
		t.Errorf("nothing was published: %v", err)
	}
	if runtime.GOOS != "windows" {
		must.Do(t, os.Symlink("t", filepath.Join(r.dir, "link")))
		if err := r.Delete("link/o1-1"); err != nil || !exists(filepath.Join(r.dir, "link")) {
			t.Errorf("a link is gone: %v", err)
		}
	}
	putText(t, r, "single", "x")
	if err := r.Delete("single"); err != nil || !exists(r.dir) {
		t.Errorf("the root is gone: %v", err)
	}
}

// TestOutdatedAttempts has attempts end that nobody waits for any more.
func TestOutdatedAttempts(t *testing.T) { onRoots(t, testOutdatedAttempts) }

func testOutdatedAttempts(t *testing.T, r *rig) {
	ctx := context.Background()
	commit := func(text string, made Made) (*Manifest, bool, error) {
		t.Helper()
		return Commit(ctx, r, "j/t", work(t, map[string]string{"model": text}), []string{"model"}, made)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, own, err := commit("first", Made{Hash: "h", Attempt: 1}); err != nil || !own {
		t.Fatal(own, err)
	}
	if m, own, err := commit("other", Made{Hash: "other", Attempt: 2}); !errors.Is(err, fault.ErrUsage) || own {
		t.Errorf("results of another task are taken for its own: %+v, %v", m, err)
	}
	must(Outdate(r, "j/t", 2))
	must(Outdate(r, "j/t", 1)) // of a worker that comes late
	if g, err := Generation(r, "j/t"); err != nil || g != 2 {
		t.Fatalf("generation %d, %v", g, err)
	}
	if m, err := Result(ctx, r, "j/t"); err != nil || m != nil {
		t.Errorf("outdated results count: %+v, %v", m, err)
	}
	// One that slept since before Outdate.
	if _, own, err := commit("late", Made{Hash: "h", Attempt: 1}); !errors.Is(err, errOutdated) || own ||
		r.has("j/t/out/"+ManifestName) {
		t.Errorf("an outdated attempt has results: %v", err)
	}
	// One that slept between its last look and its publishing.
	r.fault = func(op, key string) error {
		if op == "publish" {
			r.fault = nil
			must(Outdate(r, "j/t", 3))
		}
		return nil
	}
	if _, own, err := commit("too late to tell", Made{Hash: "h", Attempt: 2, Generation: 2}); err != nil || !own {
		t.Fatal(own, err)
	}
	if m, own, err := commit("new", Made{Hash: "h", Attempt: 3, Generation: 3}); err != nil || !own || m.Attempt != 3 ||
		getText(t, r, r.result(t, "j/t", "model")) != "new" {
		t.Errorf("%+v, %v, %v", m, own, err)
	}
	if m, err := Result(ctx, r, "j/t"); err != nil || m == nil || m.Generation != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	r.fault = func(op, key string) error {
		if op == "list" {
			return fs.ErrPermission
		}
		return nil
	}
	if _, err := Result(ctx, r, "j/t"); err == nil {
		t.Error("a generation that cannot be read is taken for none")
	}
}

func TestCheckpoints(t *testing.T) { onRoots(t, testCheckpoints) }

func testCheckpoints(t *testing.T, r *rig) {
	ctx := context.Background()
	dir := work(t, map[string]string{"frames/1.png": "one", "state": "10"})
	u := &Uploads{Root: r, Task: "j/t", Dir: dir, Until: 1}
	made := func(step int) Made { return Made{Hash: "h", Step: step, Attempt: 1} }
	save := func(step int, names ...string) {
		t.Helper()
		must.Do(t, u.Save(ctx, names, made(step)))
	}
	save(10, "frames/1.png", "state")
	if err := u.Save(ctx, []string{"state", "is gone"}, made(15)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("saved what is not there: %v", err)
	}
	puts := 0
	r.fault = func(op, key string) error {
		if op == "put" && !strings.HasSuffix(key, ".json") {
			puts++
		}
		return nil
	}
	for i, step := range []int{20, 30, 40} {
		must.Do(t, dir.WriteFile("state", []byte(fmt.Sprint(step)), 0o666))
		later := time.Now().Add(time.Duration(i+1) * time.Second)
		must.Do(t, dir.Chtimes("state", later, later))
		save(step, "frames/1.png", "state")
	}
	if list, _, err := r.List("j/t/ckpt/a00001"); err != nil || len(list) != 3+keptCheckpoints || puts != 3 {
		t.Errorf("%d files are kept, %d contents went up, %v", len(list), puts, err)
	}
	fetch := func(after int) (*Manifest, *os.Root) {
		t.Helper()
		to := work(t, nil)
		m := must.Get(Fetch(ctx, r, "j/t", to, Made{Hash: "h"}, after))(t)
		return m, to
	}
	if m, to := fetch(0); m == nil || m.Step != 40 || readText(t, to, "state") != "40" ||
		readText(t, to, "frames/1.png") != "one" {
		t.Errorf("fetched %+v", m)
	}
	if m, _ := fetch(40); m != nil {
		t.Errorf("fetched %+v, which is no newer", m)
	}
	// The newest is damaged: the one before.
	putText(t, r, contentKey("j/t", 1, sumOf("40")), "44")
	if m, to := fetch(0); m == nil || m.Step != 30 || readText(t, to, "state") != "30" {
		t.Errorf("fetched %+v", m)
	}
	putText(t, r, checkpointKey("j/t", 30, 1), "{")
	if m, _ := fetch(0); m != nil {
		t.Errorf("fetched %+v", m)
	}
	if m, err := Fetch(ctx, r, "j/t", work(t, nil), Made{Hash: "other"}, 0); err != nil || m != nil {
		t.Errorf("fetched that of another job: %+v, %v", m, err)
	}
	if err := Forget(r, "j/t", AllAttempts); err != nil || r.has("j/t/ckpt") {
		t.Error(err)
	}
}

// TestCheckpointsOfOtherSettings has those of an edited job stand behind what the former one reached, and those of a
// repeated step behind a damaged one.
func TestCheckpointsOfOtherSettings(t *testing.T) { onRoots(t, testCheckpointsOfOtherSettings) }

func testCheckpointsOfOtherSettings(t *testing.T, r *rig) {
	ctx := context.Background()
	save := func(hash string, step int) {
		t.Helper()
		u := &Uploads{Root: r, Task: "j/t",
			Dir: work(t, map[string]string{"state": fmt.Sprint(hash, step), "same": "same"}), Until: 1}
		must.Do(t, u.Save(ctx, []string{"same", "state"}, Made{Hash: hash, Step: step, Attempt: 1}))
	}
	fetched := func(hash string, want int) {
		t.Helper()
		to := work(t, nil)
		if m, err := Fetch(ctx, r, "j/t", to, Made{Hash: hash}, 0); err != nil || m == nil || m.Step != want ||
			readText(t, to, "state") != fmt.Sprint(hash, want) {
			t.Fatalf("fetched of %s: %+v, %v; want step %d", hash, m, err, want)
		}
	}
	save("old", 20000)
	save("old", 25000)
	for _, step := range []int{500, 1000, 1500, 2000} {
		save("new", step)
		fetched("new", step)
	}
	fetched("old", 25000)
	if keys, err := checkpoints(r, "j/t"); err != nil || len(keys) != 2*keptCheckpoints {
		t.Errorf("kept: %+v, %v", keys, err)
	}
	// The newest two are damaged: what is made again from before them stays.
	putText(t, r, contentKey("j/t", 1, sumOf("new1500")), "damaged")
	putText(t, r, contentKey("j/t", 1, sumOf("new2000")), "damaged")
	save("new", 1200)
	fetched("new", 1200)
	putText(t, r, checkpointKey("j/t", 25000, 1), "{")
	save("new", 1300)
	fetched("new", 1300)
	fetched("old", 20000)
	if r.has(checkpointKey("j/t", 25000, 1)) || r.has(checkpointKey("j/t", 1200, 1)) {
		t.Error("what nobody goes on from is still there")
	}
}

// TestCheckpointsOfBadShares has a share not say whether a content is there, and keep half of one.
func TestCheckpointsOfBadShares(t *testing.T) { onRoots(t, testCheckpointsOfBadShares) }

func testCheckpointsOfBadShares(t *testing.T, r *rig) {
	ctx := context.Background()
	dir := work(t, map[string]string{"state": "10"})
	save := func(step int) error {
		return (&Uploads{Root: r, Task: "j/t", Dir: dir}).Save(ctx, []string{"state"}, Made{Hash: "h", Step: step})
	}
	r.fault = func(op, key string) error {
		if op == "stat" {
			return r.away
		}
		return nil
	}
	if err := save(10); !errors.Is(err, r.away) || r.has(checkpointKey("j/t", 10, 0)) {
		t.Errorf("a checkpoint lists what may not be there: %v", err)
	}
	r.fault = nil
	putText(t, r, contentKey("j/t", 0, sumOf("10")), "1")
	must.Do(t, save(10))
	// A fault in the midst of reading, while the handle of the file is of no use any more.
	faults := 0
	r.fault = func(op, key string) error {
		if (op == "read" || r.dir == "") && faults < 4 {
			faults++
			return r.away
		}
		return nil
	}
	to := work(t, nil)
	if m, err := Fetch(ctx, r, "j/t", to, Made{Hash: "h"}, 0); err != nil || m == nil ||
		readText(t, to, "state") != "10" || faults != 4 {
		t.Errorf("%+v, %v after %d faults", m, err, faults)
	}
}

func sumOf(text string) string {
	m := newMeter(context.Background(), io.Discard)
	_, _ = m.Write([]byte(text))
	return m.sum()
}

func readText(t *testing.T, dir *os.Root, name string) string {
	t.Helper()
	data := must.Get(dir.ReadFile(name))(t)
	return string(data)
}

func TestCheckpointsOfOtherInputs(t *testing.T) { onRoots(t, testCheckpointsOfOtherInputs) }

// testCheckpointsOfOtherInputs has a task be begun anew, because of its inputs or as somebody wants it anew: what was
// saved before is not fetched, and makes room, however far it came.
func testCheckpointsOfOtherInputs(t *testing.T, r *rig) {
	before := Made{Hash: "h", Inputs: "1", Generation: 1}
	for what, now := range map[string]Made{"inputs": {Hash: "h", Inputs: "2", Generation: 1},
		"anew": {Hash: "h", Inputs: "1", Generation: 2, Since: 2}} {
		task := "j/" + what
		save := func(attempt int, made Made, steps ...int) {
			t.Helper()
			u := &Uploads{Root: r, Task: task, Dir: work(t, map[string]string{"state": what + fmt.Sprint(attempt)}),
				Until: attempt}
			for _, step := range steps {
				made.Step, made.Attempt = step, attempt
				must.Do(t, u.Save(t.Context(), []string{"state"}, made))
			}
		}
		save(1, before, 100, 200)
		if m, err := Fetch(t.Context(), r, task, work(t, nil), now, 0); err != nil || m != nil {
			t.Errorf("%s: fetched %+v, %v", what, m, err)
		}
		save(2, now, 10, 20, 30)
		list, err := checkpoints(r, task)
		if err != nil || len(list) != 2 || list[0].step != 20 || list[1].step != 30 {
			t.Errorf("%s: left %+v, %v", what, list, err)
		}
		goesOn := now
		goesOn.Generation++ // of what was canceled and is wanted again
		if m, err := Fetch(t.Context(), r, task, work(t, nil), goesOn, 0); err != nil || m == nil || m.Step != 30 {
			t.Errorf("%s: fetched %+v, %v", what, m, err)
		}
	}
}

// TestForgetHalves removes what attempts left that were killed as they put a file of a checkpoint, or results, into a
// folder: nothing lists the one, and the other is none of the results. What later attempts have stays, and so do
// results that were wanted anew.
func TestForgetHalves(t *testing.T) {
	r := newFolder(t, Options{})
	for _, key := range []string{"t/ckpt/a00001/.tmp-1", "t/ckpt/a00002/content", "t/ckpt/a00003/.tmp-2",
		"t/tmp/a1-dead/model", "t/tmp/a1-dead/deep/file", "t/tmp/a3-lives/model",
		"t/tmp/old-1/model", "t/tmp/a/file", "t/out/model"} {
		name := filepath.Join(r.dir, filepath.FromSlash(key))
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o777),
			os.WriteFile(name, []byte(key), 0o666)))
	}
	left := func() (names []string) {
		must.Do(t, fs.WalkDir(os.DirFS(r.dir), ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				names = append(names, name)
			}
			return err
		}))
		return names
	}
	must.Do(t, Forget(r, "t", 2))
	if got, want := left(), []string{"t/ckpt/a00003/.tmp-2", "t/out/model", "t/tmp/a/file", "t/tmp/a3-lives/model",
		"t/tmp/old-1/model"}; !slices.Equal(got, want) {
		t.Errorf("of attempts up to 2 there is %q, want %q", got, want)
	}
	must.Do(t, Forget(r, "t", AllAttempts))
	if got, want := left(), []string{"t/out/model", "t/tmp/a/file", "t/tmp/old-1/model"}; !slices.Equal(got, want) {
		t.Errorf("of all attempts there is %q, want %q", got, want)
	}
}

// overtaken is a root on which somebody is faster, as model.ply is half written.
type overtaken struct {
	Root
	faster func()
}

func (o *overtaken) Put(key string, write func(io.Writer) error) error {
	return o.Root.Put(key, func(w io.Writer) error {
		if faster := o.faster; faster != nil && path.Base(key) == "model.ply" {
			o.faster = nil
			faster()
		}
		return write(w)
	})
}

// TestOvertaken has another attempt commit and clear away what is on its way as this one puts its files there: it has
// the results of the faster one.
func TestOvertaken(t *testing.T) {
	onRoots(t, func(t *testing.T, r *rig) {
		ctx, names := t.Context(), []string{"a.png", "model.ply"}
		dir := work(t, map[string]string{"a.png": "x", "model.ply": "x"})
		slow := &overtaken{r.Root, func() {
			_, own, err := Commit(ctx, r, "job/task", dir, names, Made{Attempt: 2})
			if err = errors.Join(err, Forget(r, "job/task", 2)); err != nil || !own {
				t.Error(own, err)
			}
		}}
		m, own, err := Commit(ctx, slow, "job/task", dir, names, Made{Attempt: 1})
		if err != nil || own || m.Attempt != 2 {
			t.Errorf("%+v, own %v, %v", m, own, err)
		}
	})
}
