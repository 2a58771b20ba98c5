package train

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/scene"
)

// place is the folder that a run writes, and what it finds there.
type place struct {
	*Options
	*notes
	prev   *previous
	own    *output.Written // files of OUT that are this program's
	trusts bool            // treat every file with a run's name as ours
	old    []string        // what of an earlier run in OUT this one replaces, if it is there
	staged bool            // it is there, and this run writes to output.NextFolder: see at
	emit   func(e Event) error
}

// refuseFolders refuses to begin where a folder has the name of a file that the run writes, or the other way round. It
// is not ours to remove, and the end of a long run is too late to find out.
func (p *place) refuseFolders() error {
	paths := p.runNames()
	for _, dir := range output.StepFolders(p.Out, output.ModelFolder, -1) {
		paths = append(paths, filepath.Join(dir, output.ModelName))
	}
	// Checkpoints may come at any step.
	old, err := filepath.Glob(filepath.Join(output.EscapeGlob(p.prev.dir),
		output.CheckpointPrefix+"*"+output.CheckpointSuffix))
	if err != nil {
		return err
	}
	return output.RefuseTaken(append(paths, old...), "choose another folder")
}

// runNames are the files in OUT, beside checkpoints and pictures, that the run may write.
func (p *place) runNames() []string {
	paths := append(output.RunPaths(p.Out), modelFile(p.Out, p.Config.Iterations))
	for _, at := range p.Checkpoints.SaveAt {
		paths = append(paths, modelFile(p.Out, at))
	}
	return paths
}

// refuseForeign refuses to replace files in OUT that this program did not write. Beside checkpoints, what builds left
// there that kept no list is taken for a run's.
func (p *place) refuseForeign() error {
	p.own = output.ReadWritten(p.Out)
	if p.trusts = p.Checkpoints.Overwrite || !p.own.Known && output.HoldsRun(p.Out); p.trusts {
		return nil
	}
	return output.RefuseForeign(p.own.Foreign(p.runNames()), p.remedy())
}

// sort finds what of an earlier run this one replaces, and refuses files of the user.
func (p *place) sort() error {
	if err := p.refuseForeign(); err != nil {
		return err
	}
	p.old = output.Replaced(p.Out, p.prev.after())
	p.keepForeign()
	if p.replaces() {
		return output.RefuseUnreachable(p.Out)
	}
	return nil
}

// keepForeign takes models of the user at steps that this run does not write out of what it removes, and names them.
// All else that it removes says itself that it is a run's, or has the name of a file that this run writes.
func (p *place) keepForeign() {
	if !p.own.Known {
		return
	}
	names := p.runNames()
	foreign := slices.DeleteFunc(p.own.Foreign(p.old), func(path string) bool {
		return filepath.Base(path) != output.ModelName || slices.Contains(names, path)
	})
	if len(foreign) == 0 {
		return
	}
	p.old = slices.DeleteFunc(p.old, func(path string) bool { return slices.Contains(foreign, path) })
	p.console.Note("kept, because this program did not write them or they changed since: " + output.ListText(foreign))
}

// remedy is the hint about files in OUT, besides moving them away.
func (p *place) remedy() string {
	if p.Checkpoints.Demo { // it has no setting overwrite
		return "or choose another folder"
	}
	return "choose another folder, or replace it with " + fault.Setting("overwrite")
}

// list begins the list of what this run writes.
func (p *place) list() error {
	p.own = output.ReadWritten(p.Out)
	if p.staged { // the earlier run's stays until this one replaces it
		p.own = output.ReadList(p.Out, filepath.Join(output.NextFolder, output.WrittenFile))
	}
	switch {
	case p.Checkpoints.Demo:
		p.own.By = output.ByDemo
	case p.Checkpoints.Resume == "" || p.own.By == "": // a resumed run keeps who began it
		p.own.By = output.ByTrain
	}
	return p.own.Begin(p.runNames()...)
}

// unlist ends the list, where it was begun.
func (p *place) unlist() error {
	if p.staged || p.own == nil || !p.own.Begun {
		return nil
	}
	return p.own.End()
}

// refuseForeignPictures is refuseFolders for pictures, whose names the capture gives.
func (p *place) refuseForeignPictures(pictures []string) error {
	if p.DryRun {
		return nil
	}
	var paths, fresh []string
	for _, step := range append(slices.Clone(p.EvalAt), p.Config.Iterations) {
		at := output.PathsIn(picturesFolder(p.Out, step), pictures)
		if paths = append(paths, at...); step > p.prev.after() {
			fresh = append(fresh, at...)
		}
	}
	if err := output.RefuseTaken(paths, "choose another folder"); err != nil {
		return err
	}
	if p.trusts { // those of the user stay as long as the earlier run
		p.old = append(p.own.Foreign(fresh), p.old...)
		return nil
	}
	return output.RefuseForeign(p.own.Foreign(paths), p.remedy())
}

// sweep removes temporary files of a process that was killed. The folder is locked, so no other process writes there.
func (p *place) sweep() {
	files := append(p.runNames(), output.DemoPicture, output.WrittenFile)
	ours := func(base string, _ bool) bool {
		return slices.ContainsFunc(files, func(path string) bool { return filepath.Base(path) == base }) ||
			strings.HasPrefix(base, output.CheckpointPrefix) && strings.HasSuffix(base, output.CheckpointSuffix)
	}
	for _, dir := range append(output.StepFolders(p.Out, output.ModelFolder, -1), p.Out, p.prev.dir,
		filepath.Join(p.Out, captured.ModelFolder), filepath.Join(p.Out, captured.StartFolder)) {
		output.RemoveTemps(dir, ours)
	}
	for _, top := range output.StepFolders(p.Out, output.PictureFolder, -1) {
		_ = filepath.WalkDir(top, func(dir string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				output.RemoveTemps(dir,
					func(base string, cut bool) bool { return cut || strings.HasSuffix(base, output.PictureSuffix) })
			}
			return nil // what cannot be read stays
		})
	}
}

// dropDemoPicture removes the picture of a demo that was resumed: it shows the model before that.
func (p *place) dropDemoPicture(step int) {
	path := filepath.Join(p.Out, output.DemoPicture)
	if p.prev.ownPast() && step > p.prev.from.Header.Step && p.own.Owns(path) {
		_ = os.Remove(path) // a leftover does no harm
	}
}

// apart refuses to write among the files of the capture.
func (p *place) apart(c *scene.Capture) error {
	if p.Out == "" {
		return nil
	}
	return captured.RefuseInside(p.Out, "model-path", c)
}
