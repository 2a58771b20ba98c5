package meter

import (
	"encoding/json"
	"math"
	"strconv"
)

// MaxPSNR stands for a render that equals its photo, whose PSNR is infinite.
const MaxPSNR = 100

// Events of --progress json and of metrics.jsonl. A parent process gets them too, see package child.
const (
	EventStart = "start" // on standard output alone: what is trained on what
	EventStep  = "step"
	EventEval  = "eval"
	EventDone  = "done" // on standard output alone: the content of stats.json
)

// Rounded is a number that JSON shows with six digits, or null when it is none.
type Rounded float64

func (x Rounded) MarshalJSON() ([]byte, error) { return numberJSON(float64(x), 6) }

// numberJSON writes a number with some digits, -1 for all, null for none.
func numberJSON(x float64, digits int) ([]byte, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, x, 'g', digits, 64), nil
}

func (x *Rounded) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*x = Rounded(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(x))
}

// Exact is a number that JSON shows with all its digits, or null when it is none: what is read again is what was
// written.
type Exact float64

func (x Exact) MarshalJSON() ([]byte, error) { return numberJSON(float64(x), -1) }

func (x *Exact) UnmarshalJSON(data []byte) error { return (*Rounded)(x).UnmarshalJSON(data) }

// StepLine is a line of metrics.jsonl, where losses and scores are means over the
// steps since the line before, and of --progress json, where they are of one view.
// Keys may be added; these stay.
type StepLine struct {
	Event       string  `json:"event"`
	Step        int     `json:"step"`  // steps done
	Total       int     `json:"total"` // steps to do
	Loss        Rounded `json:"loss"`
	L1          Rounded `json:"l1"`
	SSIM        Rounded `json:"ssim"`
	PSNR        Rounded `json:"psnr"` // dB, of the training photos
	Splats      int     `json:"splats"`
	Visible     int     `json:"visible"`              // splats in the step's view
	Isects      int     `json:"isects"`               // (tile, splat) pairs of the step's view
	Downscales  int     `json:"downscales,omitempty"` // times that the photos' width and height are halved for the step
	Rate        Rounded `json:"steps_per_s"`
	ETA         Rounded `json:"eta_s"` // null while unknown
	DeviceBytes int64   `json:"device_bytes"`
	// share of the time that steps take of the device, 0 to 1; null while unknown
	DeviceBusy Rounded `json:"device_busy"`
	RSSBytes   int64   `json:"peak_rss_bytes"`
	Seconds    Rounded `json:"seconds"` // of training, without what is measured and saved
}

type DeviceUse struct {
	Bytes   int64   // of memory
	Seconds float64 // of a step, 0 while unknown
}

// Busy is the part of the time that steps take of the device, at so many a second; NaN where it is not known.
func (u DeviceUse) Busy(rate float64) Rounded {
	if !(u.Seconds > 0 && rate > 0) {
		return Rounded(math.NaN())
	}
	return Rounded(min(1, u.Seconds*rate))
}

// PsnrOf returns the quality in dB of a mean squared error.
func PsnrOf(mse float64) float64 { return min(MaxPSNR, -10*math.Log10(mse)) }
