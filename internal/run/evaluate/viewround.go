package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/pipeline"
	"vksplat/pipeline/photos"
	"vksplat/scene"
	"vksplat/scene/metric"
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
	// the same of its camera after it was moved to where its photo fits best, nil where that is not known; may be nil
	Align func(i int, photo scene.Image) ([]float32, error)
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
	// of the camera after it was moved to where the photo fits best; nil: it was not
	Aligned []float32

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
	if e.Align != nil {
		if c.Aligned, err = e.Align(i, photo); err != nil {
			return err
		}
	}
	e.flying = append(e.flying, c)
	go func() {
		defer close(c.done)
		c.take, c.err = e.Compare(c)
	}()
	return nil
}

// drain collects pictures until at most left are in flight.
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

// Score clamps the render to 0..1 and compares it with its photo. With corrected it does so a second time, after a map
// of colours that is fitted to the photo: a photo has an exposure and a white balance of its own, which no model knows.
// Where darken is not nil it does so once more after that, which makes a picture what the photo's camera would have
// taken of it. Nothing of that is fitted to the photo. The picture of the aligned camera, if there is one, is compared
// as it is.
func (c *Comparison) Score(corrected bool, darken func(picture []float32)) (v results.ViewScore, err error) {
	var taken []float32
	if darken != nil {
		taken = slices.Clone(c.Render)
		darken(taken)
		clamp01(taken)
	}
	clamp01(c.Render)
	v.Name = c.Cam.Name
	psnr, ssim, err := c.compare(c.Render)
	if err == nil && corrected {
		var render []float32
		if render, err = metric.CorrectColors(metric.ColorAffine, c.Photo, c.Render, c.Photo.Mask); err == nil {
			v.CCPSNR, v.CCSSIM, err = c.compare(render)
		}
	}
	if err == nil && darken != nil {
		v.LensPSNR, v.LensSSIM, err = c.compare(taken)
	}
	if err == nil && c.Aligned != nil {
		clamp01(c.Aligned)
		v.AlignedPSNR, v.AlignedSSIM, err = c.compare(c.Aligned)
	}
	if err != nil {
		return results.ViewScore{}, fmt.Errorf("measure %q: %w", c.Cam.Name, err)
	}
	v.PSNR, v.SSIM = *psnr, *ssim
	return v, nil
}

// compare returns PSNR and SSIM by gsplat's protocol.
func (c *Comparison) compare(render []float32) (psnr, ssim *float64, err error) {
	p, s, err := metric.Compare(c.Photo, render, metric.PaddingValid, c.Photo.Mask)
	p = min(p, meter.MaxPSNR)
	return &p, &s, err
}

func clamp01(x []float32) {
	for i, v := range x {
		x[i] = min(max(v, 0), 1)
	}
}
