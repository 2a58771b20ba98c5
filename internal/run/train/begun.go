package train

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/pipeline/recipe"
)

// begun is what a run was begun with: the content of output.BegunFile. A checkpoint has the settings of the recipe,
// too, but the first may come minutes after the start, and how the capture is read is no part of it.
type begun struct {
	Preset string        `json:"preset"`
	Config recipe.Config `json:"config"`

	StepsScaler float64 `json:"steps_scaler"`
	ShareSteps  bool    `json:"share_steps"`
	Factors

	Eval      bool            `json:"eval"`
	TestEvery int             `json:"test_every"`
	TestList  string          `json:"test_list"` // absolute
	HeldOut   []string        `json:"held_out"`  // names of cameras; nil: an earlier version began it
	Origin    string          `json:"origin"`
	Source    captured.Source `json:"source"`
	Depth     DepthOptions    `json:"depth"`
	Normal    NormalOptions   `json:"normal"`

	Asked *asked `json:"asked,omitempty"` // nil: an earlier version began it
	Block bool   `json:"block,omitempty"` // of a plan
}

// rememberBegun writes down what the run is begun with. Of a run that goes on the recipe stays as it was; the photos
// may have moved, or others may have been accepted.
func (s *saver) rememberBegun() error {
	if s.o.Off {
		return nil
	}
	r, b := s.r, s.begun
	if b == nil {
		b = &begun{Preset: r.Preset, Config: r.Config, StepsScaler: r.StepsScaler, ShareSteps: r.ShareSteps,
			Factors: r.Factors, Asked: r.asked(), Block: r.Divided != nil}
	}
	b.Eval, b.TestEvery, b.TestList, b.HeldOut = r.Eval, r.TestEvery, "", r.heldOutNames()
	b.Origin, b.Source = string(r.Options.Origin), captured.SourceOf(r.Scene, &r.Load)
	b.Depth, b.Normal = r.Depth.absolute(), r.Normal
	if r.TestList != "" {
		b.TestList = output.Absolute(r.TestList)
	}
	return s.writeBegun(b)
}

func (s *saver) writeBegun(b *begun) error {
	dir := s.r.at(s.dir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return output.WriteJSON(filepath.Join(dir, output.BegunFile), b)
}

// readBegun reads the record in a folder of checkpoints, nil where that cannot be read, as those of versions that did
// not write it.
func readBegun(dir string) *begun {
	b, err := parseBegun(dir)
	if err != nil {
		return nil
	}
	return b
}

func parseBegun(dir string) (*begun, error) {
	b := &begun{Config: recipe.Default()}
	data, err := os.ReadFile(filepath.Join(dir, output.BegunFile))
	if err == nil {
		err = strictjson.JSONError(json.Unmarshal(data, b))
	}
	if err == nil {
		err = b.Config.Validate()
	}
	return b, err
}

// refuseDamagedBegun refuses to go on with a record that is there and cannot be read. The run can, without it, where it
// has a checkpoint.
func refuseDamagedBegun(dir string) error {
	_, err := parseBegun(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	hint := "nothing else says how the run was begun: begin it anew with " + fault.Command("train SCENE -m OUT") +
		" and " + fault.Setting("overwrite")
	if list, listErr := output.ListCheckpoints(dir); listErr == nil && len(list) > 0 {
		hint = "remove that file, and run the same command again: the run goes on by its checkpoints; give its exports " +
			"and other outputs once more"
	}
	return &fault.Error{Op: "read the run's record", Path: filepath.Join(dir, output.BegunFile),
		Err: fault.TrimPath(err), Hint: hint, Kind: fault.ReadKind(err)}
}
