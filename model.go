package vksplat

import (
	"context"
	"os"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/render"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// Model is a trained scene in memory.
type Model struct {
	path   string // of its file
	splats *scene.Splats
	info   splatfile.Info

	origin [3]float64            // what was subtracted from its coordinates
	frame  scene.Frame           // in which it was trained, as far as that is known
	look   pipeline.RenderConfig // how it was drawn in training
}

// ReadModel reads a model: a file of any format, PLY, compressed PLY, SPZ, SOG, .splat, .ksplat, glTF or a checkpoint;
// or the latest one in a folder that Train wrote.
func ReadModel(path string) (*Model, error) {
	m, err := readModel(path)
	if err != nil {
		return nil, classified(err)
	}
	return m, nil
}

func readModel(path string) (m *Model, err error) {
	m = &Model{frame: scene.Identity()}
	if m.path, err = splatfile.Find(path); err != nil {
		return nil, err
	}
	a := console(context.Background(), nil)
	if m.splats, m.info, err = models.Open(a, m.path); err != nil {
		return nil, err
	}
	m.origin = models.OriginOf(&m.info)
	m.look = pipeline.RenderConfig{Near: recipe.Default().Near, Antialiased: m.info.Meta.Antialiased}
	look, err := captured.LookOf(m.path, &m.info.Meta)
	if err != nil {
		return nil, err
	}
	look.Take(&m.look, func(string) bool { return false }, false)
	m.frame.Center = m.origin
	run := output.FolderOf(m.path)
	if run == "" {
		return m, nil
	}
	cameras := filepath.Join(run, "cameras.json")
	if _, err := os.Stat(cameras); err != nil {
		return m, nil // of a run that was killed before it wrote them
	}
	capture, err := render.ReadViews(a, &render.Options{Cameras: cameras}, m.origin)
	if err != nil {
		return nil, err
	}
	m.look.Focal = scene.TrainedFocal(capture.Cameras)
	capture.Normalise()
	m.frame = capture.Frame
	return m, nil
}

// check refuses a model that ReadModel has not read.
func (m *Model) check() error {
	if m == nil || m.splats == nil {
		return fault.Usagef("read one with ReadModel", "there is no model")
	}
	return nil
}

// Path is the file that the model was read from.
func (m *Model) Path() string { return m.path }

// Splats is how many splats the model has.
func (m *Model) Splats() int { return m.splats.N }

// WriteFile writes the model in the format that the name says, as the command vksplat convert does: .ply,
// .compressed.ply, .spz, .sog, .splat, .glb, .usdc or .usdz. A file of that name is replaced. Some formats keep less
// than others.
func (m *Model) WriteFile(path string) error {
	if err := m.check(); err != nil {
		return err
	}
	a := console(context.Background(), nil)
	return classified(convert.Export(a, splatfile.Memory(m.splats, m.info.Meta), path))
}

// Scores say how well a model shows photos that it was not trained on.
type Scores struct {
	PSNR  float64 // decibels, mean over the views
	SSIM  float64 // likewise; 1 is best
	Views []ViewScore
}

// ViewScore is the score of one photo.
type ViewScore struct {
	Name       string
	PSNR, SSIM float64
}
