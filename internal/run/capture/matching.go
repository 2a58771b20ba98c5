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
func (r *running) planMatching() string {
	ordered := true
	for _, s := range r.sources {
		ordered = ordered && s.video
	}
	most := exhaustiveUpTo
	if ordered {
		most = exhaustiveVideoUpTo
	}
	switch {
	case r.o.Matching != Auto:
		return r.o.Matching
	case len(r.photos) <= most && !r.o.Loops:
		return MatchAll
	case r.o.VocabTree != "" && !ordered:
		return MatchTree
	}
	return MatchSequential
}

// matchPhotos has COLMAP match the features of pairs of photos.
func (r *running) matchPhotos() error {
	how := r.planMatching()
	k, err := r.matchCall(matchCommands[how])
	if err != nil {
		return err
	}
	if err := r.matchOptions(k, how); err != nil {
		return err
	}
	var pairs []string
	var more *colmapCall
	if how == MatchSequential && !r.o.Loops && r.o.VocabTree == "" {
		pairs = distantPairs(r.photos)
		if more, err = r.matchCall("matches_importer"); err != nil {
			return err
		}
	}
	do := func() (string, error) {
		later := float64(len(pairs)) / float64(len(r.photos)*sequentialNeighbours)
		if err := r.match(k.arguments("database_path", r.o.in(databaseFile)), later); err != nil || len(pairs) == 0 {
			return how + " matching", err
		}
		list := r.o.in(logsFolder, pairList)
		if err := writeLines(list, pairs); err != nil {
			return "", err
		}
		err := r.match(more.arguments("database_path", r.o.in(databaseFile), "match_list_path", list), 0)
		return fmt.Sprintf("%s matching, and %s farther apart", how, cli.Count(len(pairs), "pair")), err
	}
	key := text(k.args, len(pairs))
	// COLMAP leaves out pairs that are matched, also those that were with other options.
	return r.do(stage{name: stageMatches, key: key, changes: []string{databaseFile}, forget: r.forgetMatches, do: do})
}

func (r *running) match(args []string, later float64) error {
	return r.run(process{stage: stageMatches, program: r.colmap.path, args: args, heard: r.show.parts("part", later)})
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
func (r *running) matchCall(command string) (*colmapCall, error) {
	k, err := r.colmap.call(r.ctx, command)
	if err != nil {
		return nil, err
	}
	k.set(r.o.gpu(r.colmap), "FeatureMatching.use_gpu", "SiftMatching.use_gpu")
	if r.o.Features == FeaturesALIKED {
		err = k.must("ALIKED_LIGHTGLUE", "features", "FeatureMatching.type")
	}
	return k, err
}

// matchOptions sets the options that decide which pairs are matched.
func (r *running) matchOptions(k *colmapCall, how string) error {
	o := r.o
	switch how {
	case MatchAll: // COLMAP tells of its progress block by block
		k.set(fmt.Sprint(min(max(len(r.photos)/8, 4), 50)), "ExhaustiveMatching.block_size")
	case MatchTree:
		return k.must(o.VocabTree, "vocab-tree", "VocabTreeMatching.vocab_tree_path")
	case MatchSequential:
		neighbours := sequentialNeighbours
		if r.cubed() {
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
		if !r.colmap.from(downloadsTrees) {
			return fault.Usagef("name one with "+fault.Setting("vocab-tree")+" FILE; newer versions of COLMAP download it",
				"%s needs a vocabulary tree with COLMAP %s", fault.Named("loops"), r.colmap.version)
		}
	}
	return nil
}

// forgetMatches removes all matches from the database.
func (r *running) forgetMatches() error {
	k, err := r.colmap.call(r.ctx, "database_cleaner")
	if err != nil {
		return err
	}
	args := k.arguments("type", "matches", "database_path", r.o.in(databaseFile))
	return r.run(process{stage: stageMatches, program: r.colmap.path, args: args})
}
