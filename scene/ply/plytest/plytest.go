// Package plytest writes models of tests.
package plytest

import (
	"vksplat/scene"
	"vksplat/scene/ply"
)

// Write is ply.WritePieces of a model in memory.
func Write(path string, s *scene.Splats, meta ply.Meta) error {
	return ply.WritePieces(path, s.N, s.Degree, meta, func(put func(piece *scene.Splats) error) error { return put(s) })
}
