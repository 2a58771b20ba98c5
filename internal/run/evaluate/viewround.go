package evaluate

import (
	"context"
	"errors"
	"fmt"

	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/pipeline"
	"vksplat/pipeline/photos"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/results"
)

// viewRound goes through views once: each is drawn and compared with its photo. While the cores compare, the next are
// drawn and their photos decoded.
type viewRound struct {
	cams   []scene.Camera
	Photos *photos.Cache // of cams, all of which it expects
	atOnce int           // pictures in memory
	Strict bool          // a photo that cannot be decoded is an error
	Warn   func(text string)
	Draw   func(memory []float32, i int) ([]float32, error) // the render of view i, in memory if that is large enough
	// compare may be called from any goroutine. What it returns is called picture by picture, in the order of the
	// views.
	Compare func(c *Comparison) (take func(), err error)

	flying []*Comparison
	spare  [][]float32 // memory of renders that are done with
}

// Comparison is a picture that is compared with its photo.
type Comparison struct {
	Index  int
	Cam    scene.Camera
	Photo  scene.Image
	Render []float32

	done chan struct{} // closed once the rest is set
	take func()
	err  error
}

// NewViewRound makes a round whose photos are decoded in the memory of a plan. The caller sets the functions, and
// closes the photos.
func NewViewRound(cams []scene.Camera, plan *pipeline.HostPlan) (*viewRound, error) {
	cache, atOnce := plan.Measuring(cams)
	photos, err := photos.NewCache(cache)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(cams))
	for i := range order {
		order[i] = i
	}
	photos.Expect(order)
	return &viewRound{cams: cams, Photos: photos, atOnce: atOnce}, nil
}

// Run does the round.
func (e *viewRound) Run(ctx context.Context) (err error) {
	for i := range e.cams {
		if err = ctx.Err(); err == nil {
			err = e.add(ctx, i)
		}
		if err != nil {
			break
		}
	}
	if failed := e.drain(0); failed != nil {
		if ctx.Err() == nil {
			failed = errors.Join(err, failed)
		}
		err = failed // worth more than that the user stopped
	}
	return err
}

// add draws view i and has it compared. What there is of earlier pictures makes room first.
func (e *viewRound) add(ctx context.Context, i int) error {
	if err := e.drain(e.atOnce - 1); err != nil {
		return err
	}
	cam := e.cams[i]
	photo, err := e.Photos.Photo(ctx, i)
	if errors.Is(err, fault.ErrData) && !e.Strict {
		e.Warn(fmt.Sprintf("photo %s is not measured: %v", cam.Name, err))
		return nil
	}
	if err != nil {
		return err
	}
	var memory []float32
	if n := len(e.spare); n > 0 {
		memory, e.spare = e.spare[n-1], e.spare[:n-1]
	}
	render, err := e.Draw(memory, i)
	if err != nil {
		return err
	}
	c := &Comparison{Index: i, Cam: cam, Photo: photo, Render: render, done: make(chan struct{})}
	e.flying = append(e.flying, c)
	go func() {
		defer close(c.done)
		c.take, c.err = e.Compare(c)
	}()
	return nil
}

// drain takes in pictures until at most so many are left.
func (e *viewRound) drain(left int) (err error) {
	for len(e.flying) > left {
		c := e.flying[0]
		e.flying = e.flying[1:]
		<-c.done
		switch {
		case errors.Is(c.err, metric.ErrUncounted) && !e.Strict:
			e.Warn(fmt.Sprintf("photo %s is not measured: its mask leaves no pixel to compare", c.Cam.Name))
		case c.err != nil:
			err = errors.Join(err, c.err)
			continue
		default:
			c.take()
		}
		e.spare = append(e.spare, c.Render)
		e.Photos.Release(c.Index)
	}
	return err
}

// Comparable returns a render as it is compared with its photo, clamped to 0..1, and the pixels that count.
func (c *Comparison) Comparable(exposure bool) ([]float32, []uint32) {
	render, mask := c.Render, c.Photo.Mask
	if exposure {
		// Nobody learnt this photo's exposure: it is fitted on the left half and the right half is measured, the halves
		// of NeRF in the Wild (Martin-Brualla et al. 2021) and of INRIA's train_test_exp.
		render = metric.ApplyExposure(metric.FitExposure(render, photo.FloatRGB(c.Photo), c.Cam.Width, c.Cam.Height,
			mask), render)
		mask = metric.RightHalf(mask, c.Cam.Width, c.Cam.Height)
	}
	clamp01(render)
	return render, mask
}

// Score compares a render, clamped to 0..1, with its photo where mask says so.
func Score(cam scene.Camera, photo scene.Image, render []float32, mask []uint32) (results.ViewScore, error) {
	psnr, ssim, err := metric.Compare(photo, render, metric.PaddingValid, mask)
	if err != nil {
		return results.ViewScore{}, fmt.Errorf("measure %q: %w", cam.Name, err)
	}
	return results.ViewScore{Name: cam.Name, PSNR: min(psnr, meter.MaxPSNR), SSIM: ssim}, nil
}

func clamp01(x []float32) {
	for i, v := range x {
		x[i] = min(max(v, 0), 1)
	}
}
