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
		err := r.run(process{stage: stageFeatures, program: r.colmap.path, args: args, heard: r.show.parts("photo", 0)})
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
			Err:  fmt.Errorf("COLMAP %s has no global_mapper, and glomap: %w", r.colmap.version, fault.ErrMissing),
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
