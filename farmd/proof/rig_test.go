package proof

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"log/slog"

	"vksplat/farm/pass"
)

// program is vksplat-farmd, built once for all tests.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "farmd-proof")
	if err != nil {
		panic(err)
	}
	program = os.Getenv("VKSPLAT_FARMD") // of make test-farmd, which has just built it
	if program == "" {
		program = filepath.Join(dir, "vksplat-farmd")
		build := exec.Command("go", "build", "-o", program, "vksplat/farmd")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// server is a vksplat-farmd that runs.
type server struct {
	t       *testing.T
	data    string
	address string
	args    []string
	cmd     *exec.Cmd
	ended   chan struct{}
	said    *lines
	took    time.Duration // from the start to serving
}

// lines keeps what a process said.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{} // closed and replaced at every line
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(line + "\n")
	close(l.news)
	l.news = make(chan struct{})
}

func (l *lines) all() (string, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String(), l.news
}

// serve starts a server on a new data folder and a free port, and waits until it serves.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	s := prepare(t, args...)
	s.start()
	return s
}

func prepare(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{t: t, data: filepath.Join(t.TempDir(), "data"), address: freeAddress(t), args: args}
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
		if t.Failed() && s.said != nil {
			text, _ := s.said.all()
			t.Log("the server said:\n" + text)
		}
	})
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts the server, again if it ran before.
func (s *server) start() {
	s.t.Helper()
	if err := s.tryStart(); err != nil {
		s.t.Fatal(err)
	}
}

// tryStart is start that returns what the server said where it ends without serving.
func (s *server) tryStart() error {
	s.t.Helper()
	began := time.Now()
	args := append([]string{"serve", "--data", s.data, "--listen", s.address, "--page", "0"}, s.args...)
	s.cmd = exec.Command(program, args...)
	s.cmd.SysProcAttr = endsWithTest(nil, syscall.SIGKILL)
	s.ended, s.said = make(chan struct{}), &lines{news: make(chan struct{})}
	r, w := io.Pipe()
	s.cmd.Stdout, s.cmd.Stderr = w, w
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() {
		for scan := bufio.NewScanner(r); scan.Scan(); {
			s.said.add(scan.Text())
		}
	}()
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		_ = w.Close()
		close(ended)
	}(s.cmd, s.ended)
	for {
		text, news := s.said.all()
		if strings.Contains(text, "the farm serves at ") {
			s.took = time.Since(began)
			return nil
		}
		select {
		case <-news:
		case <-s.ended:
			text, _ := s.said.all()
			return fmt.Errorf("the server ended: %s", text)
		case <-time.After(time.Minute):
			return fmt.Errorf("the server does not serve: %s", text)
		}
	}
}

// kill ends the server as a power cut does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// signal sends the server a signal.
func (s *server) signal(what os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(what); err != nil {
		s.t.Fatal(err)
	}
}

// stop ends the server as a service manager does, and returns how long it took.
func (s *server) stop() time.Duration {
	s.t.Helper()
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.t.Fatal("the server does not stop")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		text, _ := s.said.all()
		s.t.Fatalf("the server ended with %d: %s", code, text)
	}
	return time.Since(began)
}

// command runs another command of vksplat-farmd on the server's folder.
func (s *server) command(args ...string) (string, error) {
	out, err := exec.Command(program, append(args, "--data", s.data)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// mustCommand is command that must succeed.
func (s *server) mustCommand(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...)
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// join makes a token with flags of the command token, and a pass for it.
func (s *server) join(args ...string) *pass.Pass {
	s.t.Helper()
	p, err := pass.Join(s.t.Context(), s.mustCommand(append([]string{"token"}, args...)...), "", s.passDir(), false)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *server) passDir() string { return filepath.Join(s.t.TempDir(), "pass") }

// quiet keeps the SDK from the console.
var quiet = sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// client connects with a pass.
func (s *server) client(p *pass.Pass) client.Client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{HostPort: p.Address, Namespace: p.Namespace, Logger: quiet,
		ConnectionOptions: client.ConnectionOptions{TLS: p.TLS.Clone()}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// conn connects with a pass, below the SDK.
func (s *server) conn(p *pass.Pass) *grpc.ClientConn {
	s.t.Helper()
	c, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(credentials.NewTLS(p.TLS.Clone())))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}
