package edit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kelindar/bitmap"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/splatfile"
)

// Export is an edit that is to be written as a new model.
type Export struct {
	From      string // file of the model that was edited
	To        string // file to write; none of Outputs may be there
	Format    *splatfile.Format
	Generator string // program and version

	Edits   *Document
	Removed bitmap.Bitmap
	Up      *[3]float64

	Cameras []scene.Camera // of the photos, in the frame of From; with none, no file of cameras is written
	HeldOut []int          // of these
}

func (s *State) NewExport() *Export {
	return &Export{Edits: s.Document(), Removed: s.Removed(), Up: s.Up()}
}

// stem is To without the ending of its format.
func (x *Export) stem() string {
	for _, ending := range x.Format.Extensions {
		if n := len(x.To) - len(ending); n > 0 && strings.EqualFold(x.To[n:], ending) {
			return x.To[:n]
		}
	}
	return x.To
}

// EditsFile and CamerasFile are written beside the model.
func (x *Export) EditsFile() string   { return x.stem() + FileSuffix }
func (x *Export) CamerasFile() string { return x.stem() + output.CamerasSuffix }

// Check refuses to write where something is already.
func (x *Export) Check() error {
	for _, path := range append(splatfile.Outputs(x.To), x.EditsFile(), x.CamerasFile()) {
		if _, err := os.Lstat(path); err == nil {
			return fault.Usagef("choose another name", "%s already exists", path)
		}
	}
	return nil
}

// Write writes the files, and says how many splats the model has and what its format could not keep, a sentence each.
// The model comes last; where it fails, none of the files stays.
func (x *Export) Write(ctx context.Context) (splats int, lost []string, err error) {
	if err := x.Check(); err != nil {
		return 0, nil, err
	}
	release, err := output.Claim(filepath.Dir(x.To), false)
	if err != nil {
		return 0, nil, err
	}
	defer release()
	model, err := splatfile.Open(x.From)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	edited, _, err := splatfile.Select(&stoppable{model, ctx}, splatfile.Selection{Removed: x.Removed})
	if err != nil {
		return 0, nil, err
	}
	if splats = edited.Info().N; splats == 0 {
		return 0, nil, &fault.Error{Op: "export", Path: x.From, Err: errors.New("no splats are left to write")}
	}
	up := upright(x.Up)
	if x.Up != nil {
		edited = splatfile.Move(edited, up, "y")
	}
	defer func() {
		if err != nil { // both are ours: Check found none
			_, _ = os.Remove(x.EditsFile()), os.Remove(x.CamerasFile())
		}
	}()
	if err := x.Edits.Write(x.EditsFile()); err != nil {
		return 0, nil, err
	}
	if len(x.Cameras) > 0 {
		if err := inria.WriteCameras(x.CamerasFile(), movedCameras(x.Cameras, up), x.HeldOut...); err != nil {
			return 0, nil, err
		}
	}
	lost, err = x.Format.Write(x.To, edited, splatfile.WriteOptions{Generator: x.Generator})
	return splats, lost, err
}

// movedCameras turns cameras with a model.
func movedCameras(cameras []scene.Camera, up splatfile.Similarity) []scene.Camera {
	out := slices.Clone(cameras)
	back := geom.Transposed(up.R)
	for i := range out {
		out[i].R = geom.Product(out[i].R, back)
	}
	return out
}

// stoppable is a model whose reading ends when it is cancelled.
type stoppable struct {
	splatfile.Source
	ctx context.Context
}

func (s *stoppable) Read(put func(piece *scene.Splats) error) error {
	return s.Source.Read(func(piece *scene.Splats) error {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		return put(piece)
	})
}
