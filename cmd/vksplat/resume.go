package main

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
	"vksplat/scene"
)

// find removes what processes left that were killed, and opens the checkpoint that the run goes on with.
func (s *saver) find() error {
	if s.r.dryRun {
		return nil
	}
	s.r.sweep()
	if err := s.r.refuseFolders(); err != nil {
		return err
	}
	if s.o.off {
		s.left = s.leftovers()
		return s.refuseForeign(nil)
	}
	list, err := output.ListCheckpoints(s.dir)
	if err != nil {
		return err
	}
	switch s.o.resume {
	case "":
		err = s.protect(list)
	case resumeAuto:
		err = s.findNewest(list)
	default:
		err = s.openFile(list)
	}
	if err == nil {
		err = s.refuseForeign(list)
	}
	if err != nil {
		return err
	}
	for _, f := range list {
		if s.ownPast() && f.Step <= s.from.Header.Step {
			s.kept = append(s.kept, f)
		} else {
			s.foreign = append(s.foreign, f.Path)
		}
	}
	s.left = s.leftovers()
	s.asked = slices.Clone(s.o.saveAt)
	if !s.ownPast() {
		return nil
	}
	s.asked = append(s.asked, s.readAsked()...)
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
	err := output.WriteJSON(filepath.Join(s.dir, output.AskedFile), s.asked)
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
		return &fault.HintedError{Err: fmt.Errorf("resume %s: %w: no checkpoint of %d can be read", s.r.out, fault.ErrData, n),
			Hint: "choose another folder, or start over with --overwrite in place of --resume, which removes " + output.FormerText(s.r.out, n)}
	}
	if err := output.RefuseFormer(s.r.out, 0, "replace it with --overwrite in place of --resume, or choose another folder"); err != nil {
		return err
	}
	s.r.app.Printf("no checkpoint in %s: starting from the beginning\n", s.r.out)
	return nil
}

// openFile opens the checkpoint that was named. With one of another folder, what this folder holds is not lost either.
func (s *saver) openFile(list []output.CheckpointFile) (err error) {
	if !output.InFolder(s.o.resume, s.dir) {
		if err := s.protect(list); err != nil {
			return err
		}
	}
	if s.from, err = output.OpenWhole(s.o.resume); err != nil || !s.ownPast() || s.o.overwrite {
		return err
	}
	step := s.from.Header.Step
	later := slices.DeleteFunc(list, func(f output.CheckpointFile) bool { return f.Step <= step })
	if text := output.ContentText(len(later), len(output.ModelsAbove(s.r.out, step))); text != "" {
		return fault.Usagef("add --overwrite to replace them, or name another folder with -m", "%s holds what the run did after step %d: %s", s.r.out, step, text)
	}
	return nil
}

// checkConfig refuses another configuration than the run's so far, before anything slow.
func (s *saver) checkConfig() error {
	if s.from == nil {
		return nil
	}
	_, err := s.compare(s.from.Header.Capture)
	return err
}

// compare returns what differs from the run so far. Unless the user accepts it, and the state can take it, it is an error.
func (s *saver) compare(capture pipeline.CaptureRecord) ([]pipeline.Change, error) {
	if err := s.from.Accepts(s.r.config, capture.Photos); err != nil {
		return nil, err
	}
	if s.from.Hidden > 0 && !s.o.accept {
		return nil, &fault.HintedError{
			Err: fmt.Errorf("resume %s: %w: an earlier version trained it with a near plane of its own for each view (clearance %g), which hides splats that every other program draws",
				s.from.Path(), fault.ErrData, s.from.Hidden),
			Hint: "train it anew, or go on with all splats drawn: --accept-changes",
		}
	}
	changes := s.from.Changes(s.r.config, capture)
	if len(changes) == 0 || s.o.accept {
		return changes, nil
	}
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.String()
	}
	return nil, fault.Usagef("give what the run was started with, or go on with the new values: --accept-changes",
		"%s was made otherwise: %s", s.from.Path(), strings.Join(words, "; "))
}

// resume makes a trainer that goes on with the checkpoint. cams are in its frame.
func (s *saver) resume(cams []scene.Camera, o pipeline.TrainerOptions) (*pipeline.Trainer, error) {
	changes, err := s.compare(s.r.record().Capture)
	if err != nil {
		return nil, err
	}
	h := &s.from.Header
	t, err := pipeline.NewTrainerFrom(s.r.device, cams, s.r.photos, s.from, s.r.config, o)
	if err != nil {
		return nil, err
	}
	// Everything of it is on the device now. A file that is open cannot be removed later, or keeps its room on the disk.
	if err := s.from.Close(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	for _, c := range changes {
		t.Deviate("changed: " + c.String())
	}
	s.r.app.Printf("going on with %s: step %d of %d, %s\n", s.from.Path(), h.Step, s.r.config.Iterations, cli.Count(h.Splats, "splat"))
	if before, same := t.DevicesBefore(h); !same {
		s.r.warnLater(fmt.Sprintf("the steps so far were done by other devices or drivers (%s): the bytes may differ from those of an undisturbed run", before))
	}
	if now := cli.Version(); now != h.Version {
		t.Deviate(fmt.Sprintf("version changed: %s -> %s", h.Version, now))
		s.r.warnLater(fmt.Sprintf("the steps so far were done by version %s: the bytes may differ from those of an undisturbed run", h.Version))
	}
	if n, fits := t.Ceiling(); !fits {
		s.r.warnLater(fmt.Sprintf("the run may grow to %s, for which there is too little device memory: it may stop for want of memory", cli.Count(n, "splat")))
	}
	return t, nil
}

// record returns what checkpoints say of the run.
func (r *trainRun) record() pipeline.RunRecord {
	c := r.capture
	return pipeline.RunRecord{
		Version: cli.Version(),
		Capture: pipeline.CaptureRecord{Fingerprint: r.fingerprint, Photos: len(r.train), HeldOut: len(r.test), Split: captured.SplitHash(r.train), Points: r.nPoints,
			Resolution: captured.Resolution(c.Cameras)},
		Frame: pipeline.FrameRecord{Center: c.Frame.Center, Scale: c.Frame.Scale, SceneScale: c.SceneScale, Origin: r.origin},
	}
}
