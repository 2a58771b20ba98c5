package task

import (
	_ "image/jpeg" // what renders are written as
	_ "image/png"
	"io"
	"os"
	"path/filepath"
	"time"

	"vksplat/farm/spec"
	"vksplat/internal/atomicfile"
	"vksplat/scene/photo"
)

// previewName is the file in the task's folder with the newest small picture of what it makes, beside its results and
// none of them. A training's child writes it; of renders it is made here, of the last picture.
const previewName = "preview.jpg"

// drawEvery is the time between two previews of a render: each reads one of its pictures.
const drawEvery = 30 * time.Second

func (r *runner) previewFile() string { return filepath.Join(r.dir, previewName) }

// preview is what is known of the task's small picture.
type preview struct {
	at   time.Time // when it was written
	size int64
	of   int       // a render's pictures, when it was made
	made time.Time // when that was
}

// lookAtPreview reports a picture that is new. At the end it is made in any case.
func (r *runner) lookAtPreview(end bool) {
	if r.task.Kind.Draws {
		r.drawPreview(end)
	}
	info, err := os.Stat(r.previewFile())
	if err != nil || info.ModTime().Equal(r.shown.at) && info.Size() == r.shown.size {
		return
	}
	r.shown.at, r.shown.size = info.ModTime(), info.Size()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.now.Preview = r.previewFile()
	r.report(true)
}

// drawPreview makes the preview of a render of its newest picture. One that cannot be read, as in formats for other
// programs, has none.
func (r *runner) drawPreview(end bool) {
	n := r.pictures()
	if n == r.shown.of || !end && time.Since(r.shown.made) < drawEvery {
		return
	}
	r.shown.of, r.shown.made = n, time.Now()
	data, err := photo.Preview(r.newestPicture())
	if err != nil {
		return
	}
	_ = atomicfile.Write(r.previewFile(), func(w io.Writer) error { // the next may succeed
		_, err := w.Write(data)
		return err
	})
}

// newestPicture is the last file that a render wrote, which it does at once; "" where there is none.
func (r *runner) newestPicture() (newest string) {
	var last time.Time
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".png" && ext != ".jpg" || spec.Beside(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() &&
			(newest == "" || info.ModTime().After(last)) {
			newest, last = filepath.Join(r.out, e.Name()), info.ModTime()
		}
	}
	return newest
}
