package train

import (
	"context"

	"vksplat/internal/fault"
	"vksplat/scene/fingerprint"
)

// noFingerprint stands in checkpoints for a fingerprint that could not be made. No capture has it, so that --resume
// asks for --accept-changes.
const noFingerprint = "unknown"

// startFingerprint begins to hash the photos. A run from the start does not wait for that before its first checkpoint,
// and leaves the other cores to decoding; one that goes on compares the fingerprint before its first step.
func (r *Run) startFingerprint(ctx context.Context) (err error) {
	if r.Checkpoints.Off {
		return nil
	}
	if r.Config.NativeLens { // nothing else goes by them
		r.motionHash = fingerprint.Motions(r.Capture)
	}
	resumed := r.saver.from != nil
	workers := 1
	if resumed {
		workers = 0
	}
	if r.hashing, err = fingerprint.Start(r.Capture, workers); err != nil || !resumed {
		return err
	}
	hash, err := r.hashing.Wait(ctx)
	r.fingerprint = r.fingerprintText(hash)
	return err
}

// identify tells the trainer the fingerprint before it writes its first checkpoint. A photo that was changed or lost
// under the run is no reason to lose the run, too: its checkpoints say that nobody knows what it was trained on.
func (s *saver) identify() {
	r := s.r
	if r.fingerprint != "" {
		s.recheck()
		return
	}
	if !r.hashing.Done() {
		r.Console.Printf("the first checkpoint waits until all photos have been read once\n")
	}
	// Without a context: when the run is interrupted, the checkpoint that is written then needs it all the more.
	hash, err := r.hashing.Wait(context.Background())
	if r.fingerprint = r.fingerprintText(hash); err != nil {
		r.fingerprint = noFingerprint
		r.Console.Warn(err.Error() + "; training goes on, and resuming from checkpoints of this run needs " +
			fault.Setting("accept-changes"))
		r.Trainer.Deviate("the photos were changed, or could not be read, while they were trained on")
		r.altered = true
	}
	r.Trainer.SetFingerprint(r.fingerprint)
}

// recheck tells, once, of photos that were changed after they had been hashed: what is decoded from now on, or was
// since, may be of others.
func (s *saver) recheck() {
	r := s.r
	if r.altered || r.hashing == nil {
		return
	}
	if err := r.hashing.Changed(); err != nil {
		r.altered = true
		r.Console.Warn(err.Error() + "; training goes on, and the bytes may differ from those of an undisturbed run")
		r.Trainer.Deviate("the photos were changed while they were trained on")
	}
}
