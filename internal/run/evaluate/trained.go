package evaluate

import (
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/scene/results"
)

// countTrainedOn counts the photos that are measured, of which views are the numbers, and that the model was trained
// on. rec is the record of its run, nil where there is none.
func (j *Job) countTrainedOn(rec *captured.Record, views []int) results.TrainedOn {
	c := j.capture
	if rec != nil && rec.Resplit {
		return results.TrainedOn{}
	}
	if rec != nil && rec.Describes(c, j.o.Capture) {
		n := 0 // heldOutViews has made the capture's held-out photos the run's
		for _, i := range views {
			if !c.IsHeldOut(i) {
				n++
			}
		}
		return results.TrainedOn{Views: n, Known: true}
	}
	saved, err := checkpoint.Open(j.file)
	if err != nil {
		return results.TrainedOn{}
	}
	h := saved.Header.Capture
	_ = saved.Close() // only read
	switch rest := captured.Others(len(c.Cameras), views); {
	case h.HeldOut == 0 && h.Photos == len(c.Cameras):
		return results.TrainedOn{Views: len(views), Known: true}
	case h.Photos == len(rest) && h.HeldOut == len(views) && h.Split == captured.SplitHash(rest):
		return results.TrainedOn{Known: true}
	}
	return results.TrainedOn{}
}

// setNearest says how far the views are from the training views.
func (j *Job) setNearest() {
	if train, _ := j.capture.Split(0); len(train) > 0 {
		j.Result.Nearest = scene.NearestTo(captured.Pick(j.capture.Cameras, train), j.cams)
	}
}

// warnTrainedOn says how much the scores are worth, before anything is measured: those of photos that a model was
// trained on are no measure of new views.
func (j *Job) warnTrainedOn() {
	switch text := j.trainedOnText(); {
	case text == "":
	case j.Result.TrainedOn.Known:
		j.console.Warn(j.name + ": " + text)
	default:
		j.console.Note(j.name + ": " + text)
	}
}

// trainedOnText is "" where all is well, or was asked for.
func (j *Job) trainedOnText() string {
	switch t := j.Result.TrainedOn; {
	case t == nil || j.o.Split == SplitTrain || t.Known && t.Views == 0:
		return ""
	case !t.Known:
		return "cannot tell which photos it was trained on; if these, the scores do not measure new views"
	default:
		return fmt.Sprintf("it was trained on %d of the %s that it is measured on, whose scores do not measure new "+
			"views", t.Views, cli.Count(len(j.cams), "photo"))
	}
}
