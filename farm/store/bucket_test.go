package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"vksplat/farm/store/s3test"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
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
		for _, key := range []string{"../secret", "/etc/passwd", "a/../../secret", "a\\..\\b", "", "a//b", "a\x00b",
			"./a", strings.Repeat("x", maxObject)} {
			_, err := b.Open(key)
			_, statErr := b.Stat(key)
			if err == nil || statErr == nil || b.Put(key, func(io.Writer) error { return nil }) == nil ||
				b.Delete(key) == nil {
				t.Errorf("key %q is taken", key)
			}
		}
		if b.Delete(".") == nil {
			t.Error("all is deleted")
		}
		putText(t, b, "a b/ü?%+&=.txt", "x")
		putText(t, b, "a b/.hidden", "x")
		putText(t, b, "a bc", "x")
		if list, _, err := b.List("a b"); err != nil || len(list) != 1 || list[0].Key != "a b/ü?%+&=.txt" ||
			getText(t, b, list[0].Key) != "x" {
			t.Errorf("%+v, %v", list, err)
		}
		if list, _, err := b.List("."); err != nil || len(list) != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		if list, _, err := b.List("a bc"); err != nil || len(list) != 1 || list[0].Key != "a bc" {
			t.Errorf("%+v, %v", list, err)
		}
		if e, err := b.Stat("a b"); err != nil || !e.Folder {
			t.Errorf("%+v, %v", e, err)
		}
		if err := b.Delete("a b"); err != nil {
			t.Error(err)
		}
		for _, err := range []error{second(b.Stat("a b")), third(b.List("a b")), second(b.Open("a b")),
			b.Publish("a b", "c")} {
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

func third[T, U any](_ T, _ U, err error) error { return err }

func TestListsOfManyPages(t *testing.T) {
	s := newServer(t)
	s.PageSize = 3
	b := newBucketOf(t, s)
	for _, name := range []string{"a", "b", "c/d", "c/e", "f", "g", "h"} {
		putText(t, b, "in/"+name, name)
	}
	if list, _, err := b.List("in"); err != nil || len(list) != 7 || list[2].Key != "in/c/d" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := b.Delete("in"); err != nil || len(s.Keys()) > 0 {
		t.Errorf("%v, %q", err, s.Keys())
	}
	// What programs make for folders is none of the files; a name that no file can have is not left out in silence.
	s.Store(b.object("in")+"/", nil)
	s.Store(b.object("in/x"), []byte("x"))
	if list, _, err := b.List("in"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	s.Store(b.object("in")+"//y", []byte("x"))
	if list, odd, err := b.List("in"); err != nil || len(list) != 1 || len(odd) != 1 {
		t.Errorf("%+v, %q, %v", list, odd, err)
	}
	if cache, err := OpenCache(t.TempDir(), 0); err != nil {
		t.Error(err)
	} else if _, _, err := cache.Input(t.Context(), b, "in"); !errors.Is(err, ErrDamaged) {
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
	if m, own, err := Commit(ctx, b, "j/t", work(t, map[string]string{"model": text, "small": "x"}),
		[]string{"model", "small"}, Made{Hash: "h"}); err != nil || !own || m.Bytes() != 20501 {
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
	if err := errors.Join(Forget(b, "j/t", AllAttempts), b.Delete("j")); err != nil || len(s.Keys()) > 0 {
		t.Errorf("%v, %q", err, s.Keys())
	}
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	if _, err := b.Stat("x"); !errors.Is(err, fault.ErrTryAgain) || fault.Hint(err) == "" {
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
	m, own, err := Commit(ctx, b, "j/t", work(t, map[string]string{"model": pattern(5500)}), []string{"model"},
		Made{Hash: "h", Attempt: 1})
	if err != nil || !own {
		t.Fatalf("%+v, %v, %v: its own manifest was taken for another's", m, own, err)
	}
	must.Do(t, Outdate(b, "j/t", 1))
	if m, own, err := Commit(ctx, b, "j/t", work(t, map[string]string{"model": "new"}), []string{"model"},
		Made{Hash: "h", Attempt: 2, Generation: 1}); err != nil || !own ||
		getText(t, b, m.Key("j/t/out", m.Files[0])) != "new" {
		t.Errorf("%+v, %v, %v", m, own, err)
	}
}

// TestLostManifest has the server store the manifest at the first try, and be busy from then on.
func TestLostManifest(t *testing.T) {
	s := newServer(t)
	b := newBucketOf(t, s)
	stored := false
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/j/t/out/"+ManifestName) {
			return false
		}
		if !stored {
			stored = true
			s.Serve(httptest.NewRecorder(), r)
		}
		s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	if _, _, err := Commit(t.Context(), b, "j/t", work(t, map[string]string{"model": "x"}), []string{"model"},
		Made{Hash: "h", Attempt: 1}); !errors.Is(err, fault.ErrTryAgain) {
		t.Fatal(err)
	}
	s.SetFault(nil)
	if m, err := Result(t.Context(), b, "j/t"); err != nil || m == nil || m.Attempt != 1 {
		t.Errorf("the manifest names what is gone: %+v, %v", m, err)
	}
}

// TestLostMove has results be moved that are not meant, and the answer to that get lost: they are put back.
func TestLostMove(t *testing.T) {
	s := newServer(t)
	b := newBucketOf(t, s)
	f := &fenced{t, bucketRig(b)}
	if own, err := f.commit("model", Made{Attempt: 1}); err != nil || !own {
		t.Fatal(own, err)
	}
	lost := false
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		if lost || r.Method != http.MethodPut || r.ContentLength != 0 ||
			!strings.HasSuffix(r.URL.Path, "/j/t/out/"+ManifestName) {
			return false
		}
		lost = true
		s.Serve(httptest.NewRecorder(), r)
		s3test.Cut(w, r, 0)
		return true
	})
	f.must(setAside(b, "j/t", "damaged-", func(*Manifest) bool { return false }))
	if m, err := Result(t.Context(), b, "j/t"); err != nil || m == nil || !lost {
		t.Errorf("results that count are gone: %+v, %v", m, err)
	}
}

// TestLosersLeaveNothing has many attempts commit at once: the bucket has the files of one.
func TestLosersLeaveNothing(t *testing.T) {
	onBuckets(t, func(t *testing.T, b *bucket) {
		var group sync.WaitGroup
		for i := range 8 {
			dir := work(t, map[string]string{"model": "same", "deep/b": "same"})
			group.Go(func() {
				if _, _, err := Commit(context.Background(), b, "j/t", dir, []string{"deep/b", "model"},
					Made{Hash: "h", Attempt: i}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		m, err := ReadManifest(b, "j/t/out")
		if err != nil || m.At == "" {
			t.Fatal(m, err)
		}
		list, _, err := b.List("j")
		for _, e := range list {
			if e.Key != "j/t/out/"+ManifestName && !strings.HasPrefix(e.Key, "j/t/out/"+m.At+"/") {
				t.Errorf("left behind: %s", e.Key)
			}
		}
		if err != nil || len(list) != 4 {
			t.Errorf("%d objects, %v", len(list), err)
		}
		// What killed attempts and redone tasks leave goes with the sweep, and nothing else.
		must.Do(t, Outdate(b, "j/t", 1))
		if _, own, err := Commit(context.Background(), b, "j/t", work(t, map[string]string{"model": "new"}),
			[]string{"model"}, Made{Hash: "h", Attempt: 9, Generation: 1}); err != nil || !own {
			t.Fatal(own, err)
		}
		putText(t, b, "j/t/out/a7-killed/model", "half")
		object := b.object("j/t/out/a8-killed/model")
		must.Get(b.client.NewMultipartUpload(context.Background(), b.name, object,
			minio.PutObjectOptions{}))(t)
		for range 2 { // the second finds nothing
			if kept, err := Sweep(b, "j/t"); err != nil || len(kept) > 0 {
				t.Error(kept, err)
			}
		}
		if list, _, err := b.List("j/t"); err != nil || len(list) != 4 { // manifest, its copy, model, generation
			t.Errorf("%+v, %v", list, err)
		}
		for u := range b.client.ListIncompleteUploads(context.Background(), b.name, object, true) {
			t.Errorf("an upload is left: %+v", u)
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
		f := must.Get(b.Open("file"))(t)
		defer f.Close()
		putText(t, b, "file", strings.Repeat("x", 12<<20))
		if n, err := io.Copy(io.Discard, f); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
			t.Errorf("%d bytes of two files: %v", n, err)
		}
	})
}

// TestKilledUploads kills a process that uploads a file, between its parts.
func TestKilledUploads(t *testing.T) {
	onBuckets(t, func(t *testing.T, b *bucket) {
		ctx := context.Background()
		const key = "j/t/ckpt/files/x"
		pending := func() (n int) {
			for u := range b.client.ListIncompleteUploads(ctx, b.name, b.object(key), true) {
				if u.Err != nil {
					t.Fatal(u.Err)
				}
				n++
			}
			return n
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), uploaderEnv+"=s3://"+b.name+"/"+b.prefix,
			"AWS_ENDPOINT_URL="+b.client.EndpointURL().String())
		said, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		must.Do(t, cmd.Start())
		line := make([]byte, 100)
		n, err := said.Read(line) // two parts are gone
		if err := errors.Join(err, cmd.Process.Kill()); err != nil || string(line[:n]) != uploaderWaits {
			t.Fatalf("%v; it said %s", err, line[:n])
		}
		_ = cmd.Wait() // it was killed
		if pending() != 1 {
			t.Fatalf("%d uploads are pending", pending())
		}
		if m, err := Fetch(ctx, b, "j/t", work(t, nil), Made{Hash: "h"}, 0); err != nil || m != nil {
			t.Errorf("half a checkpoint was fetched: %+v, %v", m, err)
		}
		if err := b.Delete("j/t/ckpt/files/other"); err != nil || pending() != 1 {
			t.Errorf("the upload of another key is gone: %v", err)
		}
		if err := Forget(b, "j/t", AllAttempts); err != nil || pending() > 0 {
			t.Errorf("left behind: %d, %v", pending(), err)
		}
	})
}

// TestUploadsAreListedAtTheEnd has checkpoints come and go beside uploads of others: nobody asks for all of these
// before the task is done.
func TestUploadsAreListedAtTheEnd(t *testing.T) {
	s := newServer(t)
	b := newBucketOf(t, s)
	lists := 0
	s.SetFault(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && r.URL.Query().Has("uploads") {
			lists++
		}
		return false
	})
	f := &fenced{t, bucketRig(b)}
	for attempt := 1; attempt <= 3; attempt++ {
		f.uploads(attempt)(10*attempt, 10*attempt+1, 10*attempt+2)
		putText(t, b, contentKey("j/t", attempt, "left"), "by one that was killed")
		must.Get(b.client.NewMultipartUpload(t.Context(), b.name, b.object(contentKey("j/t", attempt, "x")),
			minio.PutObjectOptions{}))(t)
	}
	if own, err := f.commit("model", Made{Attempt: 2}); err != nil || !own || lists > 0 {
		t.Errorf("%v, %v: %d lists of all uploads", own, err, lists)
	}
	f.must(Forget(b, "j/t", 2))
	if left := s.Uploads(); lists != 1 || len(left) != 1 || left[0] != b.object(contentKey("j/t", 3, "x")) {
		t.Errorf("%d lists of all uploads; %q are left", lists, left)
	}
	f.must(Forget(b, "j/t", AllAttempts))
	if lists != 2 || len(s.Uploads()) > 0 {
		t.Errorf("%d lists of all uploads; %q are left", lists, s.Uploads())
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
	for code, status := range map[string]int{"XMinioStorageFull": http.StatusInsufficientStorage,
		"QuotaExceeded": http.StatusForbidden} {
		s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
			full := r.URL.Query().Get("partNumber") == "3"
			if full {
				s3test.Fail(w, status, code)
			}
			return full
		})
		err = b.Put("file", func(w io.Writer) error { _, err := io.WriteString(w, pattern(9500)); return err })
		if !errors.Is(err, fault.ErrTryAgain) || !strings.Contains(fault.Hint(err), "room") ||
			len(s.Keys())+len(s.Uploads()) > 0 {
			t.Errorf("%s: %v, %q, %q", code, err, s.Keys(), s.Uploads())
		}
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
		time.Sleep(time.Second) // the parts arrive
		fmt.Print(uploaderWaits)
		time.Sleep(time.Hour)
	}
	return s.Writer.Write(p)
}
