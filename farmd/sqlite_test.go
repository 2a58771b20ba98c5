package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
)

// crashed makes the folder of a server that was killed after some commits, the last of which is of a row, and returns
// the files in it, by their ends.
func crashed(t *testing.T, commits int) (files map[string][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), queueFile)
	if err := createSQLite(path); err != nil {
		t.Fatal(err)
	}
	db := connect(t, path)
	execute(t, db, "CREATE TABLE row(n)")
	for n := range commits {
		execute(t, db, fmt.Sprintf("INSERT INTO row VALUES (%d)", n))
	}
	files = contents(t, filepath.Dir(path))
	_ = db.Close()
	if len(files) != 3 || len(files[queueFile+"-wal"]) < commits*4096 {
		t.Fatalf("%d files, a log of %d bytes", len(files), len(files[queueFile+"-wal"]))
	}
	return files
}

// connect opens a file as Temporal's server does.
func connect(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := openFile(path, "mode=rw&_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// contents reads a folder.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// folder makes a folder with files, as change leaves them.
func folder(t *testing.T, files map[string][]byte, change func(files map[string][]byte)) (dir string) {
	t.Helper()
	own := map[string][]byte{}
	for name, data := range files {
		own[name] = append([]byte{}, data...)
	}
	change(own)
	dir = t.TempDir()
	for name, data := range own {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rows counts the rows of an opened folder, -1 if it has no table of them.
func rows(t *testing.T, dir string) (n int) {
	t.Helper()
	if connect(t, filepath.Join(dir, queueFile)).QueryRow("SELECT count(*) FROM row").Scan(&n) != nil {
		return -1
	}
	return n
}

// refuses wants a folder to be refused, unchanged.
func refuses(t *testing.T, dir, what string) {
	t.Helper()
	before := contents(t, dir)
	_, err := openSQLite(dir)
	if err == nil {
		t.Errorf("%s: it opens", what)
		return
	}
	if hint := fault.Hint(err); fault.ExitCode(err) != fault.ExitTryAgain ||
		!strings.Contains(hint, "queue.db, queue.db-wal and queue.db-shm") {
		t.Errorf("%s: exit code %d, %v, %s", what, fault.ExitCode(err), err, hint)
	}
	equal := func(a, b []byte) bool { return string(a) == string(b) }
	if after := contents(t, dir); !maps.EqualFunc(before, after, equal) {
		t.Errorf("%s: the refused start has changed the folder", what)
	}
}

// One flipped bit anywhere in the log takes nothing back without a word: what was written after it is missed. A log
// that ends in the middle, as after a crash, is as good as SQLite finds it.
func TestDamagedLog(t *testing.T) {
	const commits, frame = 20, 24 + 4096
	files := crashed(t, commits)
	log := queueFile + "-wal"
	size := len(files[log])
	if whole, err := readLog(filepath.Join(folder(t, files, func(map[string][]byte) {}), log)); err != nil ||
		whole.lost != 0 || whole.frames != size/frame {
		t.Fatalf("%+v of %d bytes, %v", whole, size, err)
	}
	last := size - frame // begins the last commit
	for at := 0; at < last-frame; at += 307 {
		refuses(t, folder(t, files, func(f map[string][]byte) { f[log][at] ^= 1 << (at % 8) }), fmt.Sprint("byte ", at))
	}
	for what, c := range map[string]struct {
		change func(f map[string][]byte)
		rows   int
	}{
		"nothing":        {func(map[string][]byte) {}, commits},
		"no shm":         {func(f map[string][]byte) { delete(f, queueFile+"-shm") }, commits},
		"no log":         {func(f map[string][]byte) { delete(f, log) }, -1},
		"an empty log":   {func(f map[string][]byte) { f[log] = nil }, -1},
		"a cut header":   {func(f map[string][]byte) { f[log] = f[log][:20] }, -1},
		"a cut end":      {func(f map[string][]byte) { f[log] = f[log][:size-1] }, commits - 1},
		"the last frame": {func(f map[string][]byte) { f[log][last+100] ^= 1 }, commits - 1},
		"an older use": {func(f map[string][]byte) {
			f[log] = append(f[log], f[log][32:]...)
			for at := size; at < len(f[log]); at += frame {
				f[log][at+8] ^= 1 // the salt
			}
		}, commits},
	} {
		dir := folder(t, files, c.change)
		if _, err := openSQLite(dir); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if n := rows(t, dir); n != c.rows {
			t.Errorf("%s: %d rows, want %d", what, n, c.rows)
		}
	}
}

// A refused start changes nothing, with a log and without.
func TestRefusedFile(t *testing.T) {
	files := crashed(t, 5)
	for what, change := range map[string]func(f map[string][]byte){
		"damaged pages": func(f map[string][]byte) {
			for i := 4096; i < len(f[queueFile]); i++ {
				f[queueFile][i] ^= 0x55
			}
		},
		"a cut file":     func(f map[string][]byte) { f[queueFile] = f[queueFile][:len(f[queueFile])/2] },
		"an empty file":  func(f map[string][]byte) { f[queueFile] = nil },
		"another's file": func(f map[string][]byte) { f[queueFile][71]++ },
		"no database":    func(f map[string][]byte) { f[queueFile] = []byte(strings.Repeat("text", 4096)) },
	} {
		if what != "another's file" { // page 1 is in the log, too
			refuses(t, folder(t, files, change), what)
		}
		refuses(t, folder(t, files, func(f map[string][]byte) {
			delete(f, queueFile+"-wal")
			change(f)
		}), what+", without a log")
	}
}

// A backup that was unpacked beside the log of another file is refused.
func TestForeignLog(t *testing.T) {
	files := crashed(t, 5)
	scratch := t.TempDir()
	snapshot := filepath.Join(scratch, "snapshot")
	old := connect(t, filepath.Join(folder(t, files, func(map[string][]byte) {}), queueFile))
	execute(t, old, "VACUUM INTO '"+snapshot+"'")
	fresh := filepath.Join(scratch, "fresh")
	if err := createSQLite(fresh); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{"a backup": snapshot, "a new file": fresh} {
		refuses(t, folder(t, files, func(f map[string][]byte) {
			var err error
			if f[queueFile], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}), what)
	}
}

// A new file does not take over the log of an old one, which is kept.
func TestLeftLog(t *testing.T) {
	files := crashed(t, 5)
	dir := folder(t, files, func(f map[string][]byte) { delete(f, queueFile) })
	db, err := openSQLite(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := createNamespace(&db.main); err != nil {
		t.Error(err)
	}
	if n := rows(t, dir); n != -1 {
		t.Errorf("the new file has %d rows of the old one", n)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "queue-left-*.db-wal"))
	if len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	if data, err := os.ReadFile(kept[0]); err != nil || string(data) != string(files[queueFile+"-wal"]) {
		t.Errorf("the old log has changed: %v", err)
	}
}

// Where no log is left, it names none.
func TestLeftIndex(t *testing.T) {
	dir, before := t.TempDir(), os.Stderr
	if err := os.WriteFile(filepath.Join(dir, queueFile+"-shm"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	os.Stderr = said
	_, err = openSQLite(dir)
	os.Stderr = before
	if text, _ := os.ReadFile(said.Name()); err != nil || strings.Contains(string(text), "the log of") {
		t.Errorf("%q, %v", text, err)
	}
}

// The log is written into the file at intervals, and at the end, after which nothing can write, it is gone.
func TestEnd(t *testing.T) {
	dir := t.TempDir()
	d, err := openSQLite(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := connect(t, d.path)
	execute(t, other, "CREATE TABLE row(n)")
	if err := d.trim(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(d.path + "-wal"); err != nil || info.Size() != 0 {
		t.Errorf("after a trim the log has %d bytes, %v", info.Size(), err)
	}
	execute(t, other, "INSERT INTO row VALUES (1)")
	if err := d.end(t.Context()); err != nil {
		t.Error(err)
	}
	defer d.lock.Close()
	for _, end := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(d.path + end); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s stays: %v", end, err)
		}
	}
	execute(t, other, "PRAGMA busy_timeout=1")
	if _, err := other.Exec("INSERT INTO row VALUES (2)"); err == nil {
		t.Error("something is written afterwards")
	}
	if n := rows(t, folder(t, contents(t, dir), func(map[string][]byte) {})); n != 1 {
		t.Errorf("%d rows afterwards", n)
	}
}
