package main

import (
	"database/sql"
	"errors"
	"fmt"
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
	lock             *sql.Conn // holds Postgres's lock of the one server until the process ends
}

// applicationID marks our SQLite files, in the header field that SQLite has for it: "vksf".
const applicationID = 0x766b7366

// Temporal does not update its tables in SQLite, and does not notice that they are of another version: it accepts
// jobs and loses them. So the file says which version made it, and another version begins a new file. The store has
// the results and the documents: owners submit their jobs again, and only what is not done is done.

// openSQLite prepares the file of a data folder.
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
		return nil, &fault.Error{Op: "open database", Path: path, Err: err, Kind: fault.ErrTryAgain,
			Hint: "restore it from a backup; or move it away: the farm then starts without jobs, and owners submit theirs again"}
	}
	cfg := sqliteConfig(path)
	return &database{main: cfg, visibility: cfg, kept: kept}, nil
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
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := withSQLite(tmp, "rwc", func(db *sql.DB) error {
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

// putAside renames a file that another version of the server made, and returns its new name.
func putAside(path string) (kept string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var id, stamp int
	var state string
	if err := withSQLite(path, "rw", func(db *sql.DB) error {
		return errors.Join(
			db.QueryRow("PRAGMA application_id").Scan(&id),
			db.QueryRow("PRAGMA user_version").Scan(&stamp),
			db.QueryRow("PRAGMA quick_check(1)").Scan(&state))
	}); err != nil {
		return "", err
	}
	if id != applicationID {
		return "", errors.New("the file is not a farm's")
	}
	if state != "ok" {
		return "", fmt.Errorf("the file is damaged: %s", state)
	}
	version, err := serverVersion()
	if err != nil || stamp == stampOf(version) {
		return "", err
	}
	kept = fmt.Sprintf("%s-of-server-%s-%s.db", strings.TrimSuffix(path, ".db"), versionOf(stamp),
		time.Now().UTC().Format("20060102T150405"))
	for _, end := range sqliteEnds {
		if err := os.Rename(path+end, kept+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return kept, nil
}

// serverVersion is the version of Temporal's server that is linked.
func serverVersion() (semver.Version, error) { return semver.Parse(headers.ServerVersion) }

// stampOf is a version as a number for SQLite's user_version; versionOf is the way back.
func stampOf(v semver.Version) int { return int(v.Major)*1_000_000 + int(v.Minor)*1000 + int(v.Patch) }

func versionOf(stamp int) string {
	return fmt.Sprintf("%d.%d.%d", stamp/1_000_000, stamp/1000%1000, stamp%1000)
}

// withSQLite opens a file for what use does. The modes are SQLite's: "rw" wants the file to exist, "rwc" makes it.
func withSQLite(path, mode string, use func(*sql.DB) error) error {
	db, err := sql.Open("sqlite", "file:"+escaped(path)+"?mode="+mode+"&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(use(db), db.Close())
}
