package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/pipeline"
	"vksplat/scene"
)

// maxPSNR stands for a render that equals its photo, whose PSNR is infinite.
const maxPSNR = 100

// picturesFolder is where the pictures of held-out photos go.
func (r *trainRun) picturesFolder(step int) string {
	return filepath.Join(r.out, "test", "ours_"+strconv.Itoa(step))
}

// measure evaluates the model after step, unless that has been done, and records
// the scores. The trainer draws, which takes no more memory, unless a held-out
// photo is larger than those that it was made for: then model is asked for a copy.
func (r *trainRun) measure(step int, model func() (*scene.Splats, error), seen func(photo scene.Image, render []float32)) (views []scene.ViewScore, err error) {
	if done := r.rec.metrics.scores(); r.rec.metrics.evaluated(step) {
		return done[len(done)-1].Views, nil
	}
	draw, cams := r.trainer.Render, pick(r.capture.Cameras, r.test)
	if slices.ContainsFunc(cams, r.exceeds) {
		s, err := model()
		if err != nil {
			return nil, err
		}
		c := r.config
		renderer, err := pipeline.NewRenderer(r.device, s, cams, pipeline.RenderConfig{Background: c.Background, Antialiased: c.Antialiased, Near: c.Near})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, renderer.Close()) }()
		draw = renderer.Render
	}
	if views, err = r.evaluate(step, draw, seen); err != nil {
		return nil, err
	}
	r.rec.eval(step, views)
	return views, scene.WriteResults(r.out, r.rec.metrics.scores())
}

// exceeds reports whether a photo does not fit into any that was trained on.
func (r *trainRun) exceeds(cam scene.Camera) bool {
	return !slices.ContainsFunc(r.train, func(id int) bool {
		c := &r.capture.Cameras[id]
		return cam.Width <= c.Width && cam.Height <= c.Height
	})
}

// evaluate renders every held-out photo's view, measures it against the photo
// and writes both side by side.
func (r *trainRun) evaluate(step int, draw func(scene.Camera) ([]float32, error), seen func(photo scene.Image, render []float32)) ([]scene.ViewScore, error) {
	cams := pick(r.capture.Cameras, r.test)
	files := pictureNames(cams)
	views := make([]scene.ViewScore, len(cams))
	for i, cam := range cams {
		photo := r.images[r.test[i]].Over(r.config.Background)
		render, err := draw(cam)
		if err != nil {
			return nil, err
		}
		mask := photo.Mask
		if r.config.Exposure {
			// Nobody learnt this photo's exposure: it is fitted on the left half and the right half is measured, the halves of NeRF in the Wild
			// (Martin-Brualla et al. 2021) and of INRIA's train_test_exp.
			render = scene.ApplyExposure(scene.FitExposure(render, scene.FloatRGB(photo), cam.Width, cam.Height, mask), render)
			mask = scene.RightHalf(mask, cam.Width, cam.Height)
		}
		clamp01(render)
		if views[i], err = score(cam, photo, render, mask); err != nil {
			return nil, err
		}
		if err := writePicture(filepath.Join(r.picturesFolder(step), files[i]), func(path string) error {
			return scene.WriteSheet(path, photo, render)
		}); err != nil {
			return nil, err
		}
		r.rec.view(step, i, cam.Name, photo, render)
		if seen != nil {
			seen(photo, render)
		}
	}
	return views, nil
}

// score compares a render, clamped to 0..1, with its photo where mask says so.
func score(cam scene.Camera, photo scene.Image, render []float32, mask []uint32) (scene.ViewScore, error) {
	want := scene.FloatRGB(photo)
	psnr, err := scene.PSNR(render, want, mask)
	if err != nil {
		return scene.ViewScore{}, fmt.Errorf("measure %q: %w", cam.Name, err)
	}
	ssim, err := scene.SSIM(render, want, cam.Width, cam.Height, scene.PaddingValid, mask)
	if err != nil {
		return scene.ViewScore{}, fmt.Errorf("measure %q: %w", cam.Name, err)
	}
	return scene.ViewScore{Name: cam.Name, PSNR: min(psnr, maxPSNR), SSIM: ssim}, nil
}

func clamp01(x []float32) {
	for i, v := range x {
		x[i] = min(max(v, 0), 1)
	}
}

// writePicture makes the folder of a picture and writes it.
func writePicture(path string, write func(path string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return write(path)
}

// pictureNames returns for each camera the relative path of its picture: the
// photo's name with the extension .png, folders kept. Photos that differ in the
// extension alone keep theirs in front of .png. No path leaves the folder it is
// joined to, whatever the capture says.
func pictureNames(cams []scene.Camera) []string {
	stem := func(name string) string {
		clean := path.Clean("/" + filepath.ToSlash(name))[1:]
		return strings.TrimSuffix(clean, path.Ext(clean))
	}
	count := map[string]int{}
	for _, c := range cams {
		count[strings.ToLower(stem(c.Name))]++
	}
	names := make([]string, len(cams))
	for i, c := range cams {
		s := stem(c.Name)
		if count[strings.ToLower(s)] > 1 || s == "" || strings.HasSuffix(s, "/") {
			s = path.Clean("/" + filepath.ToSlash(c.Name))[1:]
		}
		names[i] = filepath.FromSlash(s + ".png")
	}
	return names
}
