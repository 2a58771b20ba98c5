//go:build unix

package task

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	must "vksplat/internal/musttest"
)

// notesIn in front of a file's name has the fake child write its command line there, and make what others read.
const notesIn = "notes in "

// fakeCommand is a child that notes its command line in file, and writes results.
func fakeCommand(file string, args []string, flags map[string]string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.Join(args, " "))
	err = errors.Join(err, f.Close())
	last := args[len(args)-1]
	out := cmp.Or(flags["output"], flags["model-path"], last)
	made := map[string]string{filepath.Join(out, "0.png"): ""}
	switch {
	case args[0] == "partition":
		made[filepath.Join(out, "plan.json")] = `{"capture": {"scene": "there"}}`
	case args[0] == "merge":
		made = map[string]string{filepath.Join(last, "merge.json"): "{}", filepath.Join(last, "finetuned", "model"): ""}
	case args[0] == "eval":
		made[filepath.Join(out, "results.json")] = `{"m": {"PSNR": 1}}`
	case filepath.Ext(out) != "":
		made = map[string]string{out: ""}
	}
	for path, text := range made {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666))
	}
	return err
}

// manyTasks are tasks beside those of docs/farm-jobs.md.
const manyTasks = `version = 1
name = "job"
[[task]]
kind = "demo"
images = 4
[[task]]
kind = "capture"
source = "scan"
masks = "scan"
fps = 2.5
cameras = "one"
camera_model = "OPENCV"
max_size = 1600
matching = "sequential"
component = 1
[[task]]
kind = "capture"
id = "drawn"
source = "@fly"
[[task]]
kind = "train"
source = "@demo"
preset = "default"
set.iterations = 300
[[task]]
kind = "partition"
id = "city"
source = "scan"
blocks = [1, 2]
overlap = 0.5
preset = "default"
finetune = 7
[[task]]
kind = "render"
id = "fly"
model = "@train"
trajectory = "orbit"
frames = "0-3"
chunk = 2
size = [64, 48]
[[task]]
kind = "render"
id = "path"
model = "@spz"
trajectory = "scan/photo"
cameras = "scan"
[[task]]
kind = "encode"
source = "@fly"
fps = 24
[[task]]
kind = "encode"
id = "folder"
source = "scan"
format = "webm"
[[task]]
kind = "eval"
models = ["@train", "@city", "@spz"]
protocol = "inria"
[[task]]
kind = "convert"
id = "spz"
model = "@city"
to = "compressed-ply"
`

var update = flag.Bool("update", false, "write testdata/commands.txt again")

// TestCommandLines compares the commands of the examples of docs/farm-jobs.md, which has one of each kind, and of
// manyTasks with testdata/commands.txt. Of a [[task]] with many tasks it runs two.
func TestCommandLines(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/farm-jobs.md"))(t))
	docs := []string{manyTasks}
	for _, text := range strings.Split(page, "```toml\n")[1:] {
		doc, _, _ := strings.Cut(text, "```")
		docs = append(docs, doc)
	}
	for _, kind := range regexp.MustCompile(`"const": "([a-z]+)"`).FindAllSubmatch(spec.Schema(), -1) {
		if !strings.Contains(strings.Join(docs[1:], ""), fmt.Sprintf("kind = %q", kind[1])) {
			t.Errorf("docs/farm-jobs.md has no example of kind %s", kind[1])
		}
	}
	var got strings.Builder
	for _, doc := range docs {
		commandsOf(t, doc, &got)
	}
	const file = "testdata/commands.txt"
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got.String()), 0o666))
	}
	if want := string(must.Get(os.ReadFile(file))(t)); got.String() != want {
		t.Errorf("make docs writes %s again; the commands are:\n%s", file, got.String())
	}
}

// commandsOf runs the tasks of a job, and writes the command lines of its children in the order of the plan.
func commandsOf(t *testing.T, doc string, to io.Writer) {
	f := newFarm(t, "")
	var plan *spec.Plan
	f.job, plan = spectest.Job(t, doc)
	file := filepath.Join(f.top, "commands")
	t.Setenv(fakeVariable, notesIn+file)
	runs, ofID := map[int]bool{}, map[string]int{}
	for i := range plan.Tasks {
		task := &plan.Tasks[i]
		if ofID[task.ID]++; ofID[task.ID] > 2 && doc != manyTasks {
			continue
		}
		runs[i] = true
		for _, key := range task.Keys() {
			path := filepath.Join(f.top, "in", key)
			if filepath.Ext(key) == "" && key != "scan/photo" {
				path = filepath.Join(path, "photo")
			}
			must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
			must.Do(t, os.WriteFile(path, []byte("x"), 0o666))
		}
	}
	said := map[int]string{}
	folder := regexp.MustCompile(`/(local|cache)/[0-9a-f/]*[0-9a-f]{24,}[-0-9a-f]*`)
	for before := -1; before < len(said); {
		before = len(said)
		for i := range plan.Tasks {
			if !runs[i] || said[i] != "" ||
				slices.ContainsFunc(plan.Tasks[i].Needs, func(k int) bool { return said[k] == "" }) {
				continue
			}
			o := f.options(i, 1, "local")
			o.InPlace, o.Device = true, "1"
			if _, err := Run(t.Context(), o); err != nil {
				t.Fatalf("%s: %v", plan.Tasks[i].Name, err)
			}
			data, err := os.ReadFile(file)
			must.Do(t, errors.Join(err, os.Remove(file)))
			said[i] = folder.ReplaceAllString(strings.ReplaceAll(string(data), f.top, ""), "/$1")
		}
	}
	if doc == manyTasks && len(said) < len(plan.Tasks) {
		t.Errorf("%d of %d tasks ran", len(said), len(plan.Tasks))
	}
	for i := range plan.Tasks {
		_, err := io.WriteString(to, said[i])
		must.Do(t, err)
	}
}

// newFarmOf is newFarm with other tasks.
func newFarmOf(t *testing.T, tasks string) *farm {
	t.Helper()
	f := newFarm(t, "")
	f.job, _ = spectest.Job(t, "version = 1\nname = \"job\"\n"+tasks)
	return f
}
