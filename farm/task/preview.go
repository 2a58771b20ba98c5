package task

import (
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"time"

	"vksplat/farm/spec"
	"vksplat/internal/atomicfile"
	"vksplat/scene/photo"
)

// previewName is the newest preview in the task's folder. A training's child writes it, of renders drawPreview does.
const previewName = "preview.jpg"

// drawEvery is the interval between previews of a render.
const drawEvery = 30 * time.Second

func (w *workdir) previewFile() string { return filepath.Join(w.dir, previewName) }

// preview describes the current preview.
type preview struct {
	at   time.Time // when it was written
	size int64
	of   int       // a render's pictures, when it was made
	made time.Time // when that was
}

// lookAtPreview reports a new preview. At the end that of a render is drawn in any case.
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

// drawPreview draws the preview of a render from its newest picture, if that is in a known format.
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
	_ = atomicfile.WriteText(s.previewFile(), data) // the next may succeed
}

// newestPicture is the newest picture of a render, "" without any.
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
