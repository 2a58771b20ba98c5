package models

import (
	"errors"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// CheckNear refuses a near plane that hides everything: splats and cams in one frame, in which the median camera
// distance is 1.
func CheckNear(near float64, s *scene.Splats, cams []scene.Camera) error {
	if far := scene.Farthest(cams, s); near >= far {
		return fault.Usagef("the median camera distance is 1, and 0.01 the default",
			"%s: %g hides everything; the farthest splat from a camera is at %.3g", fault.Named("near"), near, far)
	}
	return nil
}

// OriginOf returns what was subtracted from a model's coordinates.
func OriginOf(info *splatfile.Info) (origin [3]float64) {
	if info.Meta.Origin != nil {
		origin = *info.Meta.Origin
	}
	return origin
}

// Open reads a file of splats of any format, or the latest model of a run's folder. What it holds and cannot be drawn
// is warned of or refused.
func Open(console *cli.Console, file string) (*scene.Splats, splatfile.Info, error) {
	splats, info, err := Read(file)
	if err != nil {
		return nil, info, err
	}
	if bad := splats.NonFinite(); bad > 0 {
		return nil, info, fault.WithHint(fmt.Errorf("%s: %w: %d of %d splats hold NaN or infinite numbers", file,
			fault.ErrData, bad, splats.N),
			"the training that made this file diverged, or the file is damaged: make or copy it again, or leave them "+
				"out: "+fault.Command("convert "+cli.Quoted(file)+" OUT.ply"))
	}
	switch huge := splats.Huge(); {
	case huge == splats.N && huge > 0:
		return nil, info, fault.WithHint(fmt.Errorf("%s: %w: every splat is longer than e^%d and cannot be drawn",
			file, fault.ErrData, scene.HugeLog),
			"the training that made this file diverged, or the file is damaged or holds no logarithms of scales: "+
				"make or copy it again")
	case huge > 0:
		console.Warn(fmt.Sprintf("%s: %d of %s are longer than e^%d: they may hide the others; vksplat convert leaves "+
			"them out",
			file, huge, cli.Count(splats.N, "splat"), scene.HugeLog))
	}
	for _, n := range info.Notes {
		console.Warn(file + ": " + n)
	}
	return splats, info, nil
}

// Read reads a model into memory.
func Read(file string) (*scene.Splats, splatfile.Info, error) {
	model, err := splatfile.Open(file)
	if err != nil {
		return nil, splatfile.Info{}, err
	}
	splats, err := splatfile.All(model)
	return splats, model.Info(), errors.Join(err, model.Close())
}

// TellShared says that pictures take long because the model is larger than the device.
func TellShared(console *cli.Console, r *pipeline.Renderer) {
	if r.Shared() {
		console.Note("the model is larger than device memory: visible splats are uploaded again for every picture, " +
			"which is slower")
	}
}
