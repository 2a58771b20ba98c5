package train

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/depth"
)

// NormalOptions say what normals the photos' pictures are compared with.
type NormalOptions struct {
	Maps  string `json:"maps"`  // folder of normal maps; "": none
	Frame string `json:"frame"` // one of depth.Frames
}

// used reports whether normals are compared.
func (o *NormalOptions) used() bool { return o.Maps != "" }

// adopt takes over what a run was begun with, where the call does not say otherwise.
func (o *NormalOptions) adopt(was *NormalOptions, given func(flag string) bool) {
	captured.Adopt(given, "normals", &o.Maps, was.Maps)
	captured.Adopt(given, "normal-frame", &o.Frame, cmp.Or(was.Frame, o.Frame)) // of earlier versions: none
}

// mostFacing is the share of the normals that face their camera up to which the others are warned of. Networks let a
// few surfaces look away that are seen at a small angle.
const mostFacing = 0.9

// mostOdd is the share of pixels that are no directions from which on they are warned of: pictures that were shrunk
// have some, along edges.
const mostOdd = 0.05

// findNormals reads the normals that photos are known to show. The capture is in its own frame.
func (k *knowns) findNormals(c *scene.Capture) error {
	o := &k.Normal
	if !o.used() {
		return nil
	}
	found, err := depth.ReadNormals(c, depth.NormalOptions{Dir: o.Maps, Frame: o.Frame})
	if err != nil {
		return err
	}
	if n := len(found.Missing); n > 0 {
		k.warnLater(scene.Warning{Count: n, Names: scene.FirstNames(found.Missing),
			Text: fmt.Sprintf("%d of %d photos have no normal map", n, len(c.Cameras))}.String())
	}
	if found.Odd > mostOdd {
		k.warnLater(fmt.Sprintf("%.0f %% of the pixels of normal maps are not directions of length 1 and do not count",
			100*found.Odd))
	}
	if found.Facing < mostFacing {
		k.warnLater(fmt.Sprintf("%.0f %% of the normals look away from their camera in axes of %s, and do not count: "+
			"see what %s says", 100*(1-found.Facing), found.Frame, fault.Setting("normal-frame")))
	}
	if len(found.Doubt) > 0 {
		k.warnLater(fmt.Sprintf("the normals face their cameras as well in axes of %s as in those of %s, which are "+
			"used: give %s to be sure", strings.Join(found.Doubt, " and "), found.Frame, fault.Setting("normal-frame")))
	}
	k.noteCompared("normals", "place", found.Counts(), "of maps in axes of "+found.Frame)
	k.normals, k.normalHash = found.Known, hashNormals(found.Known)
	return nil
}

// hashNormals hashes everything that is known.
func hashNormals(known []scene.NormalMap) (sum [sha256.Size]byte) {
	h := sha256.New()
	var b []byte
	for i := range known {
		m := &known[i]
		b = b[:0]
		for _, word := range append([]uint32{uint32(m.Shift), uint32(m.Columns), uint32(len(m.Cells))}, m.Cells...) {
			b = binary.LittleEndian.AppendUint32(b, word)
		}
		h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// trainedNormals returns what is known of the photos that are trained on.
func (k *knowns) trainedNormals() pipeline.KnownNormals {
	if k.normals == nil {
		return nil
	}
	list := k.normals
	k.normals = nil
	return list
}
