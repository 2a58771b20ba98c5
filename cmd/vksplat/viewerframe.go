package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/view"
)

// Frame draws what a browser asks for.
func (l *liveTraining) Frame(ctx context.Context, q view.FrameQuery) ([]byte, error) {
	var shot scene.Image
	if q.Mode == view.ModeError {
		var err error
		if shot, err = l.photos.image(ctx, &l.r.capture.Cameras[q.Camera], q.Camera); err != nil {
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
	return photo.JPEG(img, frameQuality)
}

// draw draws a frame between two steps of training, when its time has come.
func (l *liveTraining) draw(ctx context.Context, q *view.FrameQuery, photo scene.Image) (img scene.Image, err error) {
	for wait := l.pace.wait(l.between.Lost()); wait > 0 && !l.between.Held(); wait = l.pace.wait(l.between.Lost()) {
		select {
		case <-time.After(min(wait, 50*time.Millisecond)): // it may be paused meanwhile
		case <-ctx.Done():
			return img, ctx.Err()
		}
	}
	l.pace.fit(q, l.between.Held())
	c := frameCamera(l.r.capture.Cameras, q)
	err = l.between.Do(ctx, func() error {
		begin, lost := time.Now(), l.between.Lost()
		rgb, c, err := l.r.showToFit(l.memory, c, looks[q.Mode])
		if err == nil {
			l.memory = rgb
		}
		l.pace.observe(c.Width*c.Height, begin, lost)
		l.drawn = c
		return err
	})
	switch {
	case errors.Is(err, pipeline.ErrFrameTooFull):
		return img, errors.New("too many splats are in view for the memory that training has: go farther away")
	case err != nil:
		return img, err
	}
	return framePicture(q.Mode, l.memory, &l.drawn, photo), nil
}

// framePicture is what browsers get of a camera's frame, which it may change; photo is that of ModeError.
func framePicture(mode view.Mode, rgb []float32, c *scene.Camera, shot scene.Image) scene.Image {
	switch mode {
	case view.ModeDepth:
		return depthPicture(rgb, c.Width, c.Height)
	case view.ModeError:
		return errorPicture(rgb, c.Width, c.Height, shot)
	}
	return photo.FromFloats(rgb, c.Width, c.Height)
}

// smallerTries is how many times a frame that does not fit is tried at half the width and height.
const smallerTries = 3

// showToFit draws a frame into memory, smaller where what training has does not hold it, and returns the camera that it was drawn by.
func (r *trainRun) showToFit(memory []float32, c scene.Camera, look pipeline.Look) (rgb []float32, drawn scene.Camera, err error) {
	for try := 0; ; try++ {
		rgb, drawn, err = r.trainer.Show(memory, c, look)
		if !errors.Is(err, pipeline.ErrFrameTooFull) || try == smallerTries {
			return rgb, drawn, err
		}
		c = drawn.Rescaled(max(1, drawn.Width/2), max(1, drawn.Height/2))
	}
}

// framePace makes frames small enough for the device, and says when the next may be drawn while training goes on.
type framePace struct {
	pixel time.Duration // what a pixel takes, times a thousand; 0: not known
	ended time.Time     // when the last frame was drawn
	lost  time.Duration // what was lost to frames, and what else was done, before it
}

// wait is how long to wait for the next frame, when lost is what was lost by now.
func (p *framePace) wait(lost time.Duration) time.Duration {
	if p.ended.IsZero() {
		return 0
	}
	return time.Until(p.ended.Add(frameShare * (lost - p.lost)))
}

const (
	frameTime     = 50 * time.Millisecond  // of a frame while training goes on: with frameShare, two a second
	frameTimeHeld = 300 * time.Millisecond // of one while it is paused
	leastPixels   = 240 * 180
)

// fit reduces a query's size to what can be drawn in time.
func (p *framePace) fit(q *view.FrameQuery, held bool) {
	limit := frameTime
	if held {
		limit = frameTimeHeld
	}
	if p.pixel == 0 {
		return
	}
	most := max(leastPixels, int(1000*limit/p.pixel))
	if n := q.Width * q.Height; n > most {
		f := math.Sqrt(float64(most) / float64(n))
		q.Width, q.Height = max(1, int(f*float64(q.Width))), max(1, int(f*float64(q.Height)))
	}
}

// observe takes in a frame that has just been drawn, since begin, before which so much had been lost.
func (p *framePace) observe(pixels int, begin time.Time, lost time.Duration) {
	p.ended, p.lost = time.Now(), lost
	pixel := 1000 * p.ended.Sub(begin) / time.Duration(pixels)
	if p.pixel == 0 {
		p.pixel = pixel
	}
	p.pixel += (pixel - p.pixel) / 4
}

var looks = map[view.Mode]pipeline.Look{view.ModeDepth: pipeline.LookDepth, view.ModeCentres: pipeline.LookCenters, view.ModeEllipsoids: pipeline.LookEllipsoids}

// frameCamera is what a frame is drawn by: the camera of one of these photos, as large as the frame at most, or the one that the query describes.
func frameCamera(cameras []scene.Camera, q *view.FrameQuery) scene.Camera {
	if q.Camera >= 0 {
		c := cameras[q.Camera]
		f := min(1, float64(q.Width)/float64(c.Width), float64(q.Height)/float64(c.Height))
		return c.Rescaled(max(1, int(math.Round(f*float64(c.Width)))), max(1, int(math.Round(f*float64(c.Height)))))
	}
	focal := float64(q.Height) / 2 / q.Tangent
	c := scene.Camera{Name: "viewer", Width: q.Width, Height: q.Height, Fx: focal, Fy: focal, Cx: float64(q.Width) / 2, Cy: float64(q.Height) / 2, R: q.Rotation}
	for i := range 3 {
		for k := range 3 {
			c.T[i] -= c.R[3*i+k] * q.Position[k]
		}
	}
	return c
}

// ramp is a scale of colours from dark to bright, which also those who see no red or green can read (after matplotlib's viridis).
var ramp = [][3]float32{{0.267, 0.005, 0.329}, {0.231, 0.318, 0.545}, {0.129, 0.569, 0.549}, {0.369, 0.788, 0.384}, {0.993, 0.906, 0.144}}

// rampColor is the colour of x from 0 to 1; what lies outside has the ends'.
func rampColor(x float32) (c [3]float32) {
	x = min(max(x, 0), 1) * float32(len(ramp)-1)
	i := min(int(x), len(ramp)-2)
	t := x - float32(i)
	for k := range c {
		c[k] = ramp[i][k]*(1-t) + ramp[i+1][k]*t
	}
	return c
}

// leastCover is the sum of weights below which a pixel has no depth.
const leastCover = 0.05

// depthPicture draws mean depths, near ones bright, between those of the nearest and the farthest hundredth of the pixels; what covers nothing is black.
func depthPicture(sums []float32, width, height int) scene.Image {
	logs := make([]float32, width*height)
	var known []float32
	for i := range logs {
		depth, weight := sums[3*i], sums[3*i+1]
		if !(weight > leastCover && depth > 0) {
			logs[i] = float32(math.NaN())
			continue
		}
		logs[i] = float32(math.Log(float64(depth / weight)))
		if i%16 == 0 {
			known = append(known, logs[i])
		}
	}
	var low, high float32
	if len(known) > 0 {
		slices.Sort(known)
		low, high = known[len(known)/100], known[len(known)-1-len(known)/100]
	}
	for i, x := range logs {
		var c [3]float32
		if x == x {
			c = rampColor(1 - (x-low)/max(high-low, 1e-6))
		}
		copy(sums[3*i:], c[:])
	}
	return photo.FromFloats(sums, width, height)
}

// errorCeiling is the difference that has the brightest colour, of 0 to 1.
const errorCeiling = 0.25

// errorPicture draws how far a picture is from its photo: the mean over the channels.
func errorPicture(rgb []float32, width, height int, shot scene.Image) scene.Image {
	shot = photo.Fit(shot, max(width, height))
	for y := range height {
		for x := range width {
			i := 3 * (y*width + x)
			at := 4 * (y*shot.Height/height*shot.Width + x*shot.Width/width)
			var sum float32
			for k := range 3 {
				d := min(max(rgb[i+k], 0), 1) - float32(shot.Pix[at+k])/255
				sum += max(d, -d)
			}
			c := rampColor(sum / 3 / errorCeiling)
			copy(rgb[i:], c[:])
		}
	}
	return photo.FromFloats(rgb, width, height)
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
	if len(s.kept) == photosKept {
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.kept = append(s.kept, shelved{id, file})
	return file, nil
}

// image returns a photo, reduced to photoSide.
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
	s.last, s.of = photo.Fit(photo.Over(img, s.background), photoSide), id
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
	h.list = append(h.list, view.Moment{Step: p.Step, Loss: h.sums.loss / n, Splats: p.Splats, PSNR: -10 * math.Log10(max(h.sums.mse/n, 1e-10))})
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
