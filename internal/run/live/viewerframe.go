package live

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"vksplat/internal/run/frames"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/view"
)

// Frame draws what a browser asks for.
func (l *training) Frame(ctx context.Context, q view.FrameQuery) ([]byte, error) {
	var shot scene.Image
	if q.Mode == view.ModeError {
		var err error
		if shot, err = l.photos.image(ctx, &l.run.Capture.Cameras[q.Camera], q.Camera); err != nil {
			return nil, err
		}
	}
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { l.turn <- struct{}{} }()
	img, err := l.draw(ctx, &q, shot)
	if err != nil {
		return nil, err
	}
	return photo.JPEG(img, frames.Quality)
}

// draw draws a frame between two steps of training, when its time has come.
func (l *training) draw(ctx context.Context, q *view.FrameQuery, photo scene.Image) (img scene.Image, err error) {
	for wait := l.pace.Wait(l.between.Lost()); wait > 0 && !l.between.Held(); wait = l.pace.Wait(l.between.Lost()) {
		select {
		case <-time.After(min(wait, 50*time.Millisecond)): // it may be paused meanwhile
		case <-ctx.Done():
			return img, ctx.Err()
		}
	}
	l.pace.Fit(q, l.between.Held())
	c := frames.Camera(l.run.Capture.Cameras, q)
	err = l.between.Do(ctx, func() error {
		begin, lost := time.Now(), l.between.Lost()
		rgb, c, err := l.control.Show(l.memory, c, frames.Looks[q.Mode])
		if err == nil {
			l.memory = rgb
		}
		l.pace.Observe(c.Width*c.Height, q.Still, begin, lost)
		l.drawn = c
		return err
	})
	switch {
	case errors.Is(err, pipeline.ErrFrameTooFull):
		return img, errors.New("too many splats in view for the memory left by training: move away")
	case err != nil:
		return img, err
	}
	return frames.Picture(q.Mode, l.memory, &l.drawn, photo), nil
}

// photoShelf keeps the photos that browsers looked at last, as they are sent, and the last of them as pixels.
type photoShelf struct {
	mu   sync.Mutex // held while one is decoded: one at a time, for the memory
	kept []shelved  // the latest last
	last scene.Image
	of   int // camera of last, if it has pixels
	// What photos that are not opaque stand on, 0..1.
	background [3]float32
}

type shelved struct {
	camera int
	file   []byte
}

// jpeg returns a photo as a file.
func (s *photoShelf) jpeg(ctx context.Context, c *scene.Camera, id int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.kept, func(p shelved) bool { return p.camera == id }); i >= 0 {
		p := s.kept[i]
		s.kept = append(slices.Delete(s.kept, i, i+1), p)
		return p.file, nil
	}
	img, err := s.decoded(ctx, c, id)
	if err != nil {
		return nil, err
	}
	file, err := photo.JPEG(img, photoQuality)
	if err != nil {
		return nil, err
	}
	if len(s.kept) == train.PhotosShown {
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.kept = append(s.kept, shelved{id, file})
	return file, nil
}

// image returns a photo, reduced to train.PhotoSide.
func (s *photoShelf) image(ctx context.Context, c *scene.Camera, id int) (scene.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decoded(ctx, c, id)
}

func (s *photoShelf) decoded(ctx context.Context, c *scene.Camera, id int) (scene.Image, error) {
	if s.last.Pix != nil && s.of == id {
		return s.last, nil
	}
	if err := ctx.Err(); err != nil {
		return scene.Image{}, err
	}
	img, err := photo.Decode(*c)
	if err != nil {
		return scene.Image{}, err
	}
	s.last, s.of = photo.Fit(photo.Over(img, s.background), train.PhotoSide), id
	return s.last, nil
}

// history is the course of a run in at most mostMoments places, which get farther apart as it goes on.
type history struct {
	every int // steps between two
	list  []view.Moment
	sums  struct{ loss, mse float64 }
	n     int // steps in sums
}

const mostMoments = 400

func (h *history) add(p pipeline.Progress) {
	h.every = max(h.every, 1)
	h.sums.loss += float64(p.Loss)
	h.sums.mse += float64(p.MSE)
	if h.n++; h.n < h.every {
		return
	}
	n := float64(h.n)
	h.list = append(h.list, view.Moment{Step: p.Step, Loss: h.sums.loss / n, Splats: p.Splats,
		PSNR: -10 * math.Log10(max(h.sums.mse/n, 1e-10))})
	h.sums.loss, h.sums.mse, h.n = 0, 0, 0
	if len(h.list) < mostMoments {
		return
	}
	for i := range mostMoments / 2 {
		a, b := h.list[2*i], h.list[2*i+1]
		b.Loss, b.PSNR = (a.Loss+b.Loss)/2, (a.PSNR+b.PSNR)/2
		h.list[i] = b
	}
	h.list = h.list[:mostMoments/2]
	h.every *= 2
}

func (h *history) moments() []view.Moment { return slices.Clone(h.list) }

// rate is how many steps are done a second, measured over some seconds.
type rate struct {
	step  int
	since time.Time
	last  float64
}

const rateOver = 2 * time.Second

func (r *rate) at(step int, now time.Time) float64 {
	if r.since.IsZero() {
		r.step, r.since = step, now
	}
	if d := now.Sub(r.since); d >= rateOver || r.last == 0 && d > rateOver/8 {
		r.last = float64(step-r.step) / d.Seconds()
		r.step, r.since = step, now
	}
	return r.last
}
