package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene"
)

// exhaustiveUpTo is the number of photos up to which every pair is matched; for frames of video, whose neighbours are
// known, it is less.
const (
	exhaustiveUpTo       = 400
	exhaustiveVideoUpTo  = 100
	sequentialNeighbours = 10
)

// findFeatures has COLMAP find the features of all photos.
func (r *running) findFeatures() error {
	plan, err := r.planCameras()
	if err != nil {
		return err
	}
	k, err := r.colmap.call(r.ctx, "feature_extractor")
	if err != nil {
		return err
	}
	list := r.o.in(logsFolder, photoList)
	if err := r.featureOptions(k, plan); err != nil {
		return err
	}
	key := text(k.args, r.colmap.version, r.photos)
	do := func() (string, error) {
		if err := writeLines(list, r.photos); err != nil {
			return "", err
		}
		args := k.arguments("database_path", r.o.in(databaseFile), "image_path", r.o.in(imagesFolder),
			"image_list_path", list)
		err := r.run(process{stage: stageFeatures, program: r.colmap.path, args: args, heard: r.show.parts("photo")})
		cameras := map[string]string{CamerasOne: "one camera", CamerasMany: "a camera each",
			CamerasFolder: "a camera for each folder"}[plan.share]
		return fmt.Sprintf("%s with %s (%s), %s", cli.Count(len(r.photos), "photo"), cameras, plan.why, plan.model), err
	}
	return r.do(stage{name: stageFeatures, key: key, outputs: []string{databaseFile}, adds: true, do: do})
}

// featureOptions sets the options that decide features.
func (r *running) featureOptions(k *colmapCall, plan cameraPlan) error {
	o := r.o
	share := map[string]string{CamerasOne: "ImageReader.single_camera",
		CamerasFolder: "ImageReader.single_camera_per_folder"}
	if name := share[plan.share]; name != "" {
		if err := k.must("1", "", name); err != nil {
			return err
		}
	}
	if err := k.must(plan.model, "", "ImageReader.camera_model"); err != nil {
		return err
	}
	if r.cubed() {
		if err := k.must(r.faceCamera(), "camera-model", "ImageReader.camera_params"); err != nil {
			return err
		}
	}
	k.set(o.gpu(r.colmap), "FeatureExtraction.use_gpu", "SiftExtraction.use_gpu")
	if o.Masks != "" {
		if err := k.must(o.in(masksFolder), "masks", "ImageReader.mask_path"); err != nil {
			return err
		}
	}
	if o.MaxSize > 0 {
		err := k.must(fmt.Sprint(o.MaxSize), "max-size", "FeatureExtraction.max_image_size", "SiftExtraction.max_image_size")
		if err != nil {
			return err
		}
	}
	if o.Features == FeaturesALIKED {
		return k.must("ALIKED_N16ROT", "features", "FeatureExtraction.type")
	}
	return nil
}

// writeLines writes a file of lines.
func writeLines(path string, lines []string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return output.FolderError(filepath.Dir(path), err)
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
		return err
	})
}

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

// matchCommands are COLMAP's.
var matchCommands = map[string]string{MatchAll: "exhaustive_matcher", MatchSequential: "sequential_matcher",
	MatchTree: "vocab_tree_matcher"}

// matchPhotos has COLMAP match the features of pairs of photos.
func (r *running) matchPhotos() error {
	how := r.planMatching()
	k, err := r.colmap.call(r.ctx, matchCommands[how])
	if err != nil {
		return err
	}
	if err := r.matchOptions(k, how); err != nil {
		return err
	}
	redo := r.state.at(stageMatches) >= 0
	do := func() (string, error) {
		if redo { // pairs that were matched before with other options stay otherwise
			if err := r.forgetMatches(); err != nil {
				return "", err
			}
		}
		args := k.arguments("database_path", r.o.in(databaseFile))
		err := r.run(process{stage: stageMatches, program: r.colmap.path, args: args, heard: r.show.parts("part")})
		if how == MatchSequential && !r.o.Loops && r.o.VocabTree == "" {
			r.console.Note("photos are matched with their neighbours by name only: where the camera comes back to a place, " +
				"or the order is another one, poses drift unseen; to prevent that, give " + fault.Setting("matching") +
				" exhaustive, or " + fault.Setting("loops"))
		}
		return how + " matching", err
	}
	return r.do(stage{name: stageMatches, key: text(k.args), changes: []string{databaseFile}, do: do})
}

// matchOptions sets the options that decide matches.
func (r *running) matchOptions(k *colmapCall, how string) error {
	o := r.o
	k.set(o.gpu(r.colmap), "FeatureMatching.use_gpu", "SiftMatching.use_gpu")
	if o.Features == FeaturesALIKED {
		if err := k.must("ALIKED_LIGHTGLUE", "features", "FeatureMatching.type"); err != nil {
			return err
		}
	}
	switch how {
	case MatchAll: // COLMAP tells of its progress block by block
		k.set(fmt.Sprint(min(max(len(r.photos)/8, 10), 50)), "ExhaustiveMatching.block_size")
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

// errNoModel is the cause of an error about photos whose cameras cannot be found.
var errNoModel = errors.New("no part of the photos hangs together well enough to find their cameras")

// findCameras has the mapper find cameras and points.
func (r *running) findCameras() error {
	program, args, err := r.mapperCommand()
	if err != nil {
		return err
	}
	folder := r.o.in(componentsFolder)
	key := text(filepath.Base(program), args)
	args = append(slices.Clone(args), options("database_path", r.o.in(databaseFile), "image_path", r.o.in(imagesFolder),
		"output_path", folder)...)
	do := func() (string, error) {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return "", output.FolderError(folder, err)
		}
		err := r.run(process{stage: stageMapping, program: program, args: args, heard: r.show.cameras(len(r.photos))})
		found := listComponents(folder)
		if len(found) == 0 && !errors.Is(err, fault.ErrInterrupted) {
			if err != nil {
				r.console.Note("the mapper says: " + err.Error())
			}
			return "", r.noModel()
		}
		if err != nil {
			return "", err
		}
		return cli.Count(len(found), "component"), nil
	}
	outputs, changes := []string{componentsFolder}, []string{databaseFile}
	return r.do(stage{name: stageMapping, key: key, outputs: outputs, changes: changes, do: do})
}

// mapperCommand chooses the mapper: COLMAP's incremental one, its global one, or the program glomap that was that
// before it became part of COLMAP.
func (r *running) mapperCommand() (program string, args []string, err error) {
	switch {
	case r.o.Mapper != MapGlobal:
		k, err := r.colmap.call(r.ctx, "mapper")
		if err != nil {
			return "", nil, err
		}
		if r.cubed() {
			err = k.must("0", "camera-model", "Mapper.ba_refine_focal_length")
		}
		return r.colmap.path, k.args, err
	case r.colmap.commands["global_mapper"]:
		return r.colmap.path, []string{"global_mapper"}, nil
	}
	glomap, err := exec.LookPath("glomap")
	if err != nil {
		return "", nil, &fault.Error{Op: "start mapper", Kind: fault.ErrMachine,
			Err:  fmt.Errorf("COLMAP %s has no global_mapper, and glomap: %w", r.colmap.version, errMissing),
			Hint: "leave out " + fault.Setting("mapper") + ", or install COLMAP 4.0 or newer, or glomap"}
	}
	return glomap, []string{"mapper"}, nil
}

// noModel is the error of photos whose cameras cannot be found, with what helps.
func (r *running) noModel() error {
	looks := r.looksOf(r.photos, 40)
	dark := 0
	for _, l := range looks {
		if l.bright < darkBelow {
			dark++
		}
	}
	hint := "take photos that overlap their neighbours by two thirds, from different places: turning on the spot shows " +
		"no depth; sharp and with detail: bare walls have none"
	switch {
	case dark > len(looks)/2:
		hint = "most photos are dark: take them with more light"
	case r.planMatching() == MatchSequential:
		hint = "if the photos are not in the order in which they were taken, give " + fault.Setting("matching") +
			" exhaustive; else " + hint
	}
	return &fault.Error{Op: "find cameras", Path: r.o.in(imagesFolder), Err: errNoModel, Hint: hint}
}
