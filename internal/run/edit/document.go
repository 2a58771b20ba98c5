package edit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math"

	"github.com/kelindar/bitmap"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// FileSuffix ends the names of files of edits.
const FileSuffix = ".edits.json"

// version is that of the files that are written, and the one that is read.
const version = 1

// Document is an edit as a file has it.
type Document struct {
	Version    int         `json:"version"`
	Splats     int         `json:"splats"`    // of the model that was edited
	Positions  string      `json:"positions"` // SHA-256 of its centres: float32 x, y, z in the order of the file
	Operations []Operation `json:"operations"`
}

// Document is the edit as a file has it.
func (s *State) Document() *Document {
	sum := sha256.New()
	hashFloats(sum, s.means)
	return &Document{Version: version, Splats: s.N(), Positions: hex.EncodeToString(sum.Sum(nil)),
		Operations: s.Operations()}
}

// hashFloats adds numbers to a hash, little-endian.
func hashFloats(sum hash.Hash, list []float32) {
	const some = 1 << 12
	room := make([]byte, 0, 4*some)
	for len(list) > 0 {
		n := min(some, len(list))
		room = room[:0]
		for _, x := range list[:n] {
			room = binary.LittleEndian.AppendUint32(room, math.Float32bits(x))
		}
		_, _ = sum.Write(room) // a hash takes all
		list = list[n:]
	}
}

// Write writes the file.
func (d *Document) Write(path string) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		data, err := json.Marshal(d)
		if err != nil {
			return err
		}
		_, err = w.Write(append(data, '\n'))
		return err
	})
}

// mostBytes bounds a file of edits: numbers of tens of millions of splats.
const mostBytes = 1 << 29

// Read reads a file of edits. Operations are checked by who carries them out.
func Read(path string) (*Document, error) {
	data, err := fault.ReadFile(path, mostBytes)
	var d *Document
	if err == nil {
		d, err = parse(data)
	}
	if err != nil {
		return nil, &fault.Error{Op: "read edits", Path: path, Err: err, Kind: fault.ErrData,
			Hint: "name a file that the viewer wrote next to an edited model, as in model_edited" + FileSuffix}
	}
	return d, nil
}

// parse reads the text of a file of edits.
func parse(data []byte) (*Document, error) {
	d, decoder := &Document{}, json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil {
		return nil, fmt.Errorf("not an edits file: %w", err)
	}
	if d.Version != version {
		return nil, fmt.Errorf("its version is %d, only %d is supported", d.Version, version)
	}
	return d, nil
}

// Result is a model after an edit.
type Result struct {
	Removed bitmap.Bitmap
	Up      *[3]float64 // chosen, in the frame of the file; nil: none
}

// Replay carries an edit out on a model. It reads the model once and keeps a bit of each splat.
func (d *Document) Replay(model splatfile.Source) (*Result, error) {
	n := model.Info().N
	if d.Splats != n {
		return nil, d.refuse("the edits belong to a model of %d splats, this one has %d", d.Splats, n)
	}
	out := &Result{Removed: make(bitmap.Bitmap, (n+63)/64)}
	var cuts []*cut
	for i := range d.Operations {
		op := &d.Operations[i]
		if err := op.check(n); err != nil {
			return nil, d.refuse("operation %d: %w", i+1, err)
		}
		switch {
		case op.Up != nil:
			out.Up = op.Up
		case op.Crop != nil:
			cuts = append(cuts, newCut(op.Crop, upright(out.Up)))
		}
		for k := 0; k < len(op.Remove); k += 2 {
			for id := op.Remove[k]; id < op.Remove[k]+op.Remove[k+1]; id++ {
				out.Removed.Set(id)
			}
		}
	}
	sum, at := sha256.New(), 0
	err := model.Read(func(piece *scene.Splats) error {
		hashFloats(sum, piece.Means)
		for i := range piece.N {
			for _, c := range cuts {
				if c.removes(piece.Means[3*i : 3*i+3]) {
					out.Removed.Set(uint32(at + i))
					break
				}
			}
		}
		at += piece.N
		return nil
	})
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != d.Positions {
		err = d.refuse("the edits belong to another model: its splats are elsewhere")
	}
	return out, err
}

func (d *Document) refuse(format string, args ...any) error {
	return &fault.Error{Op: "apply edits", Err: fmt.Errorf(format, args...), Kind: fault.ErrData,
		Hint: "name the model that was edited, in a format that keeps positions as they are: " +
			"its own file, or a PLY or GLB made of it"}
}

// Upright rotates the model so that Up is -y, which viewers take for up.
func (r *Result) Upright() splatfile.Similarity { return upright(r.Up) }
