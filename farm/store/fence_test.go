package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
)

// fenced is a task with an attempt that sleeps at a point of the store, and others that go on meanwhile.
type fenced struct {
	t *testing.T
	r *rig
}

// whenFirst does something right before the store is first asked for an operation on a key, as if whoever asks had
// slept there for long.
func (f *fenced) whenFirst(op, part string, do func()) {
	f.r.fault = func(at, key string) error {
		if at == op && strings.Contains(key, part) {
			f.r.fault = nil
			do()
		}
		return nil
	}
}

func (f *fenced) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// uploads is an attempt that saves checkpoints.
func (f *fenced) uploads(attempt int) func(steps ...int) {
	dir := work(f.t, map[string]string{"same": "same"})
	u := &Uploads{Root: f.r, Task: "j/t", Dir: dir, Until: attempt}
	return func(steps ...int) {
		f.t.Helper()
		for _, step := range steps {
			at := time.Now().Add(time.Duration(step) * time.Second)
			f.must(dir.WriteFile("state", []byte(fmt.Sprint(step)), 0o666))
			f.must(dir.Chtimes("state", at, at))
			f.must(u.Save(f.t.Context(), []string{"same", "state"}, Made{Hash: "h", Step: step, Attempt: attempt}))
		}
	}
}

func (f *fenced) fetched(want int) {
	f.t.Helper()
	to := work(f.t, nil)
	if m, err := Fetch(f.t.Context(), f.r, "j/t", to, Made{Hash: "h"}, 0); err != nil || m == nil || m.Step != want ||
		readText(f.t, to, "state") != fmt.Sprint(want) || readText(f.t, to, "same") != "same" {
		f.t.Fatalf("fetched %+v, %v; want step %d", m, err, want)
	}
}

func (f *fenced) commit(text string, made Made) (own bool, err error) {
	made.Hash = "h"
	_, own, err = Commit(f.t.Context(), f.r, "j/t", work(f.t, map[string]string{"model": text}), []string{"model"},
		made)
	return own, err
}

// TestZombiesKeepTheirHandsOff has an attempt go on that was given up: whatever it removes is its own, or that of those
// before it.
func TestZombiesKeepTheirHandsOff(t *testing.T) { onRoots(t, testZombiesKeepTheirHandsOff) }

func testZombiesKeepTheirHandsOff(t *testing.T, r *rig) {
	f := &fenced{t, r}
	zombie, owner := f.uploads(1), f.uploads(2)
	zombie(100)
	owner(50) // it went on from an older one
	zombie(200, 300, 400, 500)
	if _, err := f.r.Stat(checkpointKey("j/t", 50, 2)); err != nil {
		t.Errorf("the owner's checkpoint was removed: %v", err)
	}
	f.must(Forget(f.r, "j/t", 1)) // it has committed, and clears up
	f.fetched(50)
	// Between its look at what is there and its removing, everything changes.
	zombie(100, 200)
	f.whenFirst("delete", "a00001/", func() { owner(250, 300) })
	zombie(210)
	f.fetched(300)
	owner(310)
	if list, err := checkpoints(f.r, "j/t"); err != nil || len(list) != 2 || list[0].attempt != 2 {
		t.Errorf("an owner removes what those before it left: %+v, %v", list, err)
	}
	f.must(Forget(f.r, "j/t", 2))
	if f.r.has("j/t/ckpt") {
		t.Error("empty folders stay")
	}
}

// TestCheckpointsMoveOn reads the newest checkpoint while newer ones take its place.
func TestCheckpointsMoveOn(t *testing.T) { onRoots(t, testCheckpointsMoveOn) }

func testCheckpointsMoveOn(t *testing.T, r *rig) {
	f := &fenced{t, r}
	f.uploads(2)(5) // stays: it is a later attempt's
	save := f.uploads(1)
	save(20)
	f.whenFirst("open", sumOf("20"), func() { save(30, 40) })
	f.fetched(40)
	f.whenFirst("open", "step-000000040", func() { save(50, 60) })
	f.fetched(60)
	// A share that fails is no reason to start from scratch.
	f.r.fault = func(op, key string) error {
		if op == "open" && strings.HasSuffix(key, ".json") {
			return f.r.away
		}
		return nil
	}
	if m, err := Fetch(t.Context(), f.r, "j/t", work(t, nil), Made{Hash: "h"}, 0); err == nil {
		t.Errorf("fetched %+v", m)
	}
}

// TestZombiesMoveNothingNew has one sleep after it has judged old results, until new ones are in their place.
func TestZombiesMoveNothingNew(t *testing.T) {
	for name, sleeper := range sleepers() {
		t.Run(name, func(t *testing.T) {
			onRoots(t, func(t *testing.T, r *rig) { testZombiesMoveNothingNew(t, r, sleeper) })
		})
	}
}

// sleepers are those who sleep at a point.
func sleepers() map[string]func(f *fenced) error {
	renew := func(f *fenced, generation int) {
		f.must(Outdate(f.r, "j/t", generation))
		if own, err := f.commit(fmt.Sprint("of ", generation),
			Made{Attempt: 10 + generation, Generation: generation}); err != nil || !own {
			f.t.Fatal(own, err)
		}
	}
	return map[string]func(f *fenced) error{
		"a look at damaged results": func(f *fenced) error {
			putText(f.t, f.r, f.r.result(f.t, "j/t", "model"), "damaged")
			f.whenFirst("publish", "tmp/damaged-", func() { renew(f, 1) })
			_, err := Result(f.t.Context(), f.r, "j/t")
			return err
		},
		"a reader of what changes": func(f *fenced) error {
			f.whenFirst("open", f.r.result(f.t, "j/t", "model"), func() { renew(f, 1) })
			_, err := Result(f.t.Context(), f.r, "j/t")
			return err
		},
		"a worker that outdates": func(f *fenced) error {
			f.whenFirst("publish", "tmp/old-", func() { renew(f, 2) })
			return Outdate(f.r, "j/t", 1)
		},
		"a commit": func(f *fenced) error {
			f.whenFirst("publish", "/out", func() { renew(f, 1) })
			if own, err := f.commit("late", Made{Attempt: 2}); own {
				return fmt.Errorf("it has published: %w", err)
			}
			return nil
		},
	}
}

func testZombiesMoveNothingNew(t *testing.T, r *rig, sleeper func(f *fenced) error) {
	f := &fenced{t, r}
	if own, err := f.commit("first", Made{Attempt: 1}); err != nil || !own {
		t.Fatal(own, err)
	}
	if err := sleeper(f); err != nil {
		t.Error(err)
	}
	want, err := Generation(f.r, "j/t")
	m, errResult := Result(t.Context(), f.r, "j/t")
	if err != nil || errResult != nil || m == nil || m.Generation != want || want == 0 ||
		getText(t, f.r, f.r.result(t, "j/t", "model")) != fmt.Sprint("of ", want) {
		t.Errorf("%+v, %v, %v of generation %d", m, errResult, err, want)
	}
}

// TestResultsOfBadShares has a share not say whether there are results: they stay where they are, or are not.
func TestResultsOfBadShares(t *testing.T) { onRoots(t, testResultsOfBadShares) }

func testResultsOfBadShares(t *testing.T, r *rig) {
	const manifest = "j/t/out/" + ManifestName
	putText(t, r, manifest, "{")
	r.fault = func(op, _ string) error {
		if op == "stat" {
			return fs.ErrPermission
		}
		return nil
	}
	m, err := Result(t.Context(), r, "j/t")
	r.fault = nil
	if !errors.Is(err, fs.ErrPermission) || !r.has(manifest) {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := Result(t.Context(), r, "j/t"); err != nil || m != nil || r.has(manifest) {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestLostPublishing has an attempt publish, and never hear of it: what may count stays, and the next attempt finds it.
func TestLostPublishing(t *testing.T) { onRoots(t, testLostPublishing) }

func testLostPublishing(t *testing.T, r *rig) {
	f := &fenced{t, r}
	published := func(happens bool) error {
		_, _, err := Commit(t.Context(), silentRoot{r, happens}, "j/t", work(t, map[string]string{"model": "first"}),
			[]string{"model"}, Made{Hash: "h", Attempt: 1})
		return err
	}
	if err := published(false); !errors.Is(err, r.away) {
		t.Fatal(err)
	}
	if m, err := Result(t.Context(), r, "j/t"); err != nil || m != nil {
		t.Fatalf("%+v, %v", m, err)
	}
	if list, _, err := r.List("j/t"); err != nil || len(list) != 2 {
		t.Errorf("what may have been published is gone: %+v, %v", list, err)
	}
	if _, err := Sweep(r, "j/t"); err != nil || r.has("j/t") {
		t.Errorf("the sweep has not found what nobody published: %v", err)
	}
	if err := published(true); !errors.Is(err, r.away) {
		t.Fatal(err)
	}
	if own, err := f.commit("second", Made{Attempt: 2}); err != nil || own {
		t.Errorf("%v, %v", own, err)
	}
	f.must(second(Sweep(r, "j/t")))
	if m, err := Result(t.Context(), r, "j/t"); err != nil || m == nil || m.Attempt != 1 ||
		getText(t, r, r.result(t, "j/t", "model")) != "first" {
		t.Errorf("results that count are gone: %+v, %v", m, err)
	}
}

// silentRoot publishes, or does not, and says that the store is away.
type silentRoot struct {
	*rig
	happens bool
}

func (s silentRoot) Publish(from, to string) error {
	if s.happens {
		if err := s.rig.Publish(from, to); err != nil {
			return err
		}
	}
	return s.away
}
