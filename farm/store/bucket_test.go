package store

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/farm/store/s3test"
	"vksplat/scene"
)

// pattern is a text of so many bytes that repeats late.
func pattern(n int) string {
	b := make([]byte, n)
	_, _ = rand.New(rand.NewSource(int64(n))).Read(b) // it never fails
	return string(b)
}

// TestFilesOfAllSizes has files go up and come back in one part, in several, and in exactly so many.
func TestFilesOfAllSizes(t *testing.T) {
	onBuckets(t, func(t *testing.T, b *bucket) {
		b.part = 5 << 20 // the least that servers take
		for _, size := range []int{0, 1, b.part - 1, b.part, b.part + 1, 2 * b.part, 4*b.part + 12345} {
			text := pattern(size)
			putText(t, b, "d/file", text)
			if got := getText(t, b, "d/file"); got != text {
				t.Errorf("%d bytes went up, %d others came back", size, len(got))
			}
			if e, err := b.Stat("d/file"); err != nil || e.Size != int64(size) || e.Tag == "" || e.Folder {
				t.Errorf("%+v, %v", e, err)
			}
		}
	})
}

// onBuckets tests a bucket of the server for tests, and those of real servers where their programs are installed.
func onBuckets(t *testing.T, test func(t *testing.T, b *bucket)) {
	t.Run("bucket", func(t *testing.T) { test(t, newBucketOf(t, newServer(t))) })
	onServers(t, test)
}

func TestKeysOfBuckets(t *testing.T) {
	onBuckets(t, func(t *testing.T, b *bucket) {
		for _, key := range []string{"../secret", "/etc/passwd", "a/../../secret", "a\\..\\b", "", "a//b", "a\x00b", "./a", strings.Repeat("x", maxObject)} {
			_, err := b.Open(key)
			_, statErr := b.Stat(key)
			if err == nil || statErr == nil || b.Put(key, func(io.Writer) error { return nil }) == nil || b.Delete(key) == nil {
				t.Errorf("key %q is taken", key)
			}
		}
		if b.Delete(".") == nil {
			t.Error("all is deleted")
		}
		putText(t, b, "a b/ü?%+&=.txt", "x")
		putText(t, b, "a b/.hidden", "x")
		putText(t, b, "a bc", "x")
		if list, err := b.List("a b"); err != nil || len(list) != 1 || list[0].Key != "a b/ü?%+&=.txt" || getText(t, b, list[0].Key) != "x" {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := b.List("."); err != nil || len(list) != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := b.List("a bc"); err != nil || len(list) != 1 || list[0].Key != "a bc" {
			t.Errorf("%+v, %v", list, err)
		}
		if e, err := b.Stat("a b"); err != nil || !e.Folder {
			t.Errorf("%+v, %v", e, err)
		}
		if err := b.Delete("a b"); err != nil {
			t.Error(err)
		}
		for _, err := range []error{second(b.Stat("a b")), second(b.List("a b")), second(b.Open("a b")), b.Publish("a b", "c")} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
		if getText(t, b, "a bc") != "x" {
			t.Error("more was deleted than what was to go")
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestListsOfManyPages(t *testing.T) {
	s := newServer(t)
	s.PageSize = 3
	b := newBucketOf(t, s)
	for _, name := range []string{"a", "b", "c/d", "c/e", "f", "g", "h"} {
		putText(t, b, "in/"+name, name)
	}
	if list, err := b.List("in"); err != nil || len(list) != 7 || list[2].Key != "in/c/d" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := b.Delete("in"); err != nil || len(s.Keys()) > 0 {
		t.Errorf("%v, %q", err, s.Keys())
	}
	// What programs make for folders is none of the files; a name that no file can have is not left out in silence.
	s.Store(b.object("in")+"/", nil)
	s.Store(b.object("in/x"), []byte("x"))
	if list, err := b.List("in"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	s.Store(b.object("in")+"//y", []byte("x"))
	if _, err := b.List("in"); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestStorms has a server be busy for every other request, by chance.
func TestStorms(t *testing.T) {
	s := newServer(t)
	b := newBucketOf(t, s)
	b.part = 1000
	var lock sync.Mutex
	chance := rand.New(rand.NewSource(7))
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		lock.Lock()
		defer lock.Unlock()
		switch chance.Intn(8) {
		case 0, 1:
			s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown")
		case 2:
			s3test.Fail(w, http.StatusInternalServerError, "InternalError")
		case 3:
			s3test.Cut(w, r, 300)
		default:
			return false
		}
		return true
	})
	text := pattern(20500)
	ctx := context.Background()
	if m, own, err := Commit(ctx, b, "j/t", work(t, map[string]string{"model": text, "small": "x"}), []string{"model", "small"}, Made{Hash: "h"}); err != nil || !own || m.Bytes() != 20501 {
		t.Fatal(m, own, err)
	}
	if m, err := Result(ctx, b, "j/t"); err != nil || m == nil {
		t.Errorf("%+v, %v", m, err)
	}
	c, err := OpenCache(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	local, done, err := c.Output(ctx, b, "j/t")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if data, err := os.ReadFile(filepath.Join(local, "model")); err != nil || string(data) != text {
		t.Errorf("%d bytes came, %v", len(data), err)
	}
	if err := errors.Join(Forget(b, "j/t"), b.Delete("j")); err != nil || len(s.Keys()) > 0 {
		t.Errorf("%v, %q", err, s.Keys())
	}
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	if _, err := b.Stat("x"); !errors.Is(err, scene.ErrTryAgain) || scene.Hint(err) == "" {
		t.Errorf("a server that is busy for good: %v", err)
	}
}

// TestLostAnswers has the server do what it is asked, and the answer get lost, once for each request.
func TestLostAnswers(t *testing.T) {
	s := newServer(t)
	b := newBucketOf(t, s)
	b.part = 1000
	var lock sync.Mutex
	lost := map[string]bool{}
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		lock.Lock()
		request := r.Method + r.URL.String()
		before := lost[request] || r.Method == http.MethodGet
		lost[request] = true
		lock.Unlock()
		if before {
			return false
		}
		s.Serve(httptest.NewRecorder(), r)
		s3test.Cut(w, r, 0)
		return true
	})
	ctx := context.Background()
	m, own, err := Commit(ctx, b, "j/t", work(t, map[string]string{"model": pattern(5500)}), []string{"model"}, Made{Hash: "h", Attempt: 1})
	if err != nil || !own {
		t.Fatalf("%+v, %v, %v: its own manifest was taken for another's", m, own, err)
	}
	if err := Outdate(b, "j/t", 1); err != nil {
		t.Fatal(err)
	}
	if m, own, err := Commit(ctx, b, "j/t", work(t, map[string]string{"model": "new"}), []string{"model"}, Made{Hash: "h", Attempt: 2, Generation: 1}); err != nil || !own || getText(t, b, m.Key("j/t/out", m.Files[0])) != "new" {
		t.Errorf("%+v, %v, %v", m, own, err)
	}
}

// TestLosersLeaveNothing has many attempts commit at once: the bucket has the files of one.
func TestLosersLeaveNothing(t *testing.T) {
	onBuckets(t, func(t *testing.T, b *bucket) {
		var group sync.WaitGroup
		for i := range 8 {
			dir := work(t, map[string]string{"model": "same", "deep/b": "same"})
			group.Go(func() {
				if _, _, err := Commit(context.Background(), b, "j/t", dir, []string{"deep/b", "model"}, Made{Hash: "h", Attempt: i}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		m, err := ReadManifest(b, "j/t/out")
		if err != nil || m.At == "" {
			t.Fatal(m, err)
		}
		list, err := b.List("j")
		for _, e := range list {
			if e.Key != "j/t/out/"+ManifestName && !strings.HasPrefix(e.Key, "j/t/out/"+m.At+"/") {
				t.Errorf("left behind: %s", e.Key)
			}
		}
		if err != nil || len(list) != 4 {
			t.Errorf("%d objects, %v", len(list), err)
		}
		// What killed attempts and redone tasks leave goes with the sweep, and nothing else.
		if err := Outdate(b, "j/t", 1); err != nil {
			t.Fatal(err)
		}
		if _, own, err := Commit(context.Background(), b, "j/t", work(t, map[string]string{"model": "new"}), []string{"model"}, Made{Hash: "h", Attempt: 9, Generation: 1}); err != nil || !own {
			t.Fatal(own, err)
		}
		putText(t, b, "j/t/out/a7-killed/model", "half")
		if err := Sweep(b, "j/t"); err != nil {
			t.Error(err)
		}
		if list, err := b.List("j/t"); err != nil || len(list) != 4 { // manifest, its copy, model, generation
			t.Errorf("%+v, %v", list, err)
		}
		if m, err := Result(context.Background(), b, "j/t"); err != nil || m == nil || m.Attempt != 9 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// TestChangesWhileReading has a file replaced between two parts.
func TestChangesWhileReading(t *testing.T) {
	onBuckets(t, func(t *testing.T, b *bucket) {
		b.part = 5 << 20
		putText(t, b, "file", pattern(12<<20))
		f, err := b.Open("file")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		putText(t, b, "file", strings.Repeat("x", 12<<20))
		if n, err := io.Copy(io.Discard, f); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
			t.Errorf("%d bytes of two files: %v", n, err)
		}
	})
}

// TestKilledUploads kills a process that uploads a file, between its parts.
func TestKilledUploads(t *testing.T) {
	s := newServer(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), uploaderEnv+"="+s.URL)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if s.Parts() >= 2 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if s.Parts() < 2 || len(s.Uploads()) != 1 || len(s.Keys()) != 0 {
		t.Fatalf("%d parts, uploads %q, objects %q; it said %s", s.Parts(), s.Uploads(), s.Keys(), said.String())
	}
	r, err := Open(Options{URL: "s3://lab/killed", Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := Fetch(context.Background(), r, "j/t", work(t, nil), "h", 0); err != nil || m != nil {
		t.Errorf("half a checkpoint was fetched: %+v, %v", m, err)
	}
	if err := r.Delete("j/other"); err != nil || len(s.Uploads()) != 1 {
		t.Errorf("the upload of another key is gone: %v", err)
	}
	if err := Forget(r, "j/t"); err != nil || len(s.Uploads()) > 0 {
		t.Errorf("left behind: %q, %v", s.Uploads(), err)
	}
}

// TestFailedUploads has an upload fail for good: nothing is there, and nothing is left.
func TestFailedUploads(t *testing.T) {
	s := newServer(t)
	b := newBucketOf(t, s)
	b.part = 1000
	broken := errors.New("the disk that is read is broken")
	err := b.Put("file", func(w io.Writer) error {
		_, err := io.WriteString(w, pattern(3500))
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) || len(s.Keys())+len(s.Uploads()) > 0 {
		t.Errorf("%v, %q, %q", err, s.Keys(), s.Uploads())
	}
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		full := r.URL.Query().Get("partNumber") == "3"
		if full {
			s3test.Fail(w, http.StatusInsufficientStorage, "XMinioStorageFull")
		}
		return full
	})
	err = b.Put("file", func(w io.Writer) error { _, err := io.WriteString(w, pattern(9500)); return err })
	if !errors.Is(err, scene.ErrTryAgain) || !strings.Contains(scene.Hint(err), "room") || len(s.Keys())+len(s.Uploads()) > 0 {
		t.Errorf("%v, %q, %q", err, s.Keys(), s.Uploads())
	}
}

// TestReady tells servers whose conditions of writes count from others.
func TestReady(t *testing.T) {
	onBuckets(t, func(t *testing.T, b *bucket) {
		if err := b.Ready("j/t"); err != nil {
			t.Error(err)
		}
		if b.Delete("j") != nil || second(b.Stat("j")) == nil {
			t.Error("the probe is left behind")
		}
	})
	s := newServer(t)
	b := newBucketOf(t, s)
	s.Unconditional = true
	if err := b.Ready("j/t"); !errors.Is(err, ErrSetup) || scene.Hint(err) == "" || len(s.Keys()) > 0 {
		t.Errorf("%v, %q", err, s.Keys())
	}
	s.Unconditional, s.Denied = false, true
	if err := b.Ready("j/t"); !errors.Is(err, ErrSetup) {
		t.Error(err)
	}
}

// TestComplaints has everything be wrong that people get wrong: each with its own hint, and never with a secret.
func TestComplaints(t *testing.T) {
	s := newServer(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	yes := true
	good := Options{URL: "s3://lab/x", Endpoint: s.URL}
	for _, c := range []struct {
		change func(*Options)
		says   string
	}{
		{func(o *Options) { o.URL = "s3://other/x" }, "no bucket other"},
		{func(o *Options) { s.Denied = true }, "access is denied"},
		{func(o *Options) { s.Region = "eu-west-3" }, "another region"},
		{func(o *Options) { s.Skew = time.Hour }, "clocks"},
		{func(o *Options) { t.Setenv("AWS_ACCESS_KEY_ID", "nobody") }, "does not take the credentials"},
		{func(o *Options) {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
		}, "no credentials were found"},
		{func(o *Options) { o.URL = "s3://" + s3test.Access + ":" + s3test.Secret + "@lab/x" }, "no place in a url"},
		{func(o *Options) { o.URL = "s3://" + s3test.Access + ":" + s3test.Secret + "%zz@lab/x" }, "cannot be read"},
		{func(o *Options) { o.URL = "s3://L/x" }, "no name of a bucket"},
		{func(o *Options) { o.URL = "s3:///x" }, "no name of a bucket"},
		{func(o *Options) { o.URL = "s3://lab/../x" }, "no prefix"},
		{func(o *Options) { o.URL = "s3://lab:9000/x" }, "no bucket and prefix"},
		{func(o *Options) { o.URL = "s3://lab/x?y" }, "no bucket and prefix"},
		{func(o *Options) { o.Umask = "0002" }, "of folders"},
		{func(o *Options) { o.Endpoint = "minio.lab:9000" }, "no address of a server"},
		{func(o *Options) { o.Endpoint = "ftp://minio.lab" }, "no address of a server"},
		{func(o *Options) { o.Endpoint = "http://a:b@minio.lab" }, "no address of a server"},
		{func(o *Options) { o.CA = "/nowhere" }, "no such file"},
		{func(o *Options) { o.Credentials = "/nowhere" }, "no such file"},
		{func(o *Options) { *o = Options{URL: t.TempDir(), PathStyle: &yes} }, "are of buckets"},
	} {
		o := good
		c.change(&o)
		_, err := Open(o)
		if !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), c.says) || scene.Hint(err) == "" || strings.Contains(err.Error()+scene.Hint(err), s3test.Secret) {
			t.Errorf("want %q: %v (%s)", c.says, err, scene.Hint(err))
		}
		s.Denied, s.Region, s.Skew = false, "", 0
		t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	}
	s.Region = "eu-west-3"
	if _, err := Open(good); !strings.Contains(scene.Hint(err), `"eu-west-3"`) {
		t.Errorf("the region is not named: %s", scene.Hint(err))
	}
	good.Region, good.PathStyle = "eu-west-3", &yes
	if _, err := Open(good); err != nil {
		t.Error(err)
	}
}

// TestCredentialFiles has keys come from files, and not from one that others may read; and a server that is trusted by its certificate alone.
func TestCredentialFiles(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	file := filepath.Join(t.TempDir(), "keys")
	text := "[default]\naws_access_key_id = nobody\naws_secret_access_key = x\n[lab]\naws_access_key_id = " + s3test.Access + "\naws_secret_access_key = " + s3test.Secret + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{URL: "s3://lab", Endpoint: s.URL, Credentials: file, Profile: "lab"}
	if r, err := Open(o); err != nil || !strings.HasSuffix(r.String(), "/lab") {
		t.Error(r, err)
	}
	o.Profile = ""
	if _, err := Open(o); !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "does not take the credentials") {
		t.Error(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	if _, err := Open(Options{URL: "s3://lab", Endpoint: s.URL, Profile: "lab"}); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(o); !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "others may read") {
			t.Error(err)
		}
	}
	t.Setenv("AWS_PROFILE", "lab")
	secure := httptest.NewTLSServer(s)
	defer secure.Close()
	secure.Config.ErrorLog = nil
	o = Options{URL: "s3://lab", Endpoint: secure.URL}
	if _, err := Open(o); !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "cannot be trusted") {
		t.Error(err)
	}
	o.CA = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(o.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	putText(t, r, "a", "x")
	if !slices.Equal(s.Keys(), []string{"a"}) {
		t.Errorf("%q", s.Keys())
	}
}

// slowRoot writes half of a file, and then nothing.
type slowRoot struct{ Root }

func (s slowRoot) Put(key string, write func(io.Writer) error) error {
	return s.Root.Put(key, func(w io.Writer) error { return write(&slowWriter{w, 0}) })
}

type slowWriter struct {
	io.Writer
	n int
}

func (s *slowWriter) Write(p []byte) (int, error) {
	if s.n += len(p); s.n > 2*partSize+1000 {
		time.Sleep(time.Hour)
	}
	return s.Writer.Write(p)
}
