package capture

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/internal/run/reconstruct"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/mapping"
)

// moreFolder holds what stages of --more made: the model as it was, the one with more photos, and why photos are
// missing. The stages of the scene itself, which come first in the state, stay as they are.
const (
	moreFolder = captured.MoreFolder
	moreMark   = "+"
)

var (
	givenFolder    = filepath.Join(moreFolder, "given")
	extendedFolder = filepath.Join(moreFolder, "model")
)

// more adds photos to a scene: their features and matches to the files of the others, and them to the model.
type more struct {
	*own
	given *colmap.Model
}

// extendable refuses a scene to which no photos can be added.
func (o *Options) extendable() error {
	if _, has := colmap.FormOf(o.in(modelFolder)); has {
		return nil
	}
	return fault.Usagef("make it first, without "+fault.Setting("more")+"; cameras of other programs are read from "+
		filepath.ToSlash(o.in(modelFolder))+", in COLMAP's form", "%s: %s has no cameras that photos can be added to",
		fault.Named("more"), o.Out)
}

// addPhotos finds the cameras of more photos.
func (r *running) addPhotos() error {
	m := &more{own: r.own}
	files := []string{r.o.in(featuresFile), r.o.in(matchesFile)}
	if foreign := r.stages.written.Foreign(files); !r.o.Overwrite {
		hint := "or replace it with " + fault.Setting("overwrite")
		if err := output.RefuseForeign(foreign, hint); err != nil {
			return err
		}
	}
	key := text("more", ownVersion, r.own.siftOptions(), r.own.pairOptions(), r.o.Cameras, r.photos)
	var model []string
	for _, name := range colmap.ModelFiles {
		model = append(model, filepath.Join(modelFolder, name+colmap.BinaryModel.Ext))
	}
	if m.changed() {
		r.stages.state.forget(moreMark + stageGiven)
	}
	for _, s := range []stage{
		{name: stageGiven, outputs: []string{givenFolder}, do: m.keep},
		{name: stageFeatures, changes: []string{featuresFile}, do: m.findFeatures},
		{name: stageMatches, changes: []string{matchesFile}, do: m.matchPhotos},
		{name: stageMapping, outputs: []string{extendedFolder}, do: m.place},
		{name: stageModel, outputs: []string{coverageFile}, changes: model, do: m.take},
	} {
		s.key = key
		if err := r.stages.do(s); err != nil {
			return err
		}
	}
	return nil
}

// changed reports whether the user has put another model into the scene than the one that was kept, or than what the
// stages made of it, even in part, as after a stop. What was begun with the one that was kept begins again.
func (m *more) changed() bool {
	form, _ := colmap.FormOf(m.o.in(modelFolder))
	return slices.ContainsFunc(colmap.ModelFiles[:], func(name string) bool {
		name += form.Ext
		at := m.o.in(modelFolder, name)
		return len(m.stages.written.Foreign([]string{at})) > 0 && !sameBytes(at, m.o.in(givenFolder, name)) &&
			!sameBytes(at, m.o.in(extendedFolder, name))
	})
}

// keep copies the model as it is: what follows begins with it, however often it is stopped.
func (m *more) keep() (string, error) {
	err := copyFiles(m.o.in(modelFolder), m.o.in(givenFolder))
	if err == nil {
		err = m.readGiven() // one that is damaged is not kept
	}
	return filepath.ToSlash(m.o.in(modelFolder)) + " as it was, in " + filepath.ToSlash(m.o.in(givenFolder)), err
}

// copyFiles copies the files of a folder.
func copyFiles(from, to string) error {
	if err := os.MkdirAll(to, 0o777); err != nil {
		return output.FolderError(to, err)
	}
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if err == nil && e.Type().IsRegular() {
			err = output.CopyWhole(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
	}
	if err != nil {
		return output.FolderError(to, err)
	}
	return nil
}

// readGiven reads the model that photos are added to.
func (m *more) readGiven() error {
	if m.given != nil {
		return nil
	}
	dir := m.o.in(givenFolder)
	form, _ := colmap.FormOf(dir)
	model, ok, err := colmap.ReadModel(&scene.Capture{Format: scene.FormatColmap, Model: dir,
		Text: form == &colmap.TextModel})
	if err == nil && (!ok || len(model.Images) == 0) {
		err = fault.Data("read model", dir, "give a model of COLMAP's with points that say which photos show them",
			"no photos can be added to it")
	}
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(model.Cameras)) {
		if k := model.Cameras[id].Model; k.Calibrated() == 0 {
			return fault.Data("read model", dir, "find the cameras of all photos together, without "+
				fault.Setting("more"), "camera %d is %s; photos cannot be placed among those of such cameras", id, k)
		}
	}
	m.given = model
	return nil
}

// list makes the photos, those whose features are stored first, as they are stored.
func (m *more) list(stored []reconstruct.Features) error {
	if err := m.readGiven(); err != nil {
		return err
	}
	images, listed := map[string]*colmap.Image{}, map[string]bool{}
	for i := range m.given.Images {
		images[m.given.Images[i].Name] = &m.given.Images[i]
	}
	m.photos = nil
	add := func(name string) {
		if !listed[name] && output.IsFile(m.o.in(imagesFolder, filepath.FromSlash(name))) {
			m.photos, listed[name] = append(m.photos, m.photoOf(name)), true
		}
	}
	for i := range stored {
		add(stored[i].Name)
	}
	if len(m.photos) < len(stored) { // of photos that are gone; the rest would not be where matches have it
		return errDamaged
	}
	for _, img := range m.given.Images {
		add(img.Name)
	}
	for _, name := range m.mapper.photos {
		add(name)
	}
	byKind, free := map[string]uint32{}, []int{} // cameras; 0: several have photos of the kind
	for i := range m.photos {
		p := &m.photos[i]
		img := images[p.Name]
		if img == nil {
			free = append(free, i)
			continue
		}
		turn, ok := geom.RotationFromQuat(img.Quat)
		if !ok {
			return fault.Data("read model", m.o.in(givenFolder), "", "the pose of %s is none", img.Name)
		}
		m.lend(p, img.Camera)
		p.Place = &mapping.Place{R: turn, T: img.T}
		kind, err := kindOf(p.Path)
		if err != nil {
			return err
		}
		if camera, known := byKind[kind]; known && camera != img.Camera {
			byKind[kind] = 0
		} else {
			byKind[kind] = img.Camera
		}
	}
	switch {
	case len(free) == len(m.photos):
		return fault.Data("find photos", m.o.in(imagesFolder), "put the photos there, with the names that the model has",
			"there is no photo of the model")
	case len(free) == 0:
		return fault.Usagef("give others", "all of these photos have a camera in %s", m.o.Out)
	}
	return m.chooseLenses(free, byKind)
}

// lend gives a photo a camera of the model.
func (m *more) lend(p *reconstruct.Photo, camera uint32) {
	lens := m.given.Cameras[camera]
	p.Lens, p.Calibration = fmt.Sprint("given ", camera), &lens
}

// chooseLenses decides the cameras of photos that have none: that of the photos of the model with their size and EXIF,
// or new ones.
func (m *more) chooseLenses(free []int, byKind map[string]uint32) error {
	for _, i := range free {
		p := &m.photos[i]
		kind, err := kindOf(p.Path)
		switch camera := byKind[kind]; {
		case err != nil:
			return err
		case m.o.Cameras == CamerasOne:
			p.Lens = "new"
		case m.o.Cameras == CamerasMany:
			p.Lens = "new " + p.Name
		case m.o.Cameras == CamerasFolder || isFrame(m.own, p.Name):
			p.Lens = "new in " + path.Dir(p.Name)
		case camera != 0:
			m.lend(p, camera)
		default:
			p.Lens = "new " + kind
		}
	}
	return nil
}

// findFeatures finds the features that are not stored.
func (m *more) findFeatures() (string, error) {
	all, err := storedFeatures(m.o.in(featuresFile))
	if err == nil {
		err = m.list(all)
	}
	if errors.Is(err, errDamaged) || errors.Is(err, os.ErrNotExist) {
		if err := errors.Join(os.RemoveAll(m.o.in(featuresFile)), os.RemoveAll(m.o.in(matchesFile))); err != nil {
			return "", output.FolderError(m.o.Out, err)
		}
		all, err = nil, m.list(nil)
	}
	if err == nil {
		err = m.open()
	}
	if err != nil {
		return "", err
	}
	if m.found, err = m.addFeatures(all, m.photos[len(all):]); err != nil {
		return "", err
	}
	for i, p := range m.photos {
		if k := p.Calibration; k != nil && (k.Width != m.found[i].Width || k.Height != m.found[i].Height) {
			return "", fault.Data("find features", p.Path, "photos must have the pixels that were calibrated",
				"it has %dx%d pixels, and its camera %dx%d", m.found[i].Width, m.found[i].Height, k.Width, k.Height)
		}
	}
	n := 0
	for _, f := range m.found[len(all):] {
		n += len(f.Points)
	}
	return fmt.Sprintf("%s in %s", cli.Count(n, "feature"), cli.Count(len(m.found)-len(all), "photo")), nil
}

// haveAll has features and photos in memory.
func (m *more) haveAll() error {
	if m.found != nil {
		return nil
	}
	all, err := storedFeatures(m.o.in(featuresFile))
	if err == nil {
		err = m.list(all)
	}
	if err == nil && len(m.photos) == len(all) {
		m.found = all
		return nil
	}
	m.console.Note(m.o.in(featuresFile) + " is made again: it is damaged, or of other photos")
	_, err = m.findFeatures()
	return err
}

// matchPhotos matches photos that have no camera, or no pair, with all others.
func (m *more) matchPhotos() (string, error) {
	if err := m.haveAll(); err != nil {
		return "", err
	}
	known, err := storedPairs(m.o.in(matchesFile))
	if err != nil {
		known = nil // all are matched
	}
	fresh := make([]bool, len(m.photos))
	for i := range fresh {
		fresh[i] = true
	}
	known = slices.DeleteFunc(known, func(p mapping.Pair) bool { return max(p.A, p.B) >= len(fresh) })
	for _, p := range known {
		fresh[p.A], fresh[p.B] = m.photos[p.A].Place == nil, m.photos[p.B].Place == nil
	}
	kept := slices.DeleteFunc(known, func(p mapping.Pair) bool { return fresh[p.A] || fresh[p.B] })
	made, err := m.pairsOf(fresh)
	if err != nil {
		return "", err
	}
	m.pairs = append(kept, made...)
	slices.SortFunc(m.pairs, func(a, b mapping.Pair) int { return cmp.Or(a.A-b.A, a.B-b.B) })
	return cli.Count(len(made), "pair"), storePairs(m.o.in(matchesFile), m.pairs)
}

// place extends the model.
func (m *more) place() (string, error) {
	if err := m.haveAll(); err != nil {
		return "", err
	}
	if m.pairs == nil {
		remake := func() error {
			_, err := m.matchPhotos()
			return err
		}
		if err := reuse(m.own, matchesFile, &m.pairs, storedPairs, remake); err != nil {
			return "", err
		}
	}
	photos, points := len(m.given.Images), len(m.given.Points)
	missing, err := reconstruct.Extend(m.ctx, m.given, m.photos, m.found, m.pairs, m.placed, m.growing())
	if err != nil {
		return "", err
	}
	if len(m.given.Images) == photos {
		return "", &fault.Error{Op: "add photos", Path: m.o.Out, Err: fmt.Errorf("%w: %s", errNothingFits,
			m.why(&missing[0])), Hint: "take photos between these and those of the scene, so that neighbours overlap by " +
			"two thirds; nothing has changed in " + filepath.ToSlash(m.o.in(modelFolder))}
	}
	if err := colmap.Save(m.o.in(extendedFolder), m.given.Files()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s and %s are added", cli.Count(len(m.given.Images)-photos, "photo"),
		cli.Count(len(m.given.Points)-points, "point")), m.sayMissing(extendedFolder, missing, nil)
}

// errNothingFits is the cause of an error about photos that cannot be added.
var errNothingFits = errors.New("none of the photos shows enough of what the scene shows")

// take puts the model where training finds it, in place of that which was there.
func (m *more) take() (string, error) {
	dir := m.o.in(modelFolder)
	for _, name := range colmap.ModelFiles {
		name += colmap.BinaryModel.Ext
		if err := output.CopyWhole(m.o.in(extendedFolder, name), filepath.Join(dir, name)); err != nil {
			return "", output.FolderError(dir, err)
		}
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries { // the model in text, its rigs and frames: they lack the photos
		if stem := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".bin"), ".txt"); err == nil && e.Name() != stem &&
			(stem == "rigs" || stem == "frames" || slices.Contains(colmap.ModelFiles[:], stem) &&
				filepath.Ext(e.Name()) == colmap.TextModel.Ext) {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	if err != nil {
		return "", output.FolderError(dir, err)
	}
	if err := m.drawCoverage(); err != nil {
		m.console.Note("there is no " + coverageFile + ": " + err.Error())
	}
	return "in " + filepath.ToSlash(dir), nil
}

// nameApart gives photos and videos that are added names that no others have below images.
func (o *Options) nameApart(list []*source) {
	images := output.Resolved(o.in(imagesFolder))
	for _, s := range list {
		below, err := filepath.Rel(images, output.Resolved(s.path))
		if !s.video && s.path != "" && err == nil && filepath.IsLocal(below) {
			s.rename(strings.TrimPrefix(filepath.ToSlash(below), "."))
			continue
		}
		if !s.video && !slices.ContainsFunc(s.photos, s.changes) && !s.clashes(o) {
			continue
		}
		marks := []string{s.path}
		if s.video {
			marks = append(marks, mark(s.path))
		}
		for i := range s.photos {
			marks = append(marks, s.photos[i], mark(s.file(i)))
		}
		sum := sha256.Sum256([]byte(text(marks)))
		base := filepath.Base(output.Absolute(s.path))
		if s.path == "" {
			base = "photos"
		}
		s.rename(fmt.Sprintf("%s_%x", strings.TrimSuffix(base, filepath.Ext(base)), sum[:3]))
	}
}

// rename has the photos of a source in another folder below images.
func (s *source) rename(folder string) {
	for i, name := range s.names {
		s.names[i] = path.Join(folder, strings.TrimPrefix(name, s.folder+"/"))
	}
	s.folder = folder
}

// changes tells whether a photo is converted.
func (s *source) changes(name string) bool { return conversionOf(name) != nil }

// clashes tells whether another photo has the place of one of the source.
func (s *source) clashes(o *Options) bool {
	for i, name := range s.names {
		at := o.in(imagesFolder, filepath.FromSlash(name))
		if output.IsFile(at) && !sameFile(at, s.file(i)) && !sameBytes(at, s.file(i)) {
			return true
		}
	}
	return false
}

func sameBytes(a, b string) bool {
	x, err := os.ReadFile(a)
	y, errB := os.ReadFile(b)
	return err == nil && errB == nil && string(x) == string(y)
}

// allPhotos lists the photos of a scene to which some were added, and counts those of this call that have a camera.
func (r *running) allPhotos(taken *component) (list []string, added int) {
	all := map[string]bool{}
	for _, name := range taken.names {
		all[name] = true
	}
	for _, name := range r.photos {
		if all[name] {
			added++
		}
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all)), added
}
