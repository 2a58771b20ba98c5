package splatfile

import (
	"bytes"
	"fmt"

	"vksplat/scene"
	"vksplat/scene/ply"
)

const plyName = "ply"

// plainPLY is the layout of INRIA's trainer: float32 properties of the element vertex in the capture's own frame. It
// keeps everything; rotations are normalised.
var plainPLY = &Format{
	Name:       plyName,
	Extensions: []string{".ply"},
	Detect:     func(head []byte) bool { return isPLY(head) && !bytes.Contains(head, []byte(" packed_position")) },
	Open:       openPLY,
	Write:      writePLY,
}

// isPLY reports whether a file that begins with head is a PLY file, of whatever properties.
func isPLY(head []byte) bool {
	return bytes.HasPrefix(head, []byte("ply\n")) || bytes.HasPrefix(head, []byte("ply\r"))
}

type plySource struct {
	file *ply.File
	info Info
}

// plyRows is one whose rows are of one size, so that any of them can be read.
type plyRows struct{ plySource }

func openPLY(path string) (Source, error) {
	file, err := ply.Open(path)
	if err != nil {
		return nil, err
	}
	s := plySource{file, Info{Format: plyName, Encoding: file.Info.Format, N: file.N, Degree: file.Degree,
		Meta: file.Info.Meta, Comments: file.Info.Comments, Notes: file.Info.Notes()}}
	if file.AnyOrder() {
		return &plyRows{s}, nil
	}
	return &s, nil
}

func (s *plySource) Info() Info   { return s.info }
func (s *plySource) Close() error { return s.file.Close() }

func (s *plySource) Read(put func(piece *scene.Splats) error) error {
	return s.file.Read(PieceSplats, put)
}

func (s *plyRows) Gather(ids []uint32, into *scene.Splats) error { return s.file.Gather(ids, into) }

func writePLY(path string, model Source, o WriteOptions) ([]string, error) {
	info := model.Info()
	if o.Version != 0 {
		return nil, fmt.Errorf("splatfile: write ply: there is no version %d", o.Version)
	}
	meta := info.Meta
	if meta.Generator == "" {
		meta.Generator = o.Generator
	}
	return nil, ply.WritePieces(path, info.N, info.Degree, meta, model.Read)
}
