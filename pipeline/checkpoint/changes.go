package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/pipeline/recipe"
)

// Changes of a capture have keys that begin with OfCapture. These may come of settings that choose the photos.
const (
	OfCapture     = "capture's "
	HeldOutKey    = "held-out photos"
	ChoiceKey     = "choice of held-out photos"
	ResolutionKey = "resolution"
	CamerasKey    = "cameras or points"
	FilesKey      = "photos or masks, by their content"
	DepthsKey     = "known depths"
	NormalsKey    = "known normals"
)

// Changes lists what differs between the run that wrote the checkpoint and one of cfg on capture: each of them would
// lead to other bytes. More iterations are no change: the schedule stays that of the first start.
func (c *File) Changes(cfg recipe.Config, capture CaptureRecord) []recipe.Change {
	h := &c.Header
	list := h.Config.Changes(cfg)
	n := len(list)
	for _, x := range []struct{ key, old, now string }{
		{"photos", strconv.Itoa(h.Capture.Photos), strconv.Itoa(capture.Photos)},
		{HeldOutKey, strconv.Itoa(h.Capture.HeldOut), strconv.Itoa(capture.HeldOut)},
		{ResolutionKey, h.Capture.Resolution, capture.Resolution},
		{"points", strconv.Itoa(h.Capture.Points), strconv.Itoa(capture.Points)},
	} {
		if x.old != x.now {
			list = append(list, recipe.Change{Key: OfCapture + x.key, Old: x.old, New: x.now})
		}
	}
	if len(list) == n && h.Capture.Split != capture.Split { // as many, but others
		list = append(list, recipe.Change{Key: OfCapture + ChoiceKey,
			Old: short(h.Capture.Split), New: short(capture.Split)})
	}
	if len(list) == n && h.Capture.Fingerprint != capture.Fingerprint { // same sizes, other contents
		list = append(list, h.Capture.contents(&capture)...)
	}
	return list
}

// short is the beginning of a hash, which is enough to tell it from others.
func short(hash string) string { return hash[:min(len(hash), 12)] }

// contents lists what differs between captures of two fingerprints: the parts, as far as both records have them.
func (c *CaptureRecord) contents(now *CaptureRecord) (list []recipe.Change) {
	was, is := &c.Parts, &now.Parts
	for _, x := range []struct{ key, old, now string }{
		{CamerasKey, was.Cameras, is.Cameras},
		{FilesKey, was.Files, is.Files},
		{DepthsKey, was.Depths, is.Depths},
		{NormalsKey, was.Normals, is.Normals},
		{"points that hold poses", was.Anchors, is.Anchors},
		{"motions of cameras", was.Motions, is.Motions},
	} {
		if x.key == DepthsKey && was.Cameras != is.Cameras { // that, and what comes then, follows from them
			break
		}
		if x.old != x.now && *was != (PartsRecord{}) && *is != (PartsRecord{}) {
			list = append(list, recipe.Change{Key: OfCapture + x.key, Old: cmp.Or(short(x.old), "none"),
				New: cmp.Or(short(x.now), "none")})
		}
	}
	if len(list) == 0 {
		list = []recipe.Change{{Key: OfCapture + "contents", Old: short(c.Fingerprint), New: short(now.Fingerprint)}}
	}
	return list
}

// Accepts returns an error of kind fault.ErrUsage where the state in the checkpoint cannot become that of a run of cfg
// on so many photos.
func (c *File) Accepts(cfg recipe.Config, photos int) error {
	h := &c.Header
	refused := func(hint, format string, args ...any) error {
		return &fault.Error{Op: "resume", Path: c.path, Kind: fault.ErrUsage, Err: fmt.Errorf(format, args...),
			Hint: hint}
	}
	for _, x := range []struct {
		settings string
		was, is  bool
	}{
		{cmp.Or(appearanceOf(&cfg), appearanceOf(&h.Config)), h.Config.Appearance(), cfg.Appearance()},
		{fault.Setting("robust"), h.Config.Robust, cfg.Robust},
		{fault.Setting("refine-cameras"), h.Config.RefineCameras, cfg.RefineCameras},
	} {
		switch {
		case x.is && !x.was:
			return refused("leave out "+x.settings+", or train from scratch",
				"a run without %s cannot resume with it", x.settings)
		case x.was && !x.is:
			return refused("give "+x.settings+", or train from scratch",
				"a run with %s cannot resume without it", x.settings)
		}
	}
	switch {
	case cfg.SHDegree != h.SHDegree:
		return refused(fmt.Sprintf("give %s %d, or train from scratch", fault.Setting("sh-degree"), h.SHDegree),
			"a model of SH degree %d cannot become one of degree %d", h.SHDegree, cfg.SHDegree)
	case cfg.Precision != h.Config.Precision:
		return refused(fmt.Sprintf("give %s %s, or train from scratch", fault.Setting("precision"), h.Config.Precision),
			"a run of %s precision cannot go on in %s precision", h.Config.Precision, cfg.Precision)
	case cfg.Appearance() && c.appearances() == 0:
		return refused("train from scratch", "it has the colour maps of an earlier version, which %s has replaced",
			appearanceOf(&cfg))
	case cfg.Appearance() && photos != c.appearances():
		return refused("give the photos that the run was started with, or train from scratch",
			"the appearance of %d photos cannot become that of %d", c.appearances(), photos)
	case cfg.Iterations < h.Step:
		return refused(fmt.Sprintf("give %s %d or more, or resume from an earlier checkpoint",
			fault.Setting("iterations"), h.Step), "%d steps are done, %d are asked for", h.Step, cfg.Iterations)
	}
	return nil
}

// appearanceOf names what cfg learns of photos' appearance.
func appearanceOf(cfg *recipe.Config) string {
	var names []string
	for _, x := range []struct {
		on   bool
		name string
	}{{cfg.Exposure, "exposure"}, {cfg.WhiteBalance, "white-balance"}, {cfg.Vignetting, "vignetting"}} {
		if x.on {
			names = append(names, fault.Setting(x.name))
		}
	}
	return strings.Join(names, " ")
}

// appearances returns of how many photos the checkpoint has the appearance.
func (c *File) appearances() int {
	for _, t := range c.Tensors() {
		if t.Name == AppearancesTensor && len(t.Shape) > 0 {
			return t.Shape[0]
		}
	}
	return 0
}

// Ceiling returns the ceiling of splats for a run of cfg that resumes from the checkpoint: that of the run so far,
// unless cfg has another one, or unless memory ran short and the ceiling came down, which it need not stay where there
// is more; then 0. A model that has more splats than cfg allows keeps them and does not grow.
func (c *File) Ceiling(cfg recipe.Config) int {
	lowered := slices.ContainsFunc(c.Header.Deviations, func(d Deviation) bool {
		return strings.HasPrefix(d.Reason, RanShort)
	})
	switch {
	case !lowered && cfg.MaxSplats == c.Header.Config.MaxSplats:
		return c.Header.SplatCeiling
	case cfg.MaxSplats > 0 && cfg.MaxSplats < c.Header.Splats:
		return c.Header.Splats
	}
	return 0
}
