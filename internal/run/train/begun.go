package train

import (
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

// begun records how a run was started: the content of output.BegunFile. A checkpoint has the settings of the recipe,
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

// startFolder is where OUT has the cameras that training begins with, if they are not the capture's own.
func startFolder(o *Options) string {
	if o.Config.RefineCameras {
		return captured.StartFolder
	}
	return captured.ModelFolder
}

// remember writes down what the run is begun with. Of a run that is resumed the recipe stays as it was; the photos
// may have moved, or others may have been accepted.
func (p *previous) remember(at func(path string) string) error {
	if p.Checkpoints.Off {
		return nil
	}
	b := p.begun
	if b == nil {
		b = &begun{Preset: p.Preset, Config: p.Config, StepsScaler: p.StepsScaler, ShareSteps: p.ShareSteps,
			Factors: p.Factors, Asked: askedOf(p.Options), Block: p.Divided != nil}
	}
	b.Eval, b.TestEvery, b.TestList, b.HeldOut = p.Eval, p.TestEvery, "", p.data.heldOutNames()
	b.Origin, b.Source = string(p.Options.Origin), captured.SourceOf(p.Scene, &p.Load, startFolder(p.Options))
	b.Depth, b.Normal = p.Depth.absolute(), p.Normal
	if p.TestList != "" {
		b.TestList = output.Absolute(p.TestList)
	}
	dir := at(p.dir)
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
	err := strictjson.ReadFile(filepath.Join(dir, output.BegunFile), b)
	if err == nil {
		err = b.Config.Validate()
	}
	return b, err
}

// refuseDamagedBegun refuses a record that cannot be read. A run that has a checkpoint can resume without it.
func refuseDamagedBegun(dir string) error {
	_, err := parseBegun(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &fault.Error{Op: "read the run's record", Path: filepath.Join(dir, output.BegunFile),
		Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
		Hint: "remove that file and resume from a checkpoint, with the run's exports and other outputs; without one, " +
			"start over with " + fault.Command("train SCENE -m OUT") + " and " + fault.Setting("overwrite")}
}
