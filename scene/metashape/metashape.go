package metashape

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"vksplat/internal/geom"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/exported"
)

// Find lists the XML files of cameras in a folder.
func Find(root string) []string {
	return exported.Files(root, ".xml", func(head []byte) bool {
		return bytes.Contains(head, []byte("<document")) && bytes.Contains(head, []byte("<chunk"))
	})
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, _ scene.LoadOptions) ([]scene.Record, error) {
	data, err := exported.Read(c.Model)
	if err != nil {
		return nil, err
	}
	d, err := parse(data)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	chosen, err := d.choose(c)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	records, first, err := chosen.records(c)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	if err := exported.Locate(c, records); err != nil {
		return nil, err
	}
	if err := exported.Cloud(c); err != nil {
		return nil, err
	}
	placeCloud(c, records, first)
	return records, nil
}

// choose gives the first chunk that is enabled and has cameras with poses.
func (d *document) choose(c *scene.Capture) (*chunk, error) {
	var chosen *chunk
	var more []string
	for i := range d.Chunks {
		k := &d.Chunks[i]
		posed := false
		for _, cam := range k.Cameras.all(nil) {
			posed = posed || cam.posed()
		}
		switch {
		case !posed || off(k.Enabled):
		case chosen == nil:
			chosen = k
		default:
			more = append(more, k.Label)
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("none of its %d chunks is enabled and has cameras with poses", len(d.Chunks))
	}
	if len(more) > 0 {
		c.Warn("other-chunks", fmt.Sprintf("using the cameras of the chunk %s; export another alone to use that",
			wording.Printable(chosen.Label)), more)
	}
	return chosen, nil
}

// frames are the coordinate frames of a chunk's cameras.
type frames struct {
	lenses map[string]exported.Lens
	wrong  map[string]error      // of sensors whose lens is not read: an error only if a camera has them
	rigs   map[string]similarity // of a sensor, to the master of its rig
	lost   map[string]string     // masters that no sensor is, of sensors that name them
	worlds map[string]similarity
	whole  similarity // for cameras of no component
}

func (k *chunk) frames() (f frames, err error) {
	f = frames{map[string]exported.Lens{}, map[string]error{}, map[string]similarity{}, map[string]string{},
		map[string]similarity{}, similarity{}}
	for _, s := range k.Sensors {
		if s.Master != "" && !slices.ContainsFunc(k.Sensors, func(m sensor) bool { return m.ID == s.Master }) {
			f.lost[s.ID] = s.Master
		}
		lens, err := s.lens()
		if err == nil {
			f.rigs[s.ID], err = s.onRig()
		}
		if err != nil {
			f.wrong[s.ID] = fmt.Errorf("sensor %.20s: %w", s.ID, err)
		}
		f.lenses[s.ID] = exported.Fixed(lens)
	}
	for _, p := range k.Components {
		if f.worlds[p.ID], err = p.Transform.similarity("component"); err != nil {
			return f, err
		}
	}
	f.whole, err = k.Transform.similarity("chunk")
	return f, err
}

// of gives the lens of a camera, and the transform to the world.
func (f frames) of(cam camera) (exported.Lens, similarity, error) {
	lens, known := f.lenses[cam.Sensor]
	if !known {
		return nil, f.whole, fmt.Errorf("camera %.80q is of sensor %.20q, which does not exist", cam.Label, cam.Sensor)
	}
	world, known := f.worlds[cam.Component]
	if !known {
		world = f.whole
	}
	return lens, world, f.wrong[cam.Sensor]
}

// records makes records of the cameras of a chunk, in the coordinates of the world, and gives the transform of the
// first.
func (k *chunk) records(c *scene.Capture) (records []scene.Record, first similarity, err error) {
	f, err := k.frames()
	if err != nil {
		return nil, first, err
	}
	var unaligned, disabled []string
	cams := k.Cameras.all(nil)
	masters := map[string]camera{}
	for _, cam := range cams {
		masters[cam.ID] = cam
	}
	for _, cam := range cams {
		posed, against := cam, similarity{turn: geom.Identity, scale: 1} // the camera whose pose the file has
		if !cam.posed() && cam.Master != "" {
			posed = masters[cam.Master]
			cam.Component = posed.Component
			against = f.rigs[posed.Sensor].inverse().after(f.rigs[cam.Sensor])
			if master := cmp.Or(f.lost[cam.Sensor], f.lost[posed.Sensor]); master != "" && !off(cam.Enabled) {
				return nil, first, fmt.Errorf("camera %.80q has its pose from a rig whose master_id %.20q no sensor "+
					"has",
					cam.Label, master)
			}
		}
		switch {
		case off(cam.Enabled):
			disabled = append(disabled, cam.Label)
			continue
		case !posed.posed():
			unaligned = append(unaligned, cam.Label)
			continue
		}
		lens, world, err := f.of(cam)
		if err != nil {
			return nil, first, err
		}
		if len(records) == 0 {
			first = world
		}
		r := scene.Record{Cam: scene.Camera{Name: cam.Label}, Lens: lens}
		if err := posed.pose(&r.Cam, world, against); err != nil {
			r.Bad = exported.Badf(c.Model, "camera %.80q: %w", cam.Label, err)
		}
		records = append(records, r)
	}
	all := len(records) + len(unaligned) + len(disabled)
	if len(unaligned) > 0 {
		c.Warn("unaligned-photos", fmt.Sprintf("%d of %d photos have no pose and are not used", len(unaligned), all),
			unaligned)
	}
	if len(disabled) > 0 {
		c.Warn("disabled-photos", fmt.Sprintf("%d of %d photos are disabled and are not used", len(disabled), all),
			disabled)
	}
	return records, first, nil
}

// posed says whether the file has the camera's own pose.
func (cam camera) posed() bool { return strings.TrimSpace(cam.Transform) != "" }

// pose sets the pose in the world of a camera, which stands so against cam.
func (cam camera) pose(to *scene.Camera, world, against similarity) error {
	var m [16]float64
	if err := numbers(cam.Transform, "its transform", m[:]); err != nil {
		return scene.PoseError{Cause: err}
	}
	turn := [9]float64{m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]}
	own := similarity{turn, [3]float64{m[3], m[7], m[11]}, 1}
	pose := world.after(own.after(against))
	return exported.Pose(to, pose.turn, pose.move)
}

// Samples that decide in which coordinates a cloud is.
const (
	cloudCameras = 32
	cloudPoints  = 512
)

// placeCloud brings points into the world if they are in the chunk's own coordinates, or in those of the world without
// its scale: Metashape exports them in the coordinates that the dialog names, and the file does not say which. They are
// where most of them are seen.
func placeCloud(c *scene.Capture, records []scene.Record, world similarity) {
	unit := similarity{turn: geom.Identity, scale: 1}
	if len(c.Points) == 0 || world == unit {
		return
	}
	best, most := unit, -1
	for _, s := range []similarity{unit, world, {turn: geom.Identity, scale: world.scale}} {
		if seen := countSeen(c.Points, records, s); seen > most {
			best, most = s, seen
		}
	}
	if best == unit {
		return
	}
	kept := c.Points[:0]
	for _, p := range c.Points {
		if p.Pos = best.apply(p.Pos); scene.InRange(p.Pos) {
			kept = append(kept, p)
		}
	}
	c.Points = kept
	c.Warnings = append(c.Warnings, scene.Warning{Code: "moved-points",
		Text: "the points are in the coordinates of the chunk; they were brought into those of the cameras"})
}

// countSeen counts in how many photos points are seen, of samples of both.
func countSeen(points []scene.Point, records []scene.Record, s similarity) (n int) {
	everyPoint, everyCam := len(points)/cloudPoints+1, len(records)/cloudCameras+1
	for i := 0; i < len(records); i += everyCam {
		r := records[i]
		k := r.Lens.Calibration(0, 0) // fixed
		o, err := k.Optics(k.Width, k.Height)
		if err != nil || r.Bad != nil {
			continue
		}
		for j := 0; j < len(points); j += everyPoint {
			x, y, ok := o.Project(r.Cam.ToCamera(s.apply(points[j].Pos)))
			if ok && x >= 0 && y >= 0 && x < o.Width && y < o.Height {
				n++
			}
		}
	}
	return n
}
