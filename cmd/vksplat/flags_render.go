package main

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/picture"
	"vksplat/scene/trajectory"
)

// Projections of render.
const (
	projectPerspective = "perspective"
	projectEquirect    = "equirect"
)

// formatNone draws, reads back and writes nothing.
const formatNone = "none"

// Colour spaces of pictures.
const (
	colourAuto   = "auto"
	colourSRGB   = "srgb"
	colourLinear = "linear"
)

// renderOptions is everything that render is asked for.
type renderOptions struct {
	file, cameras, out string
	single             string // the file of the one picture, in out; "": there may be several
	run                string // the folder that file was found in, "" where the file itself was named
	antialiased        bool
	given              func(flag string) bool
	load               captured.Options
	device             pipeline.DeviceOptions
	config             pipeline.RenderConfig
	drawing            halfPictures

	split, trajectory, dataparser string
	frames                        frameRange
	fps, seconds, fov             float64
	size                          pixelsFlag
	projection                    string

	format, colours, name string
	start                 int
	depth, alpha          bool
	overwrite             bool

	video string
	crf   int
}

func newRenderOptions() *renderOptions {
	return &renderOptions{load: captured.Options{Model: scene.AnyModel}, config: pipeline.RenderConfig{Near: pipeline.DefaultConfig().Near, Smaller: "make smaller pictures (--size)"},
		fps: 30, seconds: 10, projection: projectPerspective, format: picture.FormatPNG, colours: colourAuto, crf: 18}
}

// table lists the options of render by chapter.
func (o *renderOptions) table() []optionGroup {
	return []optionGroup{
		{"Cameras", []option{
			text(&o.cameras, "cameras", "a capture's folder, a cameras.json or the folder of a run with one: `SCENE|FILE` (default: the cameras.json of OUT)"),
			chosen(&o.split, "split", "only the views of one `SPLIT`: train, the photos that were trained on, or test, those that were held out", inria.SplitTrain, inria.SplitTest),
			text(&o.trajectory, "trajectory", "fly instead: interp, ellipse, spiral, orbit, or a `FILE` of cameras (see docs/render.md)").oneOf(trajectory.Names()...),
			text(&o.dataparser, "dataparser-transforms", "`FILE` dataparser_transforms.json of the nerfstudio run that a camera_path.json was made with"),
			float(&o.fps, "fps", "`N` pictures a second of a trajectory and of a video"),
			float(&o.seconds, "seconds", "`S` seconds that a trajectory takes; a file of keyframes says it itself"),
			other(&o.frames, "frames", "only pictures `A-B` of all, counted from 0, or every Nth of them: A-BxN"),
			other(&o.size, "size", "pictures of `WxH` pixels, which show the same from top to bottom (default: the photos')"),
			float(&o.fov, "fov", "vertical field of view in `DEGREES` (default: the photos')"),
			chosen(&o.projection, "projection", "projection `KIND`: perspective as the cameras', or equirect: 360 degrees around each", projectPerspective, projectEquirect),
		}},
		{"Pictures", append(append([]option{
			text(&o.out, "output", "write to the folder `DIR`, or one picture to DIR/NAME.png, .jpg, .exr or .npy").letter("o").isFolder(),
			chosen(&o.format, "format", "pictures of this `KIND`: png, png16, jpg, exr or npy; none writes nothing, to measure drawing alone",
				picture.FormatPNG, picture.FormatPNG16, picture.FormatJPEG, picture.FormatEXR, picture.FormatNPY, formatNone),
			chosen(&o.colours, "colorspace", "colour `SPACE`: srgb as the photos, or linear; auto is linear for exr", colourAuto, colourSRGB, colourLinear),
			truth(&o.alpha, "alpha", "write coverage and leave the background out; exr always has it, unless --background is given"),
			truth(&o.depth, "depth", "write the expected depth along the camera's axis as well: NAME.depth.npy, or channel Z of exr"),
			text(&o.name, "name", "names by number, by a `PATTERN` as in shot_%04d (default: the photos' names, or frame_%05d)"),
			integer(&o.start, "start-frame", "number `N` of the first picture"),
			truth(&o.overwrite, "overwrite", "draw pictures again that are there already, and replace other files in the way, or the video"),
		}, lookOptions(&o.config.Background, &o.config.Near)...),
			truth(&o.antialiased, "antialiased", "compensate opacity for the pixel filter (default: as the file says)"))},
		{"Video", []option{
			text(&o.video, "video", "write the video `FILE`.mp4, .mov, .mkv or .webm, through the program ffmpeg"),
			integer(&o.crf, "crf", "quality `N` of the video: 0 is best, 51 worst"),
		}},
		{"Capture", o.captureOptions()},
		{"Device", deviceOptions(&o.device)},
	}
}

// captureFormat is the flag that other commands call --format.
const captureFormat = "capture-format"

// captureOptions are those of reading a capture; --format is what pictures are.
func (o *renderOptions) captureOptions() []option {
	list := loadTable(&o.load)
	for i := range list {
		if list[i].name == "format" {
			list[i].name = captureFormat
		}
	}
	return list
}

// check refuses what makes no sense, before anything is read.
func (o *renderOptions) check() error {
	if err := o.takeSingle(); err != nil {
		return err
	}
	switch {
	case o.out == "" && o.video == "" && o.format != formatNone:
		return fault.Usagef("as in: vksplat render OUT -o DIR, or --video flight.mp4", "-o or --video is required")
	case o.cameras == "" && !output.IsFolder(o.file) && output.IsFile(o.file) && o.trajectory == "":
		return o.noCameras()
	case o.given("model") && (o.fromJSON() || o.cameras == ""):
		return fault.Usagef("leave it out, or give the capture that has the model: --cameras SCENE", "flag --model: the cameras are of no capture, there is no model %s", &o.load.Model)
	case o.split != "" && o.trajectory != "":
		return fault.Usagef("leave one of them out", "--split and --trajectory say different things")
	case !(o.config.Near > 0) || math.IsInf(o.config.Near, 0):
		return fault.Usagef("give a distance above 0, as in 0.01", "flag --near: %g is no distance", o.config.Near)
	case !(o.fps > 0 && o.fps <= 1000):
		return fault.Usagef("give a number above 0, as in 30", "flag --fps: %g pictures a second", o.fps)
	case !(o.seconds > 0 && o.seconds*o.fps <= 1e6):
		return fault.Usagef("up to a million pictures are possible", "flag --seconds: %g", o.seconds)
	case o.given("fov") && !(o.fov >= trajectory.MinFOV && o.fov <= trajectory.MaxFOV):
		return fault.Usagef(fmt.Sprintf("give %g to %g degrees", trajectory.MinFOV, trajectory.MaxFOV), "flag --fov: %g", o.fov)
	case o.crf < 0 || o.crf > 51:
		return fault.Usagef("give 0 to 51, as in 18", "flag --crf: %d", o.crf)
	case o.start < 0 || o.start > math.MaxInt32:
		return fault.Usagef("give a number from 0 up, as in 1001", "flag --start-frame: %d", o.start)
	case o.alpha && o.format == picture.FormatJPEG:
		return fault.Usagef("take png, png16, exr or npy", "jpg holds no alpha")
	case o.projection == projectEquirect && o.size != (pixelsFlag{}) && o.size.width != 2*o.size.height:
		return fault.Usagef("give twice the height as the width, as in 4096x2048", "flag --size: a panorama is not %dx%d", o.size.width, o.size.height)
	case o.projection == projectEquirect && o.given("fov"):
		return fault.Usagef("leave --fov out", "a panorama shows everything, --fov says nothing")
	}
	if o.video != "" && videoKinds[videoSuffix(o.video)] == nil {
		return fault.Usagef("give FILE.mp4, .mov, .mkv or .webm", "flag --video: %s is no kind of video that is known", o.video)
	}
	if err := output.RefuseExisting("flag --video: ", o.overwrite, o.video); err != nil {
		return err
	}
	return checkPattern(o.name)
}

// takeSingle makes of -o FILE.png one picture in its folder.
func (o *renderOptions) takeSingle() error {
	format := pictureFormat(o.out)
	if format == "" || output.IsFolder(o.out) {
		return nil
	}
	switch {
	case o.format == picture.FormatPNG16 && format == picture.FormatPNG:
	case o.given("format") && o.format != format:
		return fault.Usagef("give the file a name that fits, or leave --format out", "flags --output and --format: %s is no name for %s", o.out, o.format)
	default:
		o.format = format
	}
	if o.name != "" {
		return fault.Usagef("leave --name out, or name a folder with -o", "flags --output and --name: %s names one picture", o.out)
	}
	if n := o.frames.count(); n > 1 {
		return o.notSingle(n)
	}
	o.single, o.out = o.out, filepath.Dir(o.out)
	files := []string{o.single}
	if o.depth && format != picture.FormatEXR {
		files = append(files, strings.TrimSuffix(o.single, filepath.Ext(o.single))+depthSuffix)
	}
	return output.RefuseExisting("flag --output: ", o.overwrite, files...)
}

// notSingle is the error of several pictures for one file.
func (o *renderOptions) notSingle(n int) error {
	file := cmp.Or(o.single, o.out)
	return fault.Usagef("choose one with --frames 0, or name a folder, as in -o "+strings.TrimSuffix(file, filepath.Ext(file)), "flag --output: %s is one picture, and %d are asked for", file, n)
}

// views is how many pictures are asked for, of a capture or a flight.
func (o *renderOptions) views(c *scene.Capture, flown []scene.Camera) int {
	switch {
	case o.frames.some:
		return o.frames.count()
	case o.fromFile():
		return len(flown)
	case o.trajectory != "":
		return o.flightPictures()
	case o.split != "":
		return len(o.splitViews(c))
	}
	return len(c.Cameras)
}

// picture says how pictures are written.
func (o *renderOptions) picture() picture.PictureOptions {
	p := picture.PictureOptions{Format: o.format, Alpha: o.alpha, Linear: o.colours == colourLinear}
	if o.format == picture.FormatEXR {
		p.Alpha = p.Alpha || !o.given("background")
		p.Linear = o.colours != colourSRGB
	}
	if o.format == formatNone {
		p = picture.PictureOptions{Format: picture.FormatPNG}
	}
	return p
}

var patternForm = regexp.MustCompile(`^[^%]*%(0?[1-9])?d[^%]*$`)

// checkPattern refuses names of pictures without one place for the number, or that lead out of the folder.
func checkPattern(pattern string) error {
	if pattern == "" {
		return nil
	}
	if !patternForm.MatchString(pattern) || !localName(pattern) {
		return fault.Usagef("give a name with one %d or %04d, as in shot_%04d, without folders", "flag --name: %q names no pictures by number", pattern)
	}
	return nil
}

// localName says whether a name is one of a file, on all systems.
func localName(name string) bool {
	return !strings.ContainsAny(name, "/\\:*?\"<>|\x00") && len(name) < 200 && !strings.HasPrefix(name, ".")
}

// frameRange is a choice of pictures: every step-th from first to last.
type frameRange struct {
	first, last, step int
	some              bool // not all
}

func (f *frameRange) Type() string { return "A-B" }

func (f *frameRange) String() string {
	switch {
	case !f.some:
		return ""
	case f.step == 1:
		return fmt.Sprintf("%d-%d", f.first, f.last)
	}
	return fmt.Sprintf("%d-%dx%d", f.first, f.last, f.step)
}

var rangeForm = regexp.MustCompile(`^(\d{1,9})(?:-(\d{1,9})(?:x(\d{1,9}))?)?$`)

// Set parses A, A-B or A-BxN.
func (f *frameRange) Set(s string) error {
	m := rangeForm.FindStringSubmatch(s)
	bad := fault.Usagef("give pictures as in 0-99, or 0-99x2 for every second", "%q is no range of pictures", s)
	if m == nil {
		return bad
	}
	r := frameRange{step: 1, some: true}
	r.first, _ = strconv.Atoi(m[1]) // digits alone, few of them
	r.last = r.first
	if m[2] != "" {
		r.last, _ = strconv.Atoi(m[2])
	}
	if m[3] != "" {
		r.step, _ = strconv.Atoi(m[3])
	}
	if r.last < r.first || r.step < 1 {
		return bad
	}
	*f = r
	return nil
}

// count is how many pictures a range has, 0 for all that there are.
func (f *frameRange) count() int {
	if !f.some {
		return 0
	}
	return (f.last-f.first)/f.step + 1
}

// pick returns which of n pictures are chosen.
func (f *frameRange) pick(n int) (list []int, err error) {
	if !f.some {
		f.first, f.last, f.step = 0, n-1, 1
	}
	if f.some && f.last >= n {
		return nil, fault.Usagef(fmt.Sprintf("pictures count from 0 to %d", n-1), "flag --frames: there are %s, %s goes beyond", cli.Count(n, "picture"), f)
	}
	for i := f.first; i <= f.last; i += f.step {
		list = append(list, i)
	}
	return list, nil
}

// pixelsFlag is a size in pixels, zero unless it is given.
type pixelsFlag struct{ width, height int }

func (f *pixelsFlag) Type() string { return "WxH" }

func (f *pixelsFlag) String() string {
	if *f == (pixelsFlag{}) {
		return ""
	}
	return fmt.Sprintf("%dx%d", f.width, f.height)
}

// maxPictureSide bounds a side of a picture, in pixels.
const maxPictureSide = 1 << 15

var pixelsForm = regexp.MustCompile(`^(\d{1,5})[xX×](\d{1,5})$`)

// Set parses WxH.
func (f *pixelsFlag) Set(s string) error {
	m := pixelsForm.FindStringSubmatch(s)
	var p pixelsFlag
	if m != nil {
		p.width, _ = strconv.Atoi(m[1]) // digits alone, few of them
		p.height, _ = strconv.Atoi(m[2])
	}
	if min(p.width, p.height) < 1 || max(p.width, p.height) > maxPictureSide {
		return fault.Usagef(fmt.Sprintf("give width and height from 1 to %d pixels, as in 1920x1080", maxPictureSide), "%q is no size of a picture", s)
	}
	*f = p
	return nil
}
