package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/scene/fingerprint"
)

// noFingerprint stands in checkpoints for a fingerprint that could not be made. No capture has it, so that --resume
// asks for --accept-changes.
const noFingerprint = "unknown"

// identity is the fingerprint of what a run is trained on.
type identity struct {
	*notes
	known   *knowns
	hashing *fingerprint.Fingerprint // nil without checkpoints
	text    string                   // "" until a checkpoint needs it
	parts   checkpoint.PartsRecord   // of what it is made
	altered bool                     // photos were changed under the run, and a warning said so
}

// start begins to hash the photos. A run from the start does not wait for that before its first checkpoint, and leaves
// the other cores to decoding; one that is resumed compares the fingerprint before its first step.
func (id *identity) start(ctx context.Context, c *scene.Capture, motions, resumed bool) (err error) {
	if motions { // nothing else goes by them
		id.known.motionHash = fingerprint.Motions(c)
	}
	workers := 1
	if resumed {
		workers = 0
	}
	if id.hashing, err = fingerprint.Start(c, workers); err != nil || !resumed {
		return err
	}
	return id.wait(ctx)
}

// wait waits until all photos are hashed.
func (id *identity) wait(ctx context.Context) error {
	hash, err := id.hashing.Wait(ctx)
	if err == nil {
		id.text, id.parts = id.known.fingerprint(hash), id.partsRecord()
	}
	return err
}

// pending reports whether photos are still being hashed.
func (id *identity) pending() bool { return id.text == "" && id.hashing != nil && !id.hashing.Done() }

// fingerprint is a capture's fingerprint as checkpoints have it, with what is known of depths and normals, what holds
// refined poses, and the motions that --native-lens goes by.
func (k *knowns) fingerprint(capture [sha256.Size]byte) string {
	for _, hash := range [...][sha256.Size]byte{k.depthHash, k.anchorHash, k.normalHash, k.motionHash} {
		if hash != [sha256.Size]byte{} {
			capture = sha256.Sum256(append(capture[:], hash[:]...))
		}
	}
	return hex.EncodeToString(capture[:])
}

// partsRecord says of what the fingerprint is made, once it is there.
func (id *identity) partsRecord() checkpoint.PartsRecord {
	text := func(hash [sha256.Size]byte) string {
		if hash == [sha256.Size]byte{} {
			return ""
		}
		return hex.EncodeToString(hash[:])
	}
	shape, files := id.hashing.Parts()
	k := id.known
	return checkpoint.PartsRecord{Cameras: text(shape), Files: text(files), Depths: text(k.depthHash),
		Normals: text(k.normalHash), Anchors: text(k.anchorHash), Motions: text(k.motionHash)}
}

// identify gives the trainer the fingerprint before it writes a checkpoint. A photo that was changed or lost under the
// run is no reason to lose the run, too: its checkpoints say that it is unknown what it was trained on.
func (id *identity) identify(t *pipeline.Trainer) {
	if id.text != "" {
		id.recheck(t)
		return
	}
	if id.pending() {
		id.console.Printf("the first checkpoint waits until all photos have been read once\n")
	}
	// Without a context: when the run is interrupted, the checkpoint that is written then needs it all the more.
	if err := id.wait(context.Background()); err != nil {
		id.text, id.altered = noFingerprint, true
		id.console.Warn(err.Error() + "; training continues, and resuming from checkpoints of this run needs " +
			fault.Setting("accept-changes"))
		t.Deviate("the photos were changed, or could not be read, while they were trained on")
	}
	t.SetFingerprint(id.text, id.parts)
}

// recheck warns, once, of photos that were changed after they had been hashed: what is decoded from now on, or was
// since, may be of others.
func (id *identity) recheck(t *pipeline.Trainer) {
	if id.altered || id.hashing == nil {
		return
	}
	if err := id.hashing.Changed(); err != nil {
		id.altered = true
		id.console.Warn(err.Error() +
			"; training continues, and the bytes may differ from those of an uninterrupted run")
		t.Deviate("the photos were changed while they were trained on")
	}
}

// close ends the hashing.
func (id *identity) close() {
	if id.hashing != nil {
		id.hashing.Close()
	}
}
