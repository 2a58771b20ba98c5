package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// find removes what processes left that were killed, and opens the checkpoint that the run resumes from. For a dry run
// it does the latter alone.
func (s *saver) find() error {
	switch {
	case s.r.DryRun && s.o.Resume == "":
		return nil
	case s.r.DryRun:
		s.dir = filepath.Join(output.Current(s.r.Out), output.CheckpointFolder)
	default:
		s.r.sweep()
		if err := s.r.refuseFolders(); err != nil {
			return err
		}
		if s.o.Off {
			return s.refuseForeign()
		}
	}
	list, err := output.ListCheckpoints(s.dir)
	if err != nil {
		return err
	}
	if s.o.Resume != "" && !s.o.Overwrite {
		if err := refuseDamagedBegun(s.dir); err != nil {
			return err
		}
	}
	switch s.o.Resume {
	case "":
		err = s.protect(list)
	case ResumeAuto:
		err = s.findNewest(list)
	default:
		err = s.openFile(list)
	}
	switch {
	case err != nil:
		return err
	case !s.r.DryRun:
		return s.sort(list)
	case s.from != nil && s.r.TimeLimit > 0:
		return fault.Usagef("leave out "+fault.Setting("time-limit"), "%s: times are predicted of runs from the start",
			fault.Named("dry-run", "time-limit"))
	}
	return nil
}

// sort tells what in OUT is this run's past from what it replaces, and refuses files of the user.
func (s *saver) sort(list []output.CheckpointFile) error {
	if err := s.refuseForeign(); err != nil {
		return err
	}
	s.asked = slices.Clone(s.o.SaveAt)
	if s.ownPast() {
		s.asked = append(s.asked, s.readAsked()...)
		s.kept = slices.DeleteFunc(list, func(f output.CheckpointFile) bool { return f.Step > s.after() })
	}
	if s.old = output.Replaced(s.r.Out, s.after()); s.replaces() {
		return output.RefuseUnreachable(s.r.Out)
	}
	return nil
}

// readAsked returns the steps that earlier calls were asked to save. Where that cannot be read, there are none.
func (s *saver) readAsked() (steps []int) {
	data, err := os.ReadFile(filepath.Join(s.dir, output.AskedFile))
	if err != nil || json.Unmarshal(data, &steps) != nil {
		return nil
	}
	return steps
}

// rememberAsked writes the steps down for calls to come, unless they are already.
func (s *saver) rememberAsked() error {
	slices.Sort(s.asked)
	s.asked = slices.Compact(s.asked)
	if s.remembered || len(s.asked) == 0 {
		return nil
	}
	err := output.WriteJSON(filepath.Join(s.r.at(s.dir), output.AskedFile), s.asked)
	s.remembered = err == nil
	return err
}

// findNewest opens the newest checkpoint that is whole.
func (s *saver) findNewest(list []output.CheckpointFile) error {
	for i, f := range slices.Backward(list) {
		c, err := output.OpenWhole(f.Path)
		if err == nil {
			s.from = c
			return nil
		}
		text := err.Error()
		if i > 0 {
			text += "; the checkpoint before it is tried"
		}
		s.r.warnLater(text)
	}
	if n := len(list); n > 0 {
		return fault.WithHint(fmt.Errorf("resume %s: %w: no checkpoint of %d can be read", s.r.Out, fault.ErrData, n),
			"put whole copies of them back, choose another folder, or start over with "+s.overwriting()+
				", which removes "+output.FormerText(s.r.Out, n))
	}
	// What a run left that was stopped early is replaced by the same run; a whole model is not.
	if st := output.ReadStats(filepath.Dir(s.dir)); st == nil || !st.Interrupted || readBegun(s.dir) == nil {
		if err := output.RefuseFormer(filepath.Dir(s.dir), 0,
			"replace it with "+s.overwriting()+", or choose another folder"); err != nil {
			return err
		}
	}
	if !s.r.DryRun { // whose output is the plan
		s.r.Console.Printf("no checkpoint in %s: starting from the beginning\n", s.r.Out)
	}
	return nil
}

// overwriting is how the run is replaced by one that begins anew.
func (s *saver) overwriting() string {
	if s.r.goesOn {
		return fault.Command("train "+cli.Quoted(s.r.Scene)+" -m "+cli.Quoted(s.r.Out)+" --overwrite") +
			" and the run's other flags"
	}
	return fault.Setting("overwrite") + " in place of " + fault.Setting("resume")
}

// openFile opens the checkpoint that was named. With one of another folder, what this folder holds is not lost either.
func (s *saver) openFile(list []output.CheckpointFile) (err error) {
	if err := refuseFolder(s.o.Resume); err != nil {
		return err
	}
	if s.from, err = output.OpenWhole(s.o.Resume); err != nil {
		return err
	}
	if !s.ownPast() {
		if err := s.protect(list); err != nil {
			return errors.Join(err, s.from.Close())
		}
		return nil
	}
	if s.o.Overwrite {
		return nil
	}
	step := s.from.Header.Step
	later := slices.DeleteFunc(list, func(f output.CheckpointFile) bool { return f.Step <= step })
	if text := output.ContentText(len(later), len(output.ModelsAbove(s.r.Out, step))); text != "" {
		return fault.Usagef("add "+fault.Setting("overwrite")+" to replace them, or name another folder",
			"%s holds what the run did after step %d: %s", s.r.Out, step, text)
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

// checkConfig refuses another configuration than the run's so far, before anything slow.
func (s *saver) checkConfig() error {
	if s.from == nil {
		return nil
	}
	changes, err := s.compare(s.from.Header.Capture)
	if err == nil {
		s.warnFixed(changes)
	}
	return err
}

// warnFixed warns of a number of splats that was accepted too late: no refinement is left that could reach it.
func (s *saver) warnFixed(changes []recipe.Change) {
	c, h := &s.r.Config, &s.from.Header
	asked := slices.ContainsFunc(changes, func(c recipe.Change) bool { return c.Key == "splats" })
	if asked && !c.RefinesFrom(h.Step) && c.Splats > 0 && c.Splats != h.Splats {
		s.r.warnLater(fmt.Sprintf("%s %d has no effect: the model keeps its %d splats, because no refinement is left "+
			"after step %d", fault.Setting("splats"), c.Splats, h.Splats, h.Step))
	}
}

// compare returns what differs from the run so far. Unless the user accepts it, and the state can take it, it is an
// error.
func (s *saver) compare(capture checkpoint.CaptureRecord) ([]recipe.Change, error) {
	if err := s.from.Accepts(s.r.Config, capture.Photos); err != nil {
		return nil, err
	}
	if s.from.Hidden > 0 && !s.o.Accept {
		return nil, fault.Data("resume", s.from.Path(), "train it from scratch, or continue with all splats drawn: "+
			fault.Setting("accept-changes"),
			"%w: an earlier version trained it with a near plane of its own for each view (clearance %g), "+
				"which hides splats that every other program draws", fault.ErrData, s.from.Hidden)
	}
	changes := s.from.Changes(s.r.Config, capture)
	if len(changes) == 0 || s.o.Accept {
		return changes, nil
	}
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.String()
	}
	return nil, fault.Usagef(s.goBack(changes)+", or continue with the new values: "+fault.Setting("accept-changes"),
		"%s was made otherwise: %s", s.from.Path(), strings.Join(words, "; "))
}

// fewChanges are no more than a command line can have for them.
const fewChanges = 4

// goBack says how to take changes back: by settings as far as they are sure to do, as in "--carve=0", without a preset
// that is not the run's, and by what chooses the photos.
func (s *saver) goBack(changes []recipe.Change) string {
	text := "give what the run was made with"
	photos := s.photosBack(changes)
	own := slices.DeleteFunc(slices.Clone(changes), func(c recipe.Change) bool { return ofCapture(c) })
	list, sure := s.settingsBack(own)
	switch {
	case len(own) > 0 && s.r.otherPreset(s.from.Header.Preset, &s.from.Header.Config):
		value := s.r.Preset
		if s.r.presetBy == "config" {
			value = s.r.ConfigFile
		}
		text = "leave out " + fault.Setting(s.r.presetBy) + " " + value + " to keep the run's settings"
	case len(own) > 0 && s.factorsBack() != "":
		text = s.factorsBack()
	case !sure:
	case len(list) > 0:
		text += ": " + strings.Join(list, " ")
	case len(photos) > 0:
		return strings.Join(photos, "; ")
	}
	return strings.Join(append([]string{text}, photos...), "; ")
}

// factorsBack says how to take back a scaler of steps and factors, "" where the run was made with those given.
func (s *saver) factorsBack() string {
	if s.begun == nil {
		return ""
	}
	var ways []string
	if was := s.begun.StepsScaler; s.r.known("steps-scaler") && s.r.StepsScaler != was {
		ways = append(ways, fmt.Sprintf("give what the run was made with: %s=%v", fault.Setting("steps-scaler"), was))
	}
	for _, f := range factors {
		if s.r.known(f.name) && !f.value(&s.r.Factors).Equal(f.value(&s.begun.Factors)) {
			ways = append(ways, "leave out "+fault.Setting(f.name))
		}
	}
	return strings.Join(ways, "; ")
}

// ofCapture reports whether a change is one of the capture and of no setting.
func ofCapture(c recipe.Change) bool { return strings.HasPrefix(c.Key, checkpoint.OfCapture) }

// settingsBack lists settings that take changes back, if they are sure to do. They are not where a setting brings
// others with it, or steps and rates are multiplied once they are given.
func (s *saver) settingsBack(changes []recipe.Change) (list []string, sure bool) {
	multiplied := s.r.StepsScaler != 1 || s.r.ShareSteps
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
func (s *saver) photosBack(changes []recipe.Change) (list []string) {
	before, now := &s.from.Header.Capture, len(s.r.Train)+len(s.r.Test)
	if slices.ContainsFunc(changes, ofCapture) && before.Photos+before.HeldOut != now {
		return []string{"give the photos that the run was made with"}
	}
	for _, c := range changes {
		switch strings.TrimPrefix(c.Key, checkpoint.OfCapture) {
		case checkpoint.HeldOutKey:
			list = append(list, s.heldOutBack(c))
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
			if s.r.Load.Downscale == 0 {
				list = append(list, "give the run's "+fault.Setting("downscale"))
			} else {
				list = append(list, fmt.Sprintf("leave out %s %s, or give the run's", fault.Setting("downscale"),
					&s.r.Load.Downscale))
			}
		}
	}
	return list
}

// heldOutBack says how as many photos are held out as before.
func (s *saver) heldOutBack(c recipe.Change) string {
	eval, list := fault.Setting("eval"), fault.Setting("test-list")
	switch {
	case c.Old == "0" && s.r.TestList != "":
		return "leave out " + list
	case c.Old == "0":
		return "leave out " + eval
	case c.New == "0":
		return "give " + eval + ", or the run's " + list
	}
	return "give the run's " + fault.Setting("test-every") + " or " + list
}

// resume makes a trainer that goes on with the checkpoint. cams are in its frame.
func (s *saver) resume(cams []scene.Camera, o pipeline.TrainerOptions) (*pipeline.Trainer, error) {
	changes, err := s.compare(s.r.record().Capture)
	if err != nil {
		return nil, err
	}
	h := &s.from.Header
	t, err := pipeline.NewTrainerFrom(s.r.device, cams, s.r.photos, s.from, s.r.Config, o)
	if err != nil {
		return nil, err
	}
	// Everything of it is on the device now. A file that is open cannot be removed later, or keeps its room on the
	// disk.
	if err := s.from.Close(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	for _, c := range changes {
		t.Deviate("changed: " + c.String())
		if key := strings.TrimPrefix(c.Key, checkpoint.OfCapture); key == checkpoint.HeldOutKey ||
			key == checkpoint.ChoiceKey {
			s.r.resplit = true
		}
	}
	if s.r.resplit && len(s.r.Test) > 0 {
		s.r.warnLater("the run was trained on photos that are held out now: their scores say nothing of new views")
	}
	s.r.Console.Printf("resuming from %s: step %d of %d, %s\n", s.from.Path(), h.Step, s.r.Config.Iterations,
		cli.Count(h.Splats, "splat"))
	if before, same := t.DevicesBefore(h); !same {
		s.r.warnLater(fmt.Sprintf("the steps so far were done by other devices or drivers (%s): the bytes may differ "+
			"from those of an undisturbed run", before))
	}
	if now := cli.Version(); now != h.Version {
		t.Deviate(fmt.Sprintf("version changed: %s -> %s", h.Version, now))
		s.r.warnLater(fmt.Sprintf("the steps so far were done by version %s: the bytes may differ from those of an "+
			"undisturbed run", h.Version))
	}
	if m := t.MemoryStats(); !m.CeilingFits {
		s.r.warnLater(fmt.Sprintf("the run may grow to %s, for which there is too little device memory: it may stop "+
			"for want of memory", cli.Count(m.Ceiling, "splat")))
	}
	return t, nil
}

// record returns what checkpoints say of the run.
func (r *Run) record() pipeline.RunRecord {
	c := r.Capture
	return pipeline.RunRecord{
		Version: cli.Version(), Preset: r.Preset,
		Capture: checkpoint.CaptureRecord{Fingerprint: r.fingerprint, Parts: r.parts, Photos: len(r.Train),
			HeldOut: len(r.Test), Split: captured.SplitHash(r.Train), Points: r.nPoints,
			Resolution: captured.Resolution(c.Cameras)},
		Frame: checkpoint.FrameRecord{Center: c.Frame.Center, Scale: c.Frame.Scale, SceneScale: c.SceneScale,
			Origin: r.origin},
	}
}
