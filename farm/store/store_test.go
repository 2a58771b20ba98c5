package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
	must "vksplat/internal/musttest"
)

func newFolder(t *testing.T, o Options) *folder {
	t.Helper()
	if o.URL == "" {
		o.URL = t.TempDir()
	}
	r := must.Get(Open(o))(t)
	f := r.(*folder)
	f.pause = time.Millisecond
	return f
}

func putText(t *testing.T, r Root, key, text string) {
	t.Helper()
	must.Do(t, r.Put(key, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }))
}

func getText(t *testing.T, r Root, key string) string {
	t.Helper()
	f := must.Get(r.Open(key))(t)
	defer f.Close()
	data := must.Get(io.ReadAll(f))(t)
	return string(data)
}

// work is a local folder with files.
func work(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	dir := must.Get(os.OpenRoot(t.TempDir()))(t)
	t.Cleanup(func() { _ = dir.Close() })
	for name, text := range files {
		must.Do(t, errors.Join(dir.MkdirAll(filepath.Dir(name), 0o777),
			dir.WriteFile(name, []byte(text), 0o666)))
	}
	return dir
}

func TestKeysStayInTheRoot(t *testing.T) {
	top := t.TempDir()
	inside := filepath.Join(top, "root")
	must.Do(t, errors.Join(os.Mkdir(inside, 0o777),
		os.WriteFile(filepath.Join(top, "secret"), []byte("x"), 0o666)))
	if runtime.GOOS != "windows" {
		must.Do(t, errors.Join(os.Symlink("..", filepath.Join(inside, "up")),
			os.Symlink("/etc", filepath.Join(inside, "etc")),
			os.Symlink("../secret", filepath.Join(inside, "link"))))
	}
	r := newFolder(t, Options{URL: inside})
	for _, key := range []string{"../secret", "/etc/passwd", "up/secret", "etc/passwd", "link", "a/../../secret",
		"a\\..\\b", "", "a//b", "a\x00b", "./a"} {
		_, err := r.Open(key)
		put := r.Put(key, func(io.Writer) error { return nil })
		if key == "link" { // is replaced, which harms nobody outside
			put = errors.New("skipped")
		}
		if err == nil || put == nil || key == "up/secret" && r.Delete(key) == nil &&
			!exists(filepath.Join(top, "secret")) {
			t.Errorf("key %q leads out: %v, %v", key, err, put)
		}
	}
	if !exists(filepath.Join(top, "secret")) || r.Delete(".") == nil {
		t.Error("something was deleted outside")
	}
	if _, _, err := r.List("up"); err == nil {
		t.Error("a list leads out")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such permissions")
	}
	r := newFolder(t, Options{Umask: "0007", Group: fmt.Sprint(os.Getegid())})
	putText(t, r, "a/b/c", "x")
	for name, want := range map[string]fs.FileMode{"a": 0o770, "a/b": 0o770, "a/b/c": 0o660} {
		if info, err := os.Stat(filepath.Join(r.dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	must.Do(t, os.Mkdir(filepath.Join(r.dir, "a b"), 0o777))
	if spaced, err := Open(Options{URL: "file://" + filepath.ToSlash(r.dir) + "/a%20b"}); err != nil ||
		spaced.String() != filepath.Join(r.dir, "a b") {
		t.Errorf("%v, %v", spaced, err)
	}
	for _, o := range []Options{{URL: "gs://bucket/x"}, {URL: "file://server/x"}, {URL: "file:///x?y"},
		{URL: "file://%zz"}, {URL: ""}, {URL: r.dir, Umask: "9"}, {URL: r.dir, Group: "no such group"},
		{URL: r.dir, Mark: "../a"}, {URL: filepath.Join(r.dir, "missing")}} {
		if _, err := Open(o); !errors.Is(err, ErrSetup) || fault.Hint(err) == "" {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestFaultsOfShares has a share fail for a moment, and for good.
func TestFaultsOfShares(t *testing.T) {
	r := newFolder(t, Options{})
	left := 0
	r.fault = func(op, key string) error {
		if left > 0 {
			left--
			return &fs.PathError{Op: op, Path: key, Err: []error{syscall.EIO, syscall.ESTALE}[left%2]}
		}
		return nil
	}
	for _, do := range []func() error{
		func() error {
			return r.Put("a", func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err })
		},
		func() error { _, err := r.Open("a"); return err },
		func() error { _, err := r.Stat("a"); return err },
		func() error { _, _, err := r.List("."); return err },
		func() error { return r.Publish("a", "b") },
		func() error { return r.Delete("b") },
	} {
		left = tries - 1
		if err := do(); err != nil || left != 0 {
			t.Errorf("%v with %d faults left", err, left)
		}
	}
	// A file is read on from where it was.
	text := strings.Repeat("0123456789", 10000)
	putText(t, r, "long", text)
	f := must.Get(r.Open("long"))(t)
	defer f.Close()
	var got []byte
	for len(got) < len(text) {
		left = 3
		part := make([]byte, 7001)
		n, err := f.Read(part)
		if got = append(got, part[:n]...); err != nil || left != 0 {
			t.Fatal(err)
		}
	}
	if string(got) != text {
		t.Error("what was read is not what is there")
	}
	left = tries
	if err := r.Put("a", func(io.Writer) error { return nil }); !errors.Is(err, syscall.EIO) &&
		!errors.Is(err, syscall.ESTALE) {
		t.Error(err)
	}
	// A write that fails leaves nothing.
	left = 0
	if err := r.Put("d/e", func(w io.Writer) error {
		_,
			_ = w.Write(make([]byte, 1<<20))
		return syscall.ENOSPC
	}); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(r.dir, "d")); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for cause, kind := range map[error]error{syscall.ENOSPC: fault.ErrTryAgain, syscall.EROFS: ErrSetup,
		syscall.EACCES: ErrSetup, ErrDamaged: fault.ErrData, syscall.EIO: fault.ErrTryAgain} {
		if err := Explain("write", "a", fmt.Errorf("put: %w", cause)); !errors.Is(err, kind) ||
			!errors.Is(err, cause) || fault.Hint(err) == "" {
			t.Errorf("%v is explained as %v", cause, err)
		}
	}
	const room = "make room there; the task continues when it is retried"
	if hint := fault.Hint(Explain("write", "a", syscall.ENOSPC)); hint != room {
		t.Errorf("the hint of a full store is %q", hint)
	}
}

func TestCache(t *testing.T) { onRoots(t, testCache) }

func testCache(t *testing.T, r *rig) {
	ctx := context.Background()
	for _, name := range []string{"a", "b", "c"} {
		putText(t, r, name+"/deep/photo", strings.Repeat(name, 1000))
	}
	if runtime.GOOS != "windows" && r.dir != "" {
		must.Do(t, os.Symlink("deep", filepath.Join(r.dir, "a", "linked")))
	}
	c := must.Get(OpenCache(filepath.Join(t.TempDir(), "cache"), 2500))(t)
	use := func(key string) (string, func()) {
		t.Helper()
		dir, release, err := c.Input(ctx, r, key)
		if err != nil {
			t.Fatal(err)
		}
		return dir, release
	}
	a, doneA := use("b")
	if data, err := os.ReadFile(filepath.Join(a, "deep", "photo")); err != nil ||
		!bytes.Equal(data, bytes.Repeat([]byte("b"), 1000)) {
		t.Fatal(err)
	}
	var opened atomic.Int64 // files are fetched beside each other
	r.fault = func(op, _ string) error {
		if op == "open" {
			opened.Add(1)
		}
		return nil
	}
	again, done := use("b")
	if again != a || opened.Load() > 0 {
		t.Errorf("copied again: %s and %s, %d opened", a, again, opened.Load())
	}
	done()
	file, done := use("c/deep/photo")
	if data, err := os.ReadFile(file); err != nil || len(data) != 1000 {
		t.Error(err)
	}
	done()
	// With the third there is one too many: c goes, which nobody reads; b is in use.
	_, done = use("c")
	if !exists(a) || exists(filepath.Dir(file)) {
		t.Errorf("what is in use was removed, or nothing: %v %v", exists(a), exists(filepath.Dir(file)))
	}
	done()
	doneA()
	_, done = use("a")
	done()
	if exists(a) {
		t.Error("the oldest was not removed")
	}
	// What changed is another input; what is damaged is filled anew.
	putText(t, r, "c/deep/photo", "changed")
	dir, done := use("c")
	if data, err := os.ReadFile(filepath.Join(dir, "deep", "photo")); err != nil || string(data) != "changed" {
		t.Error(string(data), err)
	}
	done()
	must.Do(t, os.Truncate(filepath.Join(dir, "deep", "photo"), 1))
	dir, done = use("c")
	defer done()
	if data, err := os.ReadFile(filepath.Join(dir, "deep", "photo")); err != nil || string(data) != "changed" {
		t.Error(string(data), err)
	}
	if _, _, err := c.Input(ctx, r, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestCacheIsOnTheDisk has files synced, with their content, before anything says that an input is whole.
func TestCacheIsOnTheDisk(t *testing.T) { onRoots(t, testCacheIsOnTheDisk) }

func testCacheIsOnTheDisk(t *testing.T, r *rig) {
	putText(t, r, "in/deep/photo", "photo")
	putText(t, r, "in/list", "list")
	c, err := OpenCache(filepath.Join(t.TempDir(), "cache"), 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	c.synced = func(file string) {
		names = append(names, filepath.Base(file))
		if data, err := os.ReadFile(file); err != nil || string(data) != filepath.Base(file) {
			t.Errorf("synced %s with %q, %v", file, data, err)
		}
		if entries, err := filepath.Glob(filepath.Join(c.dir, "*", entryFile)); err != nil || len(entries) > 0 {
			t.Errorf("an entry already exists: %q, %v", entries, err)
		}
	}
	_, release, err := c.Input(context.Background(), r, "in")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if !slices.Equal(names, []string{"photo", "list"}) {
		t.Errorf("synced: %q", names)
	}
}

// TestCacheOfOneFileOfTwo fetches an input whose files do not stay apart on the local disk, as where it takes small
// letters for large ones: it says so, and does not fetch it for ever.
func TestCacheOfOneFileOfTwo(t *testing.T) {
	r := newFolder(t, Options{})
	putText(t, r, "in/a.png", "photo")
	putText(t, r, "in/A.PNG", "another photo")
	c, err := OpenCache(filepath.Join(t.TempDir(), "cache"), 0)
	if err != nil {
		t.Fatal(err)
	}
	c.synced = func(file string) {
		if filepath.Base(file) == "a.png" {
			err = errors.Join(err, os.WriteFile(file, []byte("another photo"), 0o666))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, _, failed := c.Input(ctx, r, "in")
	var e *fault.Error
	if err != nil || !errors.Is(failed, ErrSetup) || !errors.As(failed, &e) || e.Hint == "" {
		t.Errorf("%v, %v", failed, err)
	}
}

// TestCacheOfMany has goroutines fill, read and remove at once.
func TestCacheOfMany(t *testing.T) { onRoots(t, testCacheOfMany) }

func testCacheOfMany(t *testing.T, r *rig) {
	for i := range 4 {
		putText(t, r, fmt.Sprintf("in%d/file", i), strings.Repeat(fmt.Sprint(i), 1000))
	}
	dir := filepath.Join(t.TempDir(), "cache")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			c, err := OpenCache(dir, 1500)
			for n := range 20 {
				if err != nil {
					break
				}
				k := (i + n) % 4
				var at string
				var release func()
				if at, release, err = c.Input(context.Background(), r, fmt.Sprintf("in%d", k)); err != nil {
					break
				}
				var data []byte
				if data, err = os.ReadFile(filepath.Join(at, "file")); string(data) != strings.Repeat(fmt.Sprint(k),
					1000) {
					t.Errorf("read %.10q of input %d: %v", data, k, err)
				}
				release()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestRootsFile(t *testing.T) {
	roots, err := ReadRoots("roots.toml",
		[]byte("scans = \"file:///srv/scans\"\n[results]\nurl = \"/srv/results\"\numask = \"0002\"\ngroup = "+
			"\"lab\"\nmark = \".mounted\"\n"))
	if err != nil || roots["scans"].URL != "file:///srv/scans" ||
		roots["results"] != (Options{URL: "/srv/results", Umask: "0002", Group: "lab", Mark: ".mounted"}) {
		t.Errorf("%v, %v", roots, err)
	}
	for _, text := range []string{"x", "[a]\nurl = \"/x\"\npassword = \"y\"", "a = 5"} {
		if _, err := ReadRoots("roots.toml", []byte(text)); !errors.Is(err, ErrSetup) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, line := range []string{`mark = ".m"`, `umask = "0002"`, `group = "lab"`, `url = "file:///srv"`,
		`endpoint = "https://lab"`, `region = "x"`, `path_style = true`, `ca = "/etc/ca.pem"`, `credentials = "/etc/x"`,
		`profile = "x"`} {
		name, _, _ := strings.Cut(line, " ")
		if roots, err := ReadRoots("roots.toml", []byte("outputs = \"file:///srv/results\"\n"+line)); !errors.Is(err,
			ErrSetup) || !strings.Contains(err.Error(), name+" belongs in the table of a root") {
			t.Errorf("%s: %v, %v", line, roots, err)
		}
	}
	if roots, err := ReadRoots("roots.toml", []byte("[group]\nurl = \"/srv/group\"\nmark = \".m\"")); err != nil ||
		roots["group"].Mark != ".m" {
		t.Errorf("%v, %v", roots, err)
	}
	if _, err := roots.Open("nothing"); !errors.Is(err, ErrSetup) {
		t.Error(err)
	}
	if names, err := LocalFiles(work(t,
		map[string]string{"b": "", "a/c": "", ".hidden/x": "", "a/.tmp": "", "skip": ""}),
		func(name string) bool { return name == "skip" }); err != nil || !slices.Equal(names, []string{"a/c", "b"}) {
		t.Errorf("%v, %v", names, err)
	}
}

// TestHalfInputsGo leaves what a process was killed over while it filled it: the next input has it removed, with a
// bound and without, unless somebody fills it.
func TestHalfInputsGo(t *testing.T) {
	r := newFolder(t, Options{})
	putText(t, r, "a/photo", "x")
	for _, most := range []int64{0, 1000} {
		c, err := OpenCache(filepath.Join(t.TempDir(), "cache"), most)
		if err != nil {
			t.Fatal(err)
		}
		half, filled := filepath.Join(c.dir, strings.Repeat("0", 32)), filepath.Join(c.dir, strings.Repeat("1", 32))
		for _, dir := range []string{half, filled} {
			must.Do(t, errors.Join(os.Mkdir(dir, 0o777),
				os.WriteFile(filepath.Join(dir, "photo"), []byte("half"), 0o666)))
		}
		unlock := must.Get(lockfile.Try(filled+".lock", lockfile.Exclusive))(t)
		dir, release, err := c.Input(t.Context(), r, "a")
		if err != nil {
			t.Fatal(err)
		}
		release()
		unlock()
		if exists(half) || !exists(filled) || !exists(dir) {
			t.Errorf("with a bound of %d: half %v, that is filled %v, whole %v", most, exists(half), exists(filled),
				exists(dir))
		}
	}
}

// TestHasAny tells a folder in which a share may not be mounted from one with anything.
func TestHasAny(t *testing.T) {
	dir := t.TempDir()
	root := must.Get(Roots{"r": {URL: dir}}.Open("r"))(t)
	if HasAny(root) {
		t.Error("an empty folder has something")
	}
	must.Do(t, os.Mkdir(filepath.Join(dir, "a"), 0o777))
	if !HasAny(root.Attend(t.Context(), func(error) {})) {
		t.Error("a folder with something has nothing")
	}
}
