package pipeline

import (
	"errors"
	"fmt"
	"math"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// poseTable holds the refined cameras of the training photos, with the optimiser's state, on the device. A step changes
// one photo's row. The last row is for cameras that are aligned with a model that does not change.
type poseTable struct {
	dev     *vk.Device
	rows    vk.Slice[layout.Pose] // [n_views + 1]
	anchors vk.Slice[uint32]      // of pose_adam
	frame   layout.PoseFrame
	cfg     *recipe.Config
	spare   layout.Pose // the last row, where no camera is aligned
	lenses  int         // that are learnt
	active  bool        // steps refine cameras: not before a trial, nor if both said no
	first   int         // the first step that does so
}

const (
	poseBytes = (3*layout.PoseNumbers + 4 + 9 + 3) * 4
	// poseRest is how many steps poses rest after opacities were reset.
	poseRest = 100
)

// views is the number of photos that are trained on.
func (x *poseTable) views() int { return x.rows.N() - 1 }

// lensKey identifies photos of one lens.
type lensKey struct {
	fx, fy, cx, cy float64
	width, height  int
	model          scene.CameraModel
	bent           layout.Lens
}

func lensOf(c *scene.Camera) lensKey {
	key := lensKey{fx: c.Fx, fy: c.Fy, cx: c.Cx, cy: c.Cy, width: c.Width, height: c.Height, model: c.Model}
	lensParams(&key.bent, c)
	return key
}

// givenPoses returns the rows of photos that have learnt nothing, and of a camera to be aligned.
func givenPoses(cams []scene.Camera) []layout.Pose {
	rows := make([]layout.Pose, len(cams)+1)
	var mean [3]float64
	for i := range cams {
		for k, x := range cams[i].Center() {
			mean[k] += x / float64(len(cams))
		}
	}
	lenses := map[lensKey]float32{}
	for i := range cams {
		key := lensOf(&cams[i])
		if _, known := lenses[key]; !known {
			lenses[key] = float32(len(lenses))
		}
		rows[i].Camera = lenses[key]
		for k, x := range cams[i].R {
			rows[i].Rot[k] = float32(x)
		}
		for k, x := range cams[i].Center() {
			rows[i].Center[k] = float32(x - mean[k])
		}
	}
	rows[len(cams)].Camera = float32(len(lenses))
	return rows
}

// Anchors [n_views] are points of the reconstruction that each photo shows, in the training frame, and where; nil: none
// are known. They hold refined poses where the capture has them.
type Anchors [][]scene.Anchor

// words makes the table of pose_adam for n views.
func (a Anchors) words(n int) []uint32 {
	words := make([]uint32, n+1)
	for i := range n {
		words[i] = uint32(len(words))
		if len(a) == 0 {
			continue
		}
		for _, p := range a[i] {
			for _, x := range [...]float64{p.Point[0], p.Point[1], p.Point[2], p.X, p.Y} {
				words = append(words, math.Float32bits(float32(x)))
			}
		}
	}
	words[n] = uint32(len(words))
	return words
}

// size returns the number of words of that table.
func (a Anchors) size(n int) int {
	size := n + 1
	for _, list := range a {
		size += layout.AnchorWords * len(list)
	}
	return size
}

// checkPoses refuses runs whose poses cannot be refined.
func checkPoses(cfg *recipe.Config, cams []scene.Camera, o *TrainerOptions) error {
	if !cfg.RefineCameras {
		return nil
	}
	if len(o.Others) > 0 {
		return errors.New("start training: poses are refined on one device alone")
	}
	if n := len(o.Anchors); n > 0 && n != len(cams) {
		return fmt.Errorf("start training: anchors of %d photos for %d cameras", n, len(cams))
	}
	for i := range cams {
		if cams[i].Photo != "" {
			return fmt.Errorf("start training: poses of cameras that share a photo, as %s does, are not refined",
				cams[i].Name)
		}
		if cams[i].Moved() && cams[i].Distortion != nil {
			return fmt.Errorf("start training: cameras that move while they take their photos, as that of %s does, "+
				"are not refined", cams[i].Name)
		}
	}
	return nil
}

// planPoses makes a table of phantom memory.
func planPoses(dev *vk.Device, cams []scene.Camera, cfg *recipe.Config, o *TrainerOptions) *poseTable {
	return &poseTable{dev: dev, cfg: cfg, active: true, rows: phantom[layout.Pose](dev, len(cams)+1, poseBytes),
		anchors: phantom[uint32](dev, o.Anchors.size(len(cams)), 4)}
}

// add makes the table, of photos that have learnt nothing.
func (a *aligner) add(anchors Anchors) (err error) {
	e, cams := a.shard.e.setup, a.run.cams
	rows := givenPoses(cams)
	x := &poseTable{dev: e.dev, cfg: &a.run.cfg, frame: layout.NewPoseFrame(rows[:len(cams)]), spare: rows[len(cams)],
		lenses: int(rows[len(cams)].Camera)}
	e.poses = x
	if x.rows, err = vk.Make[layout.Pose](x.dev, vk.DeviceLocal, len(rows), "poses"); err != nil {
		return err
	}
	words := anchors.words(len(cams))
	if x.anchors, err = vk.Make[uint32](x.dev, vk.DeviceLocal, len(words), "anchors of poses"); err != nil {
		return err
	}
	return errors.Join(writeTable(x.dev, x.rows, rows), writeTable(x.dev, x.anchors, words))
}

// state returns the table as part of a checkpoint.
func (x *poseTable) state() checkpoint.Extra {
	flat := vk.Cast[float32](x.rows.View)
	return checkpoint.Extra{Name: checkpoint.PosesTensor, Data: flat,
		Shape: []int{x.rows.N(), flat.N() / x.rows.N()}}
}

// download returns the rows. Nothing may be in flight.
func (x *poseTable) download() ([]layout.Pose, error) { return readTable(x.dev, x.rows) }

// clearSpare makes the last row that of a camera that has not moved.
func (x *poseTable) clearSpare() error {
	return writeTable(x.dev, x.rows.At(x.views(), 1), []layout.Pose{x.spare})
}

// close frees the table.
func (x *poseTable) close() (err error) {
	for _, v := range []vk.View{x.rows.View, x.anchors.View} {
		if !v.IsZero() {
			err = errors.Join(err, x.dev.Free(v))
		}
	}
	return err
}

// resume restores whether the run refines poses. The table was filled from its checkpoint; given cameras may have
// changed since.
func (a *aligner) resume() error {
	x := a.shard.e.setup.poses
	rows, err := x.download()
	if err != nil {
		return err
	}
	for i, given := range givenPoses(a.run.cams) {
		rows[i].Rot, rows[i].Center, rows[i].Camera = given.Rot, given.Center, given.Camera
	}
	if err := writeTable(x.dev, x.rows, rows); err != nil {
		return err
	}
	x.active, a.decided, x.spare = rows[0].Refined > 0, rows[0].Refined != 0, rows[x.views()]
	x.first = int(rows[0].Refined) - 1
	return nil
}

// decide notes in all rows whether cameras are refined from a step on, and makes steps do so. Nothing may be in flight.
func (a *aligner) decide(refined bool, step int) error {
	e, x := a.shard.e, a.shard.e.setup.poses
	a.decided = true
	rows, err := x.download()
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].Refined = -1; refined {
			rows[i].Refined = 1 + float32(step)
		}
	}
	x.spare = rows[x.views()]
	if err := writeTable(x.dev, x.rows, rows); err != nil || !refined {
		return err
	}
	x.active, x.first = true, step
	a.shard.pace.reset() // steps have other passes now
	e.programs.split[recipe.Step] = nil
	return e.memory.buildToFit()
}

// RefinedCameras returns the cameras that are trained on as training has refined them, in the training frame; nil if
// cameras are not refined, or not yet.
func (t *Trainer) RefinedCameras() ([]scene.Camera, error) {
	x := t.shards.first.e.setup.poses
	if x == nil || !x.active {
		return nil, nil
	}
	if err := t.queue.wait(); err != nil {
		return nil, err
	}
	rows, err := x.download()
	if err != nil {
		return nil, err
	}
	return refinedCameras(t.run.cams, rows[:len(t.run.cams)]), nil
}
