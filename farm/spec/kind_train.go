package spec

import (
	"slices"
	"strconv"
)

// KindTrain makes a model of a capture.
var KindTrain = &Kind{
	Name:  "train",
	About: "train a model from photographs",
	fields: keys("train",
		plain("source", typeInput, "the capture").need(),
		"images", "masks", "preset",
		set("settings, as in train's configuration file")),
	Makes:       "a model",
	Takes:       "a capture",
	NeedsDevice: true,
	Trains:      true,
	Command:     "train",
	Args: func(c *Call) []string {
		return slices.Concat(c.training(), []string{"--", c.Source})
	},
}

// training are the flags of train: it resumes if there is a checkpoint.
func (c *Call) training() []string {
	every := strconv.FormatFloat(c.SaveEvery.Minutes(), 'f', 4, 64) + "m"
	return slices.Concat(c.Device, []string{"--model-path=" + c.Output, "--resume", "--progress=none",
		"--preview=" + c.Preview, "--checkpoint-every=" + every}, c.Flags())
}
