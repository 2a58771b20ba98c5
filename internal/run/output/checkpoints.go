package output

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/pipeline/checkpoint"
)

// CheckpointFolder is where checkpoints are, below the folder of the run.
const CheckpointFolder = "checkpoints"

type CheckpointFile struct {
	Path string
	Step int
}

const (
	CheckpointPrefix = "step_"
	CheckpointSuffix = ".safetensors"
)

// ListCheckpoints returns the checkpoints in dir by ascending step.
func ListCheckpoints(dir string) ([]CheckpointFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, FolderError(dir, err)
	}
	var list []CheckpointFile
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), CheckpointPrefix)
		digits, ok2 := strings.CutSuffix(digits, CheckpointSuffix)
		step, err := strconv.Atoi(digits)
		if ok && ok2 && err == nil && step >= 0 && e.Type().IsRegular() {
			list = append(list, CheckpointFile{filepath.Join(dir, e.Name()), step})
		}
	}
	slices.SortFunc(list, func(a, b CheckpointFile) int { return a.Step - b.Step })
	return list, nil
}

// AskedFile lists, in the folder of checkpoints, the steps whose checkpoints were asked for and stay.
const AskedFile = "save_at.json"

// BegunFile says, in the folder of checkpoints, what a run was begun with.
const BegunFile = "begun.json"

// Those files below OUT.
var askedName, begunName = filepath.Join(CheckpointFolder, AskedFile), filepath.Join(CheckpointFolder, BegunFile)

// OpenWhole opens a checkpoint after reading all of it.
func OpenWhole(path string) (*checkpoint.File, error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	if err := c.Verify(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
