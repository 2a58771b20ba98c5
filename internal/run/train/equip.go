package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/models"
	"vksplat/pipeline"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/initial"
	"vksplat/scene/inspect"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
	"vksplat/scene/splatfile"
)

// equip plans what memory is used for, opens the cache of photos and makes the trainer.
func (r *Run) equip(ctx context.Context) error {
	cams, err := r.trainedCameras()
	if err != nil {
		return err
	}
	options := pipeline.TrainerOptions{
		Interludes: r.interludes(), Others: r.others, Depths: r.depths,
		Pictures: captured.Pick(r.Capture.Cameras, r.Test), Decode: r.decodedCameras(cams), PhotoBytes: r.PhotoVRAM,
		Strict: r.Load.Strict, Warn: r.Console.Warn,
		HeldBytes: int64(len(r.points))*filePointBytes + r.viewerBytes() + r.preview.pictureBytes(),
		LoadBytes: int64(len(r.points)) * loadedPointBytes, OnPressure: r.saver.pressed,
	}
	options.Shell = r.shell
	if r.Config.Appearance() {
		options.Photos, r.takers = photoStarts(r.training.Cameras)
	}
	options.Known, options.Normals = r.trainedDepths(), r.trainedNormals()
	if err := r.refusePoses(); err != nil {
		return err
	}
	options.Anchors, options.OnTrial = r.trainedAnchors(), r.tellTrial
	options.HeldBytes += witnessBytes(&options)
	options.LoadBytes += witnessBytes(&options)
	splats, err := r.planStart(cams, &options)
	if err != nil {
		return err
	}
	var init *scene.Splats
	if r.saver.from == nil {
		if init, err = r.firstSplats(ctx, cams, splats, &options); err != nil {
			return err
		}
	}
	r.training.Points = nil // they have done their work
	r.warnPlan()
	switch {
	case r.DryRun && r.saver.from != nil:
		_, err := r.saver.compare(r.record().Capture)
		return err
	case r.DryRun:
		return r.predict(ctx, cams, init, options)
	}
	if err := r.openPhotos(ctx, cams); err != nil {
		return err
	}
	return r.makeTrainer(ctx, cams, init, options)
}

// witnessBytes is what is kept of known poses, depths and normals.
func witnessBytes(o *pipeline.TrainerOptions) (n int64) {
	for _, list := range o.Anchors {
		n += anchorBytes * int64(cap(list))
	}
	for _, list := range o.Known {
		n += knownDepthBytes * int64(cap(list))
	}
	for i := range o.Normals {
		n += 4 * int64(len(o.Normals[i].Cells))
	}
	return n
}

// planStart plans memory for as many splats as training begins with, which it returns. None is made before that: where
// they are too many, the run is refused at once. With a grid their number is not known yet, and the plan is for one.
func (r *Run) planStart(cams []scene.Camera, o *pipeline.TrainerOptions) (splats int, err error) {
	if from := r.saver.from; from != nil {
		splats, o.Ceiling = from.Header.Splats, from.Ceiling(r.Config)
	} else {
		if splats, err = initial.Count(r.training, r.initOptions()); err != nil {
			return 0, err
		}
		switch made := int64(splats - len(r.training.Points)); {
		case r.Init.Kind == initial.InitPLY:
			o.LoadBytes += int64(splats) * splatBytes(scene.MaxSHDegree)
		case r.Init.Kind == initial.InitRandom:
			o.LoadBytes += int64(splats) * loadedPointBytes
		case made > 0:
			o.LoadBytes += made * loadedPointBytes
		}
		if r.Init.Grid > 0 {
			splats = 1
		}
	}
	if r.Devices == devicesAuto && r.Init.Grid == 0 {
		if err = r.chooseDevices(cams, splats, o); err != nil {
			return 0, err
		}
	}
	if err = r.makePlan(cams, splats, *o); err == nil && r.saver.from == nil && r.Init.Grid == 0 {
		err = r.plan.Check(r.Config, splats)
	}
	return splats, err
}

// firstSplats makes the first splats. Where they are not as many as planned, memory is planned for them.
func (r *Run) firstSplats(ctx context.Context, cams []scene.Camera, planned int,
	o *pipeline.TrainerOptions) (*scene.Splats, error) {
	r.Console.LimitHeap(r.plan.HeapLimit())
	init, err := initial.Splats(ctx, r.training, r.initOptions())
	if err != nil {
		return nil, err
	}
	if err := models.CheckNear(r.Config.Near, init, r.training.Cameras); err != nil {
		return nil, err
	}
	if r.Init.Kind == initial.InitPLY {
		r.warnInitFrame(init)
	}
	if r.Init.Grid > 0 && r.Devices == devicesAuto {
		if err := r.chooseDevices(cams, init.N, o); err != nil {
			return nil, err
		}
	}
	if init.N != planned {
		if err := r.makePlan(cams, init.N, *o); err != nil {
			return nil, err
		}
		if err := r.plan.Check(r.Config, init.N); err != nil {
			return nil, err
		}
	}
	if c := &r.Config; r.follows && c.Strategy == recipe.StrategyMCMC && init.N > c.Splats {
		r.noteLater(fmt.Sprintf("starting from %d of %s: this recipe's limit for this capture (raise it with %s)",
			c.Splats, cli.Count(init.N, "point"), fault.Setting("splats")))
	}
	return init, nil
}

// makeTrainer makes the trainer, in a run with a time limit for the steps that it has time for.
func (r *Run) makeTrainer(ctx context.Context, cams []scene.Camera, init *scene.Splats,
	o pipeline.TrainerOptions) (err error) {
	if err := r.chooseSteps(ctx, &rehearsal{r: r, cams: cams, init: init, options: o}); err != nil {
		return err
	}
	if r.saver.from != nil {
		r.Trainer, err = r.saver.resume(cams, o)
	} else {
		r.Trainer, err = pipeline.NewTrainer(r.device, cams, r.photos, init, r.Capture.SceneScale, r.Config, o)
	}
	if err != nil {
		return err
	}
	return r.keepLimit()
}

// openPhotos opens the cache of decoded photos.
func (r *Run) openPhotos(ctx context.Context, cams []scene.Camera) (err error) {
	r.Console.LimitHeap(r.plan.HeapLimit())
	if r.Load.Strict {
		if err := r.decodable(ctx, r.decodedCameras(cams)); err != nil {
			return err
		}
	}
	cache := r.plan.Host.PhotoCache(cams)
	cache.SpillDir, cache.SpillBytes, cache.Warn = r.ImageCache, r.ImageCacheBytes, r.Console.Warn
	cache.Decode = r.lookingForBlack()
	if cache.Bytes, err = r.cacheBytes(cache); err != nil {
		return err
	}
	r.photos, err = photos.NewCache(cache)
	return err
}

// lookingForBlack decodes photos and tells of the first black one. What else inspect finds in pixels takes longer than
// training should wait.
func (r *Run) lookingForBlack() func([]scene.Camera) ([]scene.Image, []error) {
	var once sync.Once
	return func(cams []scene.Camera) ([]scene.Image, []error) {
		images, errs := photo.DecodeViews(cams)
		for i := range images {
			if errs[i] == nil && inspect.Dark(&images[i]) {
				once.Do(func() {
					r.Console.Warn(fmt.Sprintf("photo %s is black, and others may be (%s lists them)",
						cams[i].Name, fault.Command("inspect "+cli.Quoted(r.Capture.Root))))
				})
			}
		}
		return images, errs
	}
}

// warnPlan warns of a model that cannot become as large as was asked for, and of a cache that holds nothing. A run that
// goes on was told at its start.
func (r *Run) warnPlan() {
	if r.PhotoVRAM > 0 && r.plan.Device.PhotoFits == 0 {
		r.warnLater(fmt.Sprintf("%s %s holds no photo: each is copied to the device for its step",
			fault.Setting("photo-vram"), pipeline.BytesText(r.PhotoVRAM)))
	}
	if r.plan.Shares != nil {
		r.noteLater("the devices have unequal memory: the model may grow to " + cli.SharesText(r.plan.Shares) +
			" splats on them")
	}
	asked, most := r.Config.MaxSplats, r.plan.Ceiling
	if r.saver.from != nil || r.Config.Splats > 0 || most >= asked ||
		r.Config.Refinements() == 0 && r.by != nil && !r.known("max-splats") {
		return
	}
	r.warnLater(fmt.Sprintf("memory has room for %s, fewer than %s %d: the model stops growing there (raise %s, use "+
		"smaller photos with %s, or %s mixed)", cli.Count(most, "splat"), fault.Setting("max-splats"), asked,
		fault.Setting(r.device.MemorySetting()), fault.Setting("downscale"), fault.Setting("precision")))
}

// initOptions says what the first splats are made from.
func (r *Run) initOptions() initial.Options {
	o := r.Init
	o.Model, o.Warn = r.openInit, r.warnLater
	o.Opacity, o.Scale, o.Seed = r.Config.InitOpacity, r.Config.InitScale, r.Config.Seed
	if o.Kind == initial.InitPLY { // else degree 0: the rest of the colours is zero, and the model makes room for it
		o.Degree = r.Config.SHDegree
	}
	return o
}

// openInit reads a model to begin with, of any format.
func (r *Run) openInit(file string) (int, func() (*scene.Splats, ply.Meta, error), error) {
	model, err := splatfile.Open(file)
	if errors.Is(err, splatfile.ErrUnknown) {
		err = fault.WithHint(err, "name a PLY or LAS file of points, or a model of a format that "+
			fault.Command("convert")+" reads")
	}
	if err != nil {
		return 0, nil, err
	}
	for _, note := range model.Info().Notes {
		r.warnLater(file + ": " + note)
	}
	return model.Info().N, func() (*scene.Splats, ply.Meta, error) {
		splats, info, err := models.Read(file)
		return splats, info.Meta, err
	}, model.Close()
}

// decodedCameras lists the cameras that photos are decoded for: those that are trained on, which may see their photos
// as taken, and of the other photos those of the capture. [n_cameras]
func (r *Run) decodedCameras(trained []scene.Camera) []scene.Camera {
	cams := slices.Clone(r.Capture.Cameras)
	for i, id := range r.Train {
		cams[id] = trained[i]
	}
	return cams
}

// decodable decodes every photo once, so that --strict finds out before the training and not in the middle of it.
func (r *Run) decodable(ctx context.Context, cams []scene.Camera) error {
	photos, err := photos.NewCache(r.plan.Host.PhotoCache(cams))
	if err != nil {
		return err
	}
	order := make([]int, len(cams))
	for i := range order {
		order[i] = i
	}
	photos.Expect(order)
	for i := 0; i < len(order) && err == nil; i++ {
		if _, err = photos.Photo(ctx, i); err == nil {
			photos.Release(i)
		}
	}
	return errors.Join(err, photos.Close())
}

// What a point takes in RAM, in bytes: while the model is trained, and at most before that, when the first splats are
// made (load.TestLoadingFootprint).
const (
	filePointBytes   = 16
	anchorBytes      = 40 // of a photo's pose
	loadedPointBytes = 160
)

// splatBytes is what a splat of a file takes at most while it is brought to the training frame.
func splatBytes(degree int) int64 { return 4 * (11 + 6 + 2*3*int64(scene.SHCoefficients(degree))) }

// cacheBytes returns the bytes of the photos' cache: what was planned or asked for.
func (r *Run) cacheBytes(planned photos.Options) (int64, error) {
	if r.PhotoRAM == 0 {
		return planned.Bytes, nil
	}
	if r.PhotoRAM > planned.Bytes {
		return 0, fault.Usagef("give less, or raise "+fault.Setting("max-ram"),
			"%s: %s, the plan has %s for decoded photos", fault.Named("photo-ram"), pipeline.BytesText(r.PhotoRAM),
			pipeline.BytesText(planned.Bytes))
	}
	if least := planned.LargestPhoto(); r.PhotoRAM < least {
		return 0, fault.Usagef(fmt.Sprintf("give %d or more", least),
			"%s: %s, the largest photo takes %s", fault.Named("photo-ram"), pipeline.BytesText(r.PhotoRAM),
			pipeline.BytesText(least))
	}
	return r.PhotoRAM, nil
}
