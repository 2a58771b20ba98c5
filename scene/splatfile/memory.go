package splatfile

import (
	"fmt"

	"vksplat/scene"
)

// memory is a model that is in memory.
type memory struct {
	info   Info
	splats *scene.Splats
}

// Memory makes a Gatherer of a model in memory. The model is not changed by those who read it.
func Memory(s *scene.Splats, meta scene.PLYMeta) Gatherer {
	return &memory{Info{N: s.N, Degree: s.Degree, Meta: meta}, s}
}

func (m *memory) Info() Info   { return m.info }
func (m *memory) Close() error { return nil }

func (m *memory) Read(put func(piece *scene.Splats) error) error {
	room := scene.NewSplats(min(m.splats.N, PieceSplats), m.splats.Degree)
	for lo := 0; lo < m.splats.N; lo += PieceSplats {
		hi := min(lo+PieceSplats, m.splats.N)
		piece := room.Slice(0, hi-lo)
		copySplats(piece, 0, m.splats, lo, hi-lo)
		if err := put(piece); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Gather(ids []uint32, into *scene.Splats) error {
	for i, id := range ids {
		if int(id) >= m.splats.N {
			return fmt.Errorf("splatfile: gather splats: splat %d of %d", id, m.splats.N)
		}
		copySplats(into, i, m.splats, int(id), 1)
	}
	return nil
}

// copySplats copies n splats between models of the same degree.
func copySplats(to *scene.Splats, at int, from *scene.Splats, first, n int) {
	c := 3 * from.K()
	copy(to.Means[3*at:], from.Means[3*first:3*(first+n)])
	copy(to.Quats[4*at:], from.Quats[4*first:4*(first+n)])
	copy(to.LogScales[3*at:], from.LogScales[3*first:3*(first+n)])
	copy(to.LogitOpacities[at:], from.LogitOpacities[first:first+n])
	copy(to.SH[c*at:], from.SH[c*first:c*(first+n)])
}

// All reads a whole model into memory.
func All(model Source) (*scene.Splats, error) {
	info := model.Info()
	all := scene.NewSplats(info.N, info.Degree)
	at := 0
	err := model.Read(func(piece *scene.Splats) error {
		if err := checkPiece(at, piece, info); err != nil {
			return err
		}
		copySplats(all, at, piece, 0, piece.N)
		at += piece.N
		return nil
	})
	if err == nil && at < info.N {
		err = fmt.Errorf("splatfile: read model: %d splats of %d came", at, info.N)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}
