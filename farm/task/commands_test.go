//go:build unix

package task

import (
	"errors"
	"fmt"
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

// fakeCommand is a child that notes its command line in file.
func fakeCommand(file string, args []string, flags map[string]string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.Join(args, " "))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	out, last := flags["output"], args[len(args)-1]
	made := map[string]string{
		"demo":      filepath.Join(flags["model-path"], "photo"),
		"capture":   filepath.Join(out, "images", "photo"),
		"train":     filepath.Join(flags["model-path"], "model"),
		"partition": filepath.Join(out, "plan.json"),
		"merge":     filepath.Join(last, "finetuned", "model"),
		"render":    filepath.Join(out, "0.png"),
		"encode":    out,
		"eval":      filepath.Join(out, "results.json"),
		"convert":   last,
	}[args[0]]
	text := `{"capture": {"scene": "there"}}`
	if args[0] == "merge" {
		err = os.WriteFile(filepath.Join(last, "merge.json"), []byte("{}"), 0o666)
	}
	if args[0] == "eval" {
		text = `{"m": {"PSNR": 1}}`
	}
	return errors.Join(err, os.MkdirAll(filepath.Dir(made), 0o777), os.WriteFile(made, []byte(text), 0o666))
}

// everyKind is a job with tasks of all kinds.
const everyKind = `
[[task]]
kind = "demo"
images = 4
[[task]]
kind = "capture"
source = "scan"
masks = "scan"
vocab_tree = "scan/photo"
fps = 2.5
cameras = "one"
camera_model = "OPENCV"
max_size = 1600
matching = "sequential"
loops = true
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

// wantCommands are the children of everyKind, in the order of its tasks.
const wantCommands = `
demo --capture-only --model-path=/local/out --images=4
capture --fps=2.5 --cameras=one --camera-model=OPENCV --max-size=1600 --matching=sequential --loops=true \
  --model=1 --output=/local/out --progress=none --masks=/in/scan --vocab-tree=/in/scan/photo -- /in/scan
capture --output=/local/out --progress=none -- /local/pictures
train --device=1 --model-path=/local/out --resume --progress=none \
  --preview=/local/preview.jpg --checkpoint-every=5.0000m --preset=default --iterations=300 -- /local/cache
partition --device=1 --overlap=0.5 --blocks=1x2 --output=/local/out -- /in/scan
train --device=1 --model-path=/local/out --resume --progress=none \
  --preview=/local/preview.jpg --checkpoint-every=5.0000m --preset=default --block=0 -- /local/plan
train --device=1 --model-path=/local/out --resume --progress=none \
  --preview=/local/preview.jpg --checkpoint-every=5.0000m --preset=default --block=1 -- /local/plan
merge --device=1 --finetune=7 -- /local/plan
render --device=1 --trajectory=orbit --size=64x48 --output=/local/out --frames=0-1 \
  --name=frame_%06d -- /local/cache
render --device=1 --trajectory=orbit --size=64x48 --output=/local/out --frames=2-3 \
  --name=frame_%06d -- /local/cache
render --device=1 --output=/local/out --cameras=/in/scan --trajectory=/in/scan/photo \
  --name=frame_%06d -- /local/cache/model.compressed.ply
encode --fps=24 --output=/local/out/video.mp4 -- /local/pictures
encode --output=/local/out/video.webm -- /in/scan
eval --device=1 --protocol=inria --capture=/local/cache --output=/local/out/train -- /local/cache
eval --device=1 --protocol=inria --capture=/in/scan --output=/local/out/city/merge -- /local/cache
eval --device=1 --protocol=inria --capture=/in/scan --output=/local/out/spz -- /local/cache/model.compressed.ply
convert --to=compressed-ply -- /local/cache /local/out/model.compressed.ply
`

// TestCommandLines compares the commands of every kind with what they should be.
func TestCommandLines(t *testing.T) {
	f := newFarmOf(t, everyKind)
	file := filepath.Join(f.top, "commands")
	t.Setenv(fakeVariable, notesIn+file)
	plan := must.Get(f.job.Plan())(t)
	for _, kind := range regexp.MustCompile(`"const": "([a-z]+)"`).FindAllSubmatch(spec.Schema(), -1) {
		if !strings.Contains(everyKind, fmt.Sprintf("kind = %q", kind[1])) {
			t.Errorf("everyKind has no task of kind %s", kind[1])
		}
	}
	said := make([]string, len(plan.Tasks))
	folder := regexp.MustCompile(`/(local|cache)/[0-9a-f/]*[0-9a-f]{24,}[-0-9a-f]*`)
	breaks := strings.NewReplacer(" --preview=", " \\\n  --preview=", " --name=", " \\\n  --name=", " --model=",
		" \\\n  --model=")
	for left := len(plan.Tasks); left > 0; {
		before := left
		for i := range plan.Tasks {
			if said[i] != "" || slices.ContainsFunc(plan.Tasks[i].Needs, func(k int) bool { return said[k] == "" }) {
				continue
			}
			o := f.options(i, 1, "local")
			o.InPlace, o.Device = true, "1"
			if _, err := Run(t.Context(), o); err != nil {
				t.Fatalf("%s: %v", plan.Tasks[i].Name, err)
			}
			data, err := os.ReadFile(file)
			must.Do(t, errors.Join(err, os.Remove(file)))
			text := folder.ReplaceAllString(strings.ReplaceAll(string(data), f.top, ""), "/$1")
			said[i] = breaks.Replace(text)
			left--
		}
		if left == before {
			t.Fatal("no task can run")
		}
	}
	if got := "\n" + strings.Join(said, ""); got != wantCommands {
		t.Errorf("the commands are:%s", got)
	}
}

// newFarmOf is newFarm with other tasks.
func newFarmOf(t *testing.T, tasks string) *farm {
	t.Helper()
	f := newFarm(t, "")
	f.job, _ = spectest.Job(t, "version = 1\nname = \"job\"\n"+tasks)
	return f
}
