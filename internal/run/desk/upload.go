package desk

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"

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

type uploads struct {
	places
	most   int64            // bytes of a folder
	making sync.Mutex       // of names and folders; disks are waited for
	coming map[string]int64 // bytes, by path
}

// upload stores the body of a request as a file of a folder of uploads. The page sends one request for each file that
// is dropped on it, all with one folder, whose name it made up. What is refused is refused before its body is read.
func (u *uploads) upload(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	path, err := u.admit(q.Get("folder"), q.Get("file"), r.ContentLength)
	if err != nil {
		w.Header().Set("Connection", "close") // the body is not read
		answer(w, nil, err)
		return
	}
	defer u.uploaded(path)
	err = atomicfile.Write(path, func(f io.Writer) error {
		n, err := io.Copy(f, http.MaxBytesReader(w, r.Body, r.ContentLength))
		if err == nil && n != r.ContentLength {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	if err != nil {
		err = fault.WithHint(fmt.Errorf("upload %s: %w", filepath.Base(path), fault.Pathless(err)), fault.Hint(err))
	}
	answer(w, map[string]string{"path": u.relative(filepath.Dir(path))}, err)
}

// admit makes the folder of an upload and says where its file goes. uploaded must be called once it is there, or not.
func (u *uploads) admit(folder, name string, size int64) (path string, err error) {
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
	u.making.Lock()
	defer u.making.Unlock()
	if err := u.fits(folder, size, 1); err != nil {
		return "", err
	}
	dir, err := u.keep(uploadsFolder, folder)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, file)
	_, comes := u.coming[path]
	if _, err := os.Lstat(path); err == nil || comes {
		return "", refuse(http.StatusConflict, "rename it", "there is already a %s", file)
	}
	u.coming[path] = size
	return path, nil
}

// uploaded ends an upload. Folders that hold nothing go.
func (u *uploads) uploaded(path string) {
	u.making.Lock()
	defer u.making.Unlock()
	delete(u.coming, path)
	dir := filepath.Dir(path)
	for other := range u.coming {
		if filepath.Dir(other) == dir {
			return
		}
	}
	_ = os.Remove(dir) // refused unless empty
	for data := filepath.Join(u.root, dataFolder); dir != data && output.Within(dir, data); {
		dir = filepath.Dir(dir) // made here, where no link leads elsewhere
		_ = os.Remove(dir)
	}
}

// room answers whether a drop as a whole will be taken, so that the page need not send most of it in vain.
func (u *uploads) room(q query) error {
	size, err := strconv.ParseInt(q("bytes"), 10, 64)
	files, err2 := strconv.Atoi(q("files"))
	if err := errors.Join(err, err2); err != nil || size < 0 || files < 0 {
		return fault.Usagef("", "upload: %.20q bytes in %.20q files are not numbers", q("bytes"), q("files"))
	}
	if err := output.CheckName("folder", q("folder")); err != nil {
		return err
	}
	u.making.Lock()
	defer u.making.Unlock()
	return u.fits(q("folder"), size, files)
}

// fits refuses files that go beyond the bounds of a folder of uploads, or do not fit on the disk. Files that come in
// count as a whole. u.making is held.
func (u *uploads) fits(folder string, size int64, files int) error {
	var entries []os.DirEntry // none, where there is no folder yet
	place := filepath.Join(u.root, dataFolder, uploadsFolder, folder)
	dir, err := u.absolute(u.relative(place))
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
	for path, bytes := range u.coming {
		if coming += bytes; filepath.Base(filepath.Dir(path)) == folder {
			sum += bytes
		}
	}
	if sum > u.most || files > mostUploads {
		return refuse(http.StatusRequestEntityTooLarge, "copy the files to this machine another way, or raise "+
			fault.Setting("max-upload"), "more than %.1f GB or %d files in one folder", float64(u.most)/1e9,
			mostUploads)
	}
	if free, known := atomicfile.FreeSpace(place); known && free-size-coming < spareBytes {
		return refuse(http.StatusInsufficientStorage, "make room on the disk, or drop less",
			"the disk has %.1f GB left; %.1f GB and a reserve of %.1f GB are needed", float64(free)/1e9,
			float64(size+coming)/1e9, float64(spareBytes)/1e9)
	}
	return nil
}
