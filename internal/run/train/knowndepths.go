package train

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/depth"
	"vksplat/scene/initial"
	"vksplat/scene/inspect"
	"vksplat/scene/photo"
	"vksplat/scene/pointcloud"
)

// DepthOptions say what depths the photos' pictures are compared with.
type DepthOptions struct {
	Points bool    `json:"points"` // of the capture's own points
	Maps   string  `json:"maps"`   // folder of depth maps; "": none
	Kind   string  `json:"kind"`   // of what they hold, one of depth.Kinds
	Unit   float64 `json:"unit"`   // of theirs; 0: found by points
	Cloud  string  `json:"cloud"`  // file of points; "": none
	Init   bool    `json:"init"`   // training begins with points there, too
}

// used reports whether depths are compared.
func (o *DepthOptions) used() bool { return o.Points || o.Maps != "" || o.Cloud != "" }

// adopt takes over what a run was begun with, where the call does not say otherwise.
func (o *DepthOptions) adopt(was *DepthOptions, given func(flag string) bool) {
	captured.Adopt(given, "depth-loss", &o.Points, was.Points)
	captured.Adopt(given, "depths", &o.Maps, was.Maps)
	captured.Adopt(given, "depth-kind", &o.Kind, was.Kind)
	captured.Adopt(given, "depth-unit", &o.Unit, was.Unit)
	captured.Adopt(given, "depth-points", &o.Cloud, was.Cloud)
	captured.Adopt(given, "depth-init", &o.Init, was.Init)
	if o.Kind == "" { // an earlier version began the run
		o.Kind = depth.KindAuto
	}
}

// absolute makes paths absolute, for the run's record.
func (o DepthOptions) absolute() DepthOptions {
	if o.Cloud != "" {
		o.Cloud = output.Absolute(o.Cloud)
	}
	return o
}

// check refuses values that nothing accepts.
func (o *DepthOptions) check() error {
	if !(o.Unit >= 0) || math.IsInf(o.Unit, 0) {
		return fault.Usagef("give the length of 1 in the maps, as in 0.001 for millimetres",
			"%s %g is not a length", fault.Setting("depth-unit"), o.Unit)
	}
	return nil
}

// knowns are known depths, normals and poses of the photos that are trained on: nil where they are not compared, and
// once the trainer has them.
type knowns struct {
	*Options
	*notes
	depths     depth.Known
	depthHash  [sha256.Size]byte
	normals    []scene.NormalMap
	normalHash [sha256.Size]byte
	anchors    [][]scene.Anchor // of poses
	anchorHash [sha256.Size]byte
	motionHash [sha256.Size]byte // of the motions of Capture.Cameras, with --native-lens alone
}

// knownDepthBytes is the RAM of a known depth until the run ends.
const knownDepthBytes = 8

// findDepths finds the depths that photos are known to have. points are those of the capture's files; the capture is
// in its own frame.
func (k *knowns) findDepths(c *scene.Capture, points []scene.Point) error {
	o := &k.Depth
	if !o.used() {
		return nil
	}
	if err := o.check(); err != nil {
		return err
	}
	own, tracked, err := depth.Points(c, points)
	if err != nil {
		return err
	}
	known := make(depth.Known, len(c.Cameras))
	if o.Points {
		if own.Count() == 0 {
			return fault.Data("compare depths", c.Root, "leave out "+fault.Setting("depth-loss"),
				"no photo shows any of %s", cli.Count(len(points), "point"))
		}
		known.Add(own)
		how := "that the reconstruction saw there"
		if !tracked {
			how = "that no other hides: the capture does not say what was seen"
		}
		k.noteDepths(own, "of points "+how)
	}
	if o.Maps != "" {
		if err := k.addMaps(c, known, own); err != nil {
			return err
		}
	}
	if o.Cloud != "" {
		cloud, notes, err := pointcloud.Read(o.Cloud)
		if err != nil {
			return err
		}
		for _, note := range notes {
			k.warnLater(o.Cloud + ": " + note)
		}
		seen := depth.Visible(c.Cameras, cloud)
		if n := seen.Most(); n < scene.BlindCamera {
			return fault.Data("compare depths", o.Cloud, "the cloud "+inFrame, "no photo shows more than %d of %s", n,
				cli.Count(len(cloud), "point"))
		}
		if said := inspect.OtherScale(c.Cameras, points, cloud); said != "" {
			k.warnLater(fmt.Sprintf("the points of %s %s: the cloud %s", filepath.Base(o.Cloud), said, inFrame))
		}
		known.Add(seen)
		k.noteDepths(seen, fmt.Sprintf("of %s of %s", cli.Count(len(cloud), "point"), filepath.Base(o.Cloud)))
	}
	k.depths = known
	k.depthHash = hashLists(known, func(b []byte, p scene.KnownDepth) []byte {
		b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, p.X), p.Y)
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(p.Depth))
	})
	return nil
}

// noteDepths says what depths are compared.
func (k *knowns) noteDepths(known depth.Known, what string) {
	k.noteCompared("depths", "pixel", known.Counts(), what)
}

// noteCompared says what is compared with training photos. counts are the pixels or places of each.
func (k *knowns) noteCompared(what, noun string, counts []int, how string) {
	n, photos := 0, 0
	for _, count := range counts {
		if n += count; count > 0 {
			photos++
		}
	}
	k.noteLater(fmt.Sprintf("%s at %s of %s are compared, %s", what, cli.Count(n, noun),
		cli.Count(photos, "training photo"), how))
}

// addMaps adds what depth maps say.
func (k *knowns) addMaps(c *scene.Capture, known, points depth.Known) error {
	o := &k.Depth
	found, err := depth.Maps(c, points, depth.MapOptions{Dir: o.Maps, Kind: o.Kind, Unit: o.Unit})
	if err != nil {
		return err
	}
	for _, m := range []struct {
		names []string
		text  string
	}{
		{found.Missing, "have no depth map"},
		{found.Off, "have a depth map that does not fit the capture's points, or too few of these: it does not count"},
	} {
		if n := len(m.names); n > 0 {
			k.warnLater(scene.Warning{Count: n, Names: scene.FirstNames(m.names),
				Text: fmt.Sprintf("%d of %d photos %s", n, len(c.Cameras), m.text)}.String())
		}
	}
	if found.Known.Count() == 0 {
		if len(found.Off) > 0 {
			return fault.Data("compare depths", o.Maps, fault.Setting("depth-kind")+" says what maps hold, "+
				fault.Setting("depth-unit")+" their unit; their rows and columns are those of the photos' files",
				"taken for maps of %s, none of the %s fits the capture's points, or these are too few", found.Kind,
				cli.Count(len(c.Cameras)-len(found.Missing), "map"))
		}
		return fault.Data("compare depths", o.Maps, "see what "+fault.Setting("depth-kind")+" says of them",
			"the depth maps hold no depth")
	}
	k.noteDepths(found.Known, found.Text())
	known.Add(found.Known)
	return nil
}

// hashLists hashes lists of what put appends.
func hashLists[T any](lists [][]T, put func(b []byte, x T) []byte) [sha256.Size]byte {
	h := sha256.New()
	var b []byte
	for _, list := range lists {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(len(list)))
		for _, x := range list {
			b = put(b, x)
		}
		h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// trainedDepths returns what is known of the photos that are trained on, in the training frame.
func (k *knowns) trainedDepths(f scene.Frame) pipeline.KnownDepths {
	if k.depths == nil {
		return nil
	}
	list := k.depths
	list.Scale(f.Scale)
	k.depths = nil
	return pipeline.KnownDepths(list)
}

// mostDepthPoints is with how many points at known depths training begins at most.
const mostDepthPoints = 100_000

// addDepthPoints adds points at known depths of the photos that are trained on to those that training begins with, in
// the colours of the photos. The capture is in the training frame. A photo that cannot be decoded has none.
func (d *dataset) addDepthPoints() {
	if !d.Depth.Init || !d.Depth.used() || !startsAtPoints(d.Options) {
		return
	}
	t, lists := d.training, d.known.depths
	n := lists.Count()
	stride := 1 + n/mostDepthPoints
	points := make([][]scene.Point, len(lists))
	parallel.For(len(lists), func(i int) {
		cam := &t.Cameras[i]
		if len(lists[i]) == 0 {
			return
		}
		img, err := photo.Decode(*cam)
		if err != nil {
			return
		}
		for k := 0; k < len(lists[i]); k += stride {
			p := lists[i][k]
			at := int(p.Y)*cam.Width + int(p.X)
			if img.Mask != nil && !photo.Counts(img.Mask, at) {
				continue
			}
			points[i] = append(points[i], scene.Point{
				Pos:   cam.Place(float64(p.X)+0.5, float64(p.Y)+0.5, float64(p.Depth)*t.Frame.Scale),
				Color: [3]uint8(img.Pix[4*at : 4*at+3])})
		}
		photo.Recycle(img)
	})
	had := len(t.Points)
	t.Points = append(t.Points, initial.Apart(t.Points, slices.Concat(points...))...)
	d.noteLater(fmt.Sprintf("training also starts with %s at known depths", cli.Count(len(t.Points)-had, "point")))
}
