package capture

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/scene/colmap"
	"vksplat/scene/photo"
)

// Run makes the scene, or the part of it that is missing, and says what came of it.
func Run(console *cli.Console, o *Options) error {
	progress := console.Stdout
	if o.Progress == meter.JSON { // which is alone on standard output
		console = console.ToStderr()
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.Out = filepath.Clean(o.Out); strings.HasPrefix(o.Out, "-") { // COLMAP would take it for a flag
		o.Out = output.Absolute(o.Out)
	}
	sources, err := findSources(console, o)
	if err != nil {
		return err
	}
	if err := claimable(o, sources); err != nil {
		return err
	}
	if o.More {
		o.nameApart(sources)
	}
	ctx, stop := console.Stoppable(cli.Always("stopping; finished stages are kept"))
	defer stop()
	r := newRunning(ctx, console, o, sources)
	defer r.own.close() // nothing is on the device any more
	if err := r.preflight(); err != nil {
		return r.interrupted(err)
	}
	release, err := output.Claim(o.Out, true, func() {
		console.Note("another command is writing in " + o.Out + ": waiting a few seconds for it to end")
	})
	if err != nil {
		return err
	}
	defer release()
	console.OnAbort = release
	defer func() { console.OnAbort = nil }()
	r.stages.state = readState(o.in(stateFile))
	if slices.ContainsFunc(sources, func(s *source) bool { return s.inPlace(o) }) {
		r.stages.state.ownPhotos()
	}
	r.stages.written = output.ReadList(o.Out, listFile)
	r.stages.written.By = Name
	r.show = newProgress(console, progress, o.Progress)
	r.show.watch = o.Watch
	defer console.Follow(nil)
	if r.own == nil {
		r.mapper.colmap.print(console)
	}
	if err := r.dropReport(); err != nil {
		return err
	}
	v, err := r.all()
	if err != nil {
		r.show.end()
		return r.report(nil, remedy.Ceiling(r.interrupted(err), o.Device))
	}
	v.print(console, o)
	return r.report(v, nil)
}

// isOurs tells whether this command writes a file of that name into the scene's folder in one go.
func isOurs(base string, _ bool) bool {
	return slices.Contains([]string{stateFile, listFile, featuresFile, matchesFile, coverageFile, reportFile}, base)
}

// isModel tells whether a file of that name is part of a model of COLMAP's.
func isModel(base string, _ bool) bool {
	return slices.Contains(colmap.ModelFiles[:], strings.TrimSuffix(base, filepath.Ext(base)))
}

// all does every stage.
func (r *running) all() (*Report, error) {
	output.RemoveTemps(r.o.Out, isOurs)
	output.RemoveTemps(r.o.in(modelFolder), isModel)
	output.RemoveTemps(r.o.in(imagesFolder), func(base string, _ bool) bool { return photo.IsPhoto(base) })
	if err := r.takePhotos(); err != nil {
		return nil, err
	}
	videos := 0
	for _, s := range r.sources {
		if s.video {
			if err := r.takeFrames(s, videos); err != nil {
				return nil, err
			}
			videos++
		}
	}
	if len(r.photos) < r.o.fewest() { // a video was shorter than it says, or did not say
		return nil, r.tooFew(len(r.photos))
	}
	if r.o.More {
		return r.addAll()
	}
	find := []func() error{r.mapper.findFeatures, r.mapper.matchPhotos, r.mapper.findCameras}
	if w := r.own; w != nil {
		find = []func() error{w.findFeatures, w.matchPhotos, w.findCameras}
	}
	for _, step := range append([]func() error{r.takeFaces, r.takeMasks}, find...) {
		if err := step(); err != nil {
			return nil, err
		}
	}
	list, err := r.mapper.readComponents()
	if err != nil {
		return nil, err
	}
	taken, err := r.o.choose(list)
	if err != nil {
		return nil, err
	}
	if taken.Photos < fewestPhotos { // training refuses it
		return nil, r.mapper.noModel()
	}
	if err := r.takeModel(taken); err != nil {
		return nil, err
	}
	if r.stages.state.at(moreMark+stageModel) >= 0 { // photos were added to it since
		if taken, err = readComponent(r.o.in(modelFolder)); err != nil {
			return nil, err
		}
		r.photos, _ = r.allPhotos(taken)
		list = []*component{taken}
	}
	return r.judge(list, taken), nil
}

// addAll does the stages of photos that are added.
func (r *running) addAll() (*Report, error) {
	for _, step := range []func() error{r.takeMasks, r.addPhotos} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	taken, err := readComponent(r.o.in(modelFolder))
	if err != nil {
		return nil, err
	}
	asked, added := len(r.photos), 0
	r.photos, added = r.allPhotos(taken)
	v := r.judge([]*component{taken}, taken)
	v.Added = &Added{asked, added}
	return v, nil
}

// claimable refuses a folder that holds what this command did not make, and a capture of other inputs.
func claimable(o *Options, sources []*source) error {
	for at := o.Out; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return fault.Usagef("choose another folder", "%s: %s is a file", fault.Named("output"), at)
		}
		if err == nil || at == filepath.Dir(at) {
			break
		}
	}
	if o.More {
		return o.extendable()
	}
	if _, err := os.Lstat(o.in(stateFile)); err == nil {
		return nil // files are looked at one by one
	}
	if mark := output.RunIn(o.Out); mark != "" {
		return fault.Usagef("name another folder: a scene and what is trained on it stay apart",
			"%s: %s is the folder of a run, it holds %s", fault.Named("output"), o.Out, mark)
	}
	inPlace := false
	for _, s := range sources {
		inPlace = inPlace || s.inPlace(o)
	}
	if !inPlace && !o.Overwrite {
		if err := output.RefusePlace(o.Out, "output", stateFile); err != nil {
			return err
		}
	}
	for _, name := range []string{imagesFolder, panoramasFolder, masksFolder, "sparse", componentsFolder, databaseFile,
		featuresFile, matchesFile, logsFolder, coverageFile, reportFile} {
		_, err := os.Lstat(o.in(name))
		switch {
		case errors.Is(err, os.ErrNotExist):
		case name == imagesFolder && inPlace, name == masksFolder && o.Masks == "":
		case name == imagesFolder:
			return fault.Usagef("choose another folder, or give that folder of photos as the input",
				"%s already exists", o.in(name))
		case !o.Overwrite:
			return fault.Usagef("choose another folder, or replace it with "+fault.Setting("overwrite"),
				"%s already exists", o.in(name))
		}
	}
	return nil
}
