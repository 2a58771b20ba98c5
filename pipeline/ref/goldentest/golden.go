// Package goldentest reads reference vectors of an independent implementation, for tests.
package goldentest

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"vksplat/pipeline/ref"
)

// Golden is a folder of reference vectors made by an independent implementation, by kind. The kind is the file name's
// prefix.
type Golden struct {
	Renders     []*RenderCase     // render_*.npz
	Losses      []*LossCase       // loss_*.npz
	Adams       []*AdamCase       // adam*.npz
	Relocations []*RelocationCase // mcmc_relocation*.npz
	Trains      []*TrainCase      // train_*.npz
}

// RenderCase is a scene, a view, its picture, and gradients of sum(v_rgb rgb) + sum(v_alpha alpha).
type RenderCase struct {
	Name    string
	Params  *ref.Params[float32]
	View    *ref.View[float32]
	VRender [][4]float32 // [P] upstream gradient of (r, g, b, alpha)

	RGB        []float32 // [P*3] with background
	Alpha      []float32 // [P]
	Radii      []int32   // [N*2] px, a loose bound; 0: culled
	Means2D    []float32 // [N*2] px
	Conics     []float32 // [N*3] xx, xy, yy
	Depths     []float32 // [N] camera z
	VParams    *ref.Params[float32]
	VMeans2D   []float32 // [N*2]
	AbsMeans2D []float32 // [N*2] sum over pixels of |v_mean2d|
}

// Seen reports whether the reference saw splat i.
func (c *RenderCase) Seen(i int) bool { return c.Radii[2*i] > 0 && c.Radii[2*i+1] > 0 }

// LossCase is an image and a target of Width x Height, the loss and its gradient.
type LossCase struct {
	Name           string
	Width, Height  int
	Same           bool // zero padding; the file's name says so
	Lambda         float64
	Image, Target  []float32 // [P*3]
	L1, SSIM, Loss float64
	VImage         []float32 // [P*3]
}

// AdamCase is len(Grads) optimiser steps.
type AdamCase struct {
	Name                  string
	LR, Beta1, Beta2, Eps float64
	Start, End            []float32
	Grads                 [][]float32
}

// RelocationCase is n splats, each to be replaced by Ratios copies.
type RelocationCase struct {
	Name                    string
	Opacities, NewOpacities []float32 // [n] activated
	Scales, NewScales       []float32 // [n*3] activated
	Ratios                  []int
}

// TrainCase is a training run of fixed size.
type TrainCase struct {
	Name             string
	Width, Height    int
	Images           [][]uint8 // per view [P*3]
	Views            []*ref.View[float32]
	Order            []int // view of every step
	Init             *ref.Params[float32]
	SceneScale       float64
	SHDegreeInterval int       // steps per spherical harmonics degree
	Loss, PSNR       []float64 // per step
}

// LoadGolden reads every .npz of the folder in the order of names.
// A file of an unknown prefix or with a missing or misshapen array is an error that names the file and the array.
func LoadGolden(dir string) (*Golden, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.npz"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("load golden vectors: %s: no .npz file", dir)
	}
	sort.Strings(paths)
	g := &Golden{}
	for _, path := range paths {
		a, err := openNPZ(path)
		if err != nil {
			return nil, fmt.Errorf("load golden vectors: %w", err)
		}
		r := &goldenReader{archive: a, name: strings.TrimSuffix(filepath.Base(path), ".npz")}
		if !g.add(r) {
			return nil, fmt.Errorf("load golden vectors: %s: no kind of vector has this name", path)
		}
		if r.err != nil {
			return nil, fmt.Errorf("load golden vectors: %s: %w", path, r.err)
		}
	}
	return g, nil
}

// add reads one file by its prefix; false if no kind fits.
func (g *Golden) add(r *goldenReader) bool {
	switch {
	case strings.HasPrefix(r.name, "render_"):
		g.Renders = append(g.Renders, r.render())
	case strings.HasPrefix(r.name, "loss_"):
		g.Losses = append(g.Losses, r.loss())
	case strings.HasPrefix(r.name, "adam"):
		g.Adams = append(g.Adams, r.adam())
	case strings.HasPrefix(r.name, "mcmc_relocation"):
		g.Relocations = append(g.Relocations, r.relocation())
	case strings.HasPrefix(r.name, "train_"):
		g.Trains = append(g.Trains, r.train())
	default:
		return false
	}
	return true
}
