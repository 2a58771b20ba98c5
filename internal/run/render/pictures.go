package render

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene/picture"
)

// halfPictures are the pictures that are being written, which a second Ctrl-C removes.
type halfPictures struct {
	mu    sync.Mutex
	paths map[string]bool
}

// write has a picture written. After drop it waits for the end of the process, so that nothing is left behind. It may
// be called from several goroutines.
func (h *halfPictures) write(path string, write func(path string) error) error {
	h.mu.Lock()
	if h.paths == nil {
		h.paths = map[string]bool{}
	}
	h.paths[path] = true
	h.mu.Unlock()
	err := output.WritePicture(path, write)
	h.mu.Lock()
	delete(h.paths, path)
	h.mu.Unlock()
	return err
}

// drop removes what there is of the pictures so far. Nothing is written any more.
func (h *halfPictures) drop() {
	h.mu.Lock() // for good
	for path := range h.paths {
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			continue // nothing has been begun there
		}
		for _, e := range entries {
			if base, _ := fault.TempOf(e.Name()); base != "" && strings.HasPrefix(filepath.Base(path), base) {
				_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
			}
		}
	}
}

// pictureWriters write pictures side by side, while the device draws others.
type pictureWriters struct {
	free chan *picture.Picture // memory for pictures: as many as may be in memory at once, less those that are
	wait sync.WaitGroup
	show *meter.Meter

	mu   sync.Mutex
	done int
	err  error // the first
}

// newPictureWriters makes writers of atOnce pictures at a time, who tell show of each.
func newPictureWriters(atOnce int, show *meter.Meter) *pictureWriters {
	w := &pictureWriters{free: make(chan *picture.Picture, atOnce), show: show}
	for range atOnce {
		w.free <- &picture.Picture{}
	}
	return w
}

// take returns memory for a picture, once there is some. Meanwhile next completes pictures that are being drawn, as
// long as there are any. An error may be that of a picture before.
func (w *pictureWriters) take(ctx context.Context, next func() (none bool, err error)) (*picture.Picture, error) {
	for none := false; ; {
		if ctx.Err() != nil {
			return nil, fault.ErrInterrupted
		}
		if err := w.failed(); err != nil {
			return nil, err
		}
		if none {
			return <-w.free, nil // those that are written give it back
		}
		select {
		case p := <-w.free:
			return p, nil
		default:
		}
		var err error
		if none, err = next(); err != nil {
			return nil, err
		}
	}
}

// write has a picture written, whose memory is free again then.
func (w *pictureWriters) write(p *picture.Picture, write func(p *picture.Picture) error) {
	w.wait.Go(func() {
		w.wrote(write(p))
		w.free <- p
	})
}

// wrote takes in that a picture has been written, or has not.
func (w *pictureWriters) wrote(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.err == nil {
			w.err = err
		}
		return
	}
	w.done++
	w.show.Update(pipeline.Progress{Step: w.done})
}

// part takes in that a part of a picture has been drawn.
func (w *pictureWriters) part(done, of int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.show.Part(done, of)
}

func (w *pictureWriters) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// finish waits for the pictures that are being written.
func (w *pictureWriters) finish() error {
	w.wait.Wait()
	return w.failed()
}
