package train

import (
	"context"
	"errors"
	"fmt"
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

// setup prepares what trains, as the capture and the memory allow.
type setup struct {
	*Options
	*notes
	*dataset
	*machine
	prev *previous
}

// equip plans what memory is used for, opens the cache of photos and makes the trainer.
func (r *Run) equip(ctx context.Context) error {
	cams, err := r.trainedCameras(1 + len(r.others))
	if err != nil {
		return err
	}
	options := pipeline.TrainerOptions{
		Interludes: r.control.between, Others: r.others, Depths: r.depths,
		Pictures: captured.Pick(r.Capture.Cameras, r.Test), Decode: r.decodedCameras(cams), PhotoBytes: r.PhotoVRAM,
		Strict: r.Load.Strict, Warn: r.Console.Warn,
		HeldBytes: int64(len(r.points))*filePointBytes + drawBytes(r.Options, r.Capture.Cameras),
		LoadBytes: int64(len(r.points)) * loadedPointBytes, OnPressure: r.saver.onPressure,
	}
	options.Shell = r.shell
	if r.Config.Appearance() {
		options.Photos, r.takers = photoStarts(r.training.Cameras)
	}
	options.Known, options.Normals = r.known.trainedDepths(r.Capture.Frame), r.known.trainedNormals()
	if err := firstOf(refineRules(r.Options, r.Capture.Cameras, 1+len(r.others))); err != nil {
		return err
	}
	options.Anchors, options.OnTrial = r.known.trainedAnchors(r.Capture.Frame), noteTrial(r.Console)
	refined, err := r.refinedBytes()
	if err != nil {
		return err
	}
	options.HeldBytes += witnessBytes(&options) + refined
	options.LoadBytes += witnessBytes(&options) + r.Load.MadeBytes()
	splats, err := r.setup.planStart(cams, &options)
	if err != nil {
		return err
	}
	var init *scene.Splats
	if r.prev.from == nil {
		if init, err = r.setup.firstSplats(ctx, cams, splats, &options); err != nil {
			return err
		}
	}
	r.training.Points = nil // they have done their work
	r.apply(planRules(r.Options, r.plan, r.prev.from != nil, r.device.MemorySetting()))
	switch {
	case r.DryRun && r.prev.from != nil:
		_, err := r.prev.compare(r.record(&r.id).Capture)
		return err
	case r.DryRun:
		return r.limit.predict(ctx, cams, init, options)
	}
	if err := r.setup.openPhotos(ctx, cams); err != nil {
		return err
	}
	return r.makeTrainer(ctx, cams, init, options)
}

// witnessBytes is the memory of known poses, depths and normals.
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
func (s *setup) planStart(cams []scene.Camera, o *pipeline.TrainerOptions) (splats int, err error) {
	if from := s.prev.from; from != nil {
		splats, o.Ceiling = from.Header.Splats, from.Ceiling(s.Config)
	} else {
		if splats, err = initial.Count(s.training, s.initOptions()); err != nil {
			return 0, err
		}
		switch made := int64(splats - len(s.training.Points)); {
		case s.Init.Kind == initial.InitPLY:
			o.LoadBytes += int64(splats) * splatBytes(scene.MaxSHDegree)
		case s.Init.Kind == initial.InitRandom:
			o.LoadBytes += int64(splats) * loadedPointBytes
		case made > 0:
			o.LoadBytes += made * loadedPointBytes
		}
		if s.Init.Grid > 0 {
			splats = 1
		}
	}
	if s.Devices == devicesAuto && s.Init.Grid == 0 {
		if err = s.chooseDevices(cams, splats, o, s.prev.from); err != nil {
			return 0, err
		}
	}
	if err = s.makePlan(cams, splats, *o); err == nil && s.prev.from == nil && s.Init.Grid == 0 {
		err = s.plan.Check(s.Config, splats)
	}
	return splats, err
}

// firstSplats makes the first splats. Where they are not as many as planned, memory is planned for them.
func (s *setup) firstSplats(ctx context.Context, cams []scene.Camera, planned int,
	o *pipeline.TrainerOptions) (*scene.Splats, error) {
	s.console.LimitHeap(s.plan.HeapLimit())
	init, err := initial.Splats(ctx, s.training, s.initOptions())
	if err != nil {
		return nil, err
	}
	if err := models.CheckNear(s.Config.Near, init, s.training.Cameras); err != nil {
		return nil, err
	}
	if s.Init.Kind == initial.InitPLY {
		s.warnInitFrame(init)
	}
	if s.Init.Grid > 0 && s.Devices == devicesAuto {
		if err := s.chooseDevices(cams, init.N, o, nil); err != nil {
			return nil, err
		}
	}
	if init.N != planned {
		if err := s.makePlan(cams, init.N, *o); err != nil {
			return nil, err
		}
		if err := s.plan.Check(s.Config, init.N); err != nil {
			return nil, err
		}
	}
	if c := &s.Config; s.splatsFollow() && c.Strategy == recipe.StrategyMCMC && init.N > c.Splats {
		s.noteLater(fmt.Sprintf("starting from %d of %s: this recipe's limit for this capture (raise it with %s)",
			c.Splats, cli.Count(init.N, "point"), fault.Setting("splats")))
	}
	return init, nil
}

// makeTrainer makes the trainer, in a run with a time limit for the steps that it has time for.
func (r *Run) makeTrainer(ctx context.Context, cams []scene.Camera, init *scene.Splats,
	o pipeline.TrainerOptions) (err error) {
	if err := r.limit.chooseSteps(ctx, &rehearsal{r: &r.limit, cams: cams, init: init, options: o}); err != nil {
		return err
	}
	if r.prev.from != nil {
		r.Trainer, err = r.prev.resume(&r.machine, cams, r.record(&r.id).Capture, o)
	} else {
		r.Trainer, err = pipeline.NewTrainer(r.device, cams, r.photos, init, r.Capture.SceneScale, r.Config, o)
	}
	if err != nil {
		return err
	}
	r.saver.trainer = r.Trainer
	return r.limit.keepLimit()
}

// openPhotos opens the cache of decoded photos.
func (s *setup) openPhotos(ctx context.Context, cams []scene.Camera) (err error) {
	s.console.LimitHeap(s.plan.HeapLimit())
	if s.Load.Strict {
		if err := s.decodable(ctx, s.decodedCameras(cams)); err != nil {
			return err
		}
	}
	cache := s.plan.Host.PhotoCache(cams)
	cache.SpillDir, cache.SpillBytes, cache.Warn = s.ImageCache, s.ImageCacheBytes, s.console.Warn
	cache.Decode = s.lookingForBlack()
	if cache.Bytes, err = s.cacheBytes(cache); err != nil {
		return err
	}
	s.photos, err = photos.NewCache(cache)
	return err
}

// lookingForBlack decodes photos and reports the first black one. What else inspect finds in pixels takes longer than
// training should wait.
func (s *setup) lookingForBlack() func([]scene.Camera) ([]scene.Image, []error) {
	var once sync.Once
	return func(cams []scene.Camera) ([]scene.Image, []error) {
		images, errs := photo.DecodeViews(cams)
		for i := range images {
			if errs[i] == nil && inspect.Dark(&images[i]) {
				once.Do(func() {
					s.console.Warn(fmt.Sprintf("photo %s is black, and others may be (%s lists them)",
						cams[i].Name, fault.Command("inspect "+cli.Quoted(s.Capture.Root))))
				})
			}
		}
		return images, errs
	}
}

// initOptions says what the first splats are made from.
func (s *setup) initOptions() initial.Options {
	o := s.Init
	o.Model, o.Warn = s.openInit, s.warnLater
	o.Opacity, o.Scale, o.Seed = s.Config.InitOpacity, s.Config.InitScale, s.Config.Seed
	if o.Kind == initial.InitPLY { // else degree 0: the rest of the colours is zero, and the model makes room for it
		o.Degree = s.Config.SHDegree
	}
	return o
}

// openInit reads a model to begin with, of any format.
func (s *setup) openInit(file string) (int, func() (*scene.Splats, ply.Meta, error), error) {
	model, err := splatfile.Open(file)
	if errors.Is(err, splatfile.ErrUnknown) {
		err = fault.WithHint(err, "name a PLY or LAS file of points, or a model of a format that "+
			fault.Command("convert")+" reads")
	}
	if err != nil {
		return 0, nil, err
	}
	for _, note := range model.Info().Notes {
		s.warnLater(file + ": " + note)
	}
	return model.Info().N, func() (*scene.Splats, ply.Meta, error) {
		splats, info, err := models.Read(file)
		return splats, info.Meta, err
	}, model.Close()
}

// decodable decodes every photo once, so that --strict finds out before the training and not in the middle of it.
func (s *setup) decodable(ctx context.Context, cams []scene.Camera) error {
	photos, err := photos.NewCache(s.plan.Host.PhotoCache(cams))
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

// splatBytes is the most memory per splat of a file while it is brought to the training frame.
func splatBytes(degree int) int64 { return 4 * (11 + 6 + 2*3*int64(scene.SHCoefficients(degree))) }

// cacheBytes returns the bytes of the photos' cache: what was planned or asked for.
func (s *setup) cacheBytes(planned photos.Options) (int64, error) {
	if s.PhotoRAM == 0 {
		return planned.Bytes, nil
	}
	if s.PhotoRAM > planned.Bytes {
		return 0, fault.Usagef("give less, or raise "+fault.Setting("max-ram"),
			"%s: %s, the plan has %s for decoded photos", fault.Named("photo-ram"), pipeline.BytesText(s.PhotoRAM),
			pipeline.BytesText(planned.Bytes))
	}
	if least := planned.LargestPhoto(); s.PhotoRAM < least {
		return 0, fault.Usagef(fmt.Sprintf("give %d or more", least),
			"%s: %s, the largest photo takes %s", fault.Named("photo-ram"), pipeline.BytesText(s.PhotoRAM),
			pipeline.BytesText(least))
	}
	return s.PhotoRAM, nil
}
