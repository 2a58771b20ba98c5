package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"vksplat/internal/fault"
	"vksplat/pipeline/checkpoint"
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
	if err == nil {
		r.parts = r.fingerprintParts()
	}
	return err
}

// fingerprintText is a capture's fingerprint as checkpoints have it, with what is known of depths and normals, what
// holds refined poses, and the motions that --native-lens goes by.
func (r *Run) fingerprintText(capture [sha256.Size]byte) string {
	for _, hash := range [...][sha256.Size]byte{r.depthHash, r.anchorHash, r.normalHash, r.motionHash} {
		if hash != [sha256.Size]byte{} {
			capture = sha256.Sum256(append(capture[:], hash[:]...))
		}
	}
	return hex.EncodeToString(capture[:])
}

// fingerprintParts says of what the fingerprint is made, once it is there.
func (r *Run) fingerprintParts() checkpoint.PartsRecord {
	text := func(hash [sha256.Size]byte) string {
		if hash == [sha256.Size]byte{} {
			return ""
		}
		return hex.EncodeToString(hash[:])
	}
	shape, files := r.hashing.Parts()
	return checkpoint.PartsRecord{Cameras: text(shape), Files: text(files), Depths: text(r.depthHash),
		Normals: text(r.normalHash), Anchors: text(r.anchorHash), Motions: text(r.motionHash)}
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
	if err == nil {
		r.fingerprint, r.parts = r.fingerprintText(hash), r.fingerprintParts()
	} else {
		r.fingerprint = noFingerprint
		r.Console.Warn(err.Error() + "; training continues, and resuming from checkpoints of this run needs " +
			fault.Setting("accept-changes"))
		r.Trainer.Deviate("the photos were changed, or could not be read, while they were trained on")
		r.altered = true
	}
	r.Trainer.SetFingerprint(r.fingerprint, r.parts)
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
		r.Console.Warn(err.Error() + "; training continues, and the bytes may differ from those of an undisturbed run")
		r.Trainer.Deviate("the photos were changed while they were trained on")
	}
}
