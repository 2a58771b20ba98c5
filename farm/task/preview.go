package task

import (
	_ "image/jpeg"
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

func (w *workdir) previewFile() string { return filepath.Join(w.dir, previewName) }

// preview is what is known of the task's small picture.
type preview struct {
	at   time.Time // when it was written
	size int64
	of   int       // a render's pictures, when it was made
	made time.Time // when that was
}

// lookAtPreview reports a picture that is new. At the end it is made in any case.
func (s *supervisor) lookAtPreview(end bool) {
	if s.task.Kind.Draws {
		s.drawPreview(end)
	}
	info, err := os.Stat(s.previewFile())
	if err != nil || info.ModTime().Equal(s.shown.at) && info.Size() == s.shown.size {
		return
	}
	s.shown.at, s.shown.size = info.ModTime(), info.Size()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now.Preview = s.previewFile()
	s.report(true)
}

// drawPreview makes the preview of a render of its newest picture. One that cannot be read, as in formats for other
// programs, has none.
func (s *supervisor) drawPreview(end bool) {
	n := s.pictures()
	if n == s.shown.of || !end && time.Since(s.shown.made) < drawEvery {
		return
	}
	s.shown.of, s.shown.made = n, time.Now()
	data, err := photo.Preview(s.newestPicture())
	if err != nil {
		return
	}
	_ = atomicfile.Write(s.previewFile(), func(w io.Writer) error { // the next may succeed
		_, err := w.Write(data)
		return err
	})
}

// newestPicture is the last file that a render wrote, which it does at once; "" where there is none.
func (w *workdir) newestPicture() (newest string) {
	var last time.Time
	entries, err := os.ReadDir(w.out)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".png" && ext != ".jpg" || spec.Beside(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() &&
			(newest == "" || info.ModTime().After(last)) {
			newest, last = filepath.Join(w.out, e.Name()), info.ModTime()
		}
	}
	return newest
}
