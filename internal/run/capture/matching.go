package capture

import (
	"fmt"

	"vksplat/scene"
)

// exhaustiveUpTo is the number of photos up to which COLMAP matches every pair. Beyond that it matches each photo with
// its neighbours, which closes no loops.
const (
	exhaustiveUpTo       = 400
	sequentialNeighbours = 10
)

// planMatching decides which pairs of photos are matched.
func (m *mapper) planMatching() string {
	switch {
	case m.o.Matching != Auto:
		return m.o.Matching
	case len(m.photos) <= exhaustiveUpTo || m.colmap == nil: // own.pairOptions knows no order unless one is asked for
		return MatchAll
	}
	return MatchSequential
}

// matchPhotos has COLMAP match the features of pairs of photos.
func (m *mapper) matchPhotos() error {
	how := m.planMatching()
	k, err := m.colmap.call(m.ctx, how+"_matcher")
	if err != nil {
		return err
	}
	k.set(m.colmap.gpu(), "FeatureMatching.use_gpu", "SiftMatching.use_gpu")
	if how == MatchAll { // COLMAP reports progress block by block
		k.set(fmt.Sprint(min(max(len(m.photos)/8, 4), 50)), "ExhaustiveMatching.block_size")
	} else {
		neighbours := sequentialNeighbours
		if m.cubed() {
			neighbours *= len(scene.CubeFaces)
		}
		k.set(fmt.Sprint(neighbours), "SequentialMatching.overlap")
	}
	do := func() (string, error) {
		return how + " matching", m.run(process{stage: stageMatches, program: m.colmap.path,
			args: k.arguments("database_path", m.o.in(databaseFile)), onLine: m.show.parts("part")})
	}
	// COLMAP leaves out pairs that are matched, also those that were with other options.
	return m.stages.do(stage{name: stageMatches, key: text(k.args, 0), changes: []string{databaseFile},
		forget: m.forgetMatches, do: do})
}

func (m *mapper) forgetMatches() error {
	k, err := m.colmap.call(m.ctx, "database_cleaner")
	if err != nil {
		return err
	}
	args := k.arguments("type", "matches", "database_path", m.o.in(databaseFile))
	return m.run(process{stage: stageMatches, program: m.colmap.path, args: args})
}
