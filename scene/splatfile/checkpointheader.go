package splatfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/safetensors"
)

const (
	checkpointMarkerKey = "format"
	checkpointMarker    = "vksplat checkpoint"
	checkpointHeaderKey = "vksplat" // JSON of the header
)

// ErrNotCheckpoint says that a file holds tensors, but is no checkpoint of this program.
var ErrNotCheckpoint = errors.New("the file holds no checkpoint of vksplat")

// ErrOtherTensors says that a whole checkpoint lacks a tensor that this version needs.
var ErrOtherTensors = errors.New("another version of vksplat wrote the file")

// CheckpointHeader is the part of a checkpoint's header that describes the model. The rest of it is the trainer's:
// checkpoint.Header.
type CheckpointHeader struct {
	Format   int    `json:"format_version"`
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

func CheckpointMetadata(header string) map[string]string {
	return map[string]string{checkpointMarkerKey: checkpointMarker, checkpointHeaderKey: header}
}

// ReadCheckpointHeader returns what the header of a checkpoint says of its model, unchecked, and the JSON of all of it.
// With an error of the JSON h holds what could be read, so that a newer version can be told from damage.
func ReadCheckpointHeader(file *safetensors.File) (h CheckpointHeader, text []byte, err error) {
	if file.Metadata[checkpointMarkerKey] != checkpointMarker {
		return h, nil, ErrNotCheckpoint
	}
	text = []byte(file.Metadata[checkpointHeaderKey])
	if err := json.Unmarshal(text, &h); err != nil {
		return h, text, fmt.Errorf("header: %w", strictjson.JSONError(err))
	}
	return h, text, nil
}

func (h *CheckpointHeader) Check() error {
	if h.Splats < 1 || h.Splats > math.MaxInt32 || h.SHDegree < 0 || h.SHDegree > scene.MaxSHDegree {
		return fmt.Errorf("%d splats of SH degree %d", h.Splats, h.SHDegree)
	}
	if !(h.Frame.Scale > 0) || math.IsInf(h.Frame.Scale, 0) {
		return fmt.Errorf("a frame of scale %g", h.Frame.Scale)
	}
	return nil
}
