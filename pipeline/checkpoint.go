package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/safetensors"
	"vksplat/scene/splatfile"
	"vksplat/vk"
)

// A checkpoint is a file in the safetensors layout that holds all that decides the bytes of the model to come: every
// parameter with both moments and the strategy's statistics, splat by splat whatever the size of the device's chunks,
// and the JSON of a CheckpointHeader. No clock, path, capacity or command line is in it: equal runs have equal files.

const (
	checkpointFormat = 2
	asideKey         = "aside" // metadata with RunRecord.Aside; readers that do not know it pass over it
	generatorName    = "philox4x32-10 keyed by seed; counters are step and splat, or epoch and view"
)

// CheckpointHeader is what a checkpoint says beside its tensors.
type CheckpointHeader struct {
	Format       int    `json:"format_version"`
	Version      string `json:"vksplat_version"`
	Step         int    `json:"step"` // steps done
	Seed         uint64 `json:"seed"`
	Splats       int    `json:"splats"`
	StartSplats  int    `json:"start_splats"` // before the first step
	SHDegree     int    `json:"sh_degree"`
	SplatCeiling int    `json:"splat_ceiling"` // fixed before the first step
	// times a splat wanted to grow and found the ceiling
	CeilingHits int `json:"ceiling_hits"`
	// iterations of the run's first start, over which the means' learning rate decays
	ScheduleIterations int           `json:"schedule_iterations"`
	Next               recipe.Unit   `json:"next"`
	Order              OrderRecord   `json:"order"`
	Generator          string        `json:"generator"`
	Config             recipe.Config `json:"config"`
	Capture            CaptureRecord `json:"capture"`
	Frame              FrameRecord   `json:"frame"`
	Device             DeviceRecord  `json:"device"`
	// by tensor: what turns its numbers, which are raw, into values
	Activations map[string]string `json:"activations"`
	Deviations  []Deviation       `json:"deviations,omitempty"` // why an undisturbed run may have other bytes
	// of several devices that share the splats; none where one has all
	Team []ShareRecord `json:"team,omitempty"`
}

// OrderRecord is where the run is in the order of views, which is a function of seed and epoch.
type OrderRecord struct {
	Epoch    int `json:"epoch"`
	Position int `json:"position"`
}

// CaptureRecord says what was trained on, without its place.
type CaptureRecord struct {
	Fingerprint string `json:"fingerprint"` // SHA-256 of photos, cameras and points, in hexadecimal
	Photos      int    `json:"photos"`      // trained on
	HeldOut     int    `json:"held_out"`
	// SHA-256 of the numbers of those trained on, in hexadecimal: which photos are held out
	Split      string `json:"split"`
	Points     int    `json:"points"`
	Resolution string `json:"resolution"`
}

// FrameRecord makes the tensors a whole scene: capture = training / scale + center; files are written less origin.
type FrameRecord struct {
	Center     [3]float64 `json:"center"`
	Scale      float64    `json:"scale"`
	SceneScale float64    `json:"scene_scale"`
	Origin     [3]float64 `json:"origin"`
}

// Frame returns the frame of the tensors.
func (f FrameRecord) Frame() scene.Frame { return scene.Frame{Center: f.Center, Scale: f.Scale} }

// DeviceRecord is the device that ran the steps before the checkpoint.
type DeviceRecord struct {
	Name          string `json:"name"`
	UUID          string `json:"uuid"`
	Driver        string `json:"driver"`
	DriverVersion uint32 `json:"driver_version"`
}

// Same reports whether both devices give the same bytes: model and driver are equal. Two cards of one model differ in
// their UUIDs alone.
func (d DeviceRecord) Same(o DeviceRecord) bool {
	return d.Name == o.Name && d.Driver == o.Driver && d.DriverVersion == o.DriverVersion
}

// String words the device and its driver.
func (d DeviceRecord) String() string { return d.Name + ", " + d.Driver }

// Deviation is an event after which an undisturbed run may have other bytes.
type Deviation struct {
	Step   int    `json:"step"` // steps done when it happened
	Reason string `json:"reason"`
}

// Record returns what checkpoints say of the device.
func (d *Device) Record() DeviceRecord { return deviceRecord(d.dev) }

func deviceRecord(dev *vk.Device) DeviceRecord {
	i := dev.Info()
	return DeviceRecord{Name: i.Name, UUID: i.UUID, Driver: i.Driver, DriverVersion: i.DriverVersion}
}

// activations say what turns stored numbers into values.
var activations = activationsOf()

// Checkpoint is an open checkpoint. Its tensors are on disk.
type Checkpoint struct {
	Header CheckpointHeader

	// Hidden is what versions before Config.Carve had in its place: the share of the depth where a photo's points begin
	// up to which they drew no splat for that photo alone, and so hid splats that every other program draws. 0: none
	// were.
	Hidden float64

	file *safetensors.File
	path string
}

// ErrNotCheckpoint says that a file holds tensors, but is no checkpoint of this program.
var ErrNotCheckpoint = splatfile.ErrNotCheckpoint

// OpenCheckpoint reads the header of a checkpoint and checks that the tensors are those that it announces. Whether the
// bytes are those that were written is for Verify to say; what reads tensors calls it first.
func OpenCheckpoint(path string) (*Checkpoint, error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{file: file, path: path}
	if err := c.parse(); err != nil {
		return nil, errors.Join(checkpointError(path, err), file.Close())
	}
	return c, nil
}

func checkpointError(path string, err error) error {
	hint := "the file is damaged: use an earlier checkpoint"
	switch {
	case errors.Is(err, ErrNotCheckpoint):
		hint = "name a file of OUT/checkpoints"
	case errors.Is(err, errNewer):
		hint = "use the version of vksplat that wrote it, or a newer one"
	}
	return &fault.Error{Op: "read checkpoint", Path: path, Err: err, Hint: hint}
}

var errNewer = errors.New("it was written by a newer version of vksplat")

// Aside returns what RunRecord.Aside gave when the checkpoint was written, "" for nothing.
func (c *Checkpoint) Aside() string { return c.file.Metadata[asideKey] }

func (c *Checkpoint) parse() error {
	model, text, err := splatfile.ReadCheckpointHeader(c.file)
	if model.Format > checkpointFormat {
		return errNewer
	}
	if err != nil {
		return err
	}
	// Keys that a later version added to the configuration have their defaults.
	c.Header.Config = recipe.Default()
	if model.Format < formatOfCarve {
		c.Header.Config.Carve = 0
		if text, c.Hidden, err = withoutClearance(text); err != nil {
			return fmt.Errorf("header: %w", strictjson.JSONError(err))
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c.Header); err != nil {
		return fmt.Errorf("header: %w", strictjson.JSONError(err))
	}
	if c.Header.Format < 1 {
		return fmt.Errorf("format version %d", c.Header.Format)
	}
	if err := model.Check(); err != nil {
		return err
	}
	return c.check()
}

// formatOfCarve is the first format of checkpoints whose configuration has Carve.
const formatOfCarve = 2

// withoutClearance takes Carve's predecessor out of a header's configuration.
func withoutClearance(header []byte) (rest []byte, clearance float64, err error) {
	var fields, config map[string]json.RawMessage
	if err := json.Unmarshal(header, &fields); err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(fields["config"], &config); err != nil || config["clearance"] == nil {
		return header, 0, nil // what is wrong with it the decoder of the whole says
	}
	if err := json.Unmarshal(config["clearance"], &clearance); err != nil {
		return nil, 0, err
	}
	delete(config, "clearance")
	if fields["config"], err = json.Marshal(config); err != nil {
		return nil, 0, err
	}
	rest, err = json.Marshal(fields)
	return rest, clearance, err
}

// check compares the header with itself and with the tensors.
func (c *Checkpoint) check() error {
	h := &c.Header
	switch {
	case h.SHDegree != h.Config.SHDegree:
		return fmt.Errorf("SH degree %d, the configuration has %d", h.SHDegree, h.Config.SHDegree)
	case h.StartSplats < 1 || h.StartSplats > math.MaxInt32 || h.CeilingHits < 0,
		h.SplatCeiling < h.Splats || h.SplatCeiling > math.MaxInt32:
		return fmt.Errorf("%d splats under a ceiling of %d", h.Splats, h.SplatCeiling)
	case h.Step < 0 || h.Next.Step < 0 || h.Next.Step > math.MaxInt32 || h.ScheduleIterations < 1 ||
		h.ScheduleIterations > math.MaxInt32:
		return fmt.Errorf("step %d, next %d, of %d", h.Step, h.Next.Step, h.ScheduleIterations)
	case !positive(h.Frame.SceneScale):
		return fmt.Errorf("a frame of scale %g and scene scale %g", h.Frame.Scale, h.Frame.SceneScale)
	}
	if h.Next.Kind == recipe.Render || h.Next.StepsBefore() != h.Step {
		return fmt.Errorf("%d steps done, next is %q of step %d", h.Step, h.Next.Kind, h.Next.Step)
	}
	if err := h.checkTeam(); err != nil {
		return err
	}
	for _, f := range splatFields(h.Config.Rows()) {
		if err := c.expect(f.tensorOf(h.Splats)); err != nil {
			return err
		}
	}
	return h.Config.Validate()
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// expect returns an error unless the file has the tensor want.
func (c *Checkpoint) expect(want safetensors.TensorInfo) error {
	have, ok := c.file.Lookup(want.Name)
	if !ok {
		return fmt.Errorf("tensor %s is missing", want.Name)
	}
	if have.DType != want.DType || fmt.Sprint(have.Shape) != fmt.Sprint(want.Shape) {
		return fmt.Errorf("tensor %s is %s %v, want %s %v", want.Name, have.DType, have.Shape, want.DType, want.Shape)
	}
	return nil
}

// Verify reads the whole file, once, and compares it with the hash that it carries.
func (c *Checkpoint) Verify() error {
	if err := c.file.Verify(); err != nil {
		return splatfile.CheckpointError(c.path, err)
	}
	return nil
}

// Path returns the path that the checkpoint was opened by.
func (c *Checkpoint) Path() string { return c.path }

// Size returns the bytes of the file.
func (c *Checkpoint) Size() int64 { return c.file.Size() }

// Tensors lists the file's tensors.
func (c *Checkpoint) Tensors() []safetensors.TensorInfo { return c.file.Tensors }

// Close closes the file.
func (c *Checkpoint) Close() error { return c.file.Close() }

// Splats reads the model, in the training frame.
func (c *Checkpoint) Splats() (*scene.Splats, error) {
	if err := c.Verify(); err != nil {
		return nil, err
	}
	s := scene.NewSplats(c.Header.Splats, c.Header.SHDegree)
	params := paramsOf(s)
	buf := make([]byte, 0, 1<<20)
	for _, f := range paramFields(c.Header.Config.Rows()) {
		size := f.bytes() * f.width
		r := c.file.Reader(f.name)
		for first := 0; first < s.N; {
			count := min(s.N-first, cap(buf)/size)
			buf = buf[:size*count]
			if _, err := io.ReadFull(r, buf); err != nil {
				return nil, checkpointError(c.path, err)
			}
			for i := range count {
				for k := range f.width {
					*params.At(f.param+k, first+i) = f.valueAt(buf, i*f.width+k)
				}
			}
			first += count
		}
	}
	return s, nil
}
