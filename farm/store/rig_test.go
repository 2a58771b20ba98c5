package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"vksplat/farm/store/s3test"
	must "vksplat/internal/musttest"
)

// rig is a root to test, of any kind.
type rig struct {
	Root
	*patience
	away error  // an error that passes
	dir  string // of a folder
}

// has says whether something is at a key.
func (r *rig) has(key string) bool {
	_, err := r.Stat(key)
	return err == nil
}

// result is where a file of a task's results is now.
func (r *rig) result(t *testing.T, task, name string) string {
	t.Helper()
	m := must.Get(ReadManifest(r, OutOf(task)))(t)
	return m.Key(OutOf(task), File{Name: name})
}

// onRoots tests a folder, and buckets as onBuckets.
func onRoots(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Run("folder", func(t *testing.T) {
		f := newFolder(t, Options{})
		test(t, &rig{f, &f.patience, syscall.EIO, f.dir})
	})
	t.Run("bucket", func(t *testing.T) {
		test(t, bucketRig(newBucketOf(t, newServer(t))))
	})
	onServers(t, func(t *testing.T, b *bucket) { test(t, bucketRig(b)) })
}

func bucketRig(b *bucket) *rig {
	return &rig{b, &b.patience, minio.ErrorResponse{Code: "SlowDown", StatusCode: 503}, ""}
}

func newServer(t *testing.T) *s3test.Server {
	t.Helper()
	s := s3test.New("lab")
	t.Cleanup(s.Close)
	return s
}

func newBucketOf(t *testing.T, s *s3test.Server) *bucket {
	t.Helper()
	return openTest(t, Options{URL: "s3://" + s.Bucket, Endpoint: s.URL})
}

// openTest opens a place of its own in a bucket, with small parts and short waits.
func openTest(t *testing.T, o Options) *bucket {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	o.URL += "/a prefix/" + rand.Text()
	r := must.Get(Open(o))(t)
	b := r.(*bucket)
	b.pause = time.Millisecond
	return b
}

// real is a server that tests of this process share.
type real struct {
	program string
	once    sync.Once
	options Options
	skip    string
	stop    func()
}

// reals are the servers that tests run against where their programs are installed.
var reals = []*real{{program: "versitygw"}, {program: "minio"}}

// onServers tests a bucket of each.
func onServers(t *testing.T, test func(t *testing.T, b *bucket)) {
	for _, r := range reals {
		t.Run(r.program, func(t *testing.T) {
			if r.once.Do(r.start); r.skip != "" {
				t.Skip(r.skip)
			}
			test(t, openTest(t, r.options))
		})
	}
}

// start has the server store on the local disk.
func (r *real) start() {
	program, err := exec.LookPath(r.program)
	if err != nil {
		r.skip = r.program + " is not installed: not tested against it"
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.skip = err.Error()
		return
	}
	address := listener.Addr().String()
	dir, err := os.MkdirTemp("", "vksplat-s3-")
	if err := errors.Join(err, listener.Close(), os.MkdirAll(filepath.Join(dir, "data", "lab"), 0o777),
		os.Mkdir(filepath.Join(dir, "side"), 0o777)); err != nil {
		r.skip = err.Error()
		return
	}
	cmd := exec.Command(program, "server", "--quiet", "--address", address, filepath.Join(dir, "data"))
	if r.program == "versitygw" {
		cmd = exec.Command(program, "--quiet", "--port", address, "posix", "--sidecar", filepath.Join(dir, "side"),
			filepath.Join(dir, "data"))
	}
	var said bytes.Buffer
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s3test.Access, "ROOT_SECRET_KEY="+s3test.Secret,
		"MINIO_ROOT_USER="+s3test.Access, "MINIO_ROOT_PASSWORD="+s3test.Secret)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		r.skip = err.Error()
		return
	}
	r.stop = func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // as it was killed
		_ = os.RemoveAll(dir)
	}
	r.options = Options{URL: "s3://lab", Endpoint: "http://" + address}
	for range 200 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.stop()
	r.skip, r.stop = fmt.Sprintf("%s does not start: %s", r.program, said.String()), nil
}

func TestMain(m *testing.M) {
	if os.Getenv(uploaderEnv) != "" {
		uploadForever()
		return
	}
	code := m.Run()
	for _, r := range reals {
		if r.stop != nil {
			r.stop()
		}
	}
	os.Exit(code)
}

// uploaderEnv makes this test program a process that uploads to this url, and is killed when it says uploaderWaits.
const (
	uploaderEnv   = "VKSPLAT_TEST_UPLOADER"
	uploaderWaits = "waiting to be killed"
)

// uploadForever uploads a file whose second half never comes.
func uploadForever() {
	r, err := Open(Options{URL: os.Getenv(uploaderEnv)})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := r.(*bucket)
	dir, err := os.OpenRoot(os.TempDir())
	if err != nil {
		fmt.Println(err)
		return
	}
	name := "vksplat-" + rand.Text()
	if err := dir.WriteFile(name, make([]byte, 3*b.part), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	err = slowRoot{b}.Put("j/t/ckpt/files/x", func(w io.Writer) error {
		_, err := ReadLocal(context.Background(), dir, name, math.MaxInt64, w)
		return err
	})
	fmt.Println("it ended", err)
}
