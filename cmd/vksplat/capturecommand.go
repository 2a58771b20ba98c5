package main

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/capture"
	"vksplat/internal/run/live"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/train"
)

func captureCommand(console *cli.Console) *cobra.Command {
	o, viewer := capture.NewOptions(), &train.ViewerOptions{}
	cmd := &cobra.Command{
		Use:   capture.Name + " PHOTOS|VIDEO... -o SCENE",
		Short: "Find the cameras of photos or a video, for training",
		Long: "Make a SCENE that train reads from folders of photos, or from videos, which need ffmpeg. Finds the\n" +
			"cameras itself, on any GPU. If you ask for what COLMAP alone has, COLMAP runs, and must be installed.\n" +
			"Run the same command again to continue after a stop.\n\n" +
			"SCENE gets images/, sparse/0/ and components/; features.bin and matches.bin, or COLMAP's database.db and\n" +
			"logs/; verdict.json for scripts; and coverage.png, which shows points and cameras from above.\n" +
			"docs/capture.md says how frames, cameras and pairs of photos are chosen.",
		Example: "  vksplat capture my_photos -o my_scene\n" +
			"  vksplat capture walk.mp4 -o my_scene --frames 200\n" +
			"  vksplat capture new_photos -o my_scene --more",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.Usagef("as in: vksplat capture my_photos -o my_scene",
					"capture needs a folder of photos, or a video")
			}
			return nil
		},
	}
	return newCommand(console, cmd, captureTable(o, viewer), helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		o.Inputs, o.Again = args, commandAgain(console.Args, nil)
		return watchedSearch(console, o, viewer, func(*live.Search) error { return capture.Run(console, o) })
	})
}

// watchedSearch does what a search for cameras is a part of, and shows it in the browser, if that is asked for.
func watchedSearch(console *cli.Console, o *capture.Options, viewer *train.ViewerOptions,
	do func(*live.Search) error) (err error) {
	if o.Progress == meter.JSON { // which is alone on standard output
		console = console.ToStderr()
	}
	s, err := live.NewSearch(viewer, filepath.Base(output.Absolute(o.Inputs[0])), console)
	if err != nil || s == nil {
		if err == nil {
			err = do(nil)
		}
		return err
	}
	o.Watch = s
	defer func() { err = errors.Join(err, s.Close(err)) }()
	return do(s)
}

func captureTable(o *capture.Options, viewer *train.ViewerOptions) []optionGroup {
	return []optionGroup{{"", slices.Concat([]option{
		text(&o.Out, "output", "make the folder `SCENE` (required)").letter("o").isFolder(),
		float(&o.Fps, "fps", "extract `N` frames per second of video, at most 300 per video (default 2)").
			within(0.001, 1000),
		integer(&o.Frames, "frames", "extract `N` frames per video (default: by --fps)").within(1, 1e6),
		text(&o.Masks, "masks", "ignore regions where masks in `DIR` are black").isFolder(),
		chosen(&o.Cameras, "cameras",
			"how photos share cameras, `HOW`: one, many or folder; auto: by sizes and EXIF", capture.Sharings...),
		truth(&o.Rig, "rig", "photos of one name, in a folder for each camera, are of cameras fixed to each other"),
		chosen(&o.CameraModel, "camera-model",
			"find cameras of this `MODEL`; auto: RADIAL, or OPENCV where that is better",
			capture.CameraModels...),
		integer(&o.MaxSize, "max-size", "detect features at `N` pixels on the longer side (default: 3200)").
			within(64, 65536),
		chosen(&o.Matching, "matching",
			"match `PAIRS`: exhaustive or sequential; auto: by number and kind of photos", capture.Matchings...),
		chosen(&o.Mapper, "mapper", "what finds cameras: own, or COLMAP's incremental or global (COLMAP 4 or glomap); "+
			"auto: own, unless an option is COLMAP's", capture.Mappers...),
		integer(&o.Model, "model", "use component `N` (default: the one with most photos)").within(0, 1e6),
		truth(&o.More, "more", "add the photos to SCENE; what it has stays as it is"),
		progressOption(&o.Progress),
	}, viewerOptions(viewer, "the search"), []option{
		overwriteOption(&o.Overwrite, "files in SCENE that this command did not write"),
	})}, {options: deviceOptions(&o.Device)}}
}
