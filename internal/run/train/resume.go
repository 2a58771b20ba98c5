package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// previous is the run that is continued, if one is.
type previous struct {
	*Options
	*notes
	data    *dataset
	dir     string           // of its checkpoints
	from    *checkpoint.File // to resume from; nil: from the start
	begun   *begun           // what it was begun with; nil: unknown, or it is begun now
	resplit bool             // it held out other photos
}

// ownPast reports whether the run resumes from a checkpoint of its own folder.
func (p *previous) ownPast() bool { return p.from != nil && output.InFolder(p.from.Path(), p.dir) }

// after is the step of the earlier run in OUT that this one continues; -1: it does not.
func (p *previous) after() int {
	if p.ownPast() {
		return p.from.Header.Step
	}
	return -1
}

// findNewest opens the newest checkpoint that is whole.
func (p *previous) findNewest(list []output.CheckpointFile) error {
	what, hint := fmt.Sprintf("none of %d checkpoints can be read", len(list)), "restore intact copies of them"
	for i, f := range slices.Backward(list) {
		c, err := output.OpenWhole(f.Path)
		if err == nil {
			p.from = c
			return nil
		}
		text := err.Error()
		if errors.Is(err, checkpoint.ErrOtherVersion) {
			what, hint = "another version of vksplat wrote the checkpoints", "continue with that version"
		}
		if i > 0 {
			text += "; the checkpoint before it is tried"
		}
		p.warnLater(text)
	}
	if n := len(list); n > 0 {
		return fault.WithHint(fmt.Errorf("resume %s: %w: %s", p.Out, fault.ErrData, what),
			hint+", choose another folder, or start over with "+p.overwriting()+
				", which removes "+output.ContentText(n, len(output.FormerModels(p.Out))))
	}
	// What a run left that was stopped early is replaced by the same run; a whole model is not.
	if st := output.ReadStats(filepath.Dir(p.dir)); st == nil || !st.Interrupted || readBegun(p.dir) == nil {
		if err := output.RefuseFormer(filepath.Dir(p.dir), 0,
			"replace it with "+p.overwriting()+", or choose another folder"); err != nil {
			return err
		}
	}
	if !p.DryRun { // whose output is the plan
		p.console.Printf("no checkpoint in %s: starting from the beginning\n", p.Out)
	}
	return nil
}

// overwriting is how the run is replaced by one from the start.
func (p *previous) overwriting() string {
	if p.goesOn {
		return fault.Command("train "+cli.Quoted(p.Scene)+" -m "+cli.Quoted(p.Out)+" --overwrite") +
			" and the run's other flags"
	}
	return fault.Setting("overwrite") + " in place of " + fault.Setting("resume")
}

// openFile opens the checkpoint that was named. With one of another folder, what this folder holds is not lost either.
func (p *previous) openFile(list []output.CheckpointFile) (err error) {
	if err := refuseFolder(p.Checkpoints.Resume); err != nil {
		return err
	}
	if p.from, err = output.OpenWhole(p.Checkpoints.Resume); err != nil {
		return err
	}
	if !p.ownPast() {
		if err := p.protect(list); err != nil {
			return errors.Join(err, p.from.Close())
		}
		return nil
	}
	if p.Checkpoints.Overwrite {
		return nil
	}
	step := p.from.Header.Step
	later := slices.DeleteFunc(list, func(f output.CheckpointFile) bool { return f.Step <= step })
	if text := output.ContentText(len(later), len(output.ModelsAbove(p.Out, step))); text != "" {
		return fault.Usagef("add "+fault.Setting("overwrite")+" to replace them, or name another folder",
			"%s holds files from after step %d: %s", p.Out, step, text)
	}
	return nil
}

// refuseFolder refuses a folder where a checkpoint is to be named, and names the newest that is in it or below.
func refuseFolder(path string) error {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil
	}
	hint := "name a file of OUT/" + output.CheckpointFolder
	for _, dir := range []string{path, filepath.Join(path, output.CheckpointFolder)} {
		if list, err := output.ListCheckpoints(dir); err == nil && len(list) > 0 {
			hint = "name a checkpoint, as in " + fault.Setting("resume") + "=" + cli.Quoted(list[len(list)-1].Path)
		}
	}
	return fault.Data("resume", path, hint, "this is a folder, not a checkpoint")
}

// warnFixed warns of a number of splats that was accepted too late: no refinement is left that could reach it.
func (p *previous) warnFixed(changes []recipe.Change) {
	c, h := &p.Config, &p.from.Header
	asked := slices.ContainsFunc(changes, func(c recipe.Change) bool { return c.Key == "splats" })
	if asked && !c.RefinesFrom(h.Step) && c.Splats > 0 && c.Splats != h.Splats {
		p.warnLater(fmt.Sprintf("%s %d has no effect: the model keeps its %d splats, because no refinement is left "+
			"after step %d", fault.Setting("splats"), c.Splats, h.Splats, h.Step))
	}
}

// compare returns what differs from the run so far. Unless the user accepts it, and the state can take it, it is an
// error.
func (p *previous) compare(capture checkpoint.CaptureRecord) ([]recipe.Change, error) {
	if err := p.from.Accepts(p.Config, capture.Photos); err != nil {
		return nil, err
	}
	if p.from.Hidden > 0 && !p.Checkpoints.Accept {
		return nil, fault.Data("resume", p.from.Path(), "train it from scratch, or continue with all splats drawn: "+
			fault.Setting("accept-changes"),
			"%w: an earlier version trained it with a near plane of its own for each view (clearance %g), "+
				"which hides splats that every other program draws", fault.ErrData, p.from.Hidden)
	}
	changes := p.from.Changes(p.Config, capture)
	if len(changes) == 0 || p.Checkpoints.Accept {
		return changes, nil
	}
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.String()
	}
	return nil, fault.Usagef(p.goBack(changes)+", or continue with the new values: "+fault.Setting("accept-changes"),
		"%s was made with other settings: %s", p.from.Path(), strings.Join(words, "; "))
}

// chosenBy lists the settings that choose a part of the capture.
var chosenBy = map[string][]string{
	checkpoint.HeldOutKey: {"eval", "test-every", "test-list"}, checkpoint.ChoiceKey: {"eval", "test-every", "test-list"},
	checkpoint.ResolutionKey: {"downscale"}, checkpoint.DepthsKey: {"depth-loss", "depths", "depth-points"},
	checkpoint.NormalsKey: {"normals"},
}

// goBack says how to take changes back: by what to leave out, since a resumed run keeps what the call does not give.
func (p *previous) goBack(changes []recipe.Change) string {
	const made = " that the run was made with"
	h := &p.from.Header
	if h.Capture.Photos+h.Capture.HeldOut != len(p.data.Train)+len(p.data.Test) {
		return "give the photos" + made
	}
	var asked, parts []string
	ask := func(names ...string) (found bool) {
		for _, name := range names {
			if setting := fault.Setting(cli.Dashed(name)); p.Asked(name) {
				found = true
				if !slices.Contains(asked, setting) {
					asked = append(asked, setting)
				}
			}
		}
		return found
	}
	for _, c := range changes {
		part, ofCapture := strings.CutPrefix(c.Key, checkpoint.OfCapture)
		switch {
		case ofCapture && !ask(chosenBy[part]...):
			parts = append(parts, part)
		case ofCapture:
		case p.otherPreset(h.Preset, &h.Config):
			return "leave out " + fault.Setting(p.presetBy()) + " to keep the run's settings"
		case !ask(c.Key): // it follows from others
			ask("steps-scaler", "share-steps", recipe.StepsFactor, recipe.SplatsFactor, recipe.FewPhotos)
		}
	}
	switch {
	case asked != nil:
		return "leave out " + strings.Join(asked, " and ")
	case parts != nil:
		return "give the " + strings.Join(parts, " and the ") + made
	}
	return "give what the run was made with"
}

// Protect refuses to lose what an earlier run left in OUT, before Do begins.
func (o *Options) Protect() error {
	if o.Checkpoints.Resume != "" {
		return nil
	}
	dir := filepath.Join(o.Out, output.CheckpointFolder)
	list, err := output.ListCheckpoints(dir)
	if err != nil {
		return err
	}
	return (&previous{Options: o, dir: dir}).protect(list)
}

// protect refuses to lose what an earlier run left.
func (p *previous) protect(list []output.CheckpointFile) error {
	if p.Checkpoints.Overwrite || p.Checkpoints.Demo {
		return nil
	}
	for i, f := range slices.Backward(list) {
		h, err := headerOf(f.Path)
		if err != nil {
			return fault.Usagef("move it away, replace it with "+fault.Setting("overwrite")+
				", or choose another folder", "%s is incomplete or is not a vksplat checkpoint", f.Path)
		}
		if i == len(list)-1 && h.Step < h.Config.Iterations {
			return stoppedBefore(p.Options, h)
		}
	}
	hint := "choose another folder, or replace it with " + fault.Setting("overwrite")
	if len(list) > 0 {
		hint = "choose another folder, replace it with " + fault.Setting("overwrite") + ", or train on with " +
			p.Resumed(p.Options) + " and more " + fault.Setting("iterations")
	}
	return output.RefuseFormer(p.Out, len(list), hint)
}

// checkConfig refuses another configuration than the run's so far, before anything slow.
func (p *previous) checkConfig() error {
	if p.from == nil {
		return nil
	}
	changes, err := p.compare(p.from.Header.Capture)
	if err == nil {
		p.warnFixed(changes)
	}
	return err
}

// resume makes a trainer that continues from the checkpoint. cams are in its frame.
func (p *previous) resume(m *machine, cams []scene.Camera, capture checkpoint.CaptureRecord,
	o pipeline.TrainerOptions) (*pipeline.Trainer, error) {
	changes, err := p.compare(capture)
	if err != nil {
		return nil, err
	}
	h := &p.from.Header
	t, err := pipeline.NewTrainerFrom(m.device, cams, m.photos, p.from, p.Config, o)
	if err != nil {
		return nil, err
	}
	// Everything of it is on the device now. A file that is open cannot be removed later, or keeps its room on the
	// disk.
	if err := p.from.Close(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	for _, c := range changes {
		t.Deviate("changed: " + c.String())
		if key := strings.TrimPrefix(c.Key, checkpoint.OfCapture); key == checkpoint.HeldOutKey ||
			key == checkpoint.ChoiceKey {
			p.resplit = true
		}
	}
	if p.resplit && len(p.data.Test) > 0 {
		p.warnLater("the run was trained on photos that are held out now: their scores do not measure new views")
	}
	p.console.Printf("resuming from %s: step %d of %d, %s\n", p.from.Path(), h.Step, p.Config.Iterations,
		cli.Count(h.Splats, "splat"))
	if before, same := t.DevicesBefore(h); !same {
		p.warnLater(fmt.Sprintf("the steps so far were done by other devices or drivers (%s): the bytes may differ "+
			"from those of an uninterrupted run", before))
	}
	if now := cli.Version(); now != h.Version {
		t.Deviate(fmt.Sprintf("version changed: %s -> %s", h.Version, now))
		p.warnLater(fmt.Sprintf("the steps so far were done by version %s: the bytes may differ from those of an "+
			"uninterrupted run", h.Version))
	}
	if m := t.MemoryStats(); !m.CeilingFits {
		p.warnLater(fmt.Sprintf("the run may grow to %s, for which there is too little device memory: it may run out "+
			"of memory", cli.Count(m.Ceiling, "splat")))
	}
	return t, nil
}
