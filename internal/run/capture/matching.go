package capture

import (
	"fmt"
	"strings"
	"unicode"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/scene"
)

// exhaustiveUpTo is the number of photos up to which every pair is matched; for frames of video, whose neighbours are
// known, it is less. Beyond that each photo is matched with its neighbours, and distantPhotos at even distances, which
// is 1,770 pairs, with each other: where the camera comes back to a place, poses would drift apart unseen.
const (
	exhaustiveUpTo       = 400
	exhaustiveVideoUpTo  = 100
	sequentialNeighbours = 10
	distantPhotos        = 60
	pairList             = "pairs.txt" // in the folder of logs
)

// matchCommands are COLMAP's.
var matchCommands = map[string]string{MatchAll: "exhaustive_matcher", MatchSequential: "sequential_matcher",
	MatchTree: "vocab_tree_matcher"}

// planMatching decides which pairs of photos are matched.
func (m *mapper) planMatching() string {
	ordered := true
	for _, s := range m.sources {
		ordered = ordered && s.video
	}
	most := exhaustiveUpTo
	if ordered {
		most = exhaustiveVideoUpTo
	}
	switch {
	case m.o.Matching != Auto:
		return m.o.Matching
	case len(m.photos) <= most && !m.o.Loops:
		return MatchAll
	case m.o.VocabTree != "" && !ordered:
		return MatchTree
	}
	return MatchSequential
}

// matchPhotos has COLMAP match the features of pairs of photos.
func (m *mapper) matchPhotos() error {
	how := m.planMatching()
	k, err := m.matchCall(matchCommands[how])
	if err != nil {
		return err
	}
	if err := m.matchOptions(k, how); err != nil {
		return err
	}
	var pairs []string
	var more *colmapCall
	if how == MatchSequential && !m.o.Loops && m.o.VocabTree == "" {
		pairs = distantPairs(m.photos)
		if more, err = m.matchCall("matches_importer"); err != nil {
			return err
		}
	}
	do := func() (string, error) {
		later := float64(len(pairs)) / float64(len(m.photos)*sequentialNeighbours)
		if err := m.match(k.arguments("database_path", m.o.in(databaseFile)), later); err != nil || len(pairs) == 0 {
			return how + " matching", err
		}
		list := m.o.in(logsFolder, pairList)
		if err := writeLines(list, pairs); err != nil {
			return "", err
		}
		err := m.match(more.arguments("database_path", m.o.in(databaseFile), "match_list_path", list), 0)
		return fmt.Sprintf("%s matching, and %s farther apart", how, cli.Count(len(pairs), "pair")), err
	}
	key := text(k.args, len(pairs))
	// COLMAP leaves out pairs that are matched, also those that were with other options.
	return m.stages.do(stage{name: stageMatches, key: key, changes: []string{databaseFile}, forget: m.forgetMatches,
		do: do})
}

func (m *mapper) match(args []string, later float64) error {
	return m.run(process{stage: stageMatches, program: m.colmap.path, args: args, onLine: m.show.parts("part", later)})
}

// distantPairs returns pairs of the photos at even distances, as COLMAP's list has them. It cannot hold names with
// blanks, whose photos have none.
func distantPairs(photos []string) (pairs []string) {
	if len(photos) <= sequentialNeighbours+1 { // all are neighbours
		return nil
	}
	every := (len(photos) + distantPhotos - 1) / distantPhotos
	for i := 0; i < len(photos); i += every {
		for k := i + every; k < len(photos); k += every {
			blank := strings.ContainsFunc(photos[i]+photos[k], unicode.IsSpace)
			if k-i > sequentialNeighbours && !blank {
				pairs = append(pairs, photos[i]+" "+photos[k])
			}
		}
	}
	return pairs
}

// matchCall begins a command that matches, with the options that they all have.
func (m *mapper) matchCall(command string) (*colmapCall, error) {
	k, err := m.colmap.call(m.ctx, command)
	if err != nil {
		return nil, err
	}
	k.set(m.o.gpu(m.colmap), "FeatureMatching.use_gpu", "SiftMatching.use_gpu")
	if m.o.Features == FeaturesALIKED {
		err = k.must("ALIKED_LIGHTGLUE", "features", "FeatureMatching.type")
	}
	return k, err
}

// matchOptions sets the options that decide which pairs are matched.
func (m *mapper) matchOptions(k *colmapCall, how string) error {
	o := m.o
	switch how {
	case MatchAll: // COLMAP reports progress block by block
		k.set(fmt.Sprint(min(max(len(m.photos)/8, 4), 50)), "ExhaustiveMatching.block_size")
	case MatchTree:
		return k.must(o.VocabTree, "vocab-tree", "VocabTreeMatching.vocab_tree_path")
	case MatchSequential:
		neighbours := sequentialNeighbours
		if m.cubed() {
			neighbours *= len(scene.CubeFaces)
		}
		k.set(fmt.Sprint(neighbours), "SequentialMatching.overlap")
		if !o.Loops && o.VocabTree == "" {
			return nil
		}
		if err := k.must("1", "loops", "SequentialMatching.loop_detection"); err != nil {
			return err
		}
		if o.VocabTree != "" {
			return k.must(o.VocabTree, "vocab-tree", "SequentialMatching.vocab_tree_path")
		}
		if !m.colmap.from(downloadsTrees) {
			return fault.Usagef("name one with "+fault.Setting("vocab-tree")+" FILE; newer versions of COLMAP download it",
				"%s needs a vocabulary tree with COLMAP %s", fault.Named("loops"), m.colmap.version)
		}
	}
	return nil
}

func (m *mapper) forgetMatches() error {
	k, err := m.colmap.call(m.ctx, "database_cleaner")
	if err != nil {
		return err
	}
	args := k.arguments("type", "matches", "database_path", m.o.in(databaseFile))
	return m.run(process{stage: stageMatches, program: m.colmap.path, args: args})
}
