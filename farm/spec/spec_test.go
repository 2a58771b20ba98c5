package spec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
)

// head begins documents of tests.
const head = "version = 1\nname = \"job\"\n"

// good are documents that parser and schema take, with the names of their tasks.
var good = []struct {
	doc   string
	tasks []string
}{
	{head + "[[task]]\nkind = \"train\"\nsource = \"scans/garden\"\n", []string{"train"}},
	{`{"version": 1, "name": "job", "task": [{"kind": "train", "source": "a", "set": {"iterations": 3e2, "near": 0.5, "sh-degree": 2}}]}`, []string{"train"}},
	{head + `
priority = "high"
pool = "gpu24"
[retry]
max_attempts = 2
backoff = "1m30s"
keep_going = false
[limits]
stall_timeout = "90s"
[store]
inputs = "scans"
[pin]
device = "NVIDIA H200"
[[task]]
id = "Größe 大"
kind = "train"
source = "Aufnahmen/Größe 1"
preset = "mcmc"
[task.set]
iterations = 300
background = [1, 1, 1]
eval = true
[[task]]
kind = "eval"
models = ["@Größe 大"]
[[task]]
kind = "eval"
models = ["old/model.ply", "@Größe 大"]
source = "Aufnahmen/Größe 1"
`, []string{"Größe 大", "eval", "eval-2"}},
	{head + `
[[task]]
kind = "train"
id = "sweep"
matrix.source = ["garden", "a/b"]
matrix.sh_degree = [2, 3]
[[task]]
kind = "render"
id = "fly"
model = "@sweep"
trajectory = "ellipse"
`, []string{"sweep/sh_degree=2,source=garden", "sweep/sh_degree=2,source=a-b~2", "sweep/sh_degree=3,source=garden", "sweep/sh_degree=3,source=a-b~4",
		"fly/sh_degree=2,source=garden", "fly/sh_degree=2,source=a-b~2", "fly/sh_degree=3,source=garden",
		"fly/sh_degree=3,source=a-b~4"}},
	{head + `
[[task]]
kind = "render"
id = "fly"
model = "m.ply"
trajectory = "cams/path.json"
frames = "0-9"
chunk = 4
first = [5]
size = [64, 48]
[[task]]
kind = "encode"
source = "@fly"
`, []string{"fly/first-0005", "fly/0000-0003", "fly/0004-0004", "fly/0006-0009", "encode"}},
	{head + "[[task]]\nkind = \"partition\"\nid = \"city\"\nsource = \"city\"\nblocks = [2, " +
		"1]\n[task.set]\niterations = 7\n[[task]]\nkind = \"convert\"\nmodel = \"@city\"\nto = \"spz\"\n",
		[]string{"city/partition", "city/block-0", "city/block-1", "city/merge", "convert"}},
	{head + `
[[task]]
kind = "demo"
id = "made"
matrix.seed = [1, 2]
[[task]]
kind = "train"
id = "model"
source = "@made"
[[task]]
kind = "render"
id = "views"
model = "@model"
cameras = "@made"
[[task]]
kind = "eval"
models = ["@model"]
`, []string{"made/seed=1", "made/seed=2", "model/seed=1", "model/seed=2", "views/seed=1", "views/seed=2", "eval"}},
}

// bad are documents that are refused: where, with which words and hint. The schema refuses them as well, but where more
// than one value decides.
var bad = []struct {
	doc, text, hint string
	line            int
	more            bool // than the schema knows
}{
	{doc: "", text: `missing key "version" (use version = 1)`},
	{doc: "{", text: "it ends too early", line: 1},
	{doc: "{}}", text: "invalid character '}' after top-level value", line: 1},
	{doc: "{\"name\": \"job\n\"}", text: "invalid character '\\n' in string literal", line: 1},
	{doc: "[]", text: "unexpected end of table name", line: 1},
	{doc: head, text: `missing key "task" (the tasks)`},
	{doc: "version = 2\n" + head[12:], text: "version: 2 is not supported, only 1 is", line: 1},
	{doc: head + "task = []", text: "the list has 0 elements"},
	{doc: head + "prioritty = \"high\"\n[[task]]\nkind = \"demo\"", text: `unknown key "prioritty"`,
		hint: "did you mean priority?", line: 3},
	{doc: head + "[[task]]\nkind = \"demo\"\n[[task]]\nkind = \"train\"\nsource = \"a\"\n[task.set]\nseed = " +
		"2\niteratons = 5", text: `task 2: set.iteratons: unknown key "iteratons"`, hint: "did you mean iterations?",
		line: 10},
	{doc: "{\"version\": 1, \"name\": \"job\",\n\"task\": [{\"kind\": \"demo\"},\n{\"kind\": \"train\", \"source\": " +
		"\"a\",\n\"set\": {\"seed\": 1,\n \"iterations\": 0.5}}]}", text: "expected a whole number", line: 5},
	{doc: head + "[[task]]\nkind = \"trian\"\nsource = \"a\"", text: `there is no kind "trian"`,
		hint: "did you mean train?", line: 4},
	{doc: head + "[[task]]\nkind = \"block\"\nsource = \"a\"", text: "cannot be written", hint: "partition", line: 4},
	{doc: head + "[[task]]\nsource = \"a\"", text: `missing key "kind"`, line: 3},
	{doc: head + "[[task]]\nkind = \"train\"", text: `missing key "source" (the capture)`, line: 3},
	{doc: head + "[[task]]\nkind = 1", text: "kind: expected a text", line: 4},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"/data/fox\"",
		text: `must be relative paths, not "/data/fox"`, hint: "from the root of inputs", line: 5},
	{doc: "name = \"nul.txt\"\nversion = 1\n[[task]]\nkind = \"demo\"", text: "is a device on Windows", line: 1,
		more: true},
	{doc: head + "[[task]]\nkind = \"demo\"\nid = \"\u202e\"", text: "does not show", line: 5, more: true},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\ncommand = \"rm\"", text: `unknown key "command"`,
		line: 6},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nenvironment.PATH = \"/\"",
		text: `unknown key "environment"`},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nforce = true", text: `unknown key "force"`,
		hint: "--accept-changes and --overwrite", line: 6},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.clearance = 0.5", text: `unknown key "clearance"`,
		hint: "use carve"},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.force = true", text: `unknown key "force"`,
		hint: "--accept-changes and --overwrite"},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.image_cache = \"x\"",
		text: `unknown key "image_cache"`},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.init = \"ply:x\"", text: `"ply:x" is not one of`},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.origin = \"../x\"",
		text: "has characters that are not allowed"},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.near = nan",
		text: "NaN is out of range", line: 6},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.near = 1e400", text: ""},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.iterations = 9223372036854775808",
		text: "out of range", line: 6},
	{doc: `{"version": 1, "name": "job", "task": [{"kind": "train", "source": "a", "set": {"near": 1e400}}]}`,
		text: "1e400 is out of range", more: true},
	{doc: `{"version": 1, "name": "job", "name": "other", "task": [{"kind": "demo"}]}`,
		text: `key "name" occurs twice`, more: true},
	{doc: `{"version": null, "name": "job", "task": [{"kind": "demo"}]}`, text: "jobs have no null values"},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.iterations = 2026-01-01", text: "no dates"},
	{doc: head + "[store]\ninputs = \"file:///etc\"\n[[task]]\nkind = \"demo\"", text: "is not a valid name",
		hint: "roots says", line: 4},
	{doc: head + "[limits]\nlease = \"forever\"\n[[task]]\nkind = \"demo\"", text: "is not a duration", line: 4},
	{doc: head + "[limits]\nlease = \"1000h\"\n[[task]]\nkind = \"demo\"", text: "is not a duration above 0", line: 4,
		more: true},
	{doc: head + "[[task]]\nkind = \"demo\"\nid = \"a\"\n[[task]]\nkind = \"demo\"\nid = \"A\"",
		text: `id "A" is also that of task 1`, line: 8, more: true},
	{doc: head + "[[task]]\nkind = \"demo\"\nsize = [64]", text: "expected 2 numbers", line: 5},
	{doc: head + "[[task]]\nkind = \"demo\"\nmatrix.images = []", text: "a list of values is needed"},
	{doc: head + "[[task]]\nkind = \"demo\"\nmatrix.images = [3, 3]", text: "3 occurs twice"},
	{doc: head + "[[task]]\nkind = \"demo\"\nimages = 4\nmatrix.images = [3]", text: "gives images twice"},
	{doc: head + "[[task]]\nkind = \"demo\"\nmatrix.iterations = [3]", text: `unknown key "iterations"`},
	{doc: head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nset.iterations = 1\nset.max_steps = 2",
		text: "is set already", more: true},
	{doc: head + "[[task]]\nkind = \"render\"\nmodel = \"m\"\nframes = \"9-0\"", text: "backwards", more: true},
	{doc: head + "[[task]]\nkind = \"render\"\nmodel = \"m\"\nchunk = 5", text: "chunk and first need frames",
		more: true},
	{doc: head + "[[task]]\nkind = \"render\"\nmodel = \"m\"\nframes = \"0-9\"\nfirst = [10]",
		text: "frame 10 is not in 0-9", line: 7, more: true},
	{doc: head + "[[task]]\nkind = \"render\"\nmodel = \"@nothing\"", text: `there is no task "nothing"`, line: 5,
		more: true},
	{doc: head + "[[task]]\nkind = \"demo\"\nid = \"garden\"\n[[task]]\nkind = \"train\"\nsource = \"@gardn\"",
		text: `there is no task "gardn"`, hint: "did you mean garden?", line: 8, more: true},
	{doc: head + "[[task]]\nkind = \"demo\"\nid = \"garden\"\n[[task]]\nkind = \"render\"\nmodel = \"@garden\"",
		text: "a model is needed, but garden makes a capture", line: 8, more: true},
	{doc: head + "[[task]]\nkind = \"demo\"\nid = \"a\"\nneeds = [\"b\"]\n[[task]]\nkind = \"demo\"\nid = " +
		"\"b\"\nneeds = [\"a\"]", text: "cycle: a -> b -> a", line: 10, more: true},
	{doc: head + "[[task]]\nkind = \"demo\"\nid = \"a\"\nneeds = [\"a\"]", text: "cycle: a -> a", line: 6, more: true},
	{doc: head + "[[task]]\nkind = \"eval\"\nmodels = [\"m.ply\"]", text: "cannot tell which capture", more: true},
	{doc: head + "[[task]]\nkind = \"partition\"\nsource = \"a\"\nblocks = [65, 65]", text: "4096 are allowed",
		more: true},
	{doc: head + "x." + strings.Repeat("a.", 100_000) + "b = 1", text: "more than 16", line: 3, more: true},
	{doc: head + "x = " + strings.Repeat("[", 200_000), text: "more than 16", line: 3, more: true},
	{doc: `{"x": ` + strings.Repeat("[", 200_000), text: "more than 16", line: 1, more: true},
	{doc: head + "x = \"\xff\"", text: "not UTF-8", line: 3, more: true},
	{doc: strings.Repeat("#", MaxDocument+1), text: "it is larger than 256 KiB", more: true},
}

func TestDocuments(t *testing.T) {
	schema := compiled(t)
	for _, test := range good {
		j, p, err := planOf(test.doc)
		if err != nil {
			t.Errorf("%s\n%v", test.doc, err)
			continue
		}
		var names []string
		for i, task := range p.Tasks {
			names = append(names, task.Name)
			if task.Index != i {
				t.Errorf("task %d has the index %d", i, task.Index)
			}
		}
		if !slices.Equal(names, test.tasks) {
			t.Errorf("%s\ntasks %q, want %q", test.doc, names, test.tasks)
		}
		if err := validate(schema, j); err != nil {
			t.Errorf("%s\nthe schema refuses it: %v", test.doc, err)
		}
		checkPlan(t, test.doc, j, p)
	}
	for _, test := range bad {
		name := fmt.Sprintf("%.300s", test.doc)
		_, _, err := planOf(test.doc)
		switch {
		case !errors.Is(err, ErrSpec):
			t.Errorf("%s\naccepted, or refused by no Error: %v", name, err)
			continue
		case !strings.Contains(err.Error(), test.text), !strings.Contains(fault.Hint(err), test.hint), test.line > 0 &&
			lineIn(err) != test.line:
			t.Errorf("%s\nerror %v, hint %s; want line %d, %q and %q", name, err, fault.Hint(err), test.line, test.text,
				test.hint)
		}
		// The tree of what was read is there even where its content is refused.
		j := &Job{text: []byte(test.doc)}
		if len(test.doc) > MaxDocument {
			continue
		}
		err = j.readText()
		if err == nil && j.tree != nil && (validate(schema, j) == nil) != test.more {
			t.Errorf("%s\nthe schema accepts it: %v, want %v", name, !test.more, test.more)
		}
	}
}

// lineIn is the line that an error names, 0 for none.
func lineIn(err error) int {
	_, text, _ := strings.Cut(fmt.Sprint(err), "job.toml:")
	text, _, _ = strings.Cut(text, ":")
	line, _ := strconv.Atoi(text)
	return line
}

func planOf(doc string) (*Job, *Plan, error) {
	j, err := Parse("job.toml", []byte(doc))
	if err != nil {
		return nil, nil, err
	}
	p, err := j.Plan()
	return j, p, err
}

func validate(schema *jsonschema.Schema, j *Job) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(j.Canonical()))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// checkPlan checks what is true of every plan: what came of the canonical form is the same, tasks wait for what they
// read and never in a circle, names are different folders.
func checkPlan(t *testing.T, doc string, j *Job, p *Plan) {
	t.Helper()
	again, twin, err := planOf(string(j.Canonical()))
	if err != nil {
		t.Fatalf("%s\nits canonical form is refused: %v\n%s", doc, err, j.Canonical())
	}
	if !bytes.Equal(again.Canonical(), j.Canonical()) || again.Hash() != j.Hash() ||
		fmt.Sprint(twin.Tasks) != fmt.Sprint(p.Tasks) {
		t.Fatalf("%s\nits canonical form is another job", doc)
	}
	if len(p.Tasks) == 0 || len(p.Tasks) > MaxTasks {
		t.Fatalf("%s\n%d tasks", doc, len(p.Tasks))
	}
	taken := map[string]bool{}
	depth := make([]int, len(p.Tasks)) // 1 + that of the deepest need, once it is known
	var visit func(i, chain int)
	visit = func(i, chain int) {
		if chain > len(p.Tasks) {
			t.Fatalf("%s\ntasks wait in a circle", doc)
		}
		if depth[i] > 0 {
			return
		}
		for _, k := range p.Tasks[i].Needs {
			visit(k, chain+1)
			depth[i] = max(depth[i], depth[k])
		}
		depth[i]++
	}
	for i := range p.Tasks {
		task := &p.Tasks[i]
		visit(i, 0)
		if taken[fold(task.Name)] || CheckKey(task.Name) != nil {
			t.Fatalf("%s\nname %q is no folder of its own: %v", doc, task.Name, CheckKey(task.Name))
		}
		taken[fold(task.Name)] = true
		inputs := []Input{task.Source, task.Cameras, task.Trajectory, task.Plan}
		for _, m := range task.Models {
			inputs = append(inputs, m.Input)
		}
		for _, in := range inputs {
			for _, k := range in.Tasks {
				if !slices.Contains(task.Needs, k) {
					t.Fatalf("%s\n%s reads task %d and does not wait for it", doc, task.Name, k)
				}
			}
			if in.Key != "" && CheckKey(in.Key) != nil {
				t.Fatalf("%s\n%s reads %q", doc, task.Name, in.Key)
			}
		}
	}
}

// TestBombs wants small documents that stand for huge jobs refused, without much garbage on the way.
func TestBombs(t *testing.T) {
	list := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = fmt.Sprint(i + 1)
		}
		return strings.Join(words, ",")
	}
	sweep := func(n int) string {
		return "[[task]]\nkind = \"demo\"\nid = \"sweep\"\nmatrix.seed = [" + list(n) + "]\n"
	}
	for name, doc := range map[string]string{
		"matrix of 10^9": head + "[[task]]\nkind = \"train\"\nsource = \"a\"\nmatrix.iterations = [" +
			list(1000) + "]\nmatrix.seed = [" + list(1000) + "]\nmatrix.splats = [" + list(1000) + "]\n",
		"frames": head + "[[task]]\nkind = \"render\"\nmodel = \"m\"\nframes = \"0-999999999\"\nchunk " +
			"= 1\n",
		"needs": head + sweep(20_000) +
			"[[task]]\nkind = \"render\"\nmodel = \"m\"\nframes = \"0-50000\"\nchunk = 1\nneeds = [\"sweep\"]\n",
		"two needs": head + sweep(20_000) + "[[task]]\nkind = \"train\"\nid=\"t\"\nmatrix.seed=[" +
			list(1000) + "]\nsource = \"a\"\nneeds = [\"sweep\"]\n",
		"joins": head + sweep(30_000) +
			"[[task]]\nkind = \"train\"\nid=\"t\"\nsource=\"@sweep\"\n[[task]]\nkind = \"eval\"\nmodels = " +
			"[\"@t\"]\nsource=\"scan\"\nmatrix.test_every=[" + list(1000)[2:] + "]\n",
		"product of references": head + sweep(1000) + "[[task]]\nkind = \"train\"\nid=\"t\"\nmatrix.seed=[" +
			list(1000) + "]\nsource=\"@sweep\"\n",
	} {
		began := time.Now()
		allocated := filetest.Allocated()
		_, _, err := planOf(doc)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		took := allocated()
		if took > 1<<30 {
			t.Errorf("%s: took %d MiB", name, took>>20)
		}
		t.Logf("%s: %v, %.1f s, %d MiB", name, err, time.Since(began).Seconds(), took>>20)
	}
}

// TestLargest plans as many tasks as a job can have.
func TestLargest(t *testing.T) {
	j, p, err := planOf(head +
		"[[task]]\nkind = \"render\"\nid = \"fly\"\nmodel = \"m\"\nframes = \"0-99998\"\nchunk " +
		"= 1\n[[task]]\nkind = \"encode\"\nsource = \"@fly\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Tasks); n != MaxTasks || len(p.Tasks[n-1].Needs) != n-1 || len(j.Canonical()) > 300 {
		t.Errorf("%d tasks", n)
	}
}

// TestLargeSweep follows a sweep through several tasks without comparing each with each.
func TestLargeSweep(t *testing.T) {
	var seeds []string
	for i := range 20_000 {
		seeds = append(seeds, fmt.Sprint(i))
	}
	_, p, err := planOf(head + "[[task]]\nkind = \"demo\"\nmatrix.seed = [" + strings.Join(seeds, ",") +
		"]\n[[task]]\nkind = \"train\"\nsource = \"@demo\"\n" +
		"[[task]]\nkind = \"render\"\nmodel = \"@train\"\ncameras = \"@demo\"\n[[task]]\nkind = \"eval\"\nsource = " +
		"\"@demo\"\nmodels = [\"@train\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	if last := p.Tasks[79_999]; len(p.Tasks) != 80_000 || !slices.Equal(last.Needs, []int{19_999, 39_999}) ||
		last.Name != "eval/seed=19999" {
		t.Errorf("%d tasks, the last is %+v", len(p.Tasks), last)
	}
}

func TestDefaultsAndInheritance(t *testing.T) {
	_, p, err := planOf(head + "pool = \"a\"\n[retry]\nmax_attempts = 7\n[limits]\nlease = \"5s\"\n[[task]]\nkind = " +
		"\"demo\"\n[[task]]\nkind = \"demo\"\npool = \"b\"\npriority = \"low\"\n[task.limits]\ntask_timeout = \"2h\"\n")
	if err != nil {
		t.Fatal(err)
	}
	a, b := &p.Tasks[0], &p.Tasks[1]
	if a.Pool != "a" || b.Pool != "b" || a.Priority != "normal" || b.Priority != "low" || b.Retry.MaxAttempts != 7 ||
		b.Retry.Backoff != defaultRetry.Backoff ||
		b.Limits.TaskTimeout != 2*time.Hour || a.Limits.TaskTimeout != 0 || b.Limits.CheckpointEvery != 10*time.Minute {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestFlags(t *testing.T) {
	_, p, err := planOf(head + `
[[task]]
kind = "train"
source = "a"
images = "photos/small"
preset = "mcmc"
set.max-steps = 30
set.background = [1, 0.5, 0]
set.eval_at = [10, 20]
set.seed = "18446744073709551615"
set.eval = true
set.strategy = "mcmc"
[[task]]
kind = "render"
model = "@train"
trajectory = "spiral"
size = [64, 48]
frames = "2-8x2"
depth = true
normals = true
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Flag{{"images", "photos/small"}, {"preset", "mcmc"}, {"background", "1,0.5,0"}, {"eval", "true"},
		{"eval-at", "10,20"}, {"iterations", "30"}, {"seed", "18446744073709551615"},
		{"strategy", "mcmc"}}
	if got := p.Tasks[0].Flags; !slices.Equal(got, want) {
		t.Errorf("flags %v, want %v", got, want)
	}
	want = []Flag{{"trajectory", "spiral"}, {"size", "64x48"}, {"depth", "true"}, {"normals", "true"}}
	if r := p.Tasks[1]; !slices.Equal(r.Flags, want) || r.Frames != (Frames{2, 8, 2}) || r.Frames.Count() != 4 ||
		r.Models[0].Source.Key != "a" {
		t.Errorf("%+v, want flags %v", r, want)
	}
}

// TestHashes wants the identity of results to follow what a task does, through the tasks that it takes inputs of, and
// nothing else.
func TestHashes(t *testing.T) {
	doc := "[[task]]\nkind = \"demo\"\nseed = 1\n[[task]]\nkind = \"train\"\nsource = \"@demo\"\nset.iterations = " +
		"5\n[[task]]\nkind = \"eval\"\nmodels = [\"@train\"]\n"
	hashes := func(doc string, skip int) (list []string) {
		_, p, err := planOf(doc)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Tasks[skip:] {
			list = append(list, p.Hash(skip+i))
		}
		return list
	}
	was := hashes(head+doc, 0)
	if !strings.HasPrefix(was[1], "fe98a1c6b4b9e6a7") { // results in stores are known by it
		t.Errorf("a training has the hash %s", was[1])
	}
	if was[0] == was[1] || !slices.Equal(hashes(head+
		"priority = \"low\"\n[limits]\nlease = \"1m\"\n[[task]]\nkind = \"convert\"\nmodel = \"m\"\nto = \"spz\"\n"+doc,
		1), was) {
		t.Error("other tasks or limits have a part in it")
	}
	for change, same := range map[string]int{"seed = 2": 0, "iterations = 6": 1} {
		key, _, _ := strings.Cut(change, " ")
		at := strings.Index(doc, key)
		now := hashes(head+doc[:at]+change+doc[at+len(change):], 0)
		for i := range now {
			if (now[i] == was[i]) != (i < same) {
				t.Errorf("%s: task %d has the hash that it had: %v", change, i, now[i] == was[i])
			}
		}
	}
}
