package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/depth"
)

// DepthOptions say what depths the photos' pictures are compared with.
type DepthOptions struct {
	Points bool `json:"points"` // of the capture's own points
}

// used reports whether depths are compared.
func (o *DepthOptions) used() bool { return o.Points }

// adopt takes over what a run was begun with, where the call does not say otherwise.
func (o *DepthOptions) adopt(was *DepthOptions, given func(flag string) bool) {
	if !given("depth-loss") {
		o.Points = was.Points
	}
}

// knownDepthBytes is what a known depth takes in RAM until the run ends.
const knownDepthBytes = 8

// findDepths finds the depths that photos are known to have. points are those of the capture's files; the capture is
// in its own frame.
func (r *Run) findDepths(c *scene.Capture, points []scene.Point) error {
	if !r.Depth.used() {
		return nil
	}
	known, tracked, err := depth.Points(c, points)
	if err != nil {
		return err
	}
	depths, photos := known.Count()
	if depths == 0 {
		return fault.Data("compare depths", c.Root, "leave out "+fault.Setting("depth-loss"),
			"no photo shows any of %s", cli.Count(len(points), "point"))
	}
	how := "that the reconstruction saw there"
	if !tracked {
		how = "that no other hides: the capture does not say what was seen"
	}
	r.noteLater(fmt.Sprintf("depths of %s in %s are compared, of points %s", cli.Count(depths, "pixel"),
		cli.Count(photos, "photo"), how))
	r.knownDepths = known
	r.depthHash = hashDepths(known)
	return nil
}

// hashDepths hashes everything that is known.
func hashDepths(known depth.Known) (sum [sha256.Size]byte) {
	h := sha256.New()
	var b []byte
	for _, list := range known {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(len(list)))
		for _, p := range list {
			b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, p.X), p.Y)
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.Depth))
		}
		h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// fingerprintText is a capture's fingerprint as checkpoints have it, with what is known of depths.
func (r *Run) fingerprintText(capture [sha256.Size]byte) string {
	if r.depthHash != [sha256.Size]byte{} {
		capture = sha256.Sum256(append(capture[:], r.depthHash[:]...))
	}
	return hex.EncodeToString(capture[:])
}

// trainedDepths returns what is known of the photos that are trained on, in the training frame.
func (r *Run) trainedDepths() pipeline.KnownDepths {
	if r.knownDepths == nil {
		return nil
	}
	list := make(pipeline.KnownDepths, len(r.Train))
	for i, id := range r.Train {
		list[i] = r.knownDepths[id]
	}
	depth.Known(list).Scale(r.Capture.Frame.Scale)
	r.knownDepths = nil
	return list
}
