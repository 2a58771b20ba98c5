package export

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/task"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

var update = flag.Bool("update", false, "write testdata/want anew")

// writers are the exports, and options for each.
var writers = []struct {
	name  string
	write func(*spec.Job, *spec.Plan, Options) ([]File, error)
	o     Options
}{
	{"slurm", Slurm, Options{Dir: "/shared/export", Program: "vksplat", Roots: "/shared/roots.toml",
		Work: "/scratch", GPUs: 1, CPUs: 8, Parallel: 4, MaxArray: 1001}},
	{"kubernetes", Kubernetes, Options{Program: "vksplat", GPUs: 1, CPUs: 8, MaxArray: 1,
		Image: "registry.example.org/vksplat:1.0", GPUResource: "nvidia.com/gpu", Queue: "lab",
		Claims: map[string]string{"results": "results-2026"}}},
}

func mixed(t *testing.T) (*spec.Job, *spec.Plan) {
	t.Helper()
	doc := must.Get(os.ReadFile("testdata/mixed.toml"))(t)
	return spectest.Job(t, string(doc))
}

// written writes an export to a folder.
func written(t *testing.T, files []File) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range files {
		mode := os.FileMode(0o666)
		if f.Program {
			mode = 0o777
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, f.Name), f.Data, mode))
	}
	return dir
}

func TestGolden(t *testing.T) {
	j, p := mixed(t)
	for _, w := range writers {
		files := must.Get(w.write(j, p, w.o))(t)
		dir := filepath.Join("testdata", "want", w.name)
		if *update {
			must.Do(t, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o777)))
		}
		for _, f := range files {
			name := filepath.Join(dir, f.Name)
			if *update {
				must.Do(t, os.WriteFile(name, f.Data, 0o666))
			}
			if want, err := os.ReadFile(name); err != nil || !bytes.Equal(want, f.Data) {
				t.Errorf("%s is not what was written: %v\n%s", name, err, f.Data)
			}
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != len(files) {
			t.Errorf("%s has %d files, the export %d: %v", dir, len(list), len(files), err)
		}
	}
}

// TestNoText looks for words of the document in what shells and templates read: only the document itself may have them.
func TestNoText(t *testing.T) {
	j, p := mixed(t)
	for _, w := range writers {
		files := must.Get(w.write(j, p, w.o))(t)
		for _, f := range files {
			if f.Name == DocumentName || f.Name == documentMap {
				continue
			}
			for _, text := range []string{"$(reboot", "$(rm", "sweep", "Garten", "city", "大"} {
				if bytes.Contains(f.Data, []byte(text)) {
					t.Errorf("%s %s contains %q of the document", w.name, f.Name, text)
				}
			}
		}
	}
}

// TestCaptureFirst has every scheduler find cameras before it trains, on a machine that need not have a GPU.
func TestCaptureFirst(t *testing.T) {
	j, p := spectest.Job(t, "version = 1\nname = \"film\"\nstore.inputs = \"scans\"\n"+
		"store.outputs = \"results\"\n[[task]]\nkind = \"capture\"\nid = \"scene\"\n"+
		"source = \"walk.mp4\"\n[[task]]\nkind = \"train\"\nsource = \"@scene\"\n")
	stages := stagesOf(p)
	if len(stages) != 2 || stages[0].name != "01-capture" || !slices.Equal(stages[1].needs, []int{0}) {
		t.Errorf("the stages are %+v", stages)
	}
	for _, w := range writers {
		files := must.Get(w.write(j, p, w.o))(t)
		said := ""
		for _, f := range files {
			said += string(f.Data)
		}
		if w.o.gpusOf(stages[0]) != 0 || w.o.gpusOf(stages[1]) != 1 || !strings.Contains(said, "01-capture") {
			t.Errorf("%s: %s", w.name, said)
		}
	}
}

// TestStages checks what every division into stages must hold: each task once, needs in earlier stages.
func TestStages(t *testing.T) {
	_, p := mixed(t)
	stages := stagesOf(p)
	seen := make([]int, len(p.Tasks))
	of := map[int]int{} // the stage of each task
	for n, s := range stages {
		for _, i := range s.tasks {
			seen[i]++
			of[i] = n
			if p.Tasks[i].Kind != s.kind {
				t.Errorf("task %d of stage %s is of kind %s", i, s.name, p.Tasks[i].Kind)
			}
			for _, k := range p.Tasks[i].Needs {
				if from, before := of[k]; !before || from == n || !slices.Contains(s.needs, from) {
					t.Errorf("stage %s does not wait for task %d", s.name, k)
				}
			}
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("task %d is in %d stages", i, n)
		}
	}
}

func TestRefused(t *testing.T) {
	j, p := mixed(t)
	for name, c := range map[string]struct {
		writer int
		change func(*Options)
	}{
		"space":          {0, func(o *Options) { o.Dir = "/a b" }},
		"shell":          {0, func(o *Options) { o.Dir = "/a$(x)" }},
		"newline":        {0, func(o *Options) { o.Roots = "/a\nb" }},
		"relative":       {0, func(o *Options) { o.Dir = "a" }},
		"flag":           {0, func(o *Options) { o.Program = "-x" }},
		"no array":       {0, func(o *Options) { o.MaxArray = 0 }},
		"no image":       {1, func(o *Options) { o.Image = "" }},
		"variable":       {1, func(o *Options) { o.Image = "$(X)" }},
		"queue":          {1, func(o *Options) { o.Queue = "A b" }},
		"claim":          {1, func(o *Options) { o.Claims = map[string]string{"scans": "A"} }},
		"claim of what?": {1, func(o *Options) { o.Claims = map[string]string{"other": "a"} }},
		"resource":       {1, func(o *Options) { o.GPUResource = "gpu" }},
	} {
		o := writers[c.writer].o
		c.change(&o)
		if _, err := writers[c.writer].write(j, p, o); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s: accepted, or another error: %v", name, err)
		}
	}
	j, p = spectest.Job(t, "version = 1\nname = \"a\"\npin.device = \"x\"\n[[task]]\nkind = \"train\"\nsource = \"a\"\n")
	for _, w := range writers {
		w.o.Claims = nil
		if _, err := w.write(j, p, w.o); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s takes a pinned task: %v", w.name, err)
		}
	}
}

func TestNth(t *testing.T) {
	list := []int{0, 1, 2, 7, 9, 10, 99999}
	text := rangeText(list)
	for n, want := range list {
		if got, err := Nth(text, n); err != nil || got != want {
			t.Errorf("number %d of %s is %d, want %d: %v", n, text, got, want, err)
		}
	}
	for _, c := range []struct {
		list string
		n    int
	}{{text, -1}, {text, len(list)}, {"", 0}, {"3-1", 0}, {"a", 0}, {"1-", 0}, {"-1", 0},
		{"99999999999", 0}, {"0-2147483647,x", 1 << 40}} {
		if got, err := Nth(c.list, c.n); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("number %d of %q is %d: %v", c.n, c.list, got, err)
		}
	}
}

// TestDevices wants every scheduler to reserve a device for the tasks that use one, as a merge does to check its seams.
func TestDevices(t *testing.T) {
	j, p := spectest.Job(t, "version = 1\nname = \"a\"\nstore = { inputs = \"scans\", outputs = \"results\" }\n"+
		"[[task]]\nkind = \"partition\"\nsource = \"a\"\nblocks = [2, 1]\n")
	reserved := regexp.MustCompile(`gpu:1|"nvidia.com/gpu": "1"`)
	for _, w := range writers {
		files := must.Get(w.write(j, p, w.o))(t)
		var all []byte
		for _, f := range files {
			all = append(all, f.Data...)
		}
		if n := len(reserved.FindAll(all, -1)); n != 2 { // the blocks and the merge, not the partition
			t.Errorf("%s reserves a device in %d stages, want 2", w.name, n)
		}
	}
}

// TestGrace wants every scheduler, template and page to leave a task that is stopped the time that it may take.
func TestGrace(t *testing.T) {
	j, p := mixed(t)
	seconds := func(what string, text []byte, form string) {
		found := regexp.MustCompile(form).FindAllSubmatch(text, -1)
		if found == nil {
			t.Errorf("%s has no %s", what, form)
		}
		for _, m := range found {
			if n, err := strconv.Atoi(string(m[1])); err != nil || n != int(grace.Seconds()) ||
				grace <= task.StopWithin {
				t.Errorf("%s leaves %s, a task takes up to %s: %v", what, m[0], task.StopWithin, err)
			}
		}
	}
	forms := map[string]string{"slurm": `--signal=B:TERM@(\d+)`, "kubernetes": `"terminationGracePeriodSeconds": (\d+)`}
	for _, w := range writers {
		files := must.Get(w.write(j, p, w.o))(t)
		var all []byte
		for _, f := range files {
			all = append(all, f.Data...)
		}
		seconds(w.name, all, forms[w.name])
	}
	for name, form := range map[string]string{"docs/farm-export.md": `(\d+) seconds`,
		"examples/farm/openjd.yaml":  `notifyPeriodInSeconds: (\d+)`,
		"examples/farm/htcondor.sub": `job_max_vacate_time = (\d+)`} { // OpenCue kills at once
		text := must.Get(os.ReadFile(filepath.Join("../..", name)))(t)
		seconds(name, text, form)
	}
	if least := 6*time.Hour + grace; time.Duration(minutes(6*time.Hour))*time.Minute < least {
		t.Errorf("a task of 6 hours is killed after %d minutes, before %s", minutes(6*time.Hour), least)
	}
}

// submitLine reads back what submit.sh submits: which tasks an array has, and what it waits for.
var submitLine = regexp.MustCompile(`^submit (\S+) 0-(\d+)(?:%\d+)? (\d+) "(.*)" && a(\d+)=\$id \|\| exit$`)

// TestSlurmWaits evaluates the scripts as Slurm would: every task is run once, and only tasks of arrays that its own
// waits for are what it needs.
func TestSlurmWaits(t *testing.T) {
	const chain = "version = 1\nname = \"a\"\n[[task]]\nkind = \"demo\"\nid = \"c\"\nmatrix.seed = [%s]\n" +
		"[[task]]\nkind = \"train\"\nid = \"m\"\nsource = \"@c\"\n" +
		"[[task]]\nkind = \"render\"\nmodel = \"@m\"\ncameras = \"@c\"\nframes = \"0-39\"\nchunk = 10\n" +
		"[[task]]\nkind = \"eval\"\nmodels = [\"@m\"]\n"
	var seeds []string
	for i := range 25 {
		seeds = append(seeds, strconv.Itoa(i))
	}
	many, plan := spectest.Job(t, fmt.Sprintf(chain, strings.Join(seeds, ",")))
	j, p := mixed(t)
	for _, c := range []struct {
		j       *spec.Job
		p       *spec.Plan
		longest int
	}{{j, p, 1001}, {j, p, 2}, {many, plan, 1001}, {many, plan, 10}} {
		o := writers[0].o
		o.MaxArray = c.longest
		files := must.Get(Slurm(c.j, c.p, o))(t)
		checkWaits(t, c.p, files, c.longest)
	}
}

type submitted struct {
	tasks []int
	waits string
}

func checkWaits(t *testing.T, p *spec.Plan, files []File, longest int) {
	t.Helper()
	dir := written(t, files)
	var arrays []submitted
	where := map[int][2]int{} // array and place of each task
	for line := range strings.SplitSeq(string(files[len(files)-1].Data), "\n") {
		m := submitLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		last, _ := strconv.Atoi(m[2])
		first, _ := strconv.Atoi(m[3])
		if last >= longest || m[5] != strconv.Itoa(len(arrays)+1) {
			t.Fatalf("line %s", line)
		}
		table := tableOf(t, filepath.Join(dir, m[1]))
		a := submitted{table[first : first+last+1], m[4]}
		for n, i := range a.tasks {
			if _, twice := where[i]; twice {
				t.Fatalf("task %d runs twice", i)
			}
			where[i] = [2]int{len(arrays), n}
		}
		arrays = append(arrays, a)
	}
	if len(where) != len(p.Tasks) {
		t.Fatalf("%d tasks of %d are submitted", len(where), len(p.Tasks))
	}
	for i := range p.Tasks {
		at, after := where[i], "afterok"
		if p.Tasks[i].Kind.Gathers { // it measures the models that there are
			after = "afterany"
		}
		for _, k := range p.Tasks[i].Needs {
			from, waits := where[k], strings.Split(arrays[at[0]].waits, ",")
			id := from[0] + 1
			if !(slices.Contains(waits, fmt.Sprintf("%s:$a%d", after, id)) ||
				slices.Contains(waits, fmt.Sprintf("%s:${a%d}_%d", after, id, from[1])) ||
				slices.Contains(waits, fmt.Sprintf("aftercorr:$a%d", id)) && from[1] == at[1]) || id > at[0] {
				t.Errorf("task %d at %v does not wait for task %d at %v: %q", i, at, k, from, waits)
			}
		}
	}
}

// tableOf lets bash read a script's table.
func tableOf(t *testing.T, script string) (list []int) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	if said, err := exec.Command(bash, "-n", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, said)
	}
	const read = `eval "$(sed -n '/^tasks=(/{:a;/)$/!{N;ba};p}' "$0")"; echo "${tasks[@]}"`
	out := must.Get(exec.Command(bash, "-c", read, script).Output())(t)
	for word := range strings.FieldsSeq(string(out)) {
		n := must.Get(strconv.Atoi(word))(t)
		list = append(list, n)
	}
	return list
}

// TestSlurmGathers has an eval start once its models' tasks have ended, well or not, but only after a good end of what
// it cannot do without, and be told so.
func TestSlurmGathers(t *testing.T) {
	j, p := spectest.Job(t, "version = 1\nname = \"a\"\n[[task]]\nkind = \"train\"\nid = \"m\"\nmatrix.source = [\"a\", \"b\"]\n"+
		"[[task]]\nkind = \"demo\"\nid = \"d\"\n[[task]]\nkind = \"eval\"\nmodels = [\"@m\"]\nneeds = [\"d\"]\n")
	files := must.Get(Slurm(j, p, writers[0].o))(t)
	for _, f := range files {
		for text, in := range map[string]string{"--gather": "03-eval.sbatch",
			`"afterany:$a1,afterok:$a2"`: SubmitName} {
			if strings.Contains(string(f.Data), text) != (f.Name == in) {
				t.Errorf("%s has %s: %v", f.Name, text, f.Name != in)
			}
		}
	}
}
