package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/calibrate"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
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
		if taken.Cameras, _, err = scene.AsTaken(c.Cameras); err != nil {
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
			return // nothing was tried: cameras are refined because that was asked for, or no photo could be decoded
		}
		what, fits := "they stay as they are given", "better"
		switch {
		case t.Refined:
			what = "they are refined"
		case t.Again > 0:
			what = fmt.Sprintf("no large errors; another trial is after %d", t.Again)
		}
		if t.Gain < 0 {
			fits = "worse"
		}
		console.Note(fmt.Sprintf("trial of cameras on %s after %s: the tenth of the pixels that was held back fits %.1f %% "+
			"%s with cameras moved by the others, better in %d photos: %s", cli.Count(t.Photos, "photo"),
			cli.Count(t.Step, "step"), 100*math.Abs(t.Gain), fits, t.Better, what))
	}
}

// refinement is what training has made of the cameras.
type refinement struct {
	step    int
	files   scene.Files    // the model, with held-out photos placed by it; nil where the capture is no COLMAP model
	cameras []scene.Camera // of Capture, in its own frame, as the files have them; without, as they are trained on
}

// refined returns the cameras as training has refined them, nil where it has not. A capture that is a COLMAP model is
// read again with them, so that what is measured is what others will read.
func (d *dataset) refined(ctx context.Context, t *pipeline.Trainer) (*refinement, error) {
	if d.latest != nil && d.latest.step == t.Step() {
		return d.latest, nil
	}
	cams, err := t.RefinedCameras()
	if cams == nil || err != nil {
		return nil, err
	}
	given := captured.Pick(d.Capture.Cameras, d.Train)
	if d.Config.NativeLens {
		if given, _, err = takenBy(d.Options, given); err != nil {
			return nil, err
		}
	}
	own := func(list []scene.Camera) (moved []scene.Camera) {
		for _, c := range list {
			moved = append(moved, d.Capture.Frame.ToCapture(c, [3]float64{}))
		}
		return moved
	}
	r := &refinement{step: t.Step(), cameras: own(d.Capture.Cameras)}
	bytes, err := d.mostRefined()
	if err != nil {
		return nil, err
	}
	files, text, ok, err := calibrate.Refined(ctx, d.Capture, own(given), own(cams), calibrate.Options{Bytes: bytes})
	if err != nil {
		return nil, err
	}
	if !ok {
		for i, c := range own(cams) {
			r.cameras[d.Train[i]] = c
		}
		d.latest = r
		return r, nil
	}
	if text != "" && d.latest == nil && (d.calibrated == nil || text != d.calibrated.UnplacedText()) {
		d.console.Note(text)
	}
	o := d.Load.Options()
	o.Cameras = files
	again, err := load.Capture(d.Scene, o)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i := range again.Cameras {
		at[again.Cameras[i].Name] = i
	}
	for i := range r.cameras {
		if k, found := at[r.cameras[i].Name]; found {
			r.cameras[i] = again.Cameras[k]
		}
	}
	r.files, d.latest = files, r
	return r, nil
}

// mostRefined is how much memory the points and held-out photos of refined cameras may take.
func (d *dataset) mostRefined() (int64, error) {
	bytes, err := pipeline.HeapLimit(d.Options.Device)
	return bytes / 2, err
}

// refinedBytes is the memory that refined takes at most, where cameras are refined: for the model, the capture that is
// read again, and the cameras to begin with.
func (d *dataset) refinedBytes() (int64, error) {
	if !d.Config.RefineCameras {
		return 0, nil
	}
	need := calibrate.RefinedBytes(d.Capture, len(d.points))
	if need == 0 {
		return 0, nil
	}
	most, err := d.mostRefined()
	return min(need, most) + int64(len(d.points))*loadedPointBytes + d.Load.MadeBytes(), err
}

// heldOut returns the held-out cameras that are measured with, in the training frame.
func (s *scorer) heldOut(ctx context.Context) ([]scene.Camera, error) {
	cams := captured.Pick(s.Capture.Cameras, s.Test)
	r, err := s.refined(ctx, s.Trainer)
	if err != nil {
		return nil, err
	}
	if r != nil {
		moved := scene.Capture{Cameras: captured.Pick(r.cameras, s.Test), Frame: scene.Identity()}
		moved.NormaliseTo(s.Capture.Frame, s.Capture.SceneScale)
		cams = moved.Cameras
	}
	if s.o.Config.NativeLens {
		cams, _, err = scene.AsTaken(cams)
	}
	return cams, err
}

// useRefined makes the cameras that are written those that training has found. Where the capture can no longer be read,
// the model is written without them.
func (o *outputs) useRefined() {
	r, err := o.refined(context.Background(), o.Trainer)
	switch {
	case err != nil:
		o.latest = nil
		o.console.Warn(fmt.Sprintf("the refined cameras are not written: %v", err))
	case r != nil:
		o.cameras = captured.Shifted(r.cameras, o.origin)
	}
}

// writeRefined writes them as a COLMAP model, if they can be.
func (o *outputs) writeRefined(rec *captured.Record) error {
	switch {
	case !o.Config.RefineCameras:
		return nil
	case o.latest != nil && o.latest.files != nil:
		rec.Cameras, rec.RefinedAt = captured.ModelFolder, o.latest.step
		return colmap.Save(filepath.Join(o.place.at(o.Out), filepath.FromSlash(captured.ModelFolder)), o.latest.files)
	}
	return o.Load.SaveCameras(o.place.at(o.Out), captured.ModelFolder)
}
