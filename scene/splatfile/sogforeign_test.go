package splatfile

import (
	"path/filepath"
	"testing"

	"vksplat/scene/ply"
)

// Files of splat-transform, where a checkout has them, with its own reading of one as PLY.
func TestSOGForeign(t *testing.T) {
	for name, n := range map[string]int{"playbot_sog_3_0": 31000, "playbot_sog_4_0": 8406, "playbot_sog_6_0": 1873} {
		for _, path := range []string{name, name + "/meta.json"} {
			s, info := readModel(t, sogFormat, foreignSplats(t, "playcanvas-engine/"+path))
			if s.N != n || info.Degree != 2 || info.Meta.Generator != "splat-transform v0.16.0" {
				t.Errorf("%s: %+v", name, info)
			}
			if err := s.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	s, _ := readModel(t, sogFormat, foreignSplats(t, "playcanvas-engine/playbot_sog_6_0"))
	want, _, err := ply.Read(foreignSplats(t, "converted_by_splat-transform/playbot6.ply"))
	if err != nil {
		t.Fatal(err)
	}
	closeModel(t, s, want)
	// Scales, opacities and harmonics that came from a SOG lose nothing when they are written again: each is one of
	// those that the format has. Means get another box, and of two largest components of a rotation the other may be
	// left out.
	again, _ := writeSOGModel(t, filepath.Join(t.TempDir(), "again.sog"), s, ply.Meta{})
	checkMeans(t, again, s)
	checkRest(t, again, s)
	copy(again.Means, s.Means)
	copy(again.Quats, s.Quats)
	closeModel(t, again, s)
}
