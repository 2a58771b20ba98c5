package main

import (
	"math"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/render"
	"vksplat/scene/inria"
	"vksplat/scene/picture"
	"vksplat/scene/trajectory"
)

func encodeCommand(console *cli.Console) *cobra.Command {
	o := render.NewOptions()
	o.VideoName = "output"
	cmd := &cobra.Command{
		Use:   "encode DIR -o FILE",
		Short: "Make a video of the pictures in a folder",
		Long: "Make a video of the PNG and JPEG pictures in the folder DIR, in the order of their names.\n" +
			"Needs the program ffmpeg.",
		Example:           "  vksplat encode frames -o flight.mp4 --fps 24",
		Args:              one("DIR"),
		ValidArgsFunction: folders,
	}
	return newCommand(console, cmd, encodeTable(o), helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		o.Given = flags.Changed
		if o.Video == "" {
			return fault.Usagef("as in: vksplat encode frames -o flight.mp4", "no video is named: -o is required")
		}
		if err := o.Check(); err != nil {
			return err
		}
		return render.Encode(console, args[0], o)
	})
}

// encodeTable lists the options of encode.
func encodeTable(o *render.Options) []optionGroup {
	table := []optionGroup{{options: append([]option{
		text(&o.Video, "output", "write the video `FILE`.mp4, .mov, .mkv or .webm (required)").letter("o"),
		overwriteOption(&o.Overwrite, "an existing video"),
	}, pickOptions(renderTable(o), "fps", "crf")[0].options...)}}
	find(table, "fps").help = "frames per second"
	return table
}

// renderTable lists the options of render by chapter.
func renderTable(o *render.Options) []optionGroup {
	return []optionGroup{
		{"Cameras", []option{
			text(&o.Cameras, "cameras",
				"render the views of `SCENE|FILE`; a capture, a cameras.json or a run (default: the cameras.json "+
					"of OUT)"),
			integer(&o.Iteration, "iteration", "render OUT's model of step `N` (default: the last)").within(0, 1e9),
			chosen(&o.Split, "split",
				"render only views of photos trained on (train) or held out (test)",
				inria.SplitTrain, inria.SplitTest),
			text(&o.Trajectory, "trajectory",
				"fly along `PATH`: interp, ellipse, spiral, orbit or a file of cameras; see docs/render.md").
				oneOf(trajectory.Names()...),
			text(&o.Dataparser, "dataparser-transforms",
				"`FILE` dataparser_transforms.json of the nerfstudio run that a camera_path.json belongs to"),
			float(&o.Fps, "fps", "frames per second of a trajectory or a video").within(0.001, 1000),
			float(&o.Seconds, "seconds", "duration of a trajectory; a file of keyframes has its own").
				within(0.001, 1e6),
			other(&o.Frames, "frames", "render only pictures `A-B`, counted from 0; A-BxN: every Nth of them"),
			other(&o.Size, "size",
				"size of the pictures; the vertical field of view stays (default: the photos')").
				asNumbers(kindInt, 2, 1, render.MaxPictureSide),
			float(&o.Fov, "fov", "vertical field of view in `DEGREES` (default: the photos')").
				within(trajectory.MinFOV, trajectory.MaxFOV),
			chosen(&o.Projection, "projection",
				"projection `KIND`: perspective or equirect; equirect is a 360 degree panorama at each camera",
				render.ProjectPerspective, render.ProjectEquirect),
		}},
		{"Pictures", pictureOptions(o)},
		{"Video", []option{
			text(&o.Video, "video", "write the video `FILE`.mp4, .mov, .mkv or .webm; needs the program ffmpeg"),
			integer(&o.Crf, "crf", "quality of the video, from 0 (best) to 51 (worst)").within(0, 51),
		}},
		{"Capture", renderCaptureOptions(o)},
		{"Device", deviceOptions(&o.Device)},
	}
}

// pictureOptions say what pictures are written, and how they look.
func pictureOptions(o *render.Options) []option {
	return append(append([]option{
		text(&o.Out, "output",
			"write to the folder `DIR`, or one picture to DIR/NAME.png, .jpg, .exr or .npy").letter("o").isFolder(),
		chosen(&o.Format, "format",
			"write `KIND`: png, png16, jpg, exr or npy; none: write nothing, to time rendering alone",
			picture.FormatPNG, picture.FormatPNG16, picture.FormatJPEG, picture.FormatEXR, picture.FormatNPY,
			render.FormatNone),
		chosen(&o.Colours, "colorspace",
			"colour `SPACE`: srgb as the photos, or linear; auto is linear for exr",
			render.ColourAuto, render.ColourSRGB, render.ColourLinear),
		truth(&o.Alpha, "alpha",
			"write alpha instead of a background; exr always has alpha, unless --background is given"),
		truth(&o.Depth, "depth",
			"also write the expected depth along the camera's axis, as NAME.depth.npy, or channel Z of exr"),
		truth(&o.Normals, "normals",
			"also write surface normals in the camera's axes, as NAME.normal.png"),
		text(&o.Name, "name",
			"name pictures by `PATTERN`, as in shot_%04d (default: as the photos, or frame_%05d)"),
		integer(&o.Start, "start-frame", "number of the first picture").within(0, math.MaxInt32),
		truth(&o.Overwrite, "overwrite",
			"render existing pictures again; replace other files in the way, or the video"),
	}, lookOptions(&o.Config.Background, &o.Config.Near)...),
		truth(&o.Antialiased, "antialiased",
			"compensate opacity for the pixel filter (default: as the file says)"),
		integer(&o.MaxSplats, "max-splats",
			"draw at most `N` splats of a streamed model per picture; distant parts use coarser levels (default: what "+
				"device memory allows, up to 8 million)").within(1, 1e10))
}

// renderCaptureOptions are those of reading a capture; --format is what pictures are.
func renderCaptureOptions(o *render.Options) []option {
	list := slices.DeleteFunc(loadTable(&o.Load), func(opt option) bool { return opt.name == "cameras" })
	for i := range list {
		if list[i].name == "format" {
			list[i].name = render.CaptureFormat
		}
	}
	return list
}

func renderCommand(console *cli.Console) *cobra.Command {
	o := render.NewOptions()
	cmd := &cobra.Command{
		Use:   "render FILE|OUT -o DIR",
		Short: "Render a model to pictures or a video",
		Long: "Render a model to pictures or a video, from the views of its photos or on a flight through\n" +
			"the scene. FILE is a model in any format that convert reads, OUT the folder of a training\n" +
			"run. docs/render.md describes flights and pictures.",
		Example: "  vksplat render out -o frames --split test\n" +
			"  vksplat render out --trajectory ellipse --size 1920x1080 --video flight.mp4\n" +
			"  vksplat render model.ply --cameras my_scene -o frames --format exr --depth",
		Args: one("FILE or OUT"),
	}
	first := []string{"output", "cameras", "iteration", "split", "trajectory", "video", "seconds", "fps", "size", "fov",
		"projection", "frames", "format", "alpha", "depth", "normals", "background", "name", "overwrite", "device",
		"max-vram"}
	layout := helpLayout{first: first}
	return newCommand(console, cmd, renderTable(o), layout, func(f *pflag.FlagSet, args []string) error {
		o.File, o.Given = args[0], f.Changed
		o.CamerasOfRun()
		warnIdleViews(console, o)
		return render.Run(console, o)
	})
}

// warnIdleViews warns of flags that change nothing.
func warnIdleViews(console *cli.Console, o *render.Options) {
	for _, opt := range renderCaptureOptions(o) {
		switch {
		case !o.Given(opt.name):
		case opt.name == "masks" || opt.name == "invert-masks" || opt.name == "grow-masks":
			console.Warn("--" + opt.name + " has no effect on pictures")
		case o.FromJSON() || o.Cameras == "":
			console.Warn(cli.NoEffect(opt.name, "a capture as --cameras"))
		}
	}
	for _, idle := range []struct {
		flag    string
		without string
		has     bool
	}{
		{"seconds", "--trajectory", o.Trajectory != ""},
		{"fps", "--trajectory or --video", o.Trajectory != "" || o.Video != ""}, {"crf", "--video", o.Video != ""},
		{"dataparser-transforms", "a --trajectory from a file", o.FromFile()},
		{"depth", "-o", o.Out != "" || o.Format == render.FormatNone}, {"normals", "-o", o.Out != ""},
		{"alpha", "-o", o.Out != "" || o.Format == render.FormatNone},
		{"start-frame", "--name or --trajectory", o.Name != "" || o.Trajectory != ""},
	} {
		if o.Given(idle.flag) && !idle.has {
			console.Warn(cli.NoEffect(idle.flag, idle.without))
		}
	}
	if o.Given("background") && o.Picture().Alpha && o.Video == "" {
		console.Warn("--background has no effect with --alpha")
	}
}
