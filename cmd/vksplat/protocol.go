package main

import (
	"fmt"
	"slices"

	"vksplat/internal/run/meter"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/results"
)

// Protocols by which renderings are compared with photos. Their numbers are not to be compared with each other.
const (
	protocolGsplat = "gsplat" // that of train, too
	protocolINRIA  = "inria"
)

// colorNone as a way of correcting colours leaves the cc_ scores out.
const colorNone = "none"

// protocol says what renderings are compared by.
type protocol struct {
	name    string
	bytes   bool           // the rendering has 8 bits a channel, as if it had been written to a PNG; photos have in any case
	padding metric.Padding // of SSIM
	// LPIPS: the network, and whether it gets -1..1, as it was made for, or 0..1.
	net       string
	normalize bool
	about     string
}

var protocols = []protocol{
	{protocolGsplat, false, metric.PaddingValid, "alex", true, "renderings in single precision, SSIM over the pixels whose window is inside the photo, LPIPS by AlexNet"},
	{protocolINRIA, true, metric.PaddingSame, "vgg", false, "renderings rounded to 8 bits, SSIM over all pixels with zeros around the photo, LPIPS by VGG16 on 0..1"},
}

// protocolOf returns the protocol of a name that a flag has let through.
func protocolOf(name string) protocol {
	return protocols[slices.IndexFunc(protocols, func(p protocol) bool { return p.name == name })]
}

func protocolNames() (names []string) {
	for _, p := range protocols {
		names = append(names, p.name)
	}
	return names
}

// scorer takes the scores of a rendering.
type scorer struct {
	protocol
	correct  string // way of correcting colours, or colorNone
	unmasked bool   // there are masks: scores of all pixels, too
	// lpips is a perceptual distance of pictures with values in 0..1, called from several goroutines; nil: nobody measures one, which is told as such.
	lpips func(photo scene.Image, render []float32, mask []uint32) (float64, error)
}

// Names of scores: first INRIA's, then gsplat's for what INRIA does not have.
var (
	plainNames    = [3]string{"PSNR", "SSIM", "LPIPS"}
	correctNames  = [3]string{"cc_psnr", "cc_ssim", "cc_lpips"}
	unmaskedNames = [3]string{"unmasked_psnr", "unmasked_ssim", "unmasked_lpips"}
)

// scores compares a rendering, clamped to 0..1, with its photo where mask says so; all is the mask without those of the capture. The rendering may be
// rounded meanwhile.
func (s *scorer) scores(photo scene.Image, render []float32, mask, all []uint32) ([]results.Score, error) {
	if s.bytes {
		metric.Quantise(render)
	}
	list, err := s.three(nil, plainNames, photo, render, mask)
	if err == nil && s.correct != colorNone {
		var corrected []float32
		if corrected, err = metric.CorrectColors(s.correct, photo, render, mask); err == nil {
			list, err = s.three(list, correctNames, photo, corrected, mask)
		}
	}
	if err == nil && s.unmasked {
		list, err = s.three(list, unmaskedNames, photo, render, all)
	}
	return list, err
}

// three appends the scores of one variant.
func (s *scorer) three(list []results.Score, names [3]string, photo scene.Image, render []float32, mask []uint32) ([]results.Score, error) {
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
	return append(list, results.Score{Name: names[0], Value: min(psnr, meter.MaxPSNR), Known: true}, results.Score{Name: names[1], Value: ssim, Known: true}, lpips), nil
}

// legend says what the numbers of a table are.
func (s *scorer) legend() string {
	text := fmt.Sprintf("%s: %s. PSNR in dB.", s.name, s.about)
	if s.correct != colorNone {
		text += fmt.Sprintf(" cc_: after the %s colour map that fits the photo best.", s.correct)
	}
	if s.unmasked {
		text += " Pixels that masks leave out do not count, but in unmasked_."
	}
	return text + " n/a: not measured."
}
