package evaluate

import (
	"fmt"
	"slices"
	"strings"

	"vksplat/internal/run/meter"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/results"
)

// Protocols by which renderings are compared with photos. Their numbers are not to be compared with each other.
const (
	ProtocolGsplat = "gsplat" // that of train, too
	ProtocolINRIA  = "inria"
)

// ColorNone as a way of correcting colours leaves the cc_ scores out.
const ColorNone = "none"

type Protocol struct {
	name string
	// the rendering has 8 bits a channel, as if it had been written to a PNG; photos have in any case
	bytes   bool
	padding metric.Padding // of SSIM
	// LPIPS: the network, and whether it gets -1..1, as it was made for, or 0..1.
	net       string
	normalize bool
	about     string
}

var protocols = []Protocol{
	{ProtocolGsplat, false, metric.PaddingValid, "alex", true,
		"renderings in single precision, SSIM over the pixels whose window is inside the photo, LPIPS by AlexNet"},
	{ProtocolINRIA, true, metric.PaddingSame, "vgg", false,
		"renderings rounded to 8 bits, SSIM over all pixels with zeros around the photo, LPIPS by VGG16 on 0..1"},
}

// ProtocolOf returns the protocol of a name that a flag has let through.
func ProtocolOf(name string) Protocol {
	return protocols[slices.IndexFunc(protocols, func(p Protocol) bool { return p.name == name })]
}

func ProtocolNames() (names []string) {
	for _, p := range protocols {
		names = append(names, p.name)
	}
	return names
}

type Scorer struct {
	Protocol
	Correct  string // way of correcting colours, or ColorNone
	unmasked bool   // there are masks: scores of all pixels, too
	// lpips is a perceptual distance of pictures with values in 0..1, called from several goroutines; nil: nobody
	// measures one, which is reported as such.
	lpips func(photo scene.Image, render []float32, mask []uint32) (float64, error)
}

// Names of scores: first INRIA's, then gsplat's for what INRIA does not have.
var (
	PlainNames    = [3]string{"PSNR", "SSIM", "LPIPS"}
	CorrectNames  = [3]string{"cc_psnr", "cc_ssim", "cc_lpips"}
	UnmaskedNames = [3]string{"unmasked_psnr", "unmasked_ssim", "unmasked_lpips"}
)

// scores compares a rendering, clamped to 0..1, with its photo where mask says so; all is the mask without those of the
// capture. The rendering may be rounded meanwhile.
func (s *Scorer) scores(photo scene.Image, render []float32, mask, all []uint32) ([]results.Score, error) {
	if s.bytes {
		metric.Quantise(render)
	}
	list, err := s.three(nil, PlainNames, photo, render, mask)
	if err == nil && s.Correct != ColorNone {
		var corrected []float32
		if corrected, err = metric.CorrectColors(s.Correct, photo, render, mask); err == nil {
			list, err = s.three(list, CorrectNames, photo, corrected, mask)
		}
	}
	if err == nil && s.unmasked {
		list, err = s.three(list, UnmaskedNames, photo, render, all)
	}
	return list, err
}

// three appends the scores of one variant.
func (s *Scorer) three(list []results.Score, names [3]string, photo scene.Image, render []float32,
	mask []uint32) ([]results.Score, error) {
	psnr, ssim, err := metric.Compare(photo, render, s.padding, mask)
	if err != nil {
		return nil, err
	}
	lpips := results.Score{Name: names[2]}
	if s.lpips != nil {
		lpips.Known = true
		if lpips.Value, err = s.lpips(photo, render, mask); err != nil {
			return nil, err
		}
	}
	return append(list, results.Score{Name: names[0], Value: min(psnr, meter.MaxPSNR), Known: true},
		results.Score{Name: names[1], Value: ssim, Known: true}, lpips), nil
}

func (s *Scorer) Legend(tables ...*MarkdownTable) string {
	text := fmt.Sprintf("%s: %s. PSNR in dB.", s.name, s.about)
	if s.Correct != ColorNone {
		text += fmt.Sprintf(" cc_: after the %s colour map that fits the photo best.", s.Correct)
	}
	if s.unmasked {
		text += " Pixels that masks leave out do not count, but in unmasked_."
	}
	if slices.ContainsFunc(tables, func(t *MarkdownTable) bool { return strings.Contains(t.String(), " n/a |") }) {
		text += " n/a: not measured."
	}
	return text
}
