package capture

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/reconstruct"
	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene/colmap"
	"vksplat/scene/mapping"
	"vksplat/scene/pairs"
	"vksplat/scene/photo"
)

// Files of this program's own stages. No other program reads them: a build that makes other features counts ownVersion
// up, so that they are made again.
const (
	featuresFile = "features.bin"
	matchesFile  = "matches.bin"
	notesFile    = "notes.json" // in componentsFolder
	ownVersion   = "1"
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
	if o.Mapper != Auto {
		return o.Mapper == MapOwn
	}
	_, err := os.Lstat(o.in(databaseFile))
	return o.ofColmap() == "" && err != nil
}

// ofColmap names a setting that COLMAP alone has, "" for none.
func (o *Options) ofColmap() string {
	for _, s := range []struct {
		name string
		used bool
	}{
		{"camera-model", o.CameraModel != Auto}, {"features", o.Features != FeaturesSIFT},
		{"matching", o.Matching == MatchTree}, {"vocab-tree", o.VocabTree != ""}, {"gpu", o.GPU != Auto},
		{"mapper", o.Mapper == MapIncremental || o.Mapper == MapGlobal},
	} {
		if s.used {
			return s.name
		}
	}
	return ""
}

// ready opens the device before photos are gone through, unless what it is for is done.
func (w *own) ready() error {
	if output.IsFile(w.o.in(matchesFile)) {
		return nil
	}
	return w.open()
}

// open opens the device that the stages share.
func (w *own) open() (err error) {
	if w.device != nil {
		return nil
	}
	if w.device, err = pipeline.OpenDevice(w.o.Device); errors.Is(err, pipeline.ErrNoDevice) {
		return fault.WithHint(err, "check the GPU's driver with "+fault.Command("doctor")+"; where COLMAP is installed, "+
			fault.Setting("mapper")+" incremental needs no device")
	}
	if err == nil {
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
	videos := map[string]bool{}
	for _, s := range w.sources {
		if s.video {
			videos[path.Join(".", s.folder)] = true
		}
	}
	w.photos = nil
	for _, name := range w.mapper.photos {
		file := w.o.in(imagesFolder, filepath.FromSlash(name))
		p := reconstruct.Photo{Name: name, Path: file}
		switch folder := path.Dir(name); {
		case plan.share == CamerasOne:
		case plan.share == CamerasFolder:
			p.Lens = folder
		case w.o.Cameras == CamerasMany:
			p.Lens = name
		default:
			width, height, err := photo.Size(file)
			if err != nil {
				return err
			}
			p.Lens = fmt.Sprintf("%dx%d %s", width, height, photo.TakenWith(file))
		}
		if w.o.Masks != "" {
			if mask := w.o.in(masksFolder, filepath.FromSlash(name)+".png"); output.IsFile(mask) {
				p.Mask = mask
			}
		}
		if videos[path.Dir(name)] || w.sequential() {
			p.Sequence = "in " + path.Dir(name)
		}
		w.photos = append(w.photos, p)
	}
	return nil
}

// sequential tells whether photos are to be matched in the order of their names.
func (w *own) sequential() bool { return w.o.Matching == MatchSequential || w.o.Loops }

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
	return w.stages.do(stage{name: stageFeatures, key: text("own", ownVersion, w.siftOptions(), w.mapper.photos),
		outputs: []string{featuresFile}, do: do})
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
	w.show.timed()
	w.found, err = reconstruct.Find(w.ctx, w.device, w.photos, w.siftOptions(), func(n int) {
		w.show.update(n, len(w.photos), "photo %d of %d", n, len(w.photos))
	})
	if err != nil {
		return err
	}
	return store(w.o.in(featuresFile), w.found)
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
	return w.stages.do(stage{name: stageMatches, key: text("own", ownVersion, w.pairOptions(), lenses),
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
	if w.found == nil {
		if err := reuse(w, featuresFile, &w.found, w.find); err != nil {
			return err
		}
	}
	if err := w.open(); err != nil {
		return err
	}
	w.show.timed()
	w.pairs, err = reconstruct.Match(w.ctx, w.device, w.photos, w.found, w.pairOptions(), func(done, of int) {
		w.show.update(done, of, "pair %d of %d", done, of)
	})
	if err != nil {
		return err
	}
	return store(w.o.in(matchesFile), w.pairs)
}

func (w *own) findCameras() error {
	outputs := []string{componentsFolder}
	return w.stages.do(stage{name: stageMapping, key: text("own", ownVersion), outputs: outputs, do: w.place})
}

// place finds cameras, and stores them as the only component, with notes.
func (w *own) place() (string, error) {
	if w.found == nil {
		if err := reuse(w, featuresFile, &w.found, w.find); err != nil {
			return "", err
		}
	}
	if w.pairs == nil {
		if err := reuse(w, matchesFile, &w.pairs, w.match); err != nil {
			return "", err
		}
	}
	m, missing, at, err := reconstruct.Map(w.ctx, w.photos, w.found, w.pairs, func(done, of int) {
		w.show.update(done, of, "%d of %d photos have a camera", done, of)
	})
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
	n := notes{Why: map[string]string{}, Apart: w.apart(missing), Earth: at}
	for i := range missing {
		n.Why[w.photos[missing[i].Photo].Name] = w.why(&missing[i])
	}
	return fmt.Sprintf("%d of %d photos, %s", len(m.Images), len(w.photos), cli.Count(len(m.Points), "point")),
		output.WriteJSON(w.o.in(componentsFolder, notesFile), n)
}

// fewFeatures of a photo are too few to find it by.
const fewFeatures = 100

// why says in a photographer's words why a photo has no camera.
func (w *own) why(m *mapping.Missing) string {
	n := len(w.found[m.Photo].Points)
	switch {
	case n < fewFeatures:
		return fmt.Sprintf("it shows little that can be recognised: %s", cli.Count(n, "feature"))
	case m.Best >= 0:
		return fmt.Sprintf("it overlaps too little: at best %d matches, with %s", m.Matches,
			w.photos[m.Best].Name)
	case m.Part > 1:
		return fmt.Sprintf("it overlaps only with %s that have no camera either", cli.Count(m.Part-1, "photo"))
	}
	return "it overlaps with no other photo"
}
