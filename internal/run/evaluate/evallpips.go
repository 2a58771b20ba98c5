package evaluate

import (
	"errors"
	"fmt"

	"vksplat/pipeline"
	"vksplat/pipeline/lpips"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/splatfile"
)

// lpipsBytes is what a picture's pixel takes of RAM for LPIPS: the photo and the render as they are compared.
const lpipsBytes = 2 * 12

// perceptual measures LPIPS.
type perceptual struct {
	net    *lpips.Scorer
	sha256 string // of the file of weights
}

// openPerceptual takes the weights of the protocol's network to the device; nil where none are given.
func (o *Options) openPerceptual(device *pipeline.Device) (*perceptual, error) {
	if o.Weights == "" {
		return nil, nil
	}
	p := ProtocolOf(o.Protocol)
	w, err := metric.ReadLPIPSWeights(o.Weights, p.net)
	if err != nil {
		return nil, err
	}
	net, err := pipeline.NewLPIPS(device, w, lpips.Options{Normalize: p.normalize, Smaller: o.Config.Smaller})
	if err != nil {
		return nil, err
	}
	return &perceptual{net, w.SHA256}, nil
}

func (p *perceptual) Close() error {
	if p == nil {
		return nil
	}
	return p.net.Close()
}

// planPerceptual finds what drawing a job's model takes of the device, which LPIPS must leave, and refuses models that
// it would leave too little.
func (j *Job) planPerceptual(device *pipeline.Device) error {
	if j.o.Weights == "" {
		return nil
	}
	var info splatfile.Info // of no splats: the pictures are there
	if j.renders == nil {
		model, err := splatfile.Open(j.file)
		if err != nil {
			return err
		}
		info = model.Info()
		if err := model.Close(); err != nil {
			return err
		}
	}
	var err error
	if j.beside, err = device.PlanLPIPS(ProtocolOf(j.o.Protocol).net, info.N, info.Degree, j.cams,
		j.o.Config.Smaller); err != nil {
		err = fmt.Errorf("measure %s: %w", j.name, err)
	}
	return err
}

// use has a job's pictures measured by p as well, in memory that is taken before the job takes its own. What a mask
// leaves out is the photo in both.
func (p *perceptual) use(j *Job) error {
	if p == nil {
		return nil
	}
	if err := p.net.Reserve(j.cams, j.beside); err != nil {
		return err
	}
	j.Result.Weights = p.sha256
	j.scorer.lpips = func(shot scene.Image, render []float32, mask []uint32) (float64, error) {
		want, got := photo.FloatRGB(shot), render
		if mask != nil {
			got = append([]float32(nil), render...)
			for i := range shot.Width * shot.Height {
				if mask[i/32]>>(i%32)&1 == 0 {
					copy(got[3*i:3*i+3], want[3*i:3*i+3])
				}
			}
		}
		score, err := p.net.Score(want, got, shot.Width, shot.Height)
		if errors.Is(err, pipeline.ErrDiverged) {
			return 0, fmt.Errorf("the rendering is not a picture: %w", err)
		}
		return score, err
	}
	return nil
}
