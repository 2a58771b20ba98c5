package splatfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"vksplat/internal/strictjson"
	"vksplat/internal/wording"
)

// sogMeta is a meta.json. Version 1 has no "version"; it has ranges where version 2 has codebooks.
type sogMeta struct {
	Version int `json:"version"`
	Asset   struct {
		Generator string `json:"generator"`
	} `json:"asset"`
	Splats    *int   `json:"count"` // of version 2; nil: it does not say
	Count     int    `json:"-"`     // of splats
	Antialias bool   `json:"antialias"`
	Model     string `json:"model"` // how the splats are to be drawn; splat-transform from 3.2 on
	Means     struct {
		Shape []float64   `json:"shape"`
		Mins  []sogNumber `json:"mins"`
		Maxs  []sogNumber `json:"maxs"`
		Files []string    `json:"files"`
	} `json:"means"`
	Scales sogCoded `json:"scales"`
	Quats  sogCoded `json:"quats"`
	SH0    sogCoded `json:"sh0"`
	SHN    *struct {
		Count    int         `json:"count"`
		Bands    int         `json:"bands"`
		Codebook []sogNumber `json:"codebook"`
		Min      sogNumber   `json:"mins"`
		Max      sogNumber   `json:"maxs"`
		Files    []string    `json:"files"`
	} `json:"shN"`
	Extras *extras `json:"extras"`
}

// sogCoded is an image of bytes and what they stand for.
type sogCoded struct {
	Codebook []sogNumber `json:"codebook"`
	Mins     []sogNumber `json:"mins"`
	Maxs     []sogNumber `json:"maxs"`
	Files    []string    `json:"files"`
}

// sogNumber is a number of meta.json; null is NaN.
type sogNumber float64

func (n *sogNumber) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = sogNumber(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// Limits of meta.json: its size in bytes, and the logarithm of the largest coordinate, which float32 must hold.
const (
	maxSogMeta = 4 << 20
	maxSogLog  = 88.73 // ln(1 + the largest float32) is 88.723
)

// parseSogMeta reads a meta.json and checks all but the images.
func parseSogMeta(text []byte) (*sogMeta, error) {
	m := &sogMeta{Version: 1}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), m); err != nil {
		return nil, fmt.Errorf("meta.json: %w", strictjson.JSONError(err))
	}
	if err := m.checkCount(); err != nil {
		return nil, fmt.Errorf("meta.json: %w", err)
	}
	for _, part := range []struct {
		name  string
		files []string
		want  int
	}{{"means", m.Means.Files, 2}, {"scales", m.Scales.Files, 1}, {"quats", m.Quats.Files, 1}, {"sh0", m.SH0.Files, 1},
		{"shN", m.shFiles(), 2}} {
		if part.name == "shN" && m.SHN == nil {
			continue
		}
		if err := checkSogFiles(part.files, part.want); err != nil {
			return nil, fmt.Errorf("meta.json: %s: %w", part.name, err)
		}
	}
	return m, nil
}

// checkCount checks the version, the number of splats and the box of the means.
func (m *sogMeta) checkCount() error {
	if m.Version != 1 && m.Version != 2 {
		return fmt.Errorf("version %d is not known, versions 1 and 2 are", m.Version)
	}
	switch {
	case m.Version == 2 && m.Splats == nil:
		return errors.New("field count is missing: it says how many splats there are")
	case m.Version == 2:
		m.Count = *m.Splats
	default:
		if len(m.Means.Shape) != 2 || m.Means.Shape[1] != 3 {
			return fmt.Errorf("means: shape is %v, want splats and 3", m.Means.Shape)
		}
		if n := m.Means.Shape[0]; n != math.Trunc(n) || math.Abs(n) > maxSogSplats {
			return fmt.Errorf("means: shape is %v", m.Means.Shape)
		}
		m.Count = int(m.Means.Shape[0])
	}
	if m.Count < 0 || m.Count > maxSogSplats {
		return fmt.Errorf("count is %d, want 0 to %d", m.Count, maxSogSplats)
	}
	if len(m.Means.Mins) != 3 || len(m.Means.Maxs) != 3 {
		return errors.New("means: mins and maxs must have three numbers each")
	}
	for axis := range 3 {
		for _, x := range []sogNumber{m.Means.Mins[axis], m.Means.Maxs[axis]} {
			if !(math.Abs(float64(x)) <= maxSogLog) {
				return fmt.Errorf("means: mins and maxs reach from %v to %v, which are logarithms of no coordinates",
					m.Means.Mins, m.Means.Maxs)
			}
		}
	}
	return nil
}

func (m *sogMeta) shFiles() []string {
	if m.SHN == nil {
		return nil
	}
	return m.SHN.Files
}

// checkSogFiles checks the names of images: files beside meta.json, or in folders there.
func checkSogFiles(files []string, want int) error {
	if len(files) != want {
		return fmt.Errorf("files are %q, want %d", files, want)
	}
	for _, name := range files {
		bad := name == "" || len(name) > 255 || strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\\:\x00")
		for part := range strings.SplitSeq(name, "/") {
			bad = bad || part == "" || part == "." || part == ".."
		}
		if bad {
			return fmt.Errorf("file %q is not a name of a file next to meta.json", name)
		}
	}
	return nil
}

// info gives what is known before images are read. degree is that of the palette's image.
func (m *sogMeta) info(degree int) Info {
	out := Info{Format: sogName, N: m.Count, Degree: degree, Packed: true}
	m.Extras.into(&out.Meta)
	out.Meta.Antialiased = out.Meta.Antialiased || m.Antialias
	if !strings.ContainsAny(m.Asset.Generator, "\r\n") {
		out.Meta.Generator = m.Asset.Generator
	}
	switch m.Model {
	case "", sogDefault:
	case sogAntialiased:
		out.Meta.Antialiased = true
	case "2dgs":
		out.Notes = append(out.Notes, "the splats were trained as flat disks (2DGS); they are read as Gaussians")
	default:
		out.Notes = append(out.Notes,
			fmt.Sprintf("the splats are of the kind %q, which is not known; they are read as Gaussians",
				wording.Printable(m.Model)))
	}
	return out
}

// Values of sogMeta.Model.
const (
	sogDefault     = "default"
	sogAntialiased = "antialiased"
)

// sogTable gives what the 256 values of a byte stand for; known is how many of them stand for something.
type sogTable struct {
	value [256]float32
	known int
}

func codebookTable(codebook []sogNumber) (t sogTable, err error) {
	if len(codebook) == 0 || len(codebook) > 256 {
		return t, fmt.Errorf("codebook has %d entries, want 1 to 256", len(codebook))
	}
	// Early versions of splat-transform wrote null for the lowest entry; PlayCanvas' engine goes on from the others.
	if n := len(codebook); n == 256 && math.IsNaN(float64(codebook[0])) {
		codebook[0] = codebook[1] + (codebook[1]-codebook[n-1])/255
	}
	for i, x := range codebook {
		t.value[i] = float32(x)
		if !isFinite(t.value[i]) {
			return t, fmt.Errorf("codebook entry %d is %v", i, x)
		}
	}
	t.known = len(codebook)
	return t, nil
}

func rangeTable(low, high sogNumber) (t sogTable, err error) {
	for i := range t.value {
		t.value[i] = float32(float64(low) + (float64(high)-float64(low))*float64(i)/255)
		if !isFinite(t.value[i]) {
			return t, fmt.Errorf("mins and maxs reach from %v to %v", low, high)
		}
	}
	t.known = 256
	return t, nil
}

func (m *sogMeta) tables(part sogCoded, channels int) ([]sogTable, error) {
	out := make([]sogTable, channels)
	if m.Version == 2 {
		t, err := codebookTable(part.Codebook)
		for c := range out {
			out[c] = t
		}
		return out, err
	}
	if len(part.Mins) != channels || len(part.Maxs) != channels {
		return nil, fmt.Errorf("mins and maxs have %d and %d numbers, want %d", len(part.Mins), len(part.Maxs),
			channels)
	}
	for c := range out {
		var err error
		if out[c], err = rangeTable(part.Mins[c], part.Maxs[c]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
