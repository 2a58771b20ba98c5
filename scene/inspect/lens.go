package inspect

import (
	"math"

	"vksplat/scene"
	"vksplat/scene/photo"
)

// SmallPhoto is how many pixels a side a picture must have to be learnt from: with fewer it is less than a tile, and
// hardly more than the window of SSIM.
const SmallPhoto = 16

const (
	// share of the photo with a ray, or of the picture with a source, below which a photo is as good as missing
	emptyPhoto = 0.1
	// Shares of the photo without a ray that are warned of. Much of a circular fisheye's photo is black border, which
	// its calibration need not reach.
	foldedLens    = 0.02
	foldedFisheye = 0.7
)

// checkSizes looks for photos that are too small to learn from.
func (r *Report) checkSizes(c *scene.Capture) {
	var small []string
	var width, height int // of the first
	groups := scene.PhotoGroups(c.Cameras)
	for _, g := range groups {
		cam := &c.Cameras[g.First]
		if min(cam.Width, cam.Height) >= SmallPhoto {
			continue
		}
		if small = append(small, cam.PhotoName()); len(small) == 1 {
			width, height = cam.Width, cam.Height
		}
	}
	r.about(r.unlessLeft(len(small)), "small-photos", small,
		"%d of %d pictures have a side of fewer than %d pixels; the first is trained on at %d x %d",
		len(small), len(groups), SmallPhoto, width, height)
}

// unlessLeft gives the severity of some photos being useless.
func (r *Report) unlessLeft(lost int) Severity {
	if r.Photos-lost < scene.MinPhotos {
		return SeverityFatal
	}
	return SeverityWarning
}

// checkLenses looks for distortion that folds over within the photo or leaves hardly anything of it.
func (r *Report) checkLenses(c *scene.Capture) {
	type key struct {
		lens          *scene.Lens
		width, height int
	}
	known := map[key]photo.LensShares{}
	var folded, empty []string
	worst := 1.0
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		if cam.Lens == nil || cam.Lens.Calibration.Model == scene.LensEquirectangular {
			continue
		}
		k := key{cam.Lens, cam.Width, cam.Height} // photos of one calibration and size share the lens
		shares, ok := known[k]
		if !ok {
			shares = photo.LensSharesOf(cam)
			known[k] = shares
		}
		limit := foldedLens
		if cam.Model == scene.Fisheye {
			limit = foldedFisheye
		}
		switch {
		case min(shares.Used, shares.Rays) < emptyPhoto:
			empty = append(empty, cam.Name)
		case shares.Rays < 1-limit:
			folded = append(folded, cam.Name)
			worst = min(worst, shares.Rays)
		}
	}
	r.about(r.unlessLeft(len(empty)), "folded-lenses", empty,
		"the distortion of %d of %d cameras is implausible: less than %d %% of the picture maps into the photo",
		len(empty), len(c.Cameras), int(100*emptyPhoto))
	r.about(SeverityWarning, "folded-lenses", folded,
		"the distortion of %d of %d cameras folds over within the photo: up to %.0f %% of its pixels match no ray "+
			"and are left out",
		len(folded), len(c.Cameras), 100*(1-worst))
}

// panoramaStretch is how far the sides of a panorama may be from 2:1, as a share: a row or two too many.
const panoramaStretch = 0.01

// checkPanoramas looks for panoramas that are not twice as wide as high: they are taken to show the whole sphere,
// stretched.
func (r *Report) checkPanoramas(c *scene.Capture) {
	var odd []string
	width, height, all := 0, 0, 0
	for _, g := range scene.PhotoGroups(c.Cameras) {
		cam := &c.Cameras[g.First]
		if cam.Lens == nil || cam.Lens.Calibration.Model != scene.LensEquirectangular {
			continue
		}
		all++
		k := cam.Lens.Calibration
		if math.Abs(float64(k.Width)/float64(2*k.Height)-1) <= panoramaStretch {
			continue
		}
		if odd = append(odd, cam.PhotoName()); len(odd) == 1 {
			width, height = k.Width, k.Height
		}
	}
	r.about(SeverityWarning, "odd-panoramas", odd,
		"%d of %d panoramas are not twice as wide as high, the first has %d x %d pixels; they are taken to show the "+
			"whole sphere all the same",
		len(odd), all, width, height)
}
