package splatfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
	"vksplat/scene/safetensors"
)

const (
	checkpointName   = "checkpoint"
	opReadCheckpoint = "read checkpoint"

	// Of the files' names in OUT/checkpoints, around the step.
	checkpointPrefix = "step_"
	checkpointSuffix = ".safetensors"
)

// checkpoint is a checkpoint of train, package pipeline: a safetensors file whose tensors are splat-major and in the frame of training, float32 or, of a run
// in mixed precision, spherical harmonics as halves. Moments and statistics, which are there too, are training's and have no place in a model; so there is
// nothing to write a checkpoint from.
var checkpoint = &Format{
	Name:       checkpointName,
	Extensions: []string{checkpointSuffix},
	Detect:     isSafetensors,
	Open:       openCheckpoint,
}

// isSafetensors reports whether a file begins with the length of a JSON header and a brace.
func isSafetensors(head []byte) bool {
	return len(head) > 9 && head[5] == 0 && head[6] == 0 && head[7] == 0 && head[8] == '{' && bytes.ContainsAny(head[9:10], "\" \t\r\n}")
}

// checkpointHead is what a model needs of a checkpoint's header.
type checkpointHead struct {
	Version  string `json:"vksplat_version"`
	Step     int    `json:"step"`
	Seed     uint64 `json:"seed"`
	Splats   int    `json:"splats"`
	SHDegree int    `json:"sh_degree"`
	Config   struct {
		Antialiased bool        `json:"antialiased"`
		Background  *[3]float32 `json:"background"`
		Near        float64     `json:"near"`
		Exposure    bool        `json:"exposure"`
	} `json:"config"`
	Frame struct {
		Center [3]float64 `json:"center"`
		Scale  float64    `json:"scale"`
		Origin [3]float64 `json:"origin"`
	} `json:"frame"`
}

// checkpointTensor is a tensor of the file and where in a splat it goes.
type checkpointTensor struct {
	file   *io.SectionReader
	half   bool // IEEE halves, otherwise float32
	width  int  // numbers of a splat
	target func(s *scene.Splats, i int) []float32
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
	return readError(opReadCheckpoint, c.path, err, "name a file of OUT/checkpoints as vksplat train writes them, or copy it again if it is one")
}

func (c *checkpointSource) parse() error {
	if c.file.Metadata["format"] != "vksplat checkpoint" {
		return errors.New("the file holds no checkpoint of vksplat")
	}
	var h checkpointHead
	if err := json.Unmarshal([]byte(c.file.Metadata["vksplat"]), &h); err != nil {
		return fmt.Errorf("header: %w", strictjson.JSONError(err))
	}
	if h.Splats < 1 || h.Splats > math.MaxInt32 || h.SHDegree < 0 || h.SHDegree > scene.MaxSHDegree {
		return fmt.Errorf("%d splats of SH degree %d", h.Splats, h.SHDegree)
	}
	if !(h.Frame.Scale > 0) || math.IsInf(h.Frame.Scale, 0) {
		return fmt.Errorf("a frame of scale %g", h.Frame.Scale)
	}
	c.frame, c.origin = scene.Frame{Center: h.Frame.Center, Scale: h.Frame.Scale}, h.Frame.Origin
	c.info = Info{Format: checkpointName, N: h.Splats, Degree: h.SHDegree,
		Meta: ply.Meta{Generator: "vksplat " + h.Version, Step: h.Step, Seed: h.Seed, Antialiased: h.Config.Antialiased}}
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
	rest := scene.SHCoefficients(c.info.Degree) - 1
	part := func(of func(s *scene.Splats) []float32, width, from, to int) func(s *scene.Splats, i int) []float32 {
		return func(s *scene.Splats, i int) []float32 { return of(s)[i*width+from : i*width+to] }
	}
	all := 3 * (rest + 1)
	sh := func(s *scene.Splats) []float32 { return s.SH }
	for _, t := range []struct {
		name   string
		shape  []int // of one splat
		target func(s *scene.Splats, i int) []float32
	}{
		{"means", []int{3}, part(func(s *scene.Splats) []float32 { return s.Means }, 3, 0, 3)},
		{"quats", []int{4}, part(func(s *scene.Splats) []float32 { return s.Quats }, 4, 0, 4)},
		{"log_scales", []int{3}, part(func(s *scene.Splats) []float32 { return s.LogScales }, 3, 0, 3)},
		{"logit_opacities", nil, part(func(s *scene.Splats) []float32 { return s.LogitOpacities }, 1, 0, 1)},
		{"sh0", []int{1, 3}, part(sh, all, 0, 3)},
		{"shN", []int{rest, 3}, part(sh, all, 3, all)},
	} {
		if t.name == "shN" && rest == 0 {
			continue
		}
		have, ok := c.file.Lookup(t.name)
		if !ok {
			return fmt.Errorf("tensor %s is missing", t.name)
		}
		half := have.DType == "F16"
		if !half && have.DType != "F32" || fmt.Sprint(have.Shape) != fmt.Sprint(append([]int{c.info.N}, t.shape...)) {
			return fmt.Errorf("tensor %s is %s %v, which does not fit %d splats of SH degree %d", t.name, have.DType, have.Shape, c.info.N, c.info.Degree)
		}
		width := 1
		for _, side := range t.shape {
			width *= side
		}
		c.tensors = append(c.tensors, checkpointTensor{c.file.Reader(t.name), half, width, t.target})
	}
	return nil
}

func (c *checkpointSource) Close() error { return c.file.Close() }

// EarlierCheckpoint returns the newest checkpoint of an earlier step in the same folder, "" if there is none. Steps are
// taken from the files' names.
func EarlierCheckpoint(path string) string {
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
	if earlier := EarlierCheckpoint(path); earlier != "" {
		hint = "the file is damaged: use an earlier checkpoint, such as " + photo.ShellWord(earlier) + ", or copy it again"
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

// read copies the tensor of splats from first on.
func (t *checkpointTensor) read(first int, into *scene.Splats, room *[]byte) error {
	size := 4
	if t.half {
		size = 2
	}
	row := size * t.width
	rows, err := readRows(t.file, 0, row, first, into.N, room)
	if err != nil {
		return err
	}
	for i := range into.N {
		for k, to := 0, t.target(into, i); k < t.width; k++ {
			if at := rows[i*row+size*k:]; t.half {
				to[k] = halfValue(binary.LittleEndian.Uint16(at))
			} else {
				to[k] = floatAt(at, 0)
			}
		}
	}
	return nil
}
