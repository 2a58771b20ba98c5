package capture

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/internal/run/reconstruct"
	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/mapping"
	"vksplat/scene/pairs"
	"vksplat/scene/photo"
)

// Files of this program's own stages. No other program reads them: a build that makes other features counts ownVersion
// up, so that they are made again.
const (
	listFile     = captured.CaptureList
	featuresFile = "features.bin"
	matchesFile  = "matches.bin"
	notesFile    = captured.NotesFile // in componentsFolder, or extendedFolder
	ownVersion   = "3"
)

// own finds features, matches and cameras by this program's own means.
type own struct {
	*mapper
	photos []reconstruct.Photo
	device *pipeline.Device // opened when a stage needs it

	found []reconstruct.Features // nil: they are in the file
	pairs []mapping.Pair
}

// choosesOwn reports whether this program finds the cameras: where nothing is asked for that COLMAP alone has, and
// COLMAP has not begun.
func (o *Options) choosesOwn() bool {
	if o.More {
		return true
	}
	if o.Mapper != Auto {
		return o.Mapper == MapOwn
	}
	_, err := os.Lstat(o.in(databaseFile))
	return o.ofColmap() == "" && (err != nil || o.Rig)
}

// ofColmap names a setting that COLMAP alone has, "" for none.
func (o *Options) ofColmap() string {
	switch {
	case o.CameraModel != Auto && o.CameraModel != Panorama && !adjustable(o.CameraModel):
		return "camera-model"
	case o.Mapper == MapIncremental || o.Mapper == MapGlobal:
		return "mapper"
	}
	return ""
}

// adjustable reports whether this program finds all numbers of a lens model.
func adjustable(name string) bool {
	m, ok := scene.LensModelByName(name)
	return ok && m.Calibrated() == m.NumParams()
}

// ready opens the device before photos are gone through, unless what it is for is done.
func (w *own) ready() error {
	if output.IsFile(w.o.in(matchesFile)) && !w.o.More {
		return nil
	}
	return w.open()
}

// open opens the device that the stages share.
func (w *own) open() (err error) {
	if w.device != nil {
		return nil
	}
	w.device, err = pipeline.OpenDevice(w.o.Device)
	if errors.Is(err, pipeline.ErrNoDevice) && !errors.Is(err, fault.ErrUsage) { // of which a device was named
		return fault.WithHint(err, "check the GPU's driver with "+fault.Command("doctor")+"; where COLMAP is installed, "+
			fault.Setting("mapper")+" incremental needs no device")
	}
	if err == nil {
		w.console.LimitHeap(w.device.HeapLimit())
		w.console.Printf("%-9s %s\n", "device:", w.device.Name())
	}
	return err
}

func (w *own) close() error {
	if w == nil || w.device == nil {
		return nil
	}
	return w.device.Close()
}

// list makes the photos that cameras are found for.
func (w *own) list() error {
	plan, err := w.planCameras()
	if err != nil {
		return err
	}
	w.photos = nil
	for _, name := range w.mapper.photos {
		p := w.photoOf(name)
		switch folder := path.Dir(name); {
		case plan.share == CamerasOne:
		case plan.share == CamerasFolder || w.o.Cameras == Auto && isFrame(w, name):
			p.Lens = folder
		case w.o.Cameras == CamerasMany:
			p.Lens = name
		default:
			if p.Lens, err = kindOf(p.Path); err != nil {
				return err
			}
			if plan.lenses > 1 && photo.TakenWith(p.Path) == "" { // any of several cameras, or yet another one
				p.Lens += name
			}
		}
		if w.o.Rig {
			p.Moment = momentOf(name)
		}
		w.photos = append(w.photos, p)
	}
	return nil
}

// photoOf is a photo below images, with its mask, but for its lens.
func (w *own) photoOf(name string) reconstruct.Photo {
	p := reconstruct.Photo{Name: name, Path: w.o.in(imagesFolder, filepath.FromSlash(name)), Model: w.o.CameraModel}
	if w.o.Masks != "" || w.o.More {
		if mask := w.o.in(masksFolder, filepath.FromSlash(name)+".png"); output.IsFile(mask) {
			p.Mask = mask
		}
	}
	if isFrame(w, name) || w.sequential() {
		p.Sequence = "in " + path.Dir(name)
	}
	return p
}

// isFrame tells whether a photo is a frame of a video of this call.
func isFrame(w *own, name string) bool {
	return slices.ContainsFunc(w.sources, func(s *source) bool {
		return s.video && path.Join(".", s.folder) == path.Dir(name)
	})
}

// kindOf is the size of a photo and what EXIF says of its lens.
func kindOf(file string) (string, error) {
	width, height, err := photo.Size(file)
	return fmt.Sprintf("%dx%d %s", width, height, photo.TakenWith(file)), err
}

// sequential tells whether photos are to be matched in the order of their names.
func (w *own) sequential() bool { return w.o.Matching == MatchSequential }

func (w *own) findFeatures() error {
	if err := w.list(); err != nil {
		return err
	}
	do := func() (string, error) {
		err := w.find()
		n := 0
		for _, f := range w.found {
			n += len(f.Points)
		}
		return fmt.Sprintf("%s in %s", cli.Count(n, "feature"), cli.Count(len(w.found), "photo")), err
	}
	key := text("own", ownVersion, w.siftOptions(), w.o.CameraModel == Panorama, w.mapper.photos)
	return w.stages.do(stage{name: stageFeatures, key: key, outputs: []string{featuresFile}, do: do})
}

func (w *own) siftOptions() features.Options {
	o := features.Default()
	if w.o.MaxSize > 0 {
		o.Side = w.o.MaxSize
	}
	return o
}

// find finds features and stores them.
func (w *own) find() (err error) {
	if err := w.open(); err != nil {
		return err
	}
	if err := os.RemoveAll(w.o.in(matchesFile)); err != nil { // they may be of other photos
		return output.FolderError(w.o.Out, err)
	}
	w.found, err = w.addFeatures(nil, w.photos)
	return err
}

// addFeatures finds features of photos, and stores them behind those that there are.
func (w *own) addFeatures(known []reconstruct.Features, photos []reconstruct.Photo) ([]reconstruct.Features, error) {
	memory, err := w.fits(len(known) + len(photos))
	if err != nil {
		return nil, err
	}
	limit := w.device.HeapLimit() - int64(len(known)+len(photos))*photoBytes
	if need := reconstruct.PictureBytes(photos); need > limit {
		return nil, w.littleRAM("the largest photo takes", need, limit, "smaller photos")
	}
	w.show.timed()
	err = store(w.o.in(featuresFile), func(put func(piece []byte) error) error {
		n := 0
		add := func(f *reconstruct.Features) error {
			piece, err := pieceOf(f)
			if err != nil {
				return err
			}
			return put(piece)
		}
		for i := range known {
			if err := add(&known[i]); err != nil {
				return err
			}
		}
		return reconstruct.Find(w.ctx, w.device, photos, w.siftOptions(), memory, func(f *reconstruct.Features) error {
			n++
			w.show.update(n, len(photos), "photo %d of %d", n, len(photos))
			return add(f)
		})
	})
	if err != nil {
		return nil, err
	}
	return storedFeatures(w.o.in(featuresFile))
}

// photoBytes is about what a photo takes in RAM until its camera is found, at most while the model is adjusted at last:
// keypoints and colours, and what mapping takes for each of its features, of which a third are observations (measured
// with 500 photos: 152 bytes). All descriptors are on the disk.
const photoBytes = 8192 * (16 + 3 + 152)

// fits refuses more photos than the RAM that may be used holds, and returns how much of it their pictures may take.
func (w *own) fits(photos int) (pictures int64, err error) {
	limit := w.device.HeapLimit()
	if need := int64(photos) * photoBytes; need > limit*3/4 {
		return 0, w.littleRAM(fmt.Sprintf("%d photos need about", photos), need*4/3, limit, "fewer photos")
	}
	return limit / 4, nil
}

// littleRAM is the error of photos that need more RAM than the program leaves of what may be used.
func (w *own) littleRAM(what string, need, limit int64, use string) error {
	return fault.WithHint(fmt.Errorf("find cameras: %w: %s %s of RAM, and %s are left beside the program itself",
		pipeline.ErrLittleRAM, what, pipeline.BytesText(need), pipeline.BytesText(max(limit, 0))), "raise "+
		fault.Setting("max-ram")+", or use "+use)
}

// haveFeatures has features in memory, by what an earlier call stored.
func (w *own) haveFeatures() error {
	if w.found != nil {
		return nil
	}
	if err := reuse(w, featuresFile, &w.found, storedFeatures, w.find); err != nil {
		return err
	}
	w.found = w.found[:min(len(w.found), len(w.photos))] // those of photos that were added later follow
	for i, p := range w.photos {
		if i == len(w.found) || w.found[i].Name != p.Name {
			w.console.Note(w.o.in(featuresFile) + " is made again: it is of other photos")
			return w.find()
		}
	}
	return nil
}

// havePairs has pairs in memory, by what an earlier call stored.
func (w *own) havePairs() error {
	if w.pairs != nil {
		return nil
	}
	err := reuse(w, matchesFile, &w.pairs, storedPairs, w.match)
	w.pairs = slices.DeleteFunc(w.pairs, func(p mapping.Pair) bool { return max(p.A, p.B) >= len(w.photos) })
	return err
}

func (w *own) matchPhotos() error {
	do := func() (string, error) {
		err := w.match()
		return cli.Count(len(w.pairs), "pair"), err
	}
	var lenses []string
	for _, p := range w.photos {
		lenses = append(lenses, p.Lens)
	}
	return w.stages.do(stage{name: stageMatches, key: text("own", ownVersion, w.pairOptions(), lenses, w.o.CameraModel),
		outputs: []string{matchesFile}, do: do})
}

func (w *own) pairOptions() pairs.Options {
	o := pairs.Defaults
	switch {
	case w.o.Matching == MatchAll:
		o.All = len(w.photos)
	case w.sequential():
		o.All = 0
	}
	return o
}

// match matches photos, and stores the pairs.
func (w *own) match() (err error) {
	if err := w.haveFeatures(); err != nil {
		return err
	}
	if w.pairs, err = w.pairsOf(nil); err != nil {
		return err
	}
	return storePairs(w.o.in(matchesFile), w.pairs)
}

// pairsOf matches photos: with fresh, pairs that have one of which it is true.
func (w *own) pairsOf(fresh []bool) ([]mapping.Pair, error) {
	if err := w.open(); err != nil {
		return nil, err
	}
	w.show.timed()
	return reconstruct.Match(w.ctx, w.device, w.photos, w.found, fresh, w.pairOptions(), func(done, of int) {
		w.show.update(done, of, "pair %d of %d", done, of)
	})
}

func (w *own) findCameras() error {
	return w.stages.do(stage{name: stageMapping, key: text("own", ownVersion, w.o.CameraModel, w.o.Rig),
		outputs: []string{componentsFolder}, do: w.place})
}

// place finds cameras, and stores them as the only component, with notes.
func (w *own) place() (string, error) {
	if err := w.haveFeatures(); err != nil {
		return "", err
	}
	if err := w.havePairs(); err != nil {
		return "", err
	}
	m, model, at, err := reconstruct.Map(w.ctx, w.photos, w.found, w.pairs, w.placed, w.growing())
	if errors.Is(err, mapping.ErrNoPair) {
		return "", w.noModel()
	}
	if err != nil {
		return "", err
	}
	dir := w.o.in(componentsFolder, "0")
	if err := colmap.Save(dir, m.Files()); err != nil {
		return "", err
	}
	if w.o.Rig && model.Moments == 0 {
		w.console.Warn("photos of one name are not of cameras that are fixed to each other: each was placed by itself")
	}
	return fmt.Sprintf("%d of %d photos, %s", len(m.Images), len(w.photos), cli.Count(len(m.Points), "point")),
		w.sayMissing(componentsFolder, model.Missing, at)
}

// placed shows how many photos have a camera.
func (w *own) placed(done, of int) {
	w.show.update(done, of, "%d of %d photos have a camera", done, of)
}

// growing shows the model as it grows; nil without a watcher.
func (w *own) growing() reconstruct.Growing {
	if w.o.Watch == nil {
		return nil
	}
	return w.o.Watch.Growing
}

// sayMissing writes notes.
func (w *own) sayMissing(folder string, missing []mapping.Missing, at *reconstruct.Earth) error {
	n := notes{Why: map[string]string{}, Apart: w.apart(missing), Earth: at}
	for i := range missing {
		n.Why[w.photos[missing[i].Photo].Name] = w.why(&missing[i])
	}
	return output.WriteJSON(w.o.in(folder, notesFile), n)
}

// fewFeatures of a photo are too few to find it by.
const fewFeatures = 100

// why says in a photographer's words why a photo has no camera.
func (w *own) why(m *mapping.Missing) string {
	n := len(w.found[m.Photo].Points)
	switch {
	case n == 0 && w.photos[m.Photo].Mask != "":
		return "its mask leaves nothing that can be recognised"
	case n < fewFeatures:
		return fmt.Sprintf("it shows little that can be recognised: %s", cli.Count(n, "feature"))
	case m.Best >= 0:
		return fmt.Sprintf("it overlaps too little: at best %d matches, with %s", m.Matches,
			w.photos[m.Best].Name)
	case m.Part == 2:
		return "it overlaps only with 1 photo that has no camera either"
	case m.Part > 2:
		return fmt.Sprintf("it overlaps only with %d photos that have no camera either", m.Part-1)
	}
	return "it overlaps with no other photo"
}
