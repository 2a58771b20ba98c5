package desk

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

// spareBytes stay free on the disk that uploads go to.
const spareBytes = 512 << 20

// mostUploads bounds the files of a folder.
const mostUploads = 5000

// upload stores the body of a request as a file of a folder of uploads. The page sends one request for each file that
// is dropped on it, all with one folder, whose name it made up.
func (d *Desk) upload(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	folder, name := plainName(q.Get("folder")), plainName(q.Get("file"))
	if folder == "" || name == "" || !isPhoto(name) {
		answerError(w, http.StatusBadRequest, fault.Usagef("drop photos or videos", "upload: %.80q is neither a photo "+
			"nor a video", q.Get("file")))
		return
	}
	size := r.ContentLength
	dir := filepath.Join(d.data(uploadsFolder), folder)
	if err := d.roomFor(dir, size); err != nil {
		answerError(w, http.StatusRequestEntityTooLarge, err)
		return
	}
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); err == nil {
		answerError(w, http.StatusConflict, fault.Usagef("rename it", "upload: there is already a %s", name))
		return
	}
	err := atomicfile.Write(path, func(f io.Writer) error {
		n, err := io.Copy(f, http.MaxBytesReader(w, r.Body, size))
		if err == nil && n != size {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	if err != nil {
		answerError(w, http.StatusBadRequest, fmt.Errorf("upload %s: %w", name, fault.Pathless(err)))
		return
	}
	answer(w, map[string]string{"path": d.relative(dir)})
}

// roomFor makes a folder of uploads and refuses what does not fit into its bounds or on the disk.
func (d *Desk) roomFor(dir string, size int64) error {
	if size < 0 {
		return errors.New("upload: the length is not known")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return output.FolderError(dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return output.FolderError(dir, err)
	}
	sum := size
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	if sum > d.MaxUpload || len(entries) >= mostUploads {
		return fault.Usagef("copy the files to this machine another way, or raise "+fault.Setting("max-upload"),
			"upload: more than %.1f GB or %d files in one folder", float64(d.MaxUpload)/1e9, mostUploads)
	}
	if free, known := atomicfile.FreeSpace(dir); known && free-size < spareBytes {
		return fault.Usagef("make room", "upload: the disk has %.1f GB left", float64(free)/1e9)
	}
	return nil
}
