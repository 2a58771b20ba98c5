package proof

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	_ "modernc.org/sqlite"

	"vksplat/farm/flow"
	"vksplat/farm/pass"
)

// jobs lists the ids of all jobs, as anybody sees them.
func (s *server) jobs(p interface {
	ListWorkflow(context.Context,
		*workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
}) map[string]bool {
	s.t.Helper()
	ids := map[string]bool{}
	req := &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowType = 'job'", PageSize: 1000}
	resp, err := p.ListWorkflow(s.t.Context(), req)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range resp.GetExecutions() {
		ids[e.GetExecution().GetWorkflowId()] = true
	}
	return ids
}

// A server that is asked to stop does so soon and without a word of error, and knows its jobs and passes afterwards.
// A second one on the same folder is refused.
func TestStopAndStart(t *testing.T) {
	roots, file := newStore(t)
	s := serve(t, "--roots", file)
	anna, gpu := s.join("--role", "submit", "--name", "anna"), s.join("--role", "worker", "--name", "gpu")
	run := mustSubmit(t, s.client(anna), roots, "anna", demos("garden", 3))
	second := prepare(t)
	second.data = s.data
	if err := second.tryStart(); err == nil || !strings.Contains(err.Error(), "another process serves it") {
		t.Errorf("a second server: %v", err)
	}
	second.cmd = nil
	took := s.stop()
	if text, _ := s.said.all(); strings.Contains(text, "error") {
		t.Errorf("the server said:\n%s", text)
	}
	s.start()
	t.Logf("stopped in %.1f s, served again after %.1f s", took.Seconds(), s.took.Seconds())
	if took > 20*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	work(t, s.client(gpu), demoQueue, 2, func(context.Context, flow.TaskInput) error { return nil })
	var state flow.State
	if err := s.client(anna).GetWorkflow(t.Context(), run.GetID(), "").Get(t.Context(), &state); err != nil ||
		state.Done != 3 {
		t.Errorf("%+v, %v", state, err)
	}
}

// A backup, which was made while the farm served, is a farm: with its jobs, passes and revocations.
func TestBackup(t *testing.T) {
	roots, file := newStore(t)
	s := serve(t, "--roots", file)
	anna, gpu := s.join("--role", "submit", "--name", "anna"), s.join("--role", "worker", "--name", "gpu")
	eve := s.join("--role", "view", "--name", "eve")
	s.mustCommand("revoke", "eve")
	mustSubmit(t, s.client(anna), roots, "anna", demos("garden", 2))
	to, unused := filepath.Join(t.TempDir(), "farm.tar"), s.mustCommand("token", "--role", "view", "--name", "wall")
	began := time.Now()
	s.mustCommand("backup", to)
	t.Logf("the backup took %.2f s", time.Since(began).Seconds())
	if out, err := s.command("backup", to); err == nil {
		t.Errorf("a backup was overwritten: %s", out)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup, with keys in it, has mode %v, %v", info.Mode(), err)
	}
	late := s.join("--role", "view", "--name", "late")
	s.kill()
	restored := prepare(t, "--roots", file)
	restored.address = s.address // the passes name it
	if err := os.Mkdir(restored.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xf", to, "-C", restored.data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	restored.start()
	c := restored.client(anna)
	if jobs := restored.jobs(c); !jobs["anna/garden"] {
		t.Errorf("the backup has jobs %v", jobs)
	}
	work(t, restored.client(gpu), demoQueue, 2, func(context.Context, flow.TaskInput) error { return nil })
	var state flow.State
	if err := c.GetWorkflow(t.Context(), "anna/garden", "").Get(t.Context(), &state); err != nil || state.Done != 2 {
		t.Errorf("%+v, %v", state, err)
	}
	if err := invoke(t.Context(), restored.conn(eve), service+"GetSystemInfo",
		&workflowservice.GetSystemInfoRequest{},
		answerOf(t, "GetSystemInfo")); err == nil {
		t.Error("a revoked pass is valid again")
	}
	if _, err := pass.Join(t.Context(), unused, "", s.passDir(), false); err == nil {
		t.Error("a token is good again, which may have been used since")
	}
	restored.client(late)
	restored.mustCommand("revoke", "late") // the backup did not know it
	if err := invoke(t.Context(), restored.conn(late), service+"GetSystemInfo",
		&workflowservice.GetSystemInfoRequest{}, answerOf(t, "GetSystemInfo")); err == nil {
		t.Error("a pass that is younger than the backup cannot be revoked")
	}
}

// says waits until the server has said something, and returns all that it has.
func (s *server) says(what string) string {
	s.t.Helper()
	for timeout := time.After(20 * time.Second); ; {
		text, news := s.said.all()
		if strings.Contains(text, what) {
			return text
		}
		select {
		case <-news:
		case <-timeout:
			s.t.Fatalf("the server does not say %q, but:\n%s", what, text)
		}
	}
}

// A start that fails makes no farm where the store is not as the file of roots says, and one that fails for another
// reason spends no tokens: the next one prints them. Once somebody has joined, none is printed.
func TestFirstStart(t *testing.T) {
	_, good := newStore(t)
	bad := filepath.Join(t.TempDir(), "roots.toml")
	if err := os.WriteFile(bad, []byte("inputs = \"/nowhere/inputs\"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{bad: "root inputs", bad + "x": "roots.tomlx"} {
		s := prepare(t, "--roots", file)
		if err := s.tryStart(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", file, err)
		}
		if made, err := filepath.Glob(filepath.Join(s.data, "*.pem")); len(made) > 0 || err != nil {
			t.Errorf("%s: made %v, %v", file, made, err)
		}
		s.cmd = nil
	}
	s := prepare(t, "--roots", good, "--page", "70000")
	if err := s.tryStart(); err == nil || !strings.Contains(err.Error(), "serve page") {
		t.Errorf("a port that does not exist: %v", err)
	}
	s.args = s.args[:2]
	s.start()
	text := s.says("More:")
	_, token, _ := strings.Cut(text, "farm join ")
	token, _, _ = strings.Cut(token, "\n")
	if strings.Count(text, "farm join vksfarm1-") != 2 {
		t.Fatalf("the second start said:\n%s", text)
	}
	s.stop()
	s.start()
	if text := s.says("no machine has joined"); strings.Contains(text, "vksfarm1-") {
		t.Errorf("the third start said:\n%s", text)
	}
	if _, err := pass.Join(t.Context(), token, "", s.passDir(), false); err != nil {
		t.Error(err)
	}
	s.stop()
	s.args = []string{"--roots", bad} // a share that is not mounted yet
	s.start()
	s.says("root inputs")
	s.stop()
	if text := s.says("stopping"); strings.Contains(text, "joined yet") || strings.Contains(text, "vksfarm1-") {
		t.Errorf("the fourth start said:\n%s", text)
	}
}

// pragma changes what the database of a server that does not run says of itself.
func (s *server) pragma(text string) {
	s.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(s.data, "queue.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA " + text); err != nil {
		s.t.Fatal(err)
	}
}

// A file of another server version is kept under a name that says so, and the farm starts without jobs but with its
// passes. A file that is damaged, or not a farm's, is not touched.
func TestOtherVersion(t *testing.T) {
	roots, file := newStore(t)
	s := serve(t, "--roots", file)
	anna := s.join("--role", "submit", "--name", "anna")
	mustSubmit(t, s.client(anna), roots, "anna", demos("garden", 2))
	s.stop()
	s.pragma("user_version=1031004")
	s.start()
	text, _ := s.said.all()
	if !strings.Contains(text, "queue-of-server-1.31.4-") || !strings.Contains(text, "submit theirs again") {
		t.Errorf("the server said:\n%s", text)
	}
	if kept, _ := filepath.Glob(filepath.Join(s.data, "queue-of-server-1.31.4-*.db")); len(kept) != 1 {
		t.Errorf("kept: %v", kept)
	}
	c := s.client(anna)
	if jobs := s.jobs(c); len(jobs) != 0 {
		t.Errorf("jobs %v", jobs)
	}
	mustSubmit(t, c, roots, "anna", demos("garden", 2))
	s.stop()

	s.pragma("application_id=1")
	if err := s.tryStart(); err == nil || !strings.Contains(err.Error(), "not a farm's") {
		t.Errorf("a foreign file: %v", err)
	}
	s.pragma(fmt.Sprintf("application_id=%d", 0x766b7366))
	queue := filepath.Join(s.data, "queue.db")
	data, err := os.ReadFile(queue)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(data); i++ { // all pages but the first
		data[i] ^= 0x55
	}
	if err := os.WriteFile(queue, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.tryStart(); err == nil || !strings.Contains(err.Error(), "open database") {
		t.Errorf("a damaged file: %v", err)
	}
	s.cmd = nil
}

// Page and metrics are served to this machine, the page under this machine's names only, and nothing can be changed
// through it.
func TestPageAndMetrics(t *testing.T) {
	roots, file := newStore(t)
	s := prepare(t, "--roots", file)
	page, metrics := freeAddress(t), freeAddress(t)
	_, pagePort, _ := strings.Cut(page, ":")
	_, metricsPort, _ := strings.Cut(metrics, ":")
	s.args = append(s.args, "--page", pagePort, "--metrics", metricsPort)
	s.start()
	anna := s.join("--role", "submit", "--name", "anna")
	mustSubmit(t, s.client(anna), roots, "anna", demos("garden", 2))
	get := func(url, host string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := get("http://"+page+"/", ""); code != 200 || !strings.Contains(body, "<html") {
		t.Errorf("the page: %d %.200s", code, body)
	}
	list := "http://" + page + "/api/v1/namespaces/vksplat/workflows"
	deadline := time.Now().Add(20 * time.Second)
	for { // lists follow jobs with a delay
		code, body := get(list, "localhost:1")
		if code == 200 && strings.Contains(body, "anna/garden") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the list: %d %.300s", code, body)
		}
	}
	if code, _ := get(list, "evil.example"); code != http.StatusForbidden {
		t.Errorf("under a foreign name: %d", code)
	}
	resp, err := http.Post(list+"/anna%2Fgarden/terminate", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		t.Errorf("terminate: %s", resp.Status)
	}
	if code, body := get("http://"+metrics+"/metrics", ""); code != 200 || !strings.Contains(body,
		"service_requests") {
		t.Errorf("metrics: %d %.200s", code, body)
	}
}

// A server that is killed again and again, while jobs are submitted and tasks done, loses no job that it has
// accepted: each comes to its end, and every task of it is done.
func TestKill(t *testing.T) {
	killed(t, 3)
}

func killed(t *testing.T, kills int, args ...string) {
	t.Helper()
	roots, file := newStore(t)
	s := serve(t, append([]string{"--roots", file}, args...)...)
	anna, gpu := s.join("--role", "submit", "--name", "anna"), s.join("--role", "worker", "--name", "gpu")
	c := s.client(anna)
	var mu sync.Mutex
	done := map[string]int{}
	work(t, s.client(gpu), demoQueue, 4, func(_ context.Context, in flow.TaskInput) error {
		mu.Lock()
		defer mu.Unlock()
		done[in.Key+" "+in.Task]++
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	accepted := []string{}
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		for n := 0; ctx.Err() == nil; n++ {
			// A call that fails may have been accepted or not: nobody was told so.
			run, err := submit(ctx, t, c, roots, "anna", demos(fmt.Sprintf("j%d", n), 10))
			mu.Lock()
			if err == nil {
				accepted = append(accepted, run.GetID())
			}
			mu.Unlock()
			time.Sleep(100 * time.Millisecond) // more jobs take longer, and show nothing more
		}
	}()
	counts := func() (jobs, tasks int) {
		mu.Lock()
		defer mu.Unlock()
		return len(accepted), len(done)
	}
	for range kills {
		jobs, tasks := counts()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			moreJobs, moreTasks := counts()
			if moreJobs >= jobs+2 && moreTasks >= tasks+5 { // it is at work again
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d jobs were accepted and %d tasks done since the last kill", moreJobs-jobs, moreTasks-tasks)
			}
		}
		s.kill()
		s.start()
	}
	cancel()
	<-submitted
	tasks := 0
	wait, stop := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stop()
	for _, id := range accepted {
		var state flow.State
		if err := c.GetWorkflow(wait, id, "").Get(wait, &state); err != nil || state.Done != 10 {
			t.Errorf("%s: %+v, %v", id, state, err)
		}
		tasks += state.Done
	}
	mu.Lock()
	defer mu.Unlock()
	again := 0
	for _, n := range done {
		again += n - 1
	}
	t.Logf("%d jobs, %d tasks, %d of them done more than once, through %d kills", len(accepted), tasks, again, kills)
}
