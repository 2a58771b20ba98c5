package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

const (
	inspectedSide  = 640  // longer side in pixels at which photos are looked at
	darkPhoto      = 0.03 // mean brightness
	blurredPhoto   = 0.1  // sharpness over the median of all photos
	inspectWorkers = 4    // photos that are in memory at a time
)

type look struct {
	bright float64 // mean brightness, 0 to 1
	sharp  float64 // variance of the Laplacian
	err    error   // why there is nothing to look at
}

// checkPixels decodes all photos at reduced size and looks for black and blurred ones.
func (r *Report) checkPixels(ctx context.Context, c *scene.Capture) error {
	groups := scene.PhotoGroups(c.Cameras)
	looks := make([]look, len(c.Cameras))
	parallel.Workers(len(groups), inspectWorkers, func() func(i int) {
		return func(i int) {
			if g := groups[i]; ctx.Err() == nil {
				lookAtPhoto(c.Cameras[g.First:g.End], looks[g.First:g.End])
			}
		}
	})
	if ctx.Err() != nil {
		return fmt.Errorf("inspect photos: %w", context.Cause(ctx))
	}
	left := r.judgeMasked(c, looks)
	r.judgePixels(c, looks, left)
	return nil
}

// judgeMasked sorts out the cameras whose masks are at fault, and returns how many cameras have pixels to train on.
func (r *Report) judgeMasked(c *scene.Capture, looks []look) (left int) {
	var f maskFindings
	var faces []string
	for i := range looks {
		if err := looks[i].err; err == nil || errors.Is(err, errBlank) {
			left++
		}
	}
	for _, g := range scene.PhotoGroups(c.Cameras) {
		var e *fault.Error
		if errors.As(looks[g.First].err, &e) && e.Op == photo.OpMask {
			f.breaks(&c.Cameras[g.First], e)
			continue
		}
		var black []string
		for i := g.First; i < g.End; i++ {
			if errors.Is(looks[i].err, photo.ErrMasked) {
				black = append(black, c.Cameras[i].Name)
			}
		}
		if len(black) == g.End-g.First {
			f.blackens(c.Cameras[g.First].PhotoName(), c.Cameras[g.First].MaskInverted)
		} else {
			faces = append(faces, black...)
		}
	}
	severity := SeverityWarning
	if left < scene.MinPhotos {
		severity = SeverityFatal
	}
	r.addMaskTrouble(&f, severity)
	r.about(SeverityNote, "masked-faces", faces,
		"the masks leave no pixel of %d of %d pictures, whose steps train on others", len(faces), len(looks))
	return left
}

// whole is the look of a photo by those of its cameras: the faces of a panorama count as one picture.
func whole(looks []look) (l look) {
	n := 0.0
	for _, one := range looks {
		if one.err != nil {
			l.err = one.err
			continue
		}
		n, l.bright, l.sharp = n+1, l.bright+one.bright, l.sharp+one.sharp
	}
	if n > 0 {
		l = look{bright: l.bright / n, sharp: l.sharp / n}
	}
	return l
}

// judgePixels draws conclusions from the looks, of which left have pixels.
func (r *Report) judgePixels(c *scene.Capture, looks []look, left int) {
	photos := map[string]look{}
	var good []float64
	var names, bad []string
	var cause error
	for _, g := range scene.PhotoGroups(c.Cameras) {
		l, name := whole(looks[g.First:g.End]), c.Cameras[g.First].PhotoName()
		var e *fault.Error
		switch {
		case l.err == nil:
			if photos[name], names = l, append(names, name); l.bright >= darkPhoto {
				good = append(good, l.sharp)
			}
		case errors.Is(l.err, errBlank) || errors.Is(l.err, photo.ErrMasked) || errors.As(l.err, &e) &&
			e.Op == photo.OpMask:
		default:
			bad, cause = append(bad, name), cmp.Or(cause, l.err)
		}
	}
	middle := scene.Median(good)
	for i := range looks {
		l, row := &looks[i], &r.Cameras[i]
		if l.err != nil {
			continue
		}
		row.Brightness = &l.bright
		if middle > 0 {
			l.sharp /= middle
			row.Sharpness = &l.sharp
		}
	}
	if len(bad) > 0 {
		severity := SeverityWarning
		if left < scene.MinPhotos {
			severity = SeverityFatal
		}
		r.about(severity, "undecodable-photos", bad, "%d of %d photos cannot be decoded, the first because of %q",
			len(bad), r.Photos, cause.Error())
	}
	dark := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return photos[name].bright >= darkPhoto })
	r.about(SeverityWarning, "dark-photos", dark, "%d of %d photos are black", len(dark), r.Photos)
	blurred := slices.DeleteFunc(names, func(name string) bool {
		return photos[name].bright < darkPhoto || !(photos[name].sharp < blurredPhoto*middle)
	})
	slices.SortStableFunc(blurred, func(a, b string) int { return cmp.Compare(photos[a].sharp, photos[b].sharp) })
	r.about(SeverityWarning, "blurred-photos", blurred,
		"%d of %d photos are blurred: less than a tenth as sharp as the median one", len(blurred), r.Photos)
}

// errBlank is the error of a photo that is too small to say how sharp it is.
var errBlank = errors.New("too few pixels")

// lookAtPhoto decodes the photo of cams, which share one, at reduced size.
func lookAtPhoto(cams []scene.Camera, looks []look) {
	small := slices.Clone(cams)
	for i, c := range small {
		if side := max(c.Width, c.Height); side > inspectedSide {
			small[i] = c.Rescaled(max(c.Width*inspectedSide/side, 1), max(c.Height*inspectedSide/side, 1))
		}
	}
	images, errs := photo.DecodeViews(small)
	for i := range looks {
		if looks[i].err = errs[i]; errs[i] == nil {
			looks[i] = lookOf(&images[i])
		}
	}
}

// Dark reports whether a photo is black as far as a grid of its pixels tells. It takes microseconds.
func Dark(img *scene.Image) bool {
	const side = 64
	bright, opaque := 0.0, 1e-9
	for j := range side {
		for i := range side {
			p := img.Pix[4*((j*img.Height/side)*img.Width+i*img.Width/side):]
			bright += (0.299*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2])) / 255 * float64(p[3])
			opaque += float64(p[3])
		}
	}
	return bright/opaque < darkPhoto
}

// lookOf judges a picture: the brightness of what is opaque, and how sharp it is.
func lookOf(img *scene.Image) look {
	w, h := img.Width, img.Height
	if w < 3 || h < 3 {
		return look{err: errBlank}
	}
	bright := 0.0
	luma := make([]float32, w*h)
	opaque := 1e-9
	for i := range luma {
		p := img.Pix[4*i:]
		luma[i] = (0.299*float32(p[0]) + 0.587*float32(p[1]) + 0.114*float32(p[2])) / 255
		bright += float64(luma[i]) * float64(p[3])
		opaque += float64(p[3])
	}
	bright /= opaque
	return look{bright: bright, sharp: photo.Sharpness(luma, w, h)}
}
