package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/schema"

	"vksplat/internal/fault"
)

// database is where Temporal keeps what it knows.
type database struct {
	main, visibility config.SQL
	kept             string    // the file of another version that was put aside, "" if there was none
	path             string    // of SQLite's file, "" for Postgres
	lock             *sql.Conn // held until the process ends: Postgres's of the one server, SQLite's of writers
}

// applicationID marks our SQLite files, in the header field that SQLite has for it: "vksf".
const applicationID = 0x766b7366

// damagedHint is what helps with a file that cannot be used.
const damagedHint = "restore a backup; or move queue.db, queue.db-wal and queue.db-shm away, all of them: the farm " +
	"then starts without jobs, and owners submit theirs again"

// Temporal does not update its tables in SQLite, and does not notice that they are of another version: it accepts
// jobs and loses them. So the file says which version made it, and another version begins a new file. The store has
// the results and the documents: owners submit their jobs again, and only what is not done is done.

// openSQLite prepares the file of a data folder. Where it refuses, it has changed nothing there.
func openSQLite(data string) (*database, error) {
	path := filepath.Join(data, queueFile)
	kept, err := putAside(path)
	if err == nil {
		_, err = os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = createSQLite(path)
		}
	}
	if err != nil && isFull(err) {
		return nil, keepError("open database", path, err)
	} else if err != nil {
		return nil, &fault.Error{Op: "open database", Path: path, Err: err, Kind: fault.ErrTryAgain, Hint: damagedHint}
	}
	cfg := sqliteConfig(path)
	return &database{main: cfg, visibility: cfg, kept: kept, path: path}, nil
}

// sqliteConfig has every commit reach the disk before it is acknowledged.
func sqliteConfig(path string) config.SQL {
	return config.SQL{PluginName: sqlite.PluginName, DatabaseName: escaped(path),
		ConnectAttributes: map[string]string{
			"mode": "rwc", "journal_mode": "wal", "synchronous": "full", "busy_timeout": "10000"}}
}

// escaped is a path as part of a URI.
func escaped(path string) string { return (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() }

// createSQLite makes a file with this version's tables: whole or not at all. Temporal's own function keeps the file
// open, under its first name.
func createSQLite(path string) error {
	version, err := serverVersion()
	if err != nil {
		return err
	}
	stamp := fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, stampOf(version))
	statements := []string{stamp}
	for _, name := range []string{"sqlite/v3/temporal/schema.sql", "sqlite/v3/visibility/schema.sql"} {
		text, err := fs.ReadFile(schema.Assets(), name)
		if err != nil {
			return err
		}
		statements = append(statements, string(text))
	}
	tmp := path + ".new"
	for _, end := range append([]string{"-journal"}, sqliteEnds...) {
		if err := os.Remove(tmp + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// SQLite would read an old log as the new file's.
	kept, err := rename(path, "-left")
	if err != nil {
		return err
	}
	if _, err := os.Stat(kept + "-wal"); err == nil {
		fmt.Fprintf(os.Stderr, "vksplat-farmd: the log of a file that is gone is kept as %s-wal\n", kept)
	}
	if err := withSQLite(tmp, "mode=rwc", func(db *sql.DB) error {
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// sqliteEnds are the ends of the names of the files that a database consists of.
var sqliteEnds = []string{"", "-wal", "-shm"}

// rename moves what there is of a database to a name of its own with a word in it, and returns that, "" if there was
// nothing.
func rename(path, word string) (kept string, err error) {
	to := fmt.Sprintf("%s%s-%s.db", strings.TrimSuffix(path, ".db"), word, time.Now().UTC().Format("20060102T150405"))
	for _, end := range sqliteEnds {
		switch err := os.Rename(path+end, to+end); {
		case err == nil:
			kept = to
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return kept, nil
}

// putAside renames a file that another version of the server made, and returns its new name.
func putAside(path string) (kept string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	stamp, err := checkSQLite(path)
	if err != nil {
		return "", err
	}
	version, err := serverVersion()
	if err != nil || stamp == stampOf(version) {
		return "", err
	}
	return rename(path, "-of-server-"+versionOf(stamp))
}

// checkSQLite refuses a file that is damaged or not a farm's, and returns which version made it. It changes nothing: to
// open a file for writing, or with SQLite's locks, would already merge, grow or remove some of it.
func checkSQLite(path string) (stamp int, err error) {
	log, err := readLog(path + "-wal")
	if err == nil {
		err = log.check()
	}
	if err != nil {
		return 0, err
	}
	header, err := readHeader(path)
	if err == nil && header[walMark] != 2 && log.frames > 0 {
		err = errors.New("the log is of another file")
	}
	if err != nil {
		return 0, err
	}
	how := "mode=ro&immutable=1" // without the log
	if log.frames > 0 {
		how = "mode=ro&vfs=" + unlocked + "&_pragma=locking_mode(exclusive)"
	}
	var id int
	var state string
	if err := withSQLite(path, how, func(db *sql.DB) error {
		return errors.Join(
			db.QueryRow("PRAGMA application_id").Scan(&id),
			db.QueryRow("PRAGMA user_version").Scan(&stamp),
			db.QueryRow("PRAGMA quick_check(1)").Scan(&state))
	}); err != nil {
		return 0, err
	}
	switch {
	case id != applicationID:
		return 0, errors.New("the file is not a farm's")
	case state != "ok":
		return 0, fmt.Errorf("the file is damaged: %s", state)
	case log.lost > 0:
		fmt.Fprintf(os.Stderr, "vksplat-farmd: the last entry of %s is not whole, as after a power cut\n"+
			"  look whether the last jobs that you submitted are listed\n", path+"-wal")
	}
	return stamp, nil
}

// walMark is the byte of SQLite's header that is 2 in files that have a log. A new file and one of a backup have none.
const walMark = 19

// readHeader reads the header of a file of SQLite.
func readHeader(path string) (header [100]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return header, err
	}
	defer f.Close()
	if _, err := io.ReadFull(f, header[:]); err != nil { // SQLite would remove the log of an empty file
		return header, errors.New("the file is cut off")
	}
	return header, nil
}

// trim writes the log into the file, so that little is in the log alone.
func (d *database) trim() error {
	return withSQLite(d.path, "mode=rw", func(db *sql.DB) error {
		_, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
}

// trimEvery is how often.
const trimEvery = time.Minute

// keepTrim trims until ctx ends.
func (d *database) keepTrim(ctx context.Context) {
	every(ctx, trimEvery, func() { _ = d.trim() }) // a full disk is Temporal's to tell
}

// every does something from time to time until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// end trims, and removes the log. Temporal's server, which has stopped, keeps the file open: nothing of it can write
// from then on.
func (d *database) end(ctx context.Context) error {
	if err := d.trim(); err != nil {
		return err
	}
	db, err := openFile(d.path, "mode=rw")
	if err != nil {
		return err
	}
	if d.lock, err = db.Conn(ctx); err != nil {
		return err
	}
	if _, err := d.lock.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if info, err := os.Stat(d.path + "-wal"); err != nil || info.Size() > 0 {
		return err // it was busy
	}
	return errors.Join(os.Remove(d.path+"-wal"), os.Remove(d.path+"-shm"))
}

// serverVersion is the version of Temporal's server that is linked.
func serverVersion() (semver.Version, error) { return semver.Parse(headers.ServerVersion) }

// stampOf is a version as a number for SQLite's user_version; versionOf is the way back.
func stampOf(v semver.Version) int { return int(v.Major)*1_000_000 + int(v.Minor)*1000 + int(v.Patch) }

func versionOf(stamp int) string {
	return fmt.Sprintf("%d.%d.%d", stamp/1_000_000, stamp/1000%1000, stamp%1000)
}

// withSQLite opens a file for what use does, as a query of SQLite's says. Of its modes "rw" wants the file to exist,
// "rwc" makes it.
func withSQLite(path, query string, use func(*sql.DB) error) error {
	db, err := openFile(path, query)
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

func openFile(path, query string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+escaped(path)+"?"+query+"&_pragma=busy_timeout(10000)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}
