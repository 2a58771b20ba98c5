package loadtest

import (
	"maps"
	"slices"
	"testing"
)

// Format describes the fixture of a format that has its cameras in one file.
type Format struct {
	Name, Photos, File string
	Points             bool
	Refused            map[string]Refusal // by what is wrong
	NotFinite          map[string]string  // from a text to one with @ for the number: costs a photo
	Spellings          []string
}

// Refusal is a text of the file, the one that replaces it, and one that the error contains.
type Refusal [3]string

// Check reads the fixture as it is, with each of its edits, and damaged.
func (f Format) Check(t *testing.T) {
	fixture := func() string { return Fixture(t, f.Photos) }
	c := MustLoad(t, fixture(), AnyModel())
	CheckFixture(t, c, f.Points)
	if c.Format != f.Name {
		t.Error(c.Format)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Refused)) {
		t.Run(name, func(t *testing.T) {
			e := f.Refused[name]
			CheckEdited(t, fixture(), f.File, e[0], e[1], e[2])
		})
	}
	for from, to := range f.NotFinite {
		CheckNotFinite(t, fixture, f.File, from, to, "bad-poses", f.Spellings)
	}
	CheckDamage(t, fixture(), f.File)
}
