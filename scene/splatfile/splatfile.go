// Package splatfile reads and writes models of splats in the formats of the field. Every format goes through one
// canonical model: the values of scene.Splats, raw, in the capture's own frame (the right-handed one of COLMAP, in
// which a camera that is not turned looks along +z with y down).
//
// Models may be larger than memory, so that they are read piece by piece: see Source.
package splatfile

import (
	"path/filepath"
	"slices"
	"strings"

	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/tiles"
)

// PieceSplats is how many splats a Source hands out at a time, at most.
const PieceSplats = 1 << 14

// Info describes a model before its splats are read.
type Info struct {
	Format string   // name of the Format it was read from, "" for models in memory
	N      int      // number of splats
	Degree int      // of the spherical harmonics, 0 to scene.MaxSHDegree
	Meta   ply.Meta // what the file says of its making
	Notes  []string // what a model of splats has no place for, or what is wrong with the file, a clause each

	Packed   bool     // reading the splats unpacks them, which takes time and, of some formats, memory
	Encoding string   // of a format that has several: version, or ascii; "" otherwise
	Comments []string // as the file has them, of formats that have comments
}

// Source is a model that is read piece by piece, from its beginning and as often as asked.
type Source interface {
	Info() Info
	// Read hands all splats to put, in the file's order, in pieces of 1 to PieceSplats. A piece belongs to put until it
	// returns, also for changing. What put returns ends the reading and is returned as it is.
	Read(put func(piece *scene.Splats) error) error
	Close() error
}

// Gatherer is a Source that also reads splats in any order.
type Gatherer interface {
	Source
	// Gather reads splats ids[i] into splat i of into, which holds len(ids) splats of the source's degree.
	Gather(ids []uint32, into *scene.Splats) error
}

// WriteOptions are choices of formats; each takes what concerns it.
type WriteOptions struct {
	Version    int    // of the format; 0 is the one that most readers know
	Iterations int    // of the search for a palette of spherical harmonics; 0 is the format's own
	Generator  string // program and version, for formats that name it
	Levels     int    // of detail, of formats that have several; 0 is StreamedLevels
	// levels below the model's own, the finest first, of formats that have several; those that are missing are made by
	// merging. They have the model's degree
	Coarser    []Source
	Stop       func() error // asked between parts of formats that have some; its error ends the work; nil: never
	PlainTiles bool         // tiles of glTF as ratified, without compression
	Place      *tiles.Place // of 3D Tiles, on Earth; nil: nowhere
	TempDir    string       // for what does not fit memory; "" is the folder of the file that is written

	inOrder bool // the splats of a SOG stay in the order of the model
}

type Format struct {
	Name       string   // as flags and messages call it
	Extensions []string // lower case, the longest first: ".compressed.ply"
	Plain      bool     // a splat has one colour, whatever the degree of the model that is written
	// Detect tells whether a file that begins with head is of this format; nil: by name only. head has at most
	// headBytes bytes.
	Detect func(head []byte) bool
	// Open reads the header. Errors are *fault.Error of kind fault.ErrData that name the file and what to do; nothing
	// is allocated for a size that the file only claims. nil: the format is only written.
	Open func(path string) (Source, error)
	// Write replaces the file as a whole (atomicfile.Write) and says what the format could not keep, a sentence each;
	// nil: the format is only read.
	Write func(path string, model Source, o WriteOptions) (lost []string, err error)
}

// headBytes is how much of a file Detect sees.
const headBytes = 1 << 12

// formats in the order in which names and contents are compared.
var formats = []*Format{
	compressedPLY,
	plainPLY,
	dotSplat,
	ksplat,
	spz,
	glb,
	streamed,
	sogFormat,
	tilesFormat,
	usdFormat,
	checkpoint,
}

func Formats() []*Format { return slices.Clone(formats) }

// ByName finds the format of a name as in --to, or of the name of a file that is to be written. It is nil if there is
// none.
func ByName(name string) *Format {
	lower := strings.ToLower(filepath.Base(name))
	var best *Format
	length := 0
	for _, f := range formats {
		if f.Name == lower {
			return f
		}
		for _, ext := range f.Extensions {
			if strings.HasSuffix(lower, ext) && len(ext) > length {
				best, length = f, len(ext)
			}
		}
	}
	return best
}
