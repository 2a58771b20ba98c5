package output

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// replacing makes a run, a file of the user and a run that replaces the first, which resumes it after step 3 or begins
// from scratch and has ended. It returns what is in OUT without the new run, and once that is in place.
func replacing(t *testing.T, resumes bool) (out string, before, after map[string]string) {
	t.Helper()
	const event = TensorboardFolder + "/" + TensorboardPrefix
	out = t.TempDir()
	filetest.Make(t, out, "cameras.json", MetricsFile, "results.json", StatsFile, "checkpoints/save_at.json",
		"checkpoints/step_3.safetensors", "checkpoints/step_7.safetensors", event+"1"+TensorboardSuffix,
		"point_cloud/iteration_3/point_cloud.ply", "point_cloud/iteration_7/point_cloud.ply", "test/ours_7/a.png")
	must.Do(t, ReadWritten(out).Begin(filepath.Join(out, "test/ours_7/a.png")))
	filetest.Make(t, out, "point_cloud/iteration_7/mine.ply", "notes.txt")
	before = filesIn(t, out)
	step, gone := -1, []string{"checkpoints/save_at.json", "checkpoints/step_3.safetensors", MetricsFile,
		"results.json", event + "1" + TensorboardSuffix, "point_cloud/iteration_3/point_cloud.ply", "cameras.json"}
	if resumes {
		step, gone = 3, nil
	}
	old := Replaced(out, step)
	if resumes {
		old = append(old, filepath.Join(out, StatsFile))
	}
	must.Do(t, Stage(out, old, resumes))
	next := filepath.Join(out, NextFolder)
	if _, err := os.Stat(filepath.Join(next, MetricsFile)); (err == nil) != resumes {
		t.Fatalf("a copy of what is added to: %v", err)
	}
	after = maps.Clone(before)
	for _, name := range append(gone, "checkpoints/step_7.safetensors", "point_cloud/iteration_7/point_cloud.ply",
		"test/ours_7/a.png", StatsFile) {
		delete(after, name)
	}
	for _, name := range []string{WrittenFile, "cameras.json", "checkpoints/begun.json",
		event + "2" + TensorboardSuffix, "point_cloud/iteration_5/point_cloud.ply", "test/ours_5/b.png", MetricsFile} {
		filetest.Make(t, next, name)
		must.Do(t, os.WriteFile(filepath.Join(next, name), []byte("new"), 0o666))
		after[name] = "new"
	}
	filetest.Make(t, next, "checkpoints/.step_9.safetensors.tmp1") // cut short: it stays nowhere
	return out, before, after
}

// filesIn maps the files below a folder to their contents, without those of a run that replaces another.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range filetest.List(t, dir) {
		data := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		if !strings.HasPrefix(name, NextFolder) {
			all[name] = string(data)
		}
	}
	return all
}

// killedAfter takes the first n steps of Replace. done says that there are no more.
func killedAfter(t *testing.T, out string, n int) (done bool) {
	t.Helper()
	if !stands(filepath.Join(out, NextFolder)) {
		return true
	}
	steps := must.Get(replaceSteps(out))(t)
	for _, step := range steps[:min(n, len(steps))] {
		must.Do(t, step())
	}
	return n > len(steps)
}

// TestReplaceAnywhere kills a process after each step of the replacing, and the next one after some of those left: the
// new run is always completed, and files of others stay.
func TestReplaceAnywhere(t *testing.T) {
	for _, resumes := range []bool{false, true} {
		for n, done := 0, false; !done; n++ {
			for m, over := n%7, false; !over; m++ {
				out, _, after := replacing(t, resumes)
				filetest.Make(t, out, NextFolder+"/"+StatsFile)
				after[StatsFile] = "x"
				done = killedAfter(t, out, n)
				over = killedAfter(t, out, m) || !filetest.Long()
				next := filepath.Join(out, NextFolder)
				if IsFile(filepath.Join(next, begunName)) && Current(out) != next {
					t.Fatalf("killed after %d and %d steps: the run is not found where it is", n, m)
				}
				must.Get(Recover(out))(t)
				if now := filesIn(t, out); !maps.Equal(now, after) || IsFolder(next) {
					t.Fatalf("killed after %d and %d steps: there are %v, want %v", n, m, now, after)
				}
				if note, err := Recover(out); note != "" || err != nil || Current(out) != out {
					t.Fatalf("once more: %q, %v", note, err)
				}
			}
		}
	}
}

// TestUndoAnywhere kills a process before its run has a checkpoint, and the next one after each file that it removed of
// that: the earlier run is always as it was.
func TestUndoAnywhere(t *testing.T) {
	for _, resumes := range []bool{false, true} {
		for n, done := 0, false; !done; n++ {
			out, before, _ := replacing(t, resumes)
			next := filepath.Join(out, NextFolder)
			filetest.Make(t, next, "checkpoints/step_5.safetensors") // which is not whole
			names := filetest.List(t, next)
			for i, name := range names {
				if i >= n {
					break
				}
				must.Do(t, os.Remove(filepath.Join(next, name)))
			}
			done = n >= len(names)
			if Current(out) != out {
				t.Fatal("a run without a checkpoint counts")
			}
			note, err := Recover(out)
			now := filesIn(t, out)
			if err != nil || !strings.Contains(note, "is as it was") || !maps.Equal(now, before) || IsFolder(next) {
				t.Fatalf("%d files removed: %q, %v; there are %v, want %v", n, note, err, now, before)
			}
		}
	}
}

// TestUnreachable refuses a folder of a run in OUT that lies on another disk, before anything changes.
func TestUnreachable(t *testing.T) {
	out := t.TempDir()
	far, err := os.MkdirTemp("/dev/shm", "vksplat-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(far) // in memory
	dir := filepath.Join(out, CheckpointFolder)
	must.Do(t, os.Symlink(far, dir))
	filetest.Make(t, out, "checkpoints/step_7.safetensors", StatsFile)
	if err := os.Rename(filepath.Join(out, StatsFile), filepath.Join(far, StatsFile)); err == nil {
		t.Skip("it is the same disk")
	}
	before := filesIn(t, far)
	err = RefuseUnreachable(out)
	if !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), dir) || fault.Hint(err) == "" {
		t.Errorf("%v", err)
	}
	if now := filesIn(t, far); !maps.Equal(now, before) {
		t.Errorf("there are %v", now)
	}
}

// TestReplaceFails has a file of the earlier run that cannot be removed: nothing is moved, and once it can be, all is.
func TestReplaceFails(t *testing.T) {
	out, _, after := replacing(t, false)
	filetest.Make(t, out, NextFolder+"/"+StatsFile)
	after[StatsFile] = "x"
	away := filepath.Join(t.TempDir(), "away")
	stuck := filepath.Join(out, "test", "ours_7")
	must.Do(t, errors.Join(os.Rename(stuck, away), os.WriteFile(stuck, nil, 0o666)))
	if err := Replace(out); err == nil || fault.Hint(err) == "" {
		t.Fatalf("a picture below a file is removed: %v", err)
	}
	must.Do(t, errors.Join(os.Remove(stuck), os.Rename(away, stuck)))
	must.Do(t, Replace(out))
	if now := filesIn(t, out); !maps.Equal(now, after) {
		t.Errorf("there are %v, want %v", now, after)
	}
}

// TestNextLink leaves a link in the place of NextFolder alone, and what it leads to.
func TestNextLink(t *testing.T) {
	out, other := t.TempDir(), t.TempDir()
	filetest.Make(t, other, StatsFile, begunName)
	if err := os.Symlink(other, filepath.Join(out, NextFolder)); err != nil {
		t.Skip(err)
	}
	note, err := Recover(out)
	if note != "" || err != nil || Current(out) != out || !IsFile(filepath.Join(other, StatsFile)) {
		t.Errorf("%q, %v", note, err)
	}
	if err := Stage(out, nil, false); fault.Hint(err) == "" {
		t.Errorf("a run writes to where a link leads: %v", err)
	}
}
