package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/splatfile"
	"vksplat/vk"
)

const (
	format        = 3
	asideKey      = "aside" // metadata with Content.Aside; readers that do not know it pass over it
	generatorName = "philox4x32-10 keyed by seed; counters are step and splat, or epoch and view"
)

// Header is everything in a checkpoint but its tensors.
type Header struct {
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
	// that the configuration began with; "" in files of versions that did not say
	Preset  string        `json:"preset,omitempty"`
	Capture CaptureRecord `json:"capture"`
	Frame   FrameRecord   `json:"frame"`
	Shell   float64       `json:"shell,omitempty"` // radius of the far shell, in the training frame; 0: there is none
	Device  DeviceRecord  `json:"device"`
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
	// of what the fingerprint is made; zero in files of versions that did not say
	Parts   PartsRecord `json:"parts"`
	Photos  int         `json:"photos"` // trained on
	HeldOut int         `json:"held_out"`
	// SHA-256 of the numbers of those trained on, in hexadecimal: which photos are held out
	Split      string `json:"split"`
	Points     int    `json:"points"`
	Resolution string `json:"resolution"`
}

// PartsRecord has the SHA-256 of each part of a fingerprint, in hexadecimal; "" of what a run does not use.
type PartsRecord struct {
	Cameras string `json:"cameras"` // with their lenses, which of them are held out, and the points
	Files   string `json:"files"`   // photos and masks
	Depths  string `json:"depths,omitempty"`
	Normals string `json:"normals,omitempty"`
	Anchors string `json:"anchors,omitempty"` // what holds refined poses
	Motions string `json:"motions,omitempty"` // of cameras, with rolling shutters
}

// FrameRecord makes the tensors a whole scene: capture = training / scale + center; files are written less origin.
type FrameRecord struct {
	Center     [3]float64 `json:"center"`
	Scale      float64    `json:"scale"`
	SceneScale float64    `json:"scene_scale"`
	Origin     [3]float64 `json:"origin"`
}

func (f FrameRecord) Frame() scene.Frame { return scene.Frame{Center: f.Center, Scale: f.Scale} }

// DeviceRecord is the device that ran the steps before the checkpoint.
type DeviceRecord struct {
	Name          string `json:"name"`
	UUID          string `json:"uuid"`
	Driver        string `json:"driver"`
	DriverVersion uint32 `json:"driver_version"`
}

func RecordOf(dev *vk.Device) DeviceRecord {
	i := dev.Info()
	return DeviceRecord{Name: i.Name, UUID: i.UUID, Driver: i.Driver, DriverVersion: i.DriverVersion}
}

// Same reports whether both devices give the same bytes: model and driver are equal. Two cards of one model differ in
// their UUIDs alone.
func (d DeviceRecord) Same(o DeviceRecord) bool {
	return d.Name == o.Name && d.Driver == o.Driver && d.DriverVersion == o.DriverVersion
}

func (d DeviceRecord) String() string { return d.Name + ", " + d.Driver }

// Deviation is an event after which an undisturbed run may have other bytes.
type Deviation struct {
	Step   int    `json:"step"` // steps done when it happened
	Reason string `json:"reason"`
}

type ShareRecord struct {
	Device DeviceRecord `json:"device"`
	Splats int          `json:"splats"` // its own; those of the first device come first in the tensors, and so on
	Most   int          `json:"most"`   // its part of the ceiling; 0 in files of versions that divided that equally
}

// Devices returns those that ran the steps before the checkpoint.
func (h *Header) Devices() (list []DeviceRecord) {
	for _, s := range h.Team {
		list = append(list, s.Device)
	}
	if list == nil {
		list = []DeviceRecord{h.Device}
	}
	return list
}

// check compares the header with itself.
func (h *Header) check() error {
	switch {
	case h.SHDegree != h.Config.SHDegree:
		return fmt.Errorf("SH degree %d, the configuration has %d", h.SHDegree, h.Config.SHDegree)
	case h.StartSplats < 1 || h.StartSplats > math.MaxInt32 || h.CeilingHits < 0,
		h.SplatCeiling < h.Splats || h.SplatCeiling > math.MaxInt32:
		return fmt.Errorf("%d splats under a ceiling of %d", h.Splats, h.SplatCeiling)
	case h.Step < 0 || h.Next.Step < 0 || h.Next.Step > math.MaxInt32 || h.ScheduleIterations < 1 ||
		h.ScheduleIterations > math.MaxInt32:
		return fmt.Errorf("step %d, next %d, of %d", h.Step, h.Next.Step, h.ScheduleIterations)
	case !positive(h.Frame.SceneScale), h.Shell != 0 && !positive(h.Shell):
		return fmt.Errorf("a frame of scale %g and scene scale %g, a shell of %g", h.Frame.Scale, h.Frame.SceneScale,
			h.Shell)
	}
	if h.Next.Kind == recipe.Render || h.Next.StepsBefore() != h.Step {
		return fmt.Errorf("%d steps done, next is %q of step %d", h.Step, h.Next.Kind, h.Next.Step)
	}
	return h.checkTeam()
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// checkTeam compares the shares with the number of splats.
func (h *Header) checkTeam() error {
	sum, most := 0, 0
	for _, s := range h.Team {
		if s.Splats < 0 || s.Splats > h.Splats || s.Most < 0 || s.Most > h.SplatCeiling || s.Most > 0 &&
			s.Most < s.Splats {
			return fmt.Errorf("a device has %d of %d splats under %d of a ceiling of %d", s.Splats, h.Splats, s.Most,
				h.SplatCeiling)
		}
		sum, most = sum+s.Splats, most+s.Most
	}
	if most != 0 && most != h.SplatCeiling {
		return fmt.Errorf("%d devices have %d of a ceiling of %d together", len(h.Team), most, h.SplatCeiling)
	}
	if h.Team != nil && sum != h.Splats {
		return fmt.Errorf("%d devices have %d splats together, there are %d", len(h.Team), sum, h.Splats)
	}
	return nil
}

// metadata words the header for a file.
func (h Header) metadata() (map[string]string, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write checkpoint: %w", err)
	}
	return splatfile.CheckpointMetadata(string(text)), nil
}

func DeviceList(list []DeviceRecord) string {
	var texts []string
	for _, d := range list {
		texts = append(texts, d.String())
	}
	return strings.Join(texts, " + ")
}

// AppearancesTensor is the name of what was learnt of the photos' appearance in a checkpoint.
const AppearancesTensor = "appearances"

// PosesTensor is the name of what was learnt of the photos' cameras in a checkpoint.
const PosesTensor = "poses"

// HistoriesTensor is the name of the devices' histories of errors in a checkpoint.
const HistoriesTensor = "error_histories"

// RanShort begins the deviation of a run whose ceiling had to come down.
const RanShort = "memory ran short"
