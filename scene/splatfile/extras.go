package splatfile

import (
	"encoding/json"

	"vksplat/scene/ply"
)

// extras is what models hold that a format of JSON has no place for: glTF's asset and SOG's meta.json have "extras" for
// that, which other programs leave alone.
type extras struct {
	Own *ownExtras `json:"vksplat,omitempty"`
}

// UnmarshalJSON reads what this program wrote there. Others may write anything.
func (e *extras) UnmarshalJSON(text []byte) error {
	var read struct {
		Own ownExtras `json:"vksplat"`
	}
	if json.Unmarshal(text, &read) == nil {
		e.Own = &read.Own
	}
	return nil
}

type ownExtras struct {
	Origin      *[3]float64 `json:"origin,omitempty"`
	Step        int         `json:"step,omitempty"`
	Seed        uint64      `json:"seed,omitempty"`
	Antialiased bool        `json:"antialiased,omitempty"`
	Background  *[3]float32 `json:"background,omitempty"`
	Near        float64     `json:"near,omitempty"`
	Exposure    bool        `json:"exposure,omitempty"`
	SPZAxes     string      `json:"spzAxes,omitempty"` // of SPZ within glTF, where they are not SPZ's own
}

// extrasOf returns what of a model's making goes there, nil for nothing; antialiased, where the format itself cannot
// say that.
func extrasOf(m ply.Meta, antialiased bool) *extras {
	own := ownExtras{Origin: m.Origin, Step: m.Step, Seed: m.Seed, Antialiased: antialiased && m.Antialiased,
		Background: m.Background, Near: m.Near, Exposure: m.Exposure}
	if own == (ownExtras{}) {
		return nil
	}
	return &extras{&own}
}

// into tells a model's making what was read; e may be nil.
func (e *extras) into(m *ply.Meta) {
	if e == nil || e.Own == nil {
		return
	}
	m.Origin, m.Step, m.Seed, m.Antialiased = e.Own.Origin, e.Own.Step, e.Own.Seed, e.Own.Antialiased
	m.TakeLook(e.Own.Background, e.Own.Near, e.Own.Exposure)
}
