package task

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"vksplat/farm/store"
	"vksplat/scene/results"
)

// Folders of a training's results with one for each step: models, and pictures of held-out photos that it measured.
const (
	modelFolder   = "point_cloud/iteration_"
	pictureFolder = "test/ours_"
)

// stepOf is the step that a file of a training belongs to, by its name below the results; -1 for other files.
func stepOf(name string) int {
	for _, folder := range []string{modelFolder, pictureFolder} {
		rest, found := strings.CutPrefix(name, folder)
		digits, _, below := strings.Cut(rest, "/")
		if step, err := strconv.Atoi(digits); found && below && err == nil {
			return step
		}
	}
	return -1
}

// lastStep is the highest step that files belong to; -1 where none does.
func lastStep(names []string) int {
	last := -1
	for _, name := range names {
		last = max(last, stepOf(name))
	}
	return last
}

// results leaves those files that are results. A training that was interrupted has left a model of its state then, and
// measured it: whether a later attempt finds that depends on the machine, and results do not. What it was told to
// measure on the way stays.
func (c *committer) results(names []string) []string {
	if !c.trains() {
		return names
	}
	last, asked := lastStep(names), c.trained().EvalAt
	return slices.DeleteFunc(names, func(name string) bool {
		step := stepOf(name)
		return step >= 0 && step < last && !(strings.HasPrefix(name, pictureFolder) && slices.Contains(asked, step))
	})
}

// forgetStops removes the scores of states in which a training was interrupted from its files of scores.
func (c *committer) forgetStops(dir *os.Root) error {
	if !c.trains() {
		return nil
	}
	names, err := store.LocalFiles(dir, c.isScratch)
	if err != nil {
		return err
	}
	last, asked := lastStep(names), c.trained().EvalAt
	return results.KeepSteps(c.out, func(step int) bool { return step >= last || slices.Contains(asked, step) })
}

// trainStats is what is read of stats.json.
type trainStats struct {
	EvalAt []int `json:"eval_at"`
	Run    struct {
		Deviations []struct {
			Step   int    `json:"step"`
			Reason string `json:"reason"`
		} `json:"deviations"`
	} `json:"run"`
}

// readStats takes over what training says of what may have changed bytes.
func (c *committer) readStats() {
	for _, d := range c.trained().Run.Deviations {
		c.state.Notes = append(c.state.Notes, fmt.Sprintf("from step %d on: %s", d.Step, d.Reason))
	}
}
