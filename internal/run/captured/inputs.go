package captured

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/ply"
)

// SplitHash tells apart choices of photos to train on.
func SplitHash(train []int) string {
	var text []byte
	for _, i := range train {
		text = binary.LittleEndian.AppendUint64(text, uint64(i))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// HeldOutEvery is the usual spacing of held-out photos, as in the papers.
const HeldOutEvery = 8

// HoldOut holds out the photos that a file names; without a file those that the capture names, or else every n-th.
func HoldOut(c *scene.Capture, list string, every int) error {
	if list == "" {
		c.HoldOutEvery(every)
		return nil
	}
	names, err := scene.ReadTestList(list)
	if err != nil {
		return err
	}
	return c.HoldOut(list, names)
}

// CheckSplit refuses a list of held-out photos that names no file, and a spacing beside a list, which decides alone.
func CheckSplit(list string, given func(flag string) bool) error {
	switch {
	case list == "" && given("test-list"):
		return fault.Usagef("name a file with the name of a photo on each line, or leave it out", "%s names no file",
			fault.Named("test-list"))
	case list != "" && given("test-every"):
		return fault.Usagef("leave out one of the two", "%s: both choose the photos that are held out",
			fault.Named("test-every", "test-list"))
	}
	return nil
}

// Pick returns the elements of list with the given indices, nil of no list.
func Pick[T any](list []T, ids []int) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(ids))
	for i, id := range ids {
		out[i] = list[id]
	}
	return out
}

// Others returns the numbers below n that are not in list, which is ascending.
func Others(n int, list []int) (rest []int) {
	for i := range n {
		if len(list) > 0 && list[0] == i {
			list = list[1:]
			continue
		}
		rest = append(rest, i)
	}
	return rest
}

// Inputs are the files in OUT about what a model was trained on: the points, the cameras, INRIA's arguments, the
// capture and the origin.
type Inputs struct {
	Points  []ply.FilePoint // less the origin
	Cameras []scene.Camera  // likewise
	Test    []int           // of these, held-out ones
	Cfg     inria.CfgArgs
	Record  Record
	Origin  [3]float64
}

func (w *Inputs) Write(out string) error {
	if err := ply.WritePoints(filepath.Join(out, "input.ply"), w.Points); err != nil {
		return err
	}
	if err := inria.WriteCameras(filepath.Join(out, "cameras.json"), w.Cameras, w.Test...); err != nil {
		return err
	}
	if err := inria.WriteCfgArgs(filepath.Join(out, "cfg_args"), w.Cfg); err != nil {
		return err
	}
	if err := output.WriteJSON(filepath.Join(out, output.CaptureFile), &w.Record); err != nil {
		return err
	}
	path := filepath.Join(out, output.OriginFile)
	if w.Origin != [3]float64{} {
		return output.WriteJSON(path, OriginRecord{Origin: w.Origin})
	}
	// One of an earlier run would move this run's model.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
