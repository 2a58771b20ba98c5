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
	for i, f := range slices.Backward(list) {
		c, err := output.OpenWhole(f.Path)
		if err == nil {
			p.from = c
			return nil
		}
		text := err.Error()
		if i > 0 {
			text += "; the checkpoint before it is tried"
		}
		p.warnLater(text)
	}
	if n := len(list); n > 0 {
		return fault.WithHint(fmt.Errorf("resume %s: %w: no checkpoint of %d can be read", p.Out, fault.ErrData, n),
			"put whole copies of them back, choose another folder, or start over with "+p.overwriting()+
				", which removes "+output.FormerText(p.Out, n))
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
			"%s holds what the run did after step %d: %s", p.Out, step, text)
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
	return fault.Data("resume", path, hint, "this is a folder and no checkpoint")
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
		"%s was made otherwise: %s", p.from.Path(), strings.Join(words, "; "))
}

// fewChanges are no more than a command line can have for them.
const fewChanges = 4

// goBack says how to take changes back: by settings as far as they are sure to do, as in "--carve=0", without a preset
// that is not the run's, and by what chooses the photos.
func (p *previous) goBack(changes []recipe.Change) string {
	text := "give what the run was made with"
	photos := p.photosBack(changes)
	own := slices.DeleteFunc(slices.Clone(changes), func(c recipe.Change) bool { return ofCapture(c) })
	list, sure := p.settingsBack(own)
	switch {
	case len(own) > 0 && p.otherPreset(p.from.Header.Preset, &p.from.Header.Config):
		value := p.Preset
		if p.presetBy() == "config" {
			value = p.ConfigFile
		}
		text = "leave out " + fault.Setting(p.presetBy()) + " " + value + " to keep the run's settings"
	case len(own) > 0 && p.factorsBack() != "":
		text = p.factorsBack()
	case !sure:
	case len(list) > 0:
		text += ": " + strings.Join(list, " ")
	case len(photos) > 0:
		return strings.Join(photos, "; ")
	}
	return strings.Join(append([]string{text}, photos...), "; ")
}

// factorsBack says how to take back a scaler of steps and factors, "" where the run was made with those given.
func (p *previous) factorsBack() string {
	if p.begun == nil {
		return ""
	}
	var ways []string
	if was := p.begun.StepsScaler; p.Asked("steps-scaler") && p.StepsScaler != was {
		ways = append(ways, fmt.Sprintf("give what the run was made with: %s=%v", fault.Setting("steps-scaler"), was))
	}
	for _, f := range factors {
		if p.Asked(f.name) && !f.value(&p.Factors).Equal(f.value(&p.begun.Factors)) {
			ways = append(ways, "leave out "+fault.Setting(cli.Dashed(f.name)))
		}
	}
	return strings.Join(ways, "; ")
}

// ofCapture reports whether a change is one of the capture and of no setting.
func ofCapture(c recipe.Change) bool { return strings.HasPrefix(c.Key, checkpoint.OfCapture) }

// settingsBack lists settings that take changes back, if they are sure to do. They are not where a setting brings
// others with it, or steps and rates are multiplied once they are given.
func (p *previous) settingsBack(changes []recipe.Change) (list []string, sure bool) {
	multiplied := p.StepsScaler != 1 || p.ShareSteps
	for _, c := range changes {
		if recipe.SettingNamed(c.Key) == nil || c.Key == "strategy" || multiplied || len(list) == fewChanges {
			return nil, false
		}
		value := strings.Trim(c.Old, `[]"`) // of JSON: the words of a choice, the channels of a colour
		list = append(list, fault.Setting(cli.Dashed(c.Key))+"="+value)
	}
	return list, true
}

// photosBack says by what settings the changes of the capture are taken back, where those can have made them: not where
// there are more or fewer photos in all.
func (p *previous) photosBack(changes []recipe.Change) (list []string) {
	before, now := &p.from.Header.Capture, len(p.data.Train)+len(p.data.Test)
	if slices.ContainsFunc(changes, ofCapture) && before.Photos+before.HeldOut != now {
		return []string{"give the photos that the run was made with"}
	}
	for _, c := range changes {
		switch strings.TrimPrefix(c.Key, checkpoint.OfCapture) {
		case checkpoint.HeldOutKey:
			list = append(list, p.heldOutBack(c))
		case checkpoint.ChoiceKey:
			list = append(list, "give the run's "+fault.Setting("test-every")+" or "+fault.Setting("test-list"))
		case checkpoint.CamerasKey:
			list = append(list, "put back the cameras and points that the run was made with")
		case checkpoint.FilesKey:
			list = append(list, "put back the photos and masks that the run was made with")
		case checkpoint.DepthsKey:
			list = append(list, "give the maps or points of depths that the run was made with")
		case checkpoint.NormalsKey:
			list = append(list, "give the normal maps that the run was made with")
		case checkpoint.ResolutionKey:
			if p.Load.Downscale == 0 {
				list = append(list, "give the run's "+fault.Setting("downscale"))
			} else {
				list = append(list, fmt.Sprintf("leave out %s %s, or give the run's", fault.Setting("downscale"),
					&p.Load.Downscale))
			}
		}
	}
	return list
}

// heldOutBack says how as many photos are held out as before.
func (p *previous) heldOutBack(c recipe.Change) string {
	eval, list := fault.Setting("eval"), fault.Setting("test-list")
	switch {
	case c.Old == "0" && p.TestList != "":
		return "leave out " + list
	case c.Old == "0":
		return "leave out " + eval
	case c.New == "0":
		return "give " + eval + ", or the run's " + list
	}
	return "give the run's " + fault.Setting("test-every") + " or " + list
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
			"from those of an undisturbed run", before))
	}
	if now := cli.Version(); now != h.Version {
		t.Deviate(fmt.Sprintf("version changed: %s -> %s", h.Version, now))
		p.warnLater(fmt.Sprintf("the steps so far were done by version %s: the bytes may differ from those of an "+
			"undisturbed run", h.Version))
	}
	if m := t.MemoryStats(); !m.CeilingFits {
		p.warnLater(fmt.Sprintf("the run may grow to %s, for which there is too little device memory: it may stop "+
			"for want of memory", cli.Count(m.Ceiling, "splat")))
	}
	return t, nil
}
