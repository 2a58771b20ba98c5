package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
)

// checkpointHeader is about what a checkpoint holds beside its tensors, in bytes.
const checkpointHeader = 16 << 10

// saver writes the checkpoints of a run and clears away the old ones.
type saver struct {
	o       *CheckpointOptions
	config  *recipe.Config
	out     string
	dir     string // of checkpoints, in out
	console *cli.Console
	place   *place
	id      *identity
	run     saved
	trainer *pipeline.Trainer // nil until it is made

	kept    []output.CheckpointFile // those of this run and its past, by step
	pending *checkpoint.Write
	wanted  bool // pending was asked for
	// steps of --save-at and of the viewer, of this and of earlier calls: their checkpoints stay
	asked      []int
	remembered bool                               // asked is on disk
	last       time.Time                          // end of the last write, or the start
	full       bool                               // the last periodic write failed
	clears     bool                               // once the run's last checkpoint is whole, old ones go
	failed     error                              // the first failure of a write that was asked for
	lastErr    error                              // why there is no checkpoint of the end
	stretch    atomic.Pointer[context.CancelFunc] // ends the present stretch of training; nil before the first
	now        atomic.Bool                        // a viewer wants a checkpoint now
	log        []output.CheckpointLog
}

// saved is the part of a run that its saver needs.
type saved interface {
	begin() error              // before the first file of OUT is written
	writeModel(step int) error // beside the checkpoints that were asked for
	emit(e Event) error
}

func newSaver(o *Options, console *cli.Console, p *place, id *identity, run saved) *saver {
	return &saver{o: &o.Checkpoints, config: &o.Config, out: o.Out, console: console, place: p, id: id, run: run,
		dir: filepath.Join(o.Out, output.CheckpointFolder)}
}

// staged reports whether the run has not replaced an earlier one in OUT yet, whose checkpoints stay so long.
func (s *saver) staged() bool { return s.place.at(s.dir) != s.dir }

// checkpointPath returns where the checkpoint of a step goes.
func (s *saver) checkpointPath(step int) string {
	return filepath.Join(s.dir, output.CheckpointPrefix+strconv.Itoa(step)+output.CheckpointSuffix)
}

// stretchOf begins a stretch of training, which saveNow ends.
func (s *saver) stretchOf(ctx context.Context) (context.Context, context.CancelFunc) {
	part, cancel := context.WithCancel(ctx)
	s.stretch.Store(&cancel)
	if s.now.Load() { // since before this stretch, which would not have ended
		cancel()
	}
	return part, cancel
}

// poll is called after every step. It reports whether a checkpoint is due before the next stop.
func (s *saver) poll() bool {
	if s.pending != nil && s.pending.Done() {
		s.settle()
	}
	return !s.o.Off && s.o.Every.time > 0 && time.Since(s.last) >= s.o.Every.time && s.pending == nil
}

// saveNow has a checkpoint written after the step, or at once while training is held. It may be called from any
// goroutine.
func (s *saver) saveNow() {
	s.now.Store(true)
	if end := s.stretch.Load(); end != nil {
		(*end)()
	}
}

// early writes a checkpoint between two stops: it is due, or a viewer asked for it.
func (s *saver) early() {
	asked := s.now.Swap(false)
	if step := s.trainer.Step(); asked && !slices.Contains(s.asked, step) {
		s.asked, s.remembered = append(s.asked, step), false // it stays, as those of --save-at do
	}
	err := s.save(true)
	if err != nil {
		s.missed(err)
	}
	if asked {
		_ = s.run.emit(&Saved{s.pending, s.checkpointPath(s.trainer.Step()), s.trainer.Step(), err}) // it has no error
	}
}

// begin checks that the disk has room for the first checkpoint and model.
func (s *saver) begin() error {
	s.last = time.Now()
	t, c := s.trainer, s.config
	if s.o.Off {
		return nil
	}
	need := t.CheckpointBytes(0) + checkpointHeader
	free, known := atomicfile.FreeSpace(s.out)
	if known && free < need {
		return output.FolderError(s.out, noSpace("the first checkpoint", need, free))
	}
	last := c.MaxSplats
	if c.Splats > 0 {
		last = c.Splats
	}
	if most := int64(s.o.keepRunning()+1) * t.CheckpointBytes(last); known && last > 0 && free < most {
		s.console.Warn(fmt.Sprintf("%s has %s free; checkpoints of %s take up to %s", s.out,
			pipeline.BytesText(free), cli.Count(last, "splat"), pipeline.BytesText(most)))
	}
	return nil
}

// nextStop returns the next step after step at which something is to be written, or the last one.
func (s *saver) nextStop(step int) int {
	next := s.config.Iterations
	if s.o.Off {
		return next
	}
	for _, at := range s.o.SaveAt {
		if at > step {
			next = min(next, at)
		}
	}
	if n := s.o.Every.steps; n > 0 {
		next = min(next, (step/n+1)*n)
	}
	return next
}

// atStop writes what is due at a step.
func (s *saver) atStop(step int) {
	if !slices.Contains(s.o.SaveAt, step) {
		if err := s.save(true); err != nil { // a warning, until one succeeds
			s.missed(err)
		}
		return
	}
	err := s.save(s.roomForBoth())
	if err = errors.Join(err, s.run.writeModel(step)); err != nil {
		s.fail(fmt.Errorf("save step %d: %w", step, err))
	}
}

// fail notes the failure of a write that was asked for: training continues, and the run ends with the error.
func (s *saver) fail(err error) {
	if s.failed == nil {
		s.failed = err
		if errors.Is(err, pipeline.ErrDiverged) {
			return // training ends
		}
		s.console.Warn(err.Error() + "; training continues")
	}
}

// missed warns of a checkpoint that was not written, and that no setting asked for at this very step.
func (s *saver) missed(err error) {
	if errors.Is(err, pipeline.ErrDiverged) {
		return // training ends with it
	}
	if !s.full {
		s.console.Warn(fmt.Sprintf("no checkpoint was written: %s; training continues", err))
		if n := len(s.kept); n > 0 {
			s.console.Note("the last one is " + s.kept[n-1].Path)
		}
	}
	s.full = true
}

// save writes a checkpoint of the state as it is, in the background where that can be.
func (s *saver) save(background bool) error {
	s.settle()
	defer func() { s.last = time.Now() }()
	t := s.trainer
	if err := s.run.begin(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.place.at(s.dir), 0o777); err != nil {
		return output.FolderError(s.place.at(s.dir), err)
	}
	if err := s.rememberAsked(); err != nil {
		return err
	}
	if err := s.makeRoom(t.CheckpointBytes(0) + checkpointHeader); err != nil {
		return err
	}
	s.id.identify(t)
	path := s.place.at(s.checkpointPath(t.Step()))
	w, err := t.SaveCheckpoint(path, background)
	if err != nil {
		return err
	}
	s.pending, s.wanted = w, slices.Contains(s.o.SaveAt, w.Step)
	if w.Behind {
		return nil
	}
	return s.collect()
}

// settle is collect of a write whose failure does not end the run.
func (s *saver) settle() {
	w := s.pending
	switch err := s.collect(); {
	case err != nil && s.wanted:
		s.fail(fmt.Errorf("save step %d: %w", w.Step, err))
	case err != nil:
		s.missed(err)
	}
}

// collect waits for a checkpoint that is being written and clears old ones away once it is whole.
func (s *saver) collect() error {
	w := s.pending
	if w == nil {
		return nil
	}
	s.pending = nil
	if err := w.Wait(); err != nil {
		return err
	}
	s.full = false
	s.log = append(s.log, output.CheckpointLog{Step: w.Step, Bytes: w.Bytes, Copied: w.Copied,
		PauseSeconds: w.Pause.Seconds(), Seconds: w.Took().Seconds()})
	s.kept = slices.DeleteFunc(s.kept, func(f output.CheckpointFile) bool { return f.Step == w.Step })
	s.kept = append(s.kept, output.CheckpointFile{Path: s.checkpointPath(w.Step), Step: w.Step})
	if err := s.place.replaceEarlier(); err != nil { // it is tried again with the next checkpoint
		s.console.Warn(err.Error() + "; training continues")
	}
	if !s.staged() {
		s.prune(s.o.keepRunning())
	}
	return nil
}

// prune removes all but the newest checkpoints, and those of steps that were asked for.
func (s *saver) prune(keep int) {
	left := 0
	for i := len(s.kept) - 1; i >= 0; i-- {
		f := s.kept[i]
		if slices.Contains(s.asked, f.Step) {
			continue
		}
		if left++; left > keep {
			_ = os.Remove(f.Path) // it takes room and does no harm
			s.kept = slices.Delete(s.kept, i, i+1)
		}
	}
}

// makeRoom checks that the disk has need bytes. Where it has not, all checkpoints but the newest go.
func (s *saver) makeRoom(need int64) error {
	dir := s.place.at(s.dir)
	free, known := atomicfile.FreeSpace(dir)
	if known && free < need && len(s.kept) > 1 && !s.staged() {
		s.prune(1)
		free, known = atomicfile.FreeSpace(dir)
	}
	if known && free < need {
		return output.FolderError(s.dir, noSpace("a checkpoint", need, free))
	}
	return nil
}

// noSpace is the error of a disk that is about to be full.
func noSpace(what string, need, free int64) error {
	return fmt.Errorf("%w: %s takes %s, %s are free", syscall.ENOSPC, what, pipeline.BytesText(need),
		pipeline.BytesText(max(free, 0)))
}

// end writes the checkpoint of a run that is done, or was stopped: where the former has room, in the background, while
// its model is written and measured. ended must be called in any case. early says that little has been
// trained, and that the checkpoint would wait for the photos.
func (s *saver) end(interrupted, early bool) error {
	if s.o.Off {
		return nil
	}
	t := s.trainer
	s.settle()
	asked := slices.Contains(s.o.SaveAt, t.Step())
	if interrupted && !asked && early && len(s.kept) == 0 {
		s.console.Note("no checkpoint is written: its photos have not all been read once, and little has been trained")
		return s.failed
	}
	s.clears = !interrupted
	nothingNew := !t.Changed() && len(s.kept) > 0
	if keep := s.o.keepAtEnd(); (interrupted || keep > 0 || asked) && !nothingNew {
		s.lastErr = s.save(!interrupted && s.roomForBoth())
	}
	if s.pending != nil {
		return s.failed
	}
	return s.ended()
}

// ended waits for what end began, and leaves as many checkpoints as were asked for. It may be called again.
func (s *saver) ended() error {
	s.lastErr = errors.Join(s.lastErr, s.collect())
	if s.lastErr == nil && s.clears {
		if s.lastErr = s.run.begin(); s.lastErr == nil { // where nothing was written
			s.prune(s.o.keepAtEnd())
		}
	}
	s.clears = false
	return errors.Join(s.failed, s.lastErr)
}

// roomForBoth reports whether the disk has room for a checkpoint and the model at once. Otherwise the model comes after
// the checkpoint, so that it has the room of one that cannot be written.
func (s *saver) roomForBoth() bool {
	both := 2 * (s.trainer.CheckpointBytes(0) + checkpointHeader) // a checkpoint is larger than a model
	free, known := atomicfile.FreeSpace(s.out)
	return known && free >= both
}

// onPressure saves the run before the trainer gives things up for want of device memory.
func (s *saver) onPressure(int) {
	if s.o.Off || s.trainer == nil {
		return
	}
	if err := s.save(false); err != nil { // in the background it would take a copy in memory that is short already
		s.missed(err)
	}
}

// rescue tries to save a run that ended for want of memory.
func (s *saver) rescue(cause error) error {
	if s.o.Off || !pipeline.IsShortage(cause) || s.trainer.Step() == 0 {
		return cause
	}
	if err := s.save(false); err != nil {
		return errors.Join(cause, err)
	}
	return fault.WithHint(fmt.Errorf("%w; step %d is saved in %s", cause, s.trainer.Step(),
		s.checkpointPath(s.trainer.Step())),
		"continue with "+fault.Setting("resume")+" and a larger "+fault.Setting("max-vram")+
			", or on a device with more memory")
}

// history returns what stats.json tells, nil for nothing.
func (s *saver) history() *output.RunLog {
	h := &output.RunLog{ResumedFrom: s.trainer.StartStep(), Deviations: s.trainer.Deviations(), Checkpoints: s.log}
	if h.ResumedFrom == 0 && len(h.Deviations) == 0 && len(h.Checkpoints) == 0 {
		return nil
	}
	return h
}

// newest returns the newest checkpoint's path, or "".
func (s *saver) newest() string {
	if n := len(s.kept); n > 0 {
		return s.kept[n-1].Path
	}
	return ""
}

// recall takes over what earlier processes of the run saved. list are the checkpoints in the folder.
func (s *saver) recall(list []output.CheckpointFile, upTo int) {
	s.asked = slices.Clone(s.o.SaveAt)
	if upTo < 0 {
		return
	}
	var steps []int // where they cannot be read, there are none
	if strictjson.ReadFile(filepath.Join(s.dir, output.AskedFile), &steps) == nil {
		s.asked = append(s.asked, steps...)
	}
	s.kept = slices.DeleteFunc(list, func(f output.CheckpointFile) bool { return f.Step > upTo })
}

// rememberAsked writes the steps down for calls to come, unless they are already.
func (s *saver) rememberAsked() error {
	slices.Sort(s.asked)
	s.asked = slices.Compact(s.asked)
	if s.remembered || len(s.asked) == 0 {
		return nil
	}
	err := output.WriteJSON(filepath.Join(s.place.at(s.dir), output.AskedFile), s.asked)
	s.remembered = err == nil
	return err
}
