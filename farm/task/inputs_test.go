//go:build unix

package task

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene/scenetest"
)

// TestDamagedInput says how results of another task are made whole.
func TestDamagedInput(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarmOf(t, "[[task]]\nkind = \"train\"\nsource = \"scan\"\n"+
		"[[task]]\nkind = \"render\"\nmodel = \"@train\"\ntrajectory = \"interp\"\nframes = \"5-12\"\n")
	must.Get(Run(t.Context(), f.options(0, 1, "a")))(t)
	out := filepath.Join(f.top, "results", "job", "train", "out")
	for _, damage := range []func() error{
		func() error { return os.Remove(filepath.Join(out, "model")) },
		func() error { return os.WriteFile(filepath.Join(out, "MANIFEST.json"), []byte("{"), 0o666) },
	} {
		must.Do(t, damage())
		_, err := Run(t.Context(), f.options(1, 1, "b"))
		want := "vksplat farm fsck " + filepath.Join(f.top, "results", "job") + " --repair"
		if !errors.Is(err, fault.ErrData) || !strings.Contains(fault.Hint(err), want) {
			t.Errorf("%v, hint %q", err, fault.Hint(err))
		}
	}
}

// TestTableNamesModels names models in the table of an eval as the job does, wherever they are on this machine.
func TestTableNamesModels(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarmOf(t, "[[task]]\nkind = \"eval\"\nmodels = [\"scan/photo\"]\nsource = \"scan\"\n")
	must.Get(Run(t.Context(), f.options(0, 1, "a")))(t)
	if table := f.read("eval", "out", "table.md"); !strings.Contains(table, "\nscan/photo: drawn") ||
		strings.Contains(table, f.top) {
		t.Errorf("the table is %s", table)
	}
}

// TestGather measures the models that there are where the tasks of others have failed, and names these; it waits where
// nobody says that they have. Once there are more, the same call measures all.
func TestGather(t *testing.T) {
	t.Setenv(fakeVariable, quick)
	f := newFarmOf(t, "[[task]]\nkind = \"train\"\nid = \"m\"\nmatrix.source = [\"scan\", \"other\", \"third\"]\n"+
		"[[task]]\nkind = \"eval\"\nmodels = [\"@m\"]\n")
	for _, name := range []string{"other", "third"} {
		from := os.DirFS(filepath.Join(f.top, "in", "scan"))
		must.Do(t, os.CopyFS(filepath.Join(f.top, "in", name), from))
	}
	measure := func(gather bool) (*store.Manifest, error) {
		o := f.options(3, 0, "a")
		o.Gather = gather
		return Run(t.Context(), o)
	}
	if _, err := measure(true); ExitOf(err) != fault.ExitData || !strings.Contains(err.Error(), "none of its models") {
		t.Errorf("without any model: %v", err)
	}
	must.Get(Run(t.Context(), f.options(0, 0, "a")))(t)
	if _, err := measure(false); ExitOf(err) != fault.ExitTryAgain {
		t.Errorf("without a model that may come: %v", err)
	}
	for n, want := range []struct {
		missing    []string
		generation int
	}{{[]string{"m/source=other", "m/source=third"}, 0}, {[]string{"m/source=third"}, 1}, {nil, 2}} {
		if n > 0 {
			must.Get(Run(t.Context(), f.options(n, 0, "a")))(t)
		}
		if n == 1 { // nobody says that the third has failed: what is there stays
			if m, err := measure(false); err != nil || m.Generation != 0 {
				t.Errorf("%+v, %v", m, err)
			}
		}
		for range 2 { // the second time nothing has changed
			m, err := measure(n < 2)
			if err != nil || !slices.Equal(m.Missing, want.missing) || m.Generation != want.generation {
				t.Fatalf("%+v, %v; want %+v", m, err, want)
			}
		}
		said := "\nMissing, because these tasks failed: " + strings.Join(want.missing, ", ") + "\n"
		table := f.read("eval", "out", "table.md")
		if strings.Contains(table, said) != (n < 2) || strings.Count(table, "| 1.000 |") != n+1 {
			t.Errorf("the table is %s", table)
		}
	}
}

// TestPlaces names inputs and results by their keys in what a training writes, and by their places in the store in its
// log: no folder of this machine.
func TestPlaces(t *testing.T) {
	t.Setenv(fakeVariable, quick)
	f := newFarm(t, "")
	for _, inPlace := range []bool{true, false} {
		o := f.options(0, 0, "work of "+strconv.FormatBool(inPlace))
		o.InPlace = inPlace
		must.Get(Run(t.Context(), o))(t)
		if args := f.read("train", "out", "cfg_args"); args != "source_path=scan, model_path=job/train/out" {
			t.Errorf("it names %s", args)
		}
		log := f.read("train", "log", "a00001.log")
		want := "Z model: " + filepath.Join(f.top, "results") + "/job/train/out/model\n"
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
		for line := range strings.Lines(log) {
			if _, err := time.Parse(logTime, line[:min(len(line), len(logTime))]); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
		must.Do(t, os.RemoveAll(filepath.Join(f.top, "results", "job")))
	}
}

// TestLeadsOut refuses an input with a link that leads out of the root, also where it is read in its place.
func TestLeadsOut(t *testing.T) {
	t.Setenv(fakeVariable, quick)
	f := newFarm(t, "")
	if err := os.Symlink(t.TempDir(), filepath.Join(f.top, "in", "scan", "images")); err != nil {
		t.Skip(err)
	}
	for _, inPlace := range []bool{true, false} {
		o := f.options(0, 0, "a")
		o.InPlace = inPlace
		_, err := Run(t.Context(), o)
		if ExitOf(err) != fault.ExitData || !strings.Contains(err.Error(), "scan/images") {
			t.Errorf("in place %v: %v", inPlace, err)
		}
	}
}

// TestForeignPhotos refuses a capture whose files name a photo outside of the root of inputs, and
// trains one whose photos are all below it, as where the job names their folder.
func TestForeignPhotos(t *testing.T) {
	t.Setenv(fakeVariable, quick)
	secret := filepath.Join(t.TempDir(), "secret.png")
	scenetest.WritePhoto(t, secret, scenetest.TinyWidth, scenetest.TinyHeight)
	const task = "[[task]]\nkind = \"train\"\nsource = \"scan\"\n"
	for _, c := range []struct {
		name, key string
		refused   bool
	}{{"images/p0.png", "", false}, {secret, "", true}, {secret, "images = \"images\"\n", false},
		{secret, "set = { format = \"transforms\" }\n", true}} {
		f := newFarmOf(t, task+c.key)
		frames := scenetest.TinyFrames("images")
		for i := range frames {
			name := "images/p" + strconv.Itoa(i) + ".png"
			frames[i]["file_path"] = name
			scenetest.WritePhoto(t, filepath.Join(f.top, "in", "scan", name), scenetest.TinyWidth, scenetest.TinyHeight)
		}
		frames[0]["file_path"] = c.name
		scenetest.PutJSON(t, filepath.Join(f.top, "in", "scan", "transforms.json"),
			scenetest.TinyTop().With("frames", frames))
		for _, inPlace := range []bool{true, false} {
			o := f.options(0, 0, "a")
			o.InPlace = inPlace
			_, err := Run(t.Context(), o)
			if c.refused && (ExitOf(err) != fault.ExitData || !strings.Contains(err.Error(), "fetch input: scan: it reads "+
				secret) || fault.Hint(err) == "") || !c.refused && err != nil {
				t.Errorf("%s, %q, in place %v: %v", c.name, c.key, inPlace, err)
			}
		}
	}
}
