package splatfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
	"vksplat/scene/safetensors"
	"vksplat/shaders/layout"
)

const (
	checkpointName   = "checkpoint"
	opReadCheckpoint = "read checkpoint"

	// Of the files' names in OUT/checkpoints, around the step.
	checkpointPrefix = "step_"
	checkpointSuffix = ".safetensors"
)

// checkpoint is a checkpoint of train, package pipeline/checkpoint: a safetensors file whose tensors are splat-major
// and in the frame of training, float32 or, of a run in mixed precision, spherical harmonics as halves. Moments and
// statistics, which are there too, are training's and have no place in a model; so there is nothing to write a
// checkpoint from.
var checkpoint = &Format{
	Name:       checkpointName,
	Extensions: []string{checkpointSuffix},
	Detect:     isSafetensors,
	Open:       openCheckpoint,
}

// isSafetensors reports whether a file begins with the length of a JSON header and a brace.
func isSafetensors(head []byte) bool {
	return len(head) > 9 && head[5] == 0 && head[6] == 0 && head[7] == 0 && head[8] == '{' &&
		bytes.ContainsAny(head[9:10], "\" \t\r\n}")
}

type checkpointTensor struct {
	scene.SplatPart
	file *io.SectionReader
	half bool // IEEE halves, otherwise float32
}

type checkpointSource struct {
	indexed
	file    *safetensors.File
	path    string
	frame   scene.Frame
	origin  [3]float64
	tensors []checkpointTensor
	room    []byte
}

func openCheckpoint(path string) (Source, error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	c := &checkpointSource{file: file, path: path}
	c.decode = c.load
	if err := c.parse(); err != nil {
		return nil, errors.Join(c.fail(err), file.Close())
	}
	return c, nil
}

func (c *checkpointSource) fail(err error) error {
	hint := "name a file of OUT/checkpoints as vksplat train writes them, or copy it again if it is one"
	if errors.Is(err, ErrOtherTensors) {
		hint = "use the version of vksplat that wrote it"
	}
	return readError(opReadCheckpoint, c.path, err, hint)
}

func (c *checkpointSource) parse() error {
	h, _, err := ReadCheckpointHeader(c.file)
	if err != nil {
		return err
	}
	if err := h.Check(); err != nil {
		return err
	}
	c.frame, c.origin = scene.Frame{Center: h.Frame.Center, Scale: h.Frame.Scale}, h.Frame.Origin
	c.info = Info{Format: checkpointName, N: h.Splats, Degree: h.SHDegree,
		Meta: ply.Meta{Generator: "vksplat " + h.Version, Step: h.Step, Seed: h.Seed,
			Antialiased: h.Config.Antialiased}}
	if h.Config.Near == ply.DefaultNear {
		h.Config.Near = 0
	}
	c.info.Meta.TakeLook(h.Config.Background, h.Config.Near, h.Config.Exposure)
	if h.Frame.Origin != [3]float64{} {
		c.info.Meta.Origin = &h.Frame.Origin
	}
	return c.find()
}

// find looks the tensors of the model up and compares them with the header.
func (c *checkpointSource) find() error {
	for _, p := range scene.SplatParts(c.info.Degree) {
		have, ok := c.file.Lookup(p.Name)
		if !ok {
			return fmt.Errorf("tensor %s is missing: %w", p.Name, ErrOtherTensors)
		}
		half := have.DType == "F16"
		if !half && have.DType != "F32" || fmt.Sprint(have.Shape) != fmt.Sprint(append([]int{c.info.N}, p.Shape...)) {
			return fmt.Errorf("tensor %s is %s %v, which does not fit %d splats of SH degree %d",
				p.Name, have.DType, have.Shape, c.info.N, c.info.Degree)
		}
		c.tensors = append(c.tensors, checkpointTensor{p, c.file.Reader(p.Name), half})
	}
	return nil
}

func (c *checkpointSource) Close() error { return c.file.Close() }

// earlierCheckpoint returns the newest checkpoint of an earlier step in the same folder, "" if there is none. Steps are
// taken from the files' names.
func earlierCheckpoint(path string) string {
	number, ok := strings.CutPrefix(filepath.Base(path), checkpointPrefix)
	step, err := strconv.Atoi(strings.TrimSuffix(number, checkpointSuffix))
	if !ok || err != nil {
		return ""
	}
	earlier, _ := latest(filepath.Dir(path), checkpointPrefix, checkpointSuffix, func(n int) bool { return n < step })
	return earlier
}

// CheckpointError is the error of a damaged checkpoint. Its hint names an earlier one, if there is one.
func CheckpointError(path string, why error) error {
	hint := "the file is damaged: copy it again, or train again"
	if earlier := earlierCheckpoint(path); earlier != "" {
		hint = "the file is damaged: use an earlier checkpoint, such as " + photo.ShellWord(earlier) +
			", or copy it again"
	}
	var known *fault.Error // of the layout, which does not know what it holds
	if errors.As(why, &known) && known.Err != nil {
		why = known.Err
	}
	return &fault.Error{Op: opReadCheckpoint, Path: path, Err: why, Hint: hint}
}

func (c *checkpointSource) Read(put func(piece *scene.Splats) error) error {
	return c.indexed.Read(func(piece *scene.Splats) error { return put(piece.ToCapture(c.frame, c.origin)) })
}

func (c *checkpointSource) Gather(ids []uint32, into *scene.Splats) error {
	if err := c.indexed.Gather(ids, into); err != nil {
		return err
	}
	moved := into.ToCapture(c.frame, c.origin)
	copy(into.Means, moved.Means)
	copy(into.LogScales, moved.LogScales)
	return nil
}

// load reads splats in the frame of training. The first call verifies the hash of the whole file, so that nothing of a
// damaged file is handed out. Reading the splats cannot do that on the way: it skips two thirds of the file and takes
// the rest in another order.
func (c *checkpointSource) load(first int, into *scene.Splats) error {
	if err := c.file.Verify(); err != nil {
		return CheckpointError(c.path, err)
	}
	for _, t := range c.tensors {
		if err := t.read(first, into, &c.room); err != nil {
			return c.fail(err)
		}
	}
	return nil
}

func (t *checkpointTensor) read(first int, into *scene.Splats, room *[]byte) error {
	size := 4
	if t.half {
		size = 2
	}
	row := size * t.Width
	rows, err := readRows(t.file, 0, row, first, into.N, room)
	if err != nil {
		return err
	}
	data, stride, from := t.Of(into)
	for i := range into.N {
		for k, to := 0, data[i*stride+from:]; k < t.Width; k++ {
			if at := rows[i*row+size*k:]; t.half {
				to[k] = layout.HalfValue(binary.LittleEndian.Uint16(at))
			} else {
				to[k] = floatAt(at, 0)
			}
		}
	}
	return nil
}
