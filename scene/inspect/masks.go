package inspect

import (
	"context"
	"fmt"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// maskFindings are the findings of checkMasks, by photo name.
type maskFindings struct {
	photos    int // with a mask
	broken    []string
	cause     error // of the first broken one
	stretched []string
	turned    []string
	example   string // sizes of the first that is stretched or turned
	tagged    bool   // the photo of the first turned one has an orientation tag that swaps its sides
	black     []string
	inverted  bool // of the first black one
}

// checkMasks compares the masks' headers with those of their photos. Unless all photos are decoded anyway, it also
// decodes masks until it has seen that there is something left to train on: three masks in a good capture, all of them
// in one whose masks leave nothing.
func (r *Report) checkMasks(ctx context.Context, c *scene.Capture, decoded bool) error {
	var f maskFindings
	usable := 0
	photos := r.photoCameras(c)
	for _, cam := range photos {
		if ctx.Err() != nil {
			return fmt.Errorf("inspect masks: %w", context.Cause(ctx))
		}
		if cam.Mask == "" || f.compare(cam) && (decoded || usable >= scene.MinPhotos || f.leaves(cam)) {
			usable++
		}
	}
	r.judgeMasks(&f, len(photos), usable, decoded)
	return nil
}

func (r *Report) photoCameras(c *scene.Capture) []*scene.Camera {
	seen := make(map[string]bool, r.Photos)
	out := make([]*scene.Camera, 0, r.Photos)
	for i := range c.Cameras {
		if name := c.Cameras[i].PhotoName(); !seen[name] {
			seen[name] = true
			out = append(out, &c.Cameras[i])
		}
	}
	return out
}

// compare reads the header of a camera's mask and says whether that is possible.
func (f *maskFindings) compare(cam *scene.Camera) bool {
	f.photos++
	w, h, err := photo.Size(cam.Mask)
	if err != nil {
		f.breaks(cam, &fault.Error{Op: photo.OpMask, Path: cam.Mask, Err: err})
		return false
	}
	pw, ph, err := photo.Size(cam.Path)
	if err != nil || photo.SameAspect(w, h, pw, ph) {
		return true // problems of the photo are reported elsewhere
	}
	if f.example == "" {
		f.example = fmt.Sprintf("%s has %d x %d pixels, its photo %d x %d", wording.Printable(cam.Mask), w, h, pw, ph)
	}
	if !photo.SameAspect(h, w, pw, ph) {
		f.stretched = append(f.stretched, cam.PhotoName())
		return true
	}
	if len(f.turned) == 0 {
		_, f.tagged = photo.SidewaysTag(cam.Path)
	}
	f.turned = append(f.turned, cam.PhotoName())
	return true
}

// leaves decodes a camera's mask and says whether it leaves a pixel.
func (f *maskFindings) leaves(cam *scene.Camera) bool {
	m, err := photo.ReadMask(cam.Mask, cam.MaskInverted)
	switch {
	case err != nil:
		f.breaks(cam, err)
		return false
	case photo.Blank(m.Words):
		f.blackens(cam.PhotoName(), cam.MaskInverted)
		return false
	}
	return true
}

func (f *maskFindings) breaks(cam *scene.Camera, err error) {
	if f.broken = append(f.broken, cam.PhotoName()); f.cause == nil {
		f.cause = err
	}
}

func (f *maskFindings) blackens(name string, inverted bool) {
	if f.black = append(f.black, name); len(f.black) == 1 {
		f.inverted = inverted
	}
}

// judgeMasks draws conclusions from what was found, with usable of all photos. Where pixels are looked at, those tell
// what cannot be decoded.
func (r *Report) judgeMasks(f *maskFindings, all, usable int, decoded bool) {
	if len(f.turned) > 0 {
		p := Problem{Severity: SeverityWarning, Code: "turned-masks", Count: len(f.turned),
			Names: scene.FirstNames(f.turned),
			Text: fmt.Sprintf("%d of %d masks are rotated by 90 degrees against their photos and are stretched to "+
				"them (%s)",
				len(f.turned), f.photos, f.example)}
		if f.tagged {
			p.Text = fmt.Sprintf("%d of %d masks are upright where the photos are stored turned, with an EXIF "+
				"orientation tag, and are stretched to them (%s)", len(f.turned), f.photos, f.example)
		}
		r.add(p)
	}
	r.about(SeverityWarning, "stretched-masks", f.stretched,
		"%d of %d masks have another aspect than their photos and are stretched to them (%s)", len(f.stretched),
		f.photos, f.example)
	if decoded {
		return
	}
	severity := SeverityWarning
	if usable < scene.MinPhotos && usable < all {
		severity = SeverityFatal
	}
	r.addMaskTrouble(f, severity)
}

// addMaskTrouble notes masks that leave their photos unusable.
func (r *Report) addMaskTrouble(f *maskFindings, severity Severity) {
	if f.cause != nil {
		r.about(severity, "broken-masks", f.broken,
			"the masks of %d of %d photos cannot be read, the first because of %q", len(f.broken), r.Photos,
			f.cause.Error())
	}
	if len(f.black) == 0 {
		return
	}
	p := Problem{Severity: severity, Code: "black-masks", Count: len(f.black), Names: scene.FirstNames(f.black),
		Text: fmt.Sprintf("the masks of %d of %d photos leave no pixel to train on", len(f.black), r.Photos)}
	if f.inverted {
		p.Remedy = "with " + fault.Setting("invert-masks") + " black counts: leave it out if white does, draw these " +
			"masks again, or remove them: their photos count whole then"
	}
	r.add(p)
}
