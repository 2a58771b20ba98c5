//go:build linux

package lab

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/queue"
)

// clockVariable names the file that says by how many seconds a part's clock is wrong, where the part was built to read it.
const clockVariable = "VKSPLAT_TEST_CLOCK"

func (l *lab) clock(name string) string { return l.path("clock-" + name) }

// move sets a part's clock wrong by so much, and waits until it has noticed.
func (l *lab) move(name string, by time.Duration) {
	l.t.Helper()
	if err := os.WriteFile(l.clock(name), []byte(strconv.Itoa(int(by.Seconds()))), 0o666); err != nil {
		l.t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
}

// withClocks builds the parts with a time.Now that can be wrong. Nothing of theirs is changed: the compiler is given another file of package time.
func withClocks(t *testing.T) (program string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("the go command is not there to build clocks that can be moved: ", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const begin = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), begin) != 1 {
		t.Skip("this version of Go begins time.Now in another way")
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "time.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), begin, begin+"\tsec += clockOffset()\n", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	added, err := filepath.Abs("testdata/clock_offset.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(source, "time.go"): changed, filepath.Join(source, "clock_offset.go"): added}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "lab.test")
	if said, err := exec.Command("go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return program
}

// TestClocks moves clocks: nothing waits for them to be right again, and no worker that works loses its task.
func TestClocks(t *testing.T) {
	program := os.Getenv("FARM_LAB_PROGRAM") // built before
	if program == "" {
		if os.Getenv("VKSPLAT_LONG") != "1" {
			t.Skip("VKSPLAT_LONG=1 builds a farm whose clocks can be moved")
		}
		program = withClocks(t)
	}
	begin := func(t *testing.T, clocks map[string]time.Duration) (*lab, *queue.Queue) {
		l := newLab(t)
		l.program = program
		for name, by := range clocks {
			l.move(name, by)
		}
		l.start("server")
		q := l.queue()
		l.start("one")
		l.start("two")
		return l, q
	}
	const most = 2 * time.Minute // and not the hours by which clocks are wrong
	t.Run("forward under a running task", func(t *testing.T) {
		l, q := begin(t, nil)
		job := l.submit(q, document("j", "", pointsQuiet))
		l.running(q, job.Name, 1)
		for hours := range 10 { // at any moment between two heartbeats
			l.move("server", time.Duration(hours+1)*time.Hour)
		}
		_, tasks := l.wait(q, job.Name, most)
		l.check(job, tasks, nil)
		if e := tasks[0].Entry; e.Attempt != 1 {
			t.Errorf("it was done in attempt %d: %+v", e.Attempt, e.Failures)
		}
	})
	t.Run("back, and a worker dies", func(t *testing.T) {
		l, q := begin(t, nil)
		job := l.submit(q, document("j", "", pointsLong))
		node := l.running(q, job.Name, 1).Entry.Node
		l.move("server", -3*time.Hour)
		l.kill(node, syscall.SIGKILL)
		_, tasks := l.wait(q, job.Name, most)
		l.check(job, tasks, nil)
	})
	t.Run("back while the server is away, and a worker dies", func(t *testing.T) {
		l, q := begin(t, nil)
		job := l.submit(q, document("j", "", pointsLong, 200)+"needs = [\"t0\"]\n")
		node := l.running(q, job.Name, 1).Entry.Node
		l.kill("server", syscall.SIGKILL)
		l.kill(node, syscall.SIGKILL)
		<-l.ended["server"]
		l.move("server", -3*time.Hour)
		l.start("server")
		_, tasks := l.wait(q, job.Name, most)
		l.check(job, tasks, nil)
	})
	t.Run("of workers", func(t *testing.T) {
		l, q := begin(t, map[string]time.Duration{"one": 5 * time.Hour, "two": -5 * time.Hour})
		job := l.submit(q, document("j", "", pointsQuiet, pointsCrash, 200, 200, pointsQuiet))
		l.running(q, job.Name, 1)
		l.move("one", -2*time.Hour)
		_, tasks := l.wait(q, job.Name, most)
		l.check(job, tasks, nil)
		for i, want := range []int{1, 2, 1, 1, 1} {
			if e := tasks[i].Entry; e.Attempt != want {
				t.Errorf("%s was done in attempt %d, want %d: %+v", tasks[i].Name, e.Attempt, want, e.Failures)
			}
		}
	})
}
