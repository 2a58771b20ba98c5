package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"vksplat/pipeline"
	"vksplat/scene/ply"
	"vksplat/scene/results"
)

// trainedLook is how a model was drawn while it was trained, of what pictures depend on and splats do not hold.
type trainedLook struct {
	background [3]float32
	near       float64 // in the training frame; 0: not known
}

// trainedLookOf finds it: the file says it itself, as checkpoints and the files do that train writes. Of another file
// the record of its run does or, where that is lost, the run's newest checkpoint. It is nil where nobody knows.
func trainedLookOf(file string, meta *ply.Meta) (*trainedLook, error) {
	if meta.Background != nil {
		return &trainedLook{*meta.Background, cmp.Or(meta.Near, ply.DefaultNear)}, nil
	}
	out := folderOf(file)
	if out == "" {
		return nil, nil
	}
	rec, err := readCaptureRecord(out)
	switch {
	case err != nil:
		return nil, err
	case rec != nil:
		return &trainedLook{rec.Background, rec.Near}, nil
	}
	list, err := listCheckpoints(filepath.Join(out, checkpointFolder))
	for _, saved := range slices.Backward(list) {
		if look := lookOfCheckpoint(saved.path); look != nil {
			return look, nil
		}
	}
	return nil, err
}

// lookOfCheckpoint is nil of what is no checkpoint that can be read, and of a damaged one.
func lookOfCheckpoint(file string) *trainedLook {
	c, err := pipeline.OpenCheckpoint(file)
	if err != nil {
		return nil
	}
	defer c.Close() // only read
	if c.Verify() != nil {
		return nil
	}
	return &trainedLook{c.Header.Config.Background, c.Header.Config.Near}
}

// take makes the settings of drawing those of training, where no flag says otherwise. Where nobody knows them, models of synthetic captures are taken to have
// been trained on white, as train does it.
func (l *trainedLook) take(config *pipeline.RenderConfig, given func(flag string) bool, synthetic bool) {
	if l == nil {
		l = &trainedLook{}
		if synthetic {
			l.background = [3]float32{1, 1, 1}
		}
	}
	if !given("background") {
		config.Background = l.background
	}
	if !given("near") && l.near > 0 {
		config.Near = l.near
	}
}

// countTrainedOn counts the photos that are measured, of which views are the numbers, and that the model was trained on. rec is the record of its run, nil
// where there is none.
func (j *evalJob) countTrainedOn(rec *captureRecord, views []int) results.TrainedOn {
	c := j.capture
	if rec != nil && rec.describes(c, j.o.capture) {
		held := map[string]bool{}
		for _, name := range rec.HeldOut {
			held[name] = true
		}
		n := 0
		for _, i := range views {
			if !held[c.Cameras[i].Name] {
				n++
			}
		}
		return results.TrainedOn{Views: n, Known: true}
	}
	saved, err := pipeline.OpenCheckpoint(j.file)
	if err != nil {
		return results.TrainedOn{}
	}
	h := saved.Header.Capture
	_ = saved.Close() // only read
	switch rest := others(len(c.Cameras), views); {
	case h.HeldOut == 0 && h.Photos == len(c.Cameras):
		return results.TrainedOn{Views: len(views), Known: true}
	case h.Photos == len(rest) && h.HeldOut == len(views) && h.Split == splitHash(rest):
		return results.TrainedOn{Known: true}
	}
	return results.TrainedOn{}
}

// others returns the numbers below n that are not in list, which is ascending.
func others(n int, list []int) (rest []int) {
	for i := range n {
		if len(list) > 0 && list[0] == i {
			list = list[1:]
			continue
		}
		rest = append(rest, i)
	}
	return rest
}

// warnTrainedOn says how much the scores are worth, before anything is measured: those of photos that a model was trained on are no measure of new views.
func (j *evalJob) warnTrainedOn() {
	switch text := j.trainedOnText(); {
	case text == "":
	case j.result.TrainedOn.Known:
		j.app.warn(j.name + ": " + text)
	default:
		j.app.note(j.name + ": " + text)
	}
}

// printTrainedOn says the same below a table.
func (j *evalJob) printTrainedOn() {
	if text := j.trainedOnText(); text != "" {
		j.app.printf("\n**%s: %s.**\n", j.name, text)
	}
}

// trainedOnText is "" where all is well, or was asked for.
func (j *evalJob) trainedOnText() string {
	switch t := j.result.TrainedOn; {
	case t == nil || j.o.split == splitTrain || t.Known && t.Views == 0:
		return ""
	case !t.Known:
		return "nothing says which photos it was trained on; if it was on these, the scores say nothing of new views"
	default:
		return fmt.Sprintf("it was trained on %d of the %s that it is measured on, whose scores say nothing of new views", t.Views, count(len(j.cams), "photo"))
	}
}
