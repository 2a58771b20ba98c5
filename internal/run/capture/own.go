package capture

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"vksplat/internal/atomicfile"
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

// Files of this program's own stages. What is in them is nobody else's: a build that makes other features gives them
// other keys.
const (
	featuresFile = "features.bin"
	matchesFile  = "matches.bin"
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

// open opens the device that the stages share.
func (w *own) open() (err error) {
	if w.device == nil {
		if w.device, err = pipeline.OpenDevice(w.o.Device); err == nil {
			w.console.Printf("%-9s %s\n", "device:", w.device.Name())
		}
	}
	return err
}

func (w *own) close() error {
	if w.device == nil {
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
		if videos[path.Dir(name)] || w.o.Matching == MatchSequential {
			p.Sequence = "in " + path.Dir(name)
		}
		w.photos = append(w.photos, p)
	}
	return nil
}

func (w *own) findFeatures() error {
	if err := w.list(); err != nil {
		return err
	}
	o := features.Default()
	if w.o.MaxSize > 0 {
		o.Side = w.o.MaxSize
	}
	do := func() (string, error) {
		if err := w.open(); err != nil {
			return "", err
		}
		var err error
		w.show.timed()
		w.found, err = reconstruct.Find(w.ctx, w.device, w.photos, o, func(n int) {
			w.show.update(n, len(w.photos), "photo %d of %d", n, len(w.photos))
		})
		if err != nil {
			return "", err
		}
		n := 0
		for _, f := range w.found {
			n += len(f.Points)
		}
		return fmt.Sprintf("%s in %s", cli.Count(n, "feature"), cli.Count(len(w.found), "photo")),
			w.store(featuresFile, w.found)
	}
	return w.stages.do(stage{name: stageFeatures, key: text("own", ownVersion, o, w.mapper.photos),
		outputs: []string{featuresFile}, do: do})
}

func (w *own) matchPhotos() error {
	o := pairs.Defaults
	switch w.o.Matching {
	case MatchAll:
		o.All = len(w.photos)
	case MatchSequential:
		o.All = 0
	}
	do := func() (string, error) {
		if err := errors.Join(w.open(), w.load(featuresFile, &w.found, w.found == nil)); err != nil {
			return "", err
		}
		var err error
		w.show.timed()
		w.pairs, err = reconstruct.Match(w.ctx, w.device, w.photos, w.found, o, func(done, of int) {
			w.show.update(done, of, "pair %d of %d", done, of)
		})
		if err != nil {
			return "", err
		}
		return cli.Count(len(w.pairs), "pair"), w.store(matchesFile, w.pairs)
	}
	var lenses []string
	for _, p := range w.photos {
		lenses = append(lenses, p.Lens)
	}
	return w.stages.do(stage{name: stageMatches, key: text("own", ownVersion, o, lenses),
		outputs: []string{matchesFile}, do: do})
}

func (w *own) findCameras() error {
	do := func() (string, error) {
		err := errors.Join(w.load(featuresFile, &w.found, w.found == nil), w.load(matchesFile, &w.pairs, w.pairs == nil))
		if err != nil {
			return "", err
		}
		m, _, err := reconstruct.Map(w.ctx, w.photos, w.found, w.pairs, func(done, of int) {
			w.show.update(done, of, "%d of %d photos have a camera", done, of)
		})
		if errors.Is(err, mapping.ErrNoPair) {
			return "", w.noModel()
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d of %d photos, %s", len(m.Images), len(w.photos), cli.Count(len(m.Points), "point")),
			colmap.Save(w.o.in(componentsFolder, "0"), m.Files())
	}
	return w.stages.do(stage{name: stageMapping, key: text("own", ownVersion), outputs: []string{componentsFolder}, do: do})
}

// store writes what a stage made.
func (w *own) store(name string, what any) error {
	return atomicfile.Write(w.o.in(name), func(f io.Writer) error { return gob.NewEncoder(f).Encode(what) })
}

// load reads what an earlier call of the command stored, if it is needed.
func (w *own) load(name string, what any, needed bool) error {
	if !needed {
		return nil
	}
	f, err := os.Open(w.o.in(name))
	if err != nil {
		return fault.WithHint(err, "run the same command again")
	}
	defer f.Close() // only read from
	if err := gob.NewDecoder(f).Decode(what); err != nil {
		return fault.Data("read features", w.o.in(name), "remove the file, then run the same command again", "%s",
			strings.TrimPrefix(err.Error(), "gob: "))
	}
	return nil
}
