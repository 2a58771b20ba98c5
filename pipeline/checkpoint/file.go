package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/pipeline/recipe"
	"vksplat/scene/safetensors"
	"vksplat/scene/splatfile"
)

// File is an open checkpoint. Its tensors are on disk.
type File struct {
	Header Header

	// Hidden is what versions before Config.Carve had in its place: the share of the depth where a photo's points begin
	// up to which they drew no splat for that photo alone, and so hid splats that every other program draws. 0: none
	// were.
	Hidden float64

	file *safetensors.File
	path string
}

// Open reads the header of a checkpoint and checks that the tensors are those that it announces. Whether the
// bytes are those that were written is for Verify to say; what reads tensors calls it first.
func Open(path string) (*File, error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	c := &File{file: file, path: path}
	if err := c.parse(); err != nil {
		return nil, errors.Join(readError(path, err), file.Close())
	}
	return c, nil
}

func readError(path string, err error) error {
	hint := "the file is damaged: use an earlier checkpoint"
	switch {
	case errors.Is(err, splatfile.ErrNotCheckpoint):
		hint = "name a file of OUT/checkpoints"
	case errors.Is(err, splatfile.ErrOtherTensors):
		hint = "use the version of vksplat that wrote it"
	case errors.Is(err, errNewer):
		hint = "use the version of vksplat that wrote it, or a newer one"
	case errors.Is(err, errFormer):
		hint = "use the version of vksplat that wrote it, or train again from scratch"
	}
	return &fault.Error{Op: "read checkpoint", Path: path, Err: err, Hint: hint}
}

// ErrOtherVersion is in the chain of errors of checkpoints that only another version continues.
var ErrOtherVersion = errors.New("it was written by")

var (
	errNewer  = fmt.Errorf("%w a newer version of vksplat", ErrOtherVersion)
	errFormer = fmt.Errorf("%w an earlier version of vksplat, which refined poses differently", ErrOtherVersion)
)

// Aside returns what Content.Aside gave when the checkpoint was written, "" for nothing.
func (c *File) Aside() string { return c.file.Metadata[asideKey] }

func (c *File) parse() error {
	model, text, err := splatfile.ReadCheckpointHeader(c.file)
	if model.Format > format {
		return errNewer
	}
	if err != nil {
		return err
	}
	// Keys that a later version added to the configuration have their defaults.
	c.Header.Config = recipe.Default()
	if model.Format < formatOfCarve {
		c.Header.Config.Carve = 0
		if text, c.Hidden, err = withoutClearance(text); err != nil {
			return fmt.Errorf("header: %w", strictjson.JSONError(err))
		}
	}
	if err := ofThisVersion(text); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c.Header); err != nil {
		return fmt.Errorf("header: %w", strictjson.JSONError(err))
	}
	if c.Header.Format < 1 {
		return fmt.Errorf("format version %d", c.Header.Format)
	}
	if err := model.Check(); err != nil {
		return err
	}
	return c.check()
}

// ofThisVersion returns an error if the configuration of a header has a setting that this version does not know, or one
// that it no longer follows.
func ofThisVersion(header []byte) error {
	var h struct {
		Config map[string]json.RawMessage `json:"config"`
	}
	if json.Unmarshal(header, &h) != nil {
		return nil // what is wrong with it the decoder of the whole says
	}
	for key, value := range h.Config {
		switch {
		case key == recipe.FormerRefine && string(value) == "true":
			return errFormer
		case recipe.SettingNamed(key) == nil && key != recipe.FormerRefine:
			return errNewer
		}
	}
	return nil
}

// formatOfCarve is the first format of checkpoints whose configuration has Carve.
const formatOfCarve = 2

// withoutClearance takes Carve's predecessor out of a header's configuration.
func withoutClearance(header []byte) (rest []byte, clearance float64, err error) {
	var fields, config map[string]json.RawMessage
	if err := json.Unmarshal(header, &fields); err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(fields["config"], &config); err != nil || config["clearance"] == nil {
		return header, 0, nil // what is wrong with it the decoder of the whole says
	}
	if err := json.Unmarshal(config["clearance"], &clearance); err != nil {
		return nil, 0, err
	}
	delete(config, "clearance")
	if fields["config"], err = json.Marshal(config); err != nil {
		return nil, 0, err
	}
	rest, err = json.Marshal(fields)
	return rest, clearance, err
}

func (c *File) expect(want safetensors.TensorInfo) error {
	have, ok := c.file.Lookup(want.Name)
	if !ok {
		return fmt.Errorf("tensor %s is missing: %w", want.Name, splatfile.ErrOtherTensors)
	}
	if have.DType != want.DType || fmt.Sprint(have.Shape) != fmt.Sprint(want.Shape) {
		return fmt.Errorf("tensor %s is %s %v, want %s %v", want.Name, have.DType, have.Shape, want.DType, want.Shape)
	}
	return nil
}

// Verify reads the whole file, once, and compares it with the hash that it carries.
func (c *File) Verify() error {
	if err := c.file.Verify(); err != nil {
		return splatfile.CheckpointError(c.path, err)
	}
	return nil
}

func (c *File) Path() string { return c.path }

func (c *File) Size() int64 { return c.file.Size() }

// Tensors lists the file's tensors.
func (c *File) Tensors() []safetensors.TensorInfo { return c.file.Tensors }

func (c *File) Close() error { return c.file.Close() }

// check compares the header with itself and with the tensors.
func (c *File) check() error {
	h := &c.Header
	if err := h.check(); err != nil {
		return err
	}
	for _, f := range splatFields(h.Config.Rows()) {
		if err := c.expect(f.tensorOf(h.Splats)); err != nil {
			return err
		}
	}
	return h.Config.Validate()
}
