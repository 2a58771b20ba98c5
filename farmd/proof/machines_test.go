//go:build linux

package proof

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/client"
	"vksplat/farm/store"
)

// vksplat is the trainer, built once for all tests as cmd/vksplat's test binary, which runs as vksplat under that name
// and honours stepFloor. A program in VKSPLAT_PROGRAM does not: trainings may then end before they are disturbed.
var vksplat = sync.OnceValues(func() (string, error) {
	if file := os.Getenv("VKSPLAT_PROGRAM"); file != "" {
		return file, nil
	}
	file := filepath.Join(filepath.Dir(program), "vksplat")
	build := exec.Command("go", "test", "-c", "-o", file, "./cmd/vksplat")
	build.Dir = filepath.Join("..", "..")
	said, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return file, err
})

// team is a farm of several machines, which are processes here: each has a state folder and a work folder of its own.
type team struct {
	t       *testing.T
	dir     string
	program string
	roots   store.Roots
	file    string // of roots
	server  *server
	workers []*machine
}

// machine is one that works.
type machine struct {
	team  *team
	name  string
	args  []string
	pass  string // folder
	cmd   *exec.Cmd
	said  *lines
	ended chan struct{}
}

// stepFloor sets the least time of a training's steps: however fast machines are, a training outlasts what disturbs it.
const stepFloor = "VKSPLAT_TEST_STEP"

// heartbeat is how long a worker may be silent in these tests: the usual half minute makes them long.
const heartbeat = 4 * time.Second

// heartbeatSetting has a server take another time.
const heartbeatSetting = "VKSPLAT_FARM_HEARTBEAT"

func newTeam(t *testing.T, args ...string) *team {
	t.Helper()
	if os.Getenv(heartbeatSetting) == "" {
		t.Setenv(heartbeatSetting, heartbeat.String())
	}
	f := &team{t: t, dir: t.TempDir()}
	var err error
	if f.program, err = vksplat(); err != nil {
		t.Fatal(err)
	}
	f.roots, f.file = newStore(t)
	f.server = serve(t, append([]string{"--roots", f.file}, args...)...)
	return f
}

// pass makes a pass, and names its folder.
func (f *team) pass(args ...string) string {
	f.t.Helper()
	dir := filepath.Join(f.t.TempDir(), "pass")
	f.must(dir, "farm", "join", f.token(args...))
	return dir
}

func (f *team) token(args ...string) string {
	f.t.Helper()
	return f.server.mustCommand(append([]string{"token"}, args...)...)
}

// run runs a command of vksplat with a pass, and returns what it said and its exit code.
func (f *team) run(pass string, args ...string) (said string, code int) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), f.program, append(args, "--pass", pass)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must is run of what succeeds.
func (f *team) must(pass string, args ...string) string {
	f.t.Helper()
	said, code := f.run(pass, args...)
	if code != 0 {
		f.t.Fatalf("%v: exit code %d\n%s", args, code, said)
	}
	return said
}

// worker adds a machine that works.
func (f *team) worker(name string, pools string, args ...string) *machine {
	f.t.Helper()
	m := &machine{team: f, name: name, args: args, pass: f.pass("--role", "worker", "--name", name, "--pools", pools)}
	f.workers = append(f.workers, m)
	f.t.Cleanup(func() {
		m.kill()
		if text, _ := m.said.all(); f.t.Failed() {
			f.t.Logf("%s said:\n%s", name, text)
		}
	})
	m.start()
	return m
}

func (m *machine) start() {
	m.team.t.Helper()
	own := filepath.Join(m.team.dir, m.name)
	m.cmd = exec.Command(m.team.program, append([]string{"farm", "worker", "--pass", m.pass, "--roots", m.team.file,
		"--work",
		filepath.Join(own, "work")}, m.args...)...)
	m.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+own)
	// Children end with their worker, as with a machine that loses its power.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if m.said == nil {
		m.said = &lines{news: make(chan struct{})}
	}
	r, w := io.Pipe()
	m.cmd.Stdout, m.cmd.Stderr = w, w
	if err := m.cmd.Start(); err != nil {
		m.team.t.Fatal(err)
	}
	m.ended = make(chan struct{})
	go func() {
		for scan := bufio.NewScanner(r); scan.Scan(); {
			m.said.add(scan.Text())
		}
	}()
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		_ = w.Close()
		close(ended)
	}(m.cmd, m.ended)
}

// kill ends a machine as a power cut does: its tasks' processes, too.
func (m *machine) kill() {
	for _, pid := range childrenOf(m.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = m.cmd.Process.Kill()
	<-m.ended
}

// childrenOf lists the processes that a process started, and theirs.
func childrenOf(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		for word := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(append(list, child), childrenOf(child)...)
			}
		}
	}
	return list
}

// stop ends a machine as its user does, and waits.
func (m *machine) stop() {
	m.team.t.Helper()
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		m.team.t.Fatal(err)
	}
	select {
	case <-m.ended:
	case <-time.After(2 * time.Minute):
		m.team.t.Fatalf("%s does not stop", m.name)
	}
	if code := m.cmd.ProcessState.ExitCode(); code != 0 {
		m.team.t.Errorf("%s ended with %d", m.name, code)
	}
}

// says waits until the machine has said something n times.
func (m *machine) says(what string, n int) {
	m.team.t.Helper()
	for deadline := time.After(2 * time.Minute); ; {
		text, news := m.said.all()
		if strings.Count(text, what) >= n {
			return
		}
		select {
		case <-news:
		case <-deadline:
			m.team.t.Fatalf("%s does not say %q, but:\n%s", m.name, what, text)
		}
	}
}

// write writes the document of a job.
func (f *team) write(name, text string) string {
	f.t.Helper()
	file := filepath.Join(f.dir, name+".toml")
	if err := os.WriteFile(file, []byte("version = 1\nname = \""+name+"\"\n"+text), 0o666); err != nil {
		f.t.Fatal(err)
	}
	return file
}

// show asks for the state of a job.
func (f *team) show(pass, job string) *client.Job {
	f.t.Helper()
	j := &client.Job{}
	if err := json.Unmarshal([]byte(f.must(pass, "farm", "show", job, "--json")), j); err != nil {
		f.t.Fatal(err)
	}
	return j
}

// until asks until the job is as wanted.
func (f *team) until(pass, job, what string, is func(*client.Job) bool) *client.Job {
	f.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		j := f.show(pass, job)
		if is(j) {
			return j
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("job %s is not %s: %+v, %+v", job, what, j, j.State)
		}
	}
}

func (f *team) outputs() string { return f.roots["outputs"].URL }

// stored is the step of the newest checkpoint of a task in the store; 0 where none is.
func (f *team) stored(job, task string) (newest int) {
	files, _ := filepath.Glob(filepath.Join(f.outputs(), job, task, "ckpt", "a*",
		"step-*.json")) // the pattern is right
	for _, file := range files {
		var step int
		if _, err := fmt.Sscanf(filepath.Base(file), "step-%d.json", &step); err == nil {
			newest = max(newest, step)
		}
	}
	return newest
}

var startForm = regexp.MustCompile(`resuming from .*: step ([0-9]+) of`)

// starts returns the step that each attempt at a training began at, by number: 0 unless its log says that it resumed.
func (f *team) starts(job, task string) map[int]int {
	f.t.Helper()
	files, _ := filepath.Glob(filepath.Join(f.outputs(), job, task, "log", "a*.log")) // the pattern is right
	starts := map[int]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "a"), ".log"))
		if err != nil {
			continue
		}
		starts[n] = 0
		if said := startForm.FindSubmatch(data); said != nil {
			starts[n], _ = strconv.Atoi(string(said[1])) // digits
		}
	}
	return starts
}

// results are the SHA-256 of the files of all tasks that have results, by name. Files with times in them are none.
func results(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	root, err := store.Open(store.Options{URL: filepath.Dir(dir)})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := store.Tasks(root, filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		m, err := store.Result(t.Context(), root, task.Key)
		if err != nil || m == nil {
			t.Errorf("%s has no results: %v", task.Key, err)
			continue
		}
		if m.Mixed {
			t.Errorf("%s was made by several devices", task.Key)
		}
		for _, f := range m.Files {
			sum := f.SHA256
			if !slices.Contains([]string{".ply", ".png", ".bin", ".spz"}, filepath.Ext(f.Name)) {
				sum = "there"
			}
			sums[task.Key+"/"+f.Name] = sum
		}
	}
	return sums
}

// undisturbed are the results of the same job by farm run.
func (f *team) undisturbed(document string) map[string]string {
	f.t.Helper()
	out := filepath.Join(f.t.TempDir(), "undisturbed")
	cmd := exec.CommandContext(f.t.Context(), f.program, "farm", "run", document, "-o", out, "--inputs",
		f.roots["inputs"].URL)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(f.dir, "undisturbed"))
	if said, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("farm run: %v\n%s", err, said)
	}
	return results(f.t, filepath.Join(out, strings.TrimSuffix(filepath.Base(document), ".toml")))
}

// compare wants the farm's results to be those of farm run.
func (f *team) compare(job string, want map[string]string) {
	f.t.Helper()
	got := results(f.t, filepath.Join(f.outputs(), job))
	for name, sum := range want {
		if got[name] != sum {
			f.t.Errorf("%s is %q, undisturbed %q", name, got[name], sum)
		}
	}
	if len(got) != len(want) {
		f.t.Errorf("%d files, undisturbed %d", len(got), len(want))
	}
}

// trainings is a job of so many trainings, of one capture, and files made of their models.
func trainings(n, steps int) string {
	var seeds []string
	for i := range n {
		seeds = append(seeds, fmt.Sprint(i))
	}
	return fmt.Sprintf("[retry]\nbackoff = \"100ms\"\n[limits]\ncheckpoint_every = \"500ms\"\n"+
		"[[task]]\nkind = \"demo\"\nid = \"made\"\nimages = 6\nsize = [48, 48]\npoints = 200\n"+
		"[[task]]\nkind = \"train\"\nid = \"model\"\nsource = \"@made\"\nset.iterations = %d\nset.seed = 1\nset.eval = true\n"+
		"matrix.sh_degree = [%s]\n[[task]]\nkind = \"convert\"\nid = \"web\"\nmodel = \"@model\"\nto = \"spz\"\n",
		steps,
		strings.Join(seeds, ", "))
}

// trained waits until a training that is not done has a checkpoint in the store, and names it.
func (f *team) trained(job string, but map[string]int) (task string, step int) {
	f.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		folders, _ := filepath.Glob(filepath.Join(f.outputs(), job, "model", "*")) // the pattern is right
		for _, folder := range folders {
			task = "model/" + filepath.Base(folder)
			_, err := os.Stat(filepath.Join(folder, "out", "MANIFEST.json"))
			if step = f.stored(job, task); step > but[task] && errors.Is(err, fs.ErrNotExist) {
				return task, step
			}
		}
	}
	f.t.Fatal("no training saves")
	return "", 0
}

// has finds the machine that said last that it begins a task.
func (f *team) has(task string) *machine {
	f.t.Helper()
	j := regexp.MustCompile(regexp.QuoteMeta(task) + `: (begins|done|handed back|stopped)`)
	for _, m := range f.workers {
		text, _ := m.said.all()
		if said := j.FindAllStringSubmatch(text, -1); len(said) > 0 && said[len(said)-1][1] == "begins" {
			select {
			case <-m.ended:
			default:
				return m
			}
		}
	}
	return nil
}
