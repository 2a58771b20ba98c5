package server

import (
	"bufio"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// raw is a connection of a role that can say anything.
func raw(t *testing.T, s *Server, role Role) *nats.Conn {
	t.Helper()
	token, err := NewToken(s.options.Dir, role, t.Name()+string(role), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.readKeys(); err != nil {
		t.Fatal(err)
	}
	nc, err := queue.Dial(token, string(role), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// TestPortTaken starts a server where another listens.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	first := startServer(t)
	options := testOptions(t, filepath.Join(t.TempDir(), "farm"))
	options.Listen = strings.TrimPrefix(first.URL(), "nats://")
	start := time.Now()
	s, err := Start(t.Context(), options)
	if err == nil {
		s.Close()
		t.Fatal("the server starts on a port that is taken")
	}
	var op *net.OpError
	if took := time.Since(start); !errors.As(err, &op) || took > startWithin/4 {
		t.Errorf("after %v: %v", took, err)
	}
}

// TestRefusedCommand lets commands ask for what their role may not do: they say so instead of waiting for an answer.
func TestRefusedCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ctx := t.Context()
	q, err := queue.Connect(ctx, raw(t, s, View), queue.Options{Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"submit": func() error { return q.Submit(ctx, queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}}) },
		"set limits": func() error {
			_, err := q.ChangeLimits(ctx, func(*queue.Limits) error { return nil })
			return err
		},
		"drain": func() error { return q.Drain(ctx, "n", false) },
	} {
		start := time.Now()
		if err := do(); !errors.Is(err, nats.ErrPermissionViolation) || !errors.Is(err, scene.ErrUsage) {
			t.Errorf("%s as a viewer: %v", what, err)
		}
		if took := time.Since(start); took > patience/2 {
			t.Errorf("%s as a viewer took %v", what, took)
		}
		if _, err := q.Limits(ctx); err != nil {
			t.Errorf("look after the refused %s: %v", what, err)
		}
	}
}

// TestRollup has those who may write a key ask for all others to be wiped by it, on a farm that was set up when that was allowed.
func TestRollup(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}, {Name: "b"}}})
	f.succeed("a")
	js, err := jetstream.New(f.server.nc)
	f.must(err)
	for _, name := range []string{"KV_task", "KV_job"} {
		stream, err := js.Stream(t.Context(), name)
		f.must(err)
		config := stream.CachedInfo().Config
		config.AllowRollup = true
		_, err = js.UpdateStream(t.Context(), config)
		f.must(err)
	}
	f.must(queue.Setup(t.Context(), f.server.nc, f.server.options.Farm, queue.Options{}))
	for _, test := range []struct {
		role    Role
		subject string
	}{{Submit, "$KV.job.x"}, {Submit, "$KV.task.x.0"}, {Work, "$KV.task.x.0"}} {
		for _, what := range []string{"all", "sub"} {
			answer, err := raw(t, f.server, test.role).RequestMsg(&nats.Msg{Subject: test.subject, Header: nats.Header{"Nats-Rollup": {what}}, Data: []byte("{}")}, patience)
			f.must(err)
			if !strings.Contains(string(answer.Data), "rollup not permitted") {
				t.Errorf("%s rolls %s up (%s): %s", test.role, test.subject, what, answer.Data)
			}
		}
	}
	f.states("j", queue.Succeeded, queue.Queued)
}

// TestCopiedEntry puts the entry of a task that succeeded in another's place: first by asking the server, as a viewer, to send its answer there.
func TestCopiedEntry(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}, {Name: "b"}}})
	f.succeed("a")
	viewer := raw(t, f.server, View)
	f.must(viewer.PublishRequest("$JS.API.DIRECT.GET.KV_task.$KV.task.j.0", "$KV.task.j.1", nil))
	f.must(viewer.Flush())
	f.states("j", queue.Succeeded, queue.Queued)
	submitter := raw(t, f.server, Submit)
	copied, err := submitter.Request("$JS.API.DIRECT.GET.KV_task.$KV.task.j.0", nil, patience)
	f.must(err)
	_, err = submitter.Request("$KV.task.j.1", copied.Data, patience)
	f.must(err)
	tasks := f.states("j", queue.Succeeded, queue.Failed)
	if !strings.Contains(tasks[1].Entry.Error, "damaged") {
		t.Error(tasks[1])
	}
	f.ends("j", queue.JobFailed)
	found, err := f.admin.Fsck(ctx, nil, true)
	if err != nil || len(found) != 1 || !found[0].Repaired {
		t.Error(found, err)
	}
	f.succeed("b")
	f.ends("j", queue.JobSucceeded)
}

// refused wants a connection refused by the server. One that a busy machine was too slow for is tried again.
func refused(t *testing.T, what string, connect func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var slow net.Error
		err = connect()
		late := errors.Is(err, nats.ErrTimeout) || errors.As(err, &slow) && slow.Timeout() || err != nil && strings.Contains(err.Error(), "Authentication Timeout") // the server's words
		if !late {
			break
		}
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	plain := func(options ...nats.Option) func() error {
		return func() error {
			_, err := nats.Connect(s.URL(), options...)
			return err
		}
	}
	refused(t, "anonymous", plain())
	refused(t, "a password", plain(nats.UserInfo("admin", "admin")))
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "an unknown key", func() error {
		_, err := queue.Dial(queue.Token{URL: s.URL(), Seed: string(seed)}, "refused")
		return err
	})
	known := s.self // as one whose public key somebody else knows
	public, err := known.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for what, sign := range map[string]nats.SignatureHandler{
		"another's signature": pair.Sign,
		"an old signature":    func([]byte) ([]byte, error) { return known.Sign([]byte("of another connection")) },
		"no signature":        func([]byte) ([]byte, error) { return nil, nil },
	} {
		refused(t, what, plain(nats.Nkey(public, sign)))
	}
	if _, err := Revoke(s.options.Dir, "nobody", false); !errors.Is(err, scene.ErrUsage) {
		t.Error(err)
	}
}

// TestShutOut has tokens expire and be revoked: the server lets their holders in, and shuts them out, as it finds out by itself.
func TestShutOut(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const life = 6 * time.Second
	for what, lasts := range map[string]time.Duration{"expired": life, "revoked": time.Hour} {
		expires := time.Now().Add(lasts)
		token, err := NewToken(s.options.Dir, View, what, lasts)
		if err != nil {
			t.Fatal(err)
		}
		var nc *nats.Conn
		eventually(t, func() bool { // the server looks for keys now and then
			nc, err = queue.Dial(token, what)
			return err == nil || time.Now().After(expires)
		})
		if err != nil {
			t.Fatal(what, err)
		}
		defer nc.Close()
		if what == "revoked" {
			if gone, err := Revoke(s.options.Dir, what, false); err != nil || len(gone) != 1 {
				t.Fatal(gone, err)
			}
		}
		eventually(t, func() bool { return !nc.IsConnected() }) // and it is let in no more
		if what == "expired" && time.Now().Before(expires.Add(-time.Second)) {
			t.Error("it was shut out too early")
		}
		refused(t, what, func() error {
			_, err := queue.Dial(token, what)
			return err
		})
	}
}

// TestKeysAway takes the folder of keys away under a server, as a disk does that fails for a while: who was let in stays, and new connections come.
func TestKeysAway(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	token, err := NewToken(s.options.Dir, View, "there", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.readKeys(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(s.options.Dir, keyFolder)
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.readKeys(); err != nil {
		t.Error(err)
	}
	dial(t, token)
	if err := os.Rename(folder+".away", folder); err != nil {
		t.Fatal(err)
	}
	// A file that cannot be read revokes nothing, one that holds something else does.
	pair, err := nkeys.FromSeed([]byte(token.Seed))
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, public+".json")
	if err := errors.Join(os.Rename(file, file+".away"), os.Mkdir(file, 0o700), s.readKeys()); err != nil {
		t.Fatal(err)
	}
	dial(t, token)
	if err := errors.Join(os.Remove(file), os.WriteFile(file, []byte("{}"), 0o600), s.readKeys()); err != nil {
		t.Fatal(err)
	}
	refused(t, "damaged", func() error {
		_, err := queue.Dial(token, "damaged")
		return err
	})
}

// TestRefusedForAWhile shuts a connection out for longer than several tries to come back, and lets it in again.
func TestRefusedForAWhile(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	token, err := NewToken(s.options.Dir, View, "shut out", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.readKeys(); err != nil {
		t.Fatal(err)
	}
	nc, err := queue.Dial(token, "shut out")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	saved := filepath.Join(t.TempDir(), "keys")
	if err := os.CopyFS(saved, os.DirFS(filepath.Join(s.options.Dir, keyFolder))); err != nil {
		t.Fatal(err)
	}
	if _, err := Revoke(s.options.Dir, "shut out", false); err != nil {
		t.Fatal(err)
	}
	if err := s.readKeys(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // it tries some four times a second
	folder := filepath.Join(s.options.Dir, keyFolder)
	if err := errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(saved)), s.readKeys()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); !nc.IsConnected(); time.Sleep(10 * time.Millisecond) {
		if nc.IsClosed() || time.Now().After(end) {
			t.Fatal("it does not come back: ", nc.Status())
		}
	}
}

func TestFilesAreSecret(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes of files say nothing there")
	}
	options := testOptions(t, filepath.Join(t.TempDir(), "farm"))
	options.OwnTLS = true
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(options.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	found := 0
	for _, pattern := range []string{"admin.token", "address.json", "keys/*", "tls/*"} {
		paths, _ := filepath.Glob(filepath.Join(options.Dir, pattern))
		for _, path := range paths {
			found++
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Error(path, info.Mode(), err)
			}
		}
	}
	if found != 7 {
		t.Errorf("%d files", found)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	options := testOptions(t, filepath.Join(t.TempDir(), "farm"))
	options.Listen = "0.0.0.0:0"
	if _, err := Start(t.Context(), options); !errors.Is(err, scene.ErrUsage) || scene.Hint(err) == "" {
		t.Fatal("a server listens to others without TLS:", err)
	}
	options.OwnTLS, options.Hosts = true, []string{"127.0.0.1"}
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	token, err := queue.ReadToken(s.AdminToken())
	if err != nil || !strings.HasPrefix(token.URL, "tls://127.0.0.1:") {
		t.Fatal(token.URL, err)
	}
	if _, err := dial(t, token).List(t.Context()); err != nil {
		t.Error(err)
	}
	hints := map[string]string{"no authority": "of another farm", "other authority": "of another farm", "other host": "--hosts 127.0.0.2"}
	for what, change := range map[string]func(*queue.Token){
		"no authority": func(t *queue.Token) { t.CA = "" },
		"no TLS":       func(t *queue.Token) { t.CA, t.URL = "", strings.Replace(t.URL, "tls:", "nats:", 1) },
		"other authority": func(t *queue.Token) {
			_, t.CA, _ = ownCertificate(filepath.Join(filepath.Dir(s.AdminToken()), "other"), []string{"127.0.0.1"})
		},
		"other host": func(t *queue.Token) { t.URL = strings.Replace(t.URL, "127.0.0.1", "127.0.0.2", 1) },
	} {
		bad := token
		change(&bad)
		if _, err := queue.Dial(bad, what); err == nil || !strings.Contains(scene.Hint(err), hints[what]) {
			t.Errorf("%s: %v, hint %q", what, err, scene.Hint(err))
		}
	}
}

func TestOversized(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	nc := raw(t, s, Work)
	if err := nc.Publish("log.a.0", make([]byte, maxPayload+1)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Error(err)
	}
	// A client that does not care what it was told.
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("CONNECT {\"verbose\":false}\r\nPUB jobs.high.any.a.0 99999999\r\n" + strings.Repeat("x", 1<<16)))
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	answer, _ := bufio.NewReader(conn).ReadString(0)
	if !strings.Contains(answer, "-ERR") {
		t.Errorf("the server says %q", answer)
	}
	q, err := s.nc.Request("$JS.API.STREAM.INFO.JOBS", nil, patience)
	if err != nil || !strings.Contains(string(q.Data), `"messages":0`) {
		t.Error("something was stored", err)
	}
	// A message of the queue that is too long for its stream is refused by the server, whoever sends it.
	ack, err := s.nc.Request("jobs.high.any.a.0", make([]byte, 2<<10), patience)
	if err != nil || !strings.Contains(string(ack.Data), "10054") {
		t.Error(string(ack.Data), err)
	}
}

// TestSockets compares the sockets on which this process listens with what was asked for.
func TestSockets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/net/tcp")
	}
	before := listening(t)
	s := startServer(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL(), "nats://"))
	number, _ := strconv.Atoi(port)
	want := "0100007F:" + strings.ToUpper(strconv.FormatInt(int64(number), 16))
	var got []string
	for address := range listening(t) {
		if !before[address] {
			got = append(got, address)
		}
	}
	if len(got) != 1 || got[0] != want {
		t.Errorf("listens at %v, want %s", got, want)
	}
}

// listening lists the local addresses of listening TCP sockets of this process, as the kernel writes them.
func listening(t *testing.T) map[string]bool {
	t.Helper()
	mine := map[string]bool{}
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			mine[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	addresses := map[string]bool{}
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); len(fields) > 9 && fields[3] == "0A" && mine[fields[9]] {
				addresses[fields[1]] = true
			}
		}
	}
	return addresses
}
