package desk

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
)

// spareBytes stay free on the disk that uploads go to.
const spareBytes = 512 << 20

// mostUploads bounds the files of a folder.
const mostUploads = 5000

// refusedUpload is the error of an upload that has a status of HTTP of its own.
type refusedUpload struct {
	error
	status int
}

func (r *refusedUpload) Unwrap() error { return r.error }

func refuse(status int, hint, format string, args ...any) error {
	return &refusedUpload{fault.Usagef(hint, "upload: "+format, args...), status}
}

// upload stores the body of a request as a file of a folder of uploads. The page sends one request for each file that
// is dropped on it, all with one folder, whose name it made up. What is refused is refused before its body is read.
func (d *desk) upload(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	path, err := d.admit(q.Get("folder"), q.Get("file"), r.ContentLength)
	if err != nil {
		w.Header().Set("Connection", "close") // nobody reads the body
		answerError(w, statusOf(err), err)
		return
	}
	defer d.uploaded(path)
	err = atomicfile.Write(path, func(f io.Writer) error {
		n, err := io.Copy(f, http.MaxBytesReader(w, r.Body, r.ContentLength))
		if err == nil && n != r.ContentLength {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	if err != nil {
		answerError(w, statusOf(err), fault.WithHint(fmt.Errorf("upload %s: %w", filepath.Base(path),
			fault.Pathless(err)), fault.Hint(err)))
		return
	}
	answer(w, map[string]string{"path": d.relative(filepath.Dir(path))})
}

// admit makes the folder of an upload and says where its file goes. uploaded must be called once it is there, or not.
func (d *desk) admit(folder, name string, size int64) (path string, err error) {
	if err := output.CheckName("folder", folder); err != nil {
		return "", err
	}
	file := wording.PlainName(name)
	if file == "" || !isPhoto(file) {
		return "", fault.Usagef("drop photos or videos", "upload: %.80q is neither a photo nor a video", name)
	}
	if size < 0 {
		return "", refuse(http.StatusLengthRequired, "send the length of the file", "its length is not known")
	}
	d.making.Lock()
	defer d.making.Unlock()
	if err := d.fits(folder, size, 1); err != nil {
		return "", err
	}
	dir, err := d.keep(uploadsFolder, folder)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, file)
	if _, err := os.Lstat(path); err == nil || d.uploads(path) {
		return "", refuse(http.StatusConflict, "rename it", "there is already a %s", file)
	}
	d.uploading[path] = size
	return path, nil
}

// uploads reports whether a file comes in. d.making is held.
func (d *desk) uploads(path string) bool {
	_, is := d.uploading[path]
	return is
}

// uploaded ends an upload. Folders that hold nothing go.
func (d *desk) uploaded(path string) {
	d.making.Lock()
	defer d.making.Unlock()
	delete(d.uploading, path)
	dir := filepath.Dir(path)
	for other := range d.uploading {
		if filepath.Dir(other) == dir {
			return
		}
	}
	_ = os.Remove(dir) // refused unless empty
	for data := filepath.Join(d.root, dataFolder); dir != data && output.Within(dir, data); {
		dir = filepath.Dir(dir) // made here, where no link leads elsewhere
		_ = os.Remove(dir)
	}
}

// room answers whether a drop as a whole will be taken, so that the page need not send most of it in vain.
func (d *desk) room(q query) error {
	size, err := strconv.ParseInt(q("bytes"), 10, 64)
	files, err2 := strconv.Atoi(q("files"))
	if err := errors.Join(err, err2); err != nil || size < 0 || files < 0 {
		return fault.Usagef("", "upload: %.20q bytes in %.20q files are no numbers", q("bytes"), q("files"))
	}
	if err := output.CheckName("folder", q("folder")); err != nil {
		return err
	}
	d.making.Lock()
	defer d.making.Unlock()
	return d.fits(q("folder"), size, files)
}

// fits refuses files that go beyond the bounds of a folder of uploads, or do not fit on the disk. Files that come in
// count as a whole. d.making is held.
func (d *desk) fits(folder string, size int64, files int) error {
	var entries []os.DirEntry // none, where there is no folder yet
	place := filepath.Join(d.root, dataFolder, uploadsFolder, folder)
	dir, err := d.absolute(d.relative(place))
	if err == nil {
		entries, err = os.ReadDir(dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	sum, coming := size, int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && e.Name()[0] != '.' {
			sum += info.Size()
		}
	}
	files += len(entries)
	for path, bytes := range d.uploading {
		if coming += bytes; filepath.Base(filepath.Dir(path)) == folder {
			sum += bytes
		}
	}
	if sum > d.MaxUpload || files > mostUploads {
		return refuse(http.StatusRequestEntityTooLarge, "copy the files to this machine another way, or raise "+
			fault.Setting("max-upload"), "more than %.1f GB or %d files in one folder", float64(d.MaxUpload)/1e9,
			mostUploads)
	}
	if free, known := atomicfile.FreeSpace(place); known && free-size-coming < spareBytes {
		return refuse(http.StatusInsufficientStorage, "make room on the disk, or drop less",
			"the disk has %.1f GB left; %.1f GB and a reserve of %.1f GB are needed", float64(free)/1e9,
			float64(size+coming)/1e9, float64(spareBytes)/1e9)
	}
	return nil
}
