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
	Origin    string          `json:"origin"`
	Source    captured.Source `json:"source"`
	Depth     DepthOptions    `json:"depth"`
	Normal    NormalOptions   `json:"normal"`

	Asked *asked `json:"asked,omitempty"` // nil: an earlier version began it
	Block bool   `json:"block,omitempty"` // of a plan
}

// rememberBegun writes down what the run is begun with. What a run that goes on was begun with stays as it is.
func (s *saver) rememberBegun() error {
	if s.o.Off {
		return nil
	}
	r := s.r
	if s.begun != nil {
		s.begun.Source.Scene = output.Absolute(r.Scene) // which may have moved
		return s.writeBegun(s.begun)
	}
	b := begun{Preset: r.Preset, Config: r.Config, StepsScaler: r.StepsScaler, ShareSteps: r.ShareSteps,
		Factors: r.Factors, Eval: r.Eval, TestEvery: r.TestEvery, Origin: string(r.Options.Origin),
		Source: captured.SourceOf(r.Scene, &r.Load), Depth: r.Depth.absolute(), Normal: r.Normal,
		Asked: r.asked(), Block: r.Divided != nil}
	if r.TestList != "" {
		b.TestList = output.Absolute(r.TestList)
	}
	return s.writeBegun(&b)
}

func (s *saver) writeBegun(b *begun) error {
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	return output.WriteJSON(filepath.Join(s.dir, output.BegunFile), b)
}

// readBegun returns what the run in OUT was begun with. Where that cannot be read, as in folders of versions that did
// not write it, it is nil.
func (s *saver) readBegun() *begun { return readBegun(s.dir) }

// readBegun reads the record in a folder of checkpoints.
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
