package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/pipeline"
	"vksplat/scene"
)

// maxPSNR stands for a render that equals its photo, whose PSNR is infinite.
const maxPSNR = 100

// picturesFolder is where the pictures of held-out photos go.
func (r *trainRun) picturesFolder(step int) string {
	return filepath.Join(r.out, pictureFolder+strconv.Itoa(step))
}

// measure evaluates the model after step, unless that has been done, and records the scores. Files of scores are written in any case: a run that was
// killed may have left them behind what it recorded. Where ctx is cancelled meanwhile there are no scores, and r.unmeasured is set.
func (r *trainRun) measure(ctx context.Context, step int, seen func(photo scene.Image, render []float32)) (views []scene.ViewScore, err error) {
	r.saver.startOver()
	if ctx.Err() != nil { // Ctrl-C has stopped the training; what was trained is measured all the same
		ctx = context.Background()
	} else {
		defer r.during(stageMeasuring)()
	}
	if views = r.measured(step); views == nil {
		if views, err = r.evaluate(ctx, step, seen); err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			r.unmeasured, err = true, nil
		}
		if err != nil {
			return nil, err
		}
		if len(views) == 0 {
			return nil, nil
		}
		r.rec.eval(step, views)
	}
	return views, scene.WriteResults(r.out, protocolGsplat, r.rec.metrics.scores())
}

// measured returns the scores of an evaluation of step that an earlier process recorded, nil where one of its pictures is not there.
func (r *trainRun) measured(step int) []scene.ViewScore {
	views := r.rec.metrics.evaluated(step)
	files := r.pictureFiles()
	for _, v := range views {
		if file, known := files[v.Name]; !known || !isFile(filepath.Join(r.picturesFolder(step), file)) {
			return nil
		}
	}
	return views
}

// evaluate renders every held-out photo's view, measures it against the photo
// and writes both side by side. The device draws while the cores compare and
// write the pictures before, and decode the photos that come next.
func (r *trainRun) evaluate(ctx context.Context, step int, seen func(photo scene.Image, render []float32)) (views []scene.ViewScore, err error) {
	cams := pick(r.capture.Cameras, r.test)
	if r.photos != nil {
		r.photos.Empty() // its memory is lent to the photos of this evaluation
	}
	r.plan.Limit()
	cache, atOnce := r.plan.Host.Measuring(cams)
	photos, err := pipeline.NewPhotoCache(cache)
	if err != nil {
		return nil, err
	}
	defer photos.Close()
	order := make([]int, len(cams))
	for i := range order {
		order[i] = i
	}
	photos.Expect(order)
	e := &evaluation{run: r, step: step, photos: photos, seen: seen, files: pictureNames(cams), atOnce: atOnce, thumbs: &thumbnails{step: step}}
	for i, cam := range cams {
		if err = ctx.Err(); err == nil {
			err = e.add(ctx, i, cam)
		}
		if err != nil {
			break
		}
	}
	if failed := e.drain(0); failed != nil {
		if ctx.Err() == nil {
			failed = errors.Join(err, failed)
		}
		err = failed // worth more than that the user stopped
	}
	if err != nil {
		return nil, err
	}
	if len(e.views) == 0 {
		r.app.warn("no held-out photo has pixels to compare with: nothing is measured")
	}
	r.thumbs = e.thumbs
	return e.views, nil
}

// evaluation is one round over the held-out photos.
type evaluation struct {
	run    *trainRun
	step   int
	photos *pipeline.PhotoCache
	seen   func(photo scene.Image, render []float32)
	files  []string // of the pictures, by camera
	atOnce int      // pictures in memory
	flying []*comparison
	spare  [][]float32 // memory of renders that are done with
	views  []scene.ViewScore
	thumbs *thumbnails
}

// comparison is a picture that is compared with its photo and written.
type comparison struct {
	index  int
	cam    scene.Camera
	photo  scene.Image
	render []float32
	done   chan struct{} // closed once the rest is set

	view  scene.ViewScore
	thumb *reportPicture
	sheet *boardPicture
	err   error
}

// add draws the view of camera i and has it compared. What there is of earlier pictures makes room first.
func (e *evaluation) add(ctx context.Context, i int, cam scene.Camera) error {
	if err := e.drain(e.atOnce - 1); err != nil {
		return err
	}
	r := e.run
	photo, err := e.photos.Photo(ctx, i)
	if errors.Is(err, scene.ErrData) && !r.load.strict {
		r.app.warn(fmt.Sprintf("held-out photo %s is not measured: %v", cam.Name, err))
		return nil
	}
	if err != nil {
		return err
	}
	var memory []float32
	if n := len(e.spare); n > 0 {
		memory, e.spare = e.spare[n-1], e.spare[:n-1]
	}
	render, err := r.trainer.RenderInto(memory, cam)
	if err != nil {
		return err
	}
	c := &comparison{index: i, cam: cam, photo: photo, render: render, done: make(chan struct{})}
	e.flying = append(e.flying, c)
	go func() {
		defer close(c.done)
		c.err = e.compare(c)
	}()
	return nil
}

// compare scores a picture, writes it, and makes what else is shown of it.
func (e *evaluation) compare(c *comparison) (err error) {
	r := e.run
	c.photo = c.photo.Over(r.config.Background)
	var mask []uint32
	c.render, mask = r.comparable(c.cam, c.photo, c.render)
	if c.view, err = score(c.cam, c.photo, c.render, mask); err != nil {
		return err
	}
	if err := writePicture(filepath.Join(r.picturesFolder(e.step), e.files[c.index]), func(path string) error {
		return scene.WriteSheet(path, c.photo, c.render)
	}); err != nil {
		return err
	}
	if r.rec.boards(c.index) {
		if c.sheet, err = newBoardPicture(c.photo, c.render); err != nil {
			return err
		}
	}
	if r.report {
		made := scene.FromFloats(c.render, c.photo.Width, c.photo.Height)
		c.thumb, err = newReportPicture(c.cam.Name, c.photo.Fit(reportSide), made.Fit(reportSide))
	}
	return err
}

// drain takes in pictures, in the order of the photos, until at most so many are left.
func (e *evaluation) drain(left int) (err error) {
	for len(e.flying) > left {
		c := e.flying[0]
		e.flying = e.flying[1:]
		<-c.done
		if c.err != nil {
			err = errors.Join(err, c.err)
			continue
		}
		e.views = append(e.views, c.view)
		e.run.rec.view(e.step, c.cam.Name, c.sheet)
		if e.seen != nil {
			e.seen(c.photo, c.render)
		}
		e.thumbs.add(c.thumb, c.view)
		e.spare = append(e.spare, c.render)
		e.photos.Release(c.index)
	}
	return err
}

// comparable returns a render as it is compared with its photo, clamped to 0..1, and the pixels that count.
func (r *trainRun) comparable(cam scene.Camera, photo scene.Image, render []float32) ([]float32, []uint32) {
	mask := photo.Mask
	if r.config.Exposure {
		// Nobody learnt this photo's exposure: it is fitted on the left half and the right half is measured, the halves of NeRF in the Wild
		// (Martin-Brualla et al. 2021) and of INRIA's train_test_exp.
		render = scene.ApplyExposure(scene.FitExposure(render, scene.FloatRGB(photo), cam.Width, cam.Height, mask), render)
		mask = scene.RightHalf(mask, cam.Width, cam.Height)
	}
	clamp01(render)
	return render, mask
}

// score compares a render, clamped to 0..1, with its photo where mask says so.
func score(cam scene.Camera, photo scene.Image, render []float32, mask []uint32) (scene.ViewScore, error) {
	psnr, ssim, err := scene.Compare(photo, render, scene.PaddingValid, mask)
	if err != nil {
		return scene.ViewScore{}, fmt.Errorf("measure %q: %w", cam.Name, err)
	}
	return scene.ViewScore{Name: cam.Name, PSNR: min(psnr, maxPSNR), SSIM: ssim}, nil
}

// pictureFiles returns by the name of each held-out photo where its picture is in picturesFolder.
func (r *trainRun) pictureFiles() map[string]string {
	files := map[string]string{}
	cams := pick(r.capture.Cameras, r.test)
	for i, name := range pictureNames(cams) {
		files[cams[i].Name] = name
	}
	return files
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
		names[i] = filepath.FromSlash(s + pictureSuffix)
	}
	return names
}
