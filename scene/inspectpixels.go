package scene

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

const (
	inspectedSide  = 640  // longer side in pixels at which photos are looked at
	darkPhoto      = 0.03 // mean brightness
	blurredPhoto   = 0.1  // sharpness over the median of all photos
	inspectWorkers = 4    // photos that are in memory at a time
)

// checkPixels decodes all photos at reduced size and looks for black and blurred ones.
func (r *Report) checkPixels(ctx context.Context, c *Capture) error {
	bright, sharp, errs := make([]float64, len(c.Cameras)), make([]float64, len(c.Cameras)), make([]error, len(c.Cameras))
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(inspectWorkers, len(c.Cameras)) {
		wg.Go(func() {
			for i := range next {
				bright[i], sharp[i], errs[i] = c.Cameras[i].look()
			}
		})
	}
	for i := 0; i < len(c.Cameras) && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("scene: inspect photos: %w", context.Cause(ctx))
	}
	r.judgePixels(bright, sharp, errs)
	return nil
}

// judgePixels draws conclusions from what look gave.
func (r *Report) judgePixels(bright, sharp []float64, errs []error) {
	var good []float64
	var bad, dark, blurred []string
	var cause error
	for i, err := range errs {
		if err != nil && !errors.Is(err, errBlank) {
			bad = append(bad, r.Cameras[i].Name)
			if cause == nil {
				cause = err
			}
		} else if err == nil && bright[i] >= darkPhoto {
			good = append(good, sharp[i])
		}
	}
	middle := median(good)
	for i, err := range errs {
		if err != nil {
			continue
		}
		row := &r.Cameras[i]
		row.Brightness = &bright[i]
		if middle > 0 {
			sharp[i] /= middle
			row.Sharpness = &sharp[i]
		}
		switch {
		case bright[i] < darkPhoto:
			dark = append(dark, row.Name)
		case middle > 0 && sharp[i] < blurredPhoto:
			blurred = append(blurred, row.Name)
		}
	}
	severity := SeverityWarning
	if len(errs)-len(bad) < minPhotos {
		severity = SeverityFatal
	}
	if len(bad) > 0 {
		r.about(severity, "undecodable-photos", bad, "%d of %d photos cannot be decoded, the first because of %q", len(bad), len(errs), cause.Error())
	}
	r.about(SeverityWarning, "dark-photos", dark, "%d of %d photos are black", len(dark), len(errs))
	slices.SortStableFunc(blurred, func(a, b string) int { return r.compareSharpness(a, b) })
	r.about(SeverityWarning, "blurred-photos", blurred, "%d of %d photos are blurred: less than a tenth as sharp as the median one", len(blurred), len(errs))
}

// compareSharpness orders rows by name, the most blurred first.
func (r *Report) compareSharpness(a, b string) int {
	of := func(name string) float64 {
		i := slices.IndexFunc(r.Cameras, func(c CameraReport) bool { return c.Name == name })
		return *r.Cameras[i].Sharpness
	}
	if of(a) < of(b) {
		return -1
	}
	return 1
}

// errBlank is the error of a photo that is too small to say how sharp it is.
var errBlank = errors.New("too few pixels")

// look decodes the photo at reduced size and gives the mean brightness of what is
// opaque, 0 to 1, and its sharpness: the variance of the Laplacian of the brightness.
func (c Camera) look() (bright, sharp float64, err error) {
	if side := max(c.Width, c.Height); side > inspectedSide {
		c = c.Rescaled(max(c.Width*inspectedSide/side, 1), max(c.Height*inspectedSide/side, 1))
	}
	img, err := c.Decode()
	if err != nil {
		return 0, 0, err
	}
	w, h := img.Width, img.Height
	if w < 3 || h < 3 {
		return 0, 0, errBlank
	}
	luma := make([]float32, w*h)
	opaque := 1e-9
	for i := range luma {
		p := img.Pix[4*i:]
		luma[i] = (0.299*float32(p[0]) + 0.587*float32(p[1]) + 0.114*float32(p[2])) / 255
		bright += float64(luma[i]) * float64(p[3])
		opaque += float64(p[3])
	}
	bright /= opaque
	var sum, squares float64
	for y := 1; y < h-1; y++ {
		for x := 1; x < w-1; x++ {
			i := y*w + x
			d := float64(luma[i-1] + luma[i+1] + luma[i-w] + luma[i+w] - 4*luma[i])
			sum += d
			squares += d * d
		}
	}
	n := float64((w - 2) * (h - 2))
	return bright, squares/n - sum*sum/(n*n), nil
}
