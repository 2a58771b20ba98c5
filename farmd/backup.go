package main

import (
	"archive/tar"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"vksplat/farmd/registry"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
)

// backup writes what a farm needs to go on elsewhere to a tar file: the files of the registry as they are, which
// change by renames only, and a copy of the database as it is at one moment. To restore, unpack it into an empty
// folder.
func backup(data, to string) error {
	if _, err := registry.Open(data); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return &fault.Error{Op: "write backup", Path: to, Err: fs.ErrExist, Kind: fault.ErrUsage,
			Hint: "name a file that does not exist yet"}
	}
	scratch, err := os.MkdirTemp(filepath.Dir(to), ".backup-") // for nobody else: keys are in it
	if err != nil {
		return &fault.Error{Op: "write backup", Path: to, Err: fault.TrimPath(err), Kind: fault.ErrTryAgain}
	}
	defer os.RemoveAll(scratch)
	whole := filepath.Join(scratch, "backup")
	if err = writeTar(whole, data, filepath.Join(scratch, "queue")); err == nil {
		err = os.Rename(whole, to)
	}
	if err != nil {
		return &fault.Error{Op: "write backup", Path: to, Err: err, Kind: fault.ErrTryAgain}
	}
	if _, err := os.Stat(filepath.Join(data, queueFile)); errors.Is(err, fs.ErrNotExist) {
		fmt.Println("jobs are not in the backup: they are in Postgres, back up its databases by pg_dump")
	}
	return nil
}

// writeTar writes a backup to a new file. The database is copied to snapshot first.
func writeTar(to, data, snapshot string) error {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	return errors.Join(writeBackup(w, data, snapshot), w.Close(), out.Sync(), out.Close())
}

func writeBackup(w *tar.Writer, data, snapshot string) error {
	queue := filepath.Join(data, queueFile)
	if _, err := os.Stat(queue); err == nil {
		unlock, err := lockfile.Try(filepath.Join(data, lockFile), lockfile.Exclusive)
		if err == nil { // nobody serves: the log may be damaged
			defer unlock()
			if _, err := checkSQLite(queue); err != nil {
				return fault.WithHint(err, damagedHint)
			}
		}
		if err := withSQLite(queue, "mode=rw", func(db *sql.DB) error {
			_, err := db.Exec("VACUUM INTO ?", snapshot)
			return err
		}); err != nil {
			return err
		}
		if err := addFile(w, snapshot, queueFile); err != nil {
			return err
		}
	}
	for _, name := range append([]string{addressFile}, registry.Files...) {
		err := filepath.WalkDir(filepath.Join(data, name), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // renamed or never made
				return nil
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(data, path)
			if err != nil {
				return err
			}
			if entry.IsDir() {
				return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(rel) + "/",
					Mode: 0o700})
			}
			return addFile(w, path, filepath.ToSlash(rel))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addFile adds a file under a name. One that is gone meanwhile is left out.
func addFile(w *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(),
		ModTime: info.ModTime()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
