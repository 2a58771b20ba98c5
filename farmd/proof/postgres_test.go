//go:build unix

package proof

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"vksplat/farm/flow"
)

// postgres starts Postgres on a folder of its own and returns its URL without a database.
func postgres(t *testing.T) string {
	t.Helper()
	bin := ""
	if path, err := exec.LookPath("initdb"); err == nil {
		bin, _ = filepath.EvalSymlinks(path)
		bin = filepath.Dir(bin)
	} else if list, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); len(list) > 0 {
		bin = list[len(list)-1]
	} else {
		t.Skip("needs Postgres: apt-get install postgresql")
	}
	dir, err := os.MkdirTemp("", "pg") // short: a socket is in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	who := ownUser(t, dir)
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("se@cret/1"), 0o644); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, who
		return cmd
	}
	if out, err := run("initdb", "-D", data, "-U", "farm", "-A", "scram-sha-256", "--pwfile", password,
		"--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	cmd := run("postgres", "-D", data, "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	})
	url := "postgres://farm:se%40cret%2F1@" + address
	deadline := time.Now().Add(time.Minute)
	for query(t, url+"/postgres", "SELECT 1") != nil {
		if time.Now().After(deadline) {
			t.Fatal("Postgres does not start")
		}
		time.Sleep(50 * time.Millisecond)
	}
	return url
}

// ownUser has programs run as the user postgres where the tests are root's, which Postgres refuses to be.
func ownUser(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skip("needs a user postgres: ", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// query runs statements.
func query(t *testing.T, url string, statements ...string) error {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			return err
		}
	}
	return nil
}

// The farm on Postgres: databases are made, jobs survive, one server at a time, one minor version at a time.
func TestPostgres(t *testing.T) {
	roots, file := newStore(t)
	url := postgres(t) + "/team"
	s := serve(t, "--roots", file, "--postgres", url)
	t.Logf("served after %.1f s", s.took.Seconds())
	if text, _ := s.said.all(); strings.Contains(text, "cret") {
		t.Error("the server says the password")
	}
	anna, gpu := s.join("--role", "submit", "--name", "anna"), s.join("--role", "worker", "--name", "gpu")
	mustSubmit(t, s.client(anna), roots, "anna", demos("garden", 3))
	second := prepare(t, "--postgres", url)
	if err := second.tryStart(); err == nil || !strings.Contains(err.Error(), "another server uses it") {
		t.Errorf("a second server on one database: %v", err)
	}
	second.cmd = nil
	s.kill()
	s.start()
	work(t, s.client(gpu), demoQueue, 2, func(context.Context, flow.TaskInput) error { return nil })
	var state flow.State
	if err := s.client(anna).GetWorkflow(t.Context(), "anna/garden", "").Get(t.Context(), &state); err != nil ||
		state.Done != 3 {
		t.Errorf("%+v, %v", state, err)
	}
	out := s.mustCommand("backup", filepath.Join(t.TempDir(), "b.tar"))
	if !strings.Contains(out, "pg_dump") {
		t.Errorf("backup says %q", out)
	}
	s.stop()
	version := func(v string) string { return fmt.Sprintf("UPDATE vksplat_server SET version = '%s'", v) }
	for _, c := range []struct{ version, want string }{
		{"1.30.2", "first serve it with a vksplat-farmd of Temporal 1.31"},
		{"1.33.0", "use the vksplat-farmd that served it last"},
	} {
		if err := query(t, url, version(c.version)); err != nil {
			t.Fatal(err)
		}
		if err := s.tryStart(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("after %s: %v", c.version, err)
		}
	}
	// Tables as the minor version before had them: the newest change is undone.
	if err := query(t, url, version("1.31.4"), "UPDATE schema_version SET curr_version = '1.18'",
		"DROP TABLE current_chasm_executions"); err != nil {
		t.Fatal(err)
	}
	s.start()
	if err := query(t, url, "SELECT count(*) FROM current_chasm_executions"); err != nil {
		t.Errorf("the tables were not updated: %v", err)
	}
	if jobs := s.jobs(s.client(anna)); !jobs["anna/garden"] {
		t.Errorf("after the update there are jobs %v", jobs)
	}
}

// As TestKill, on Postgres.
func TestKillPostgres(t *testing.T) {
	killed(t, 2, 2*time.Second, "--postgres", postgres(t)+"/team")
}
