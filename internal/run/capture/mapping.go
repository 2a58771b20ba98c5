package capture

import (
	"errors"
	"fmt"
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
func (m *mapper) findFeatures() error {
	plan, err := m.planCameras()
	if err != nil {
		return err
	}
	k, err := m.colmap.call(m.ctx, "feature_extractor")
	if err != nil {
		return err
	}
	list := m.o.in(logsFolder, photoList)
	if err := m.featureOptions(k, plan); err != nil {
		return err
	}
	key := text(k.args, m.colmap.version, m.photos)
	do := func() (string, error) {
		if err := writeLines(list, m.photos); err != nil {
			return "", err
		}
		args := k.arguments("database_path", m.o.in(databaseFile), "image_path", m.o.in(imagesFolder),
			"image_list_path", list)
		err := m.run(process{stage: stageFeatures, program: m.colmap.path, args: args,
			onLine: m.show.parts("photo")})
		cameras := map[string]string{CamerasOne: "one camera", CamerasMany: "a camera each",
			CamerasFolder: "a camera for each folder"}[plan.share]
		return fmt.Sprintf("%s with %s (%s), %s", cli.Count(len(m.photos), "photo"), cameras, plan.why, plan.model), err
	}
	return m.stages.do(stage{name: stageFeatures, key: key, outputs: []string{databaseFile}, adds: true, do: do})
}

// featureOptions sets the options that decide features.
func (m *mapper) featureOptions(k *colmapCall, plan cameraPlan) error {
	o := m.o
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
	if m.cubed() {
		if err := k.must(m.faceCamera(), "camera-model", "ImageReader.camera_params"); err != nil {
			return err
		}
	}
	k.set(m.colmap.gpu(), "FeatureExtraction.use_gpu", "SiftExtraction.use_gpu")
	if o.Masks != "" {
		if err := k.must(o.in(masksFolder), "masks", "ImageReader.mask_path"); err != nil {
			return err
		}
	}
	if o.MaxSize > 0 {
		err := k.must(fmt.Sprint(o.MaxSize), "max-size", "FeatureExtraction.max_image_size",
			"SiftExtraction.max_image_size")
		if err != nil {
			return err
		}
	}
	return nil
}

func writeLines(path string, lines []string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return output.FolderError(filepath.Dir(path), err)
	}
	return atomicfile.WriteText(path, strings.Join(lines, "\n")+"\n")
}

// errNoModel is the cause of an error about photos whose cameras cannot be found.
var errNoModel = errors.New("no group of photos overlaps enough to find their cameras")

func (m *mapper) findCameras() error {
	program, args, err := m.mapperCommand()
	if err != nil {
		return err
	}
	folder := m.o.in(componentsFolder)
	key := text(filepath.Base(program), args)
	args = append(slices.Clone(args), options("database_path", m.o.in(databaseFile), "image_path", m.o.in(imagesFolder),
		"output_path", folder)...)
	do := func() (string, error) {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return "", output.FolderError(folder, err)
		}
		err := m.run(process{stage: stageMapping, program: program, args: args, onLine: m.show.cameras(len(m.photos))})
		found := listComponents(folder)
		if len(found) == 0 && !errors.Is(err, fault.ErrInterrupted) {
			if err != nil {
				m.console.Note("mapper: " + err.Error())
			}
			return "", m.noModel()
		}
		if err != nil {
			return "", err
		}
		return cli.Count(len(found), "component"), nil
	}
	outputs, changes := []string{componentsFolder}, []string{databaseFile}
	return m.stages.do(stage{name: stageMapping, key: key, outputs: outputs, changes: changes, do: do})
}

// mapperCommand chooses the mapper: COLMAP's incremental one, its global one, or the program glomap that was that
// before it became part of COLMAP.
func (m *mapper) mapperCommand() (program string, args []string, err error) {
	switch {
	case m.o.Mapper != MapGlobal:
		k, err := m.colmap.call(m.ctx, "mapper")
		if err != nil {
			return "", nil, err
		}
		if m.cubed() {
			err = k.must("0", "camera-model", "Mapper.ba_refine_focal_length")
		}
		return m.colmap.path, k.args, err
	case m.colmap.commands["global_mapper"]:
		return m.colmap.path, []string{"global_mapper"}, nil
	}
	glomap, err := exec.LookPath("glomap")
	if err != nil {
		return "", nil, &fault.Error{Op: "start mapper", Kind: fault.ErrMachine,
			Err:  fmt.Errorf("COLMAP %s has no global_mapper, and glomap: %w", m.colmap.version, fault.ErrMissing),
			Hint: "leave out " + fault.Setting("mapper") + ", or install COLMAP 4.0 or newer, or glomap"}
	}
	return glomap, []string{"mapper"}, nil
}

// noModel is the error of photos whose cameras cannot be found, with what helps.
func (m *mapper) noModel() error {
	looks := m.looksOf(m.photos, 40)
	dark := 0
	for _, l := range looks {
		if l.bright < darkBelow {
			dark++
		}
	}
	hint := "take photos that overlap by two thirds, from different places (turning on the spot shows no depth), " +
		"sharp and with detail (bare walls have none)"
	switch {
	case dark > len(looks)/2:
		hint = "most photos are dark: take them with more light"
	case m.o.Masks != "":
		hint = "if " + fault.Setting("masks") + " leave enough, where white counts and black does not, " + hint
	case m.planMatching() == MatchSequential:
		hint = "if the photos are not in the order in which they were taken, give " + fault.Setting("matching") +
			" exhaustive; else " + hint
	}
	return &fault.Error{Op: "find cameras", Path: m.o.in(imagesFolder), Err: errNoModel, Hint: hint}
}
