package train

import (
	"encoding/binary"
	"fmt"
	"math"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// mostAnchors is how many points of the reconstruction hold a photo's pose at most.
const mostAnchors = 128

// findAnchors finds the points that hold refined poses. The capture is in its own frame.
func (k *knowns) findAnchors(c *scene.Capture) (err error) {
	if !k.Config.RefineCameras || !(k.Config.PoseAnchor > 0) {
		return nil
	}
	taken := *c
	if k.Config.NativeLens {
		if taken.Cameras, _, err = captured.AsTaken(c.Cameras); err != nil {
			return err
		}
	}
	if k.anchors, err = colmap.Anchors(&taken, mostAnchors); err == nil && k.anchors != nil {
		k.anchorHash = hashLists(k.anchors, appendAnchor)
	}
	return err
}

// appendAnchor appends an anchor for the fingerprint, which has nothing else of where photos show points.
func appendAnchor(b []byte, a scene.Anchor) []byte {
	for _, x := range [...]float64{a.Point[0], a.Point[1], a.Point[2], a.X, a.Y} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// trainedAnchors gives up those of the photos that are trained on, in the training frame.
func (k *knowns) trainedAnchors(f scene.Frame) pipeline.Anchors {
	if k.anchors == nil {
		return nil
	}
	list := make(pipeline.Anchors, len(k.anchors))
	for i, anchors := range k.anchors {
		for _, a := range anchors {
			for k := range a.Point {
				a.Point[k] = (a.Point[k] - f.Center[k]) * f.Scale
			}
			list[i] = append(list[i], a)
		}
	}
	k.anchors = nil
	return list
}

// noteTrial says whether poses are refined, and why.
func noteTrial(console *cli.Console) func(pipeline.PoseTrial) {
	return func(t pipeline.PoseTrial) {
		if t.Photos == 0 {
			return // nothing was tried: poses are refined because that was asked for, or no photo could be decoded
		}
		what, fits := "they stay as they are given", "better"
		if t.Refined {
			what = "they are refined"
		}
		if t.Gain < 0 {
			fits = "worse"
		}
		console.Note(fmt.Sprintf("trial of poses on %s after %s: the tenth of the pixels that was held back fits %.1f %% "+
			"%s with cameras moved by the others, better in %d photos: %s", cli.Count(t.Photos, "photo"),
			cli.Count(t.Step, "step"), 100*math.Abs(t.Gain), fits, t.Better, what))
	}
}

// useRefined makes the cameras that are written those that training has found.
func (o *outputs) useRefined() error {
	refined, _, err := o.Trainer.RefinedCameras(nil)
	if err != nil {
		return err
	}
	for i, c := range refined {
		o.cameras[o.Train[i]] = o.Capture.Frame.ToCapture(c, o.origin)
	}
	return nil
}
