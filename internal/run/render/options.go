package render

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/picture"
)

// Projections of render.
const (
	ProjectPerspective = "perspective"
	ProjectEquirect    = "equirect"
)

// FormatNone draws, reads back and writes nothing.
const FormatNone = "none"

// Colour spaces of pictures.
const (
	ColourAuto   = "auto"
	ColourSRGB   = "srgb"
	ColourLinear = "linear"
)

// Options is everything that render is asked for.
type Options struct {
	File, Cameras, Out string
	single             string // the file of the one picture, in out; "": there may be several
	run                string // the folder that file was found in, "" where the file itself was named
	Iteration          int    // whose model of a run is drawn; 0: the last
	Antialiased        bool
	Given              func(flag string) bool
	Load               captured.Options
	Device             pipeline.DeviceOptions
	Config             pipeline.RenderConfig
	drawing            halfPictures

	Split, Trajectory, Dataparser string
	Frames                        frameRange
	Fps, Seconds, Fov             float64
	Size                          PixelsFlag
	MaxSplats                     int // of a streamed model in a picture; 0: as memory allows
	Projection                    string

	Format, Colours, Name string
	Start                 int
	Depth, Alpha, Normals bool
	Overwrite             bool

	Video     string
	VideoName string // the setting that names it
	Crf       int
}

func NewOptions() *Options {
	near := recipe.Default().Near
	return &Options{Load: captured.Options{Model: scene.AnyModel}, Fps: 30, Seconds: 10, Projection: ProjectPerspective,
		Config: pipeline.RenderConfig{Near: near, Smaller: "make smaller pictures (" + fault.Setting("size") + ")"},
		Format: picture.FormatPNG, Colours: ColourAuto, Crf: 18, VideoName: "video"}
}

// CaptureFormat is the flag that other commands call --format.
const CaptureFormat = "capture-format"

// Check refuses what makes no sense, before anything is read.
func (o *Options) Check() error {
	if err := o.takeSingle(); err != nil {
		return err
	}
	switch {
	case o.Out == "" && o.Video == "" && o.Format != FormatNone:
		return fault.Usagef("as in: "+fault.Command("render OUT -o DIR")+", or "+fault.Setting("video")+
			" flight.mp4", "%s or %s is required", fault.Setting("output"), fault.Setting("video"))
	case o.Iteration > 0 && o.run == "" && output.IsFile(o.File):
		return fault.Usagef("name the run's folder, or leave "+fault.Setting("iteration")+" out",
			"%s: %s is a file", fault.Named("iteration"), o.File)
	case o.Cameras == "" && !output.IsFolder(o.File) && output.IsFile(o.File) && o.Trajectory == "":
		return o.NoCameras()
	case o.Given("model") && (o.FromJSON() || o.Cameras == ""):
		return fault.Usagef("leave it out, or give the capture that has the model: "+fault.Setting("cameras")+" SCENE",
			"%s: the cameras do not come from a capture, so there is no model %s", fault.Named("model"), &o.Load.Model)
	case o.Split != "" && o.Trajectory != "":
		return fault.Usagef("leave one of them out", "%s and %s contradict each other", fault.Setting("split"),
			fault.Setting("trajectory"))
	case o.Seconds*o.Fps > 1e6:
		return fault.Usagef("up to a million pictures are allowed", "%s: %g", fault.Named("seconds"), o.Seconds)
	case o.Alpha && o.Format == picture.FormatJPEG:
		return fault.Usagef("take png, png16, exr or npy", "jpg holds no alpha")
	case o.Projection == ProjectEquirect && o.Size != (PixelsFlag{}) && o.Size.Width != 2*o.Size.Height:
		return fault.Usagef("give twice the height as the width, as in 4096x2048",
			"%s: a panorama is not %dx%d", fault.Named("size"), o.Size.Width, o.Size.Height)
	case o.Projection == ProjectEquirect && o.Given("fov"):
		return fault.Usagef("leave "+fault.Setting("fov")+" out", "a panorama shows everything, so %s does not apply",
			fault.Setting("fov"))
	}
	if o.Video != "" && videoKinds[videoSuffix(o.Video)] == nil {
		return fault.Usagef("give FILE.mp4, .mov, .mkv or .webm",
			"%s: %s is not a supported video format", fault.Named(o.VideoName), o.Video)
	}
	if err := output.RefuseExisting(o.VideoName, o.Overwrite, o.Video); err != nil {
		return err
	}
	return checkPattern(o.Name)
}

// takeSingle makes of -o FILE.png one picture in its folder.
func (o *Options) takeSingle() error {
	format := output.PictureFormat(o.Out)
	if format == "" || output.IsFolder(o.Out) {
		return nil
	}
	switch {
	case o.Format == picture.FormatPNG16 && format == picture.FormatPNG:
	case o.Given("format") && o.Format != format:
		return fault.Usagef("give the file a name that fits, or leave "+fault.Setting("format")+" out",
			"%s: %s is not a name for %s", fault.Named("output", "format"), o.Out, o.Format)
	default:
		o.Format = format
	}
	if o.Name != "" {
		return fault.Usagef("leave "+fault.Setting("name")+" out, or name a folder with "+fault.Setting("output"),
			"%s: %s names one picture", fault.Named("output", "name"), o.Out)
	}
	if n := o.Frames.count(); n > 1 {
		return o.notSingle(n)
	}
	o.single, o.Out = o.Out, filepath.Dir(o.Out)
	return output.RefuseExisting("output", o.Overwrite, append(o.beside(o.single), o.single)...)
}

// notSingle is the error of several pictures for one file.
func (o *Options) notSingle(n int) error {
	file := cmp.Or(o.single, o.Out)
	folder := strings.TrimSuffix(file, filepath.Ext(file))
	return fault.Usagef("choose one with "+fault.Setting("frames")+" 0, or name a folder, as in "+
		fault.Setting("output")+" "+folder,
		"%s: %s is one picture, but %d are requested", fault.Named("output"), file, n)
}

// views is how many pictures are asked for, of a capture or a flight.
func (o *Options) views(c *scene.Capture, flown []scene.Camera) int {
	switch {
	case o.Frames.some:
		return o.Frames.count()
	case o.FromFile():
		return len(flown)
	case o.Trajectory != "":
		return o.flightPictures()
	case o.Split != "":
		return len(o.splitViews(c))
	}
	return len(c.Cameras)
}

// Picture says how pictures are written.
func (o *Options) Picture() picture.Options {
	p := picture.Options{Format: o.Format, Alpha: o.Alpha, Linear: o.Colours == ColourLinear}
	if o.Format == picture.FormatEXR {
		p.Alpha = p.Alpha || !o.Given("background")
		p.Linear = o.Colours != ColourSRGB
	}
	if o.Format == FormatNone {
		p = picture.Options{Format: picture.FormatPNG}
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
		return fault.Usagef("give a name with one %d or %04d, as in shot_%04d, without folders",
			"%s: %q does not number the pictures", fault.Named("name"), pattern)
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
	bad := fault.Usagef("give pictures as in 0-99, or 0-99x2 for every second", "%q is not a range of pictures", s)
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
		return nil, fault.Usagef(fmt.Sprintf("pictures count from 0 to %d", n-1),
			"%s: there are %s, %s goes beyond", fault.Named("frames"), cli.Count(n, "picture"), f)
	}
	for i := f.first; i <= f.last; i += f.step {
		list = append(list, i)
	}
	return list, nil
}

// PixelsFlag is a size in pixels, zero unless it is given.
type PixelsFlag struct{ Width, Height int }

func (f *PixelsFlag) Type() string { return "WxH" }

func (f *PixelsFlag) String() string {
	if *f == (PixelsFlag{}) {
		return ""
	}
	return fmt.Sprintf("%dx%d", f.Width, f.Height)
}

// MaxPictureSide bounds a side of a picture, in pixels.
const MaxPictureSide = 1 << 15

var pixelsForm = regexp.MustCompile(`^(\d{1,5})[xX×](\d{1,5})$`)

// Set parses WxH.
func (f *PixelsFlag) Set(s string) error {
	m := pixelsForm.FindStringSubmatch(s)
	var p PixelsFlag
	if m != nil {
		p.Width, _ = strconv.Atoi(m[1]) // digits alone, few of them
		p.Height, _ = strconv.Atoi(m[2])
	}
	if min(p.Width, p.Height) < 1 || max(p.Width, p.Height) > MaxPictureSide {
		return fault.Usagef(fmt.Sprintf("give width and height from 1 to %d pixels, as in 1920x1080", MaxPictureSide),
			"%q is not a picture size", s)
	}
	*f = p
	return nil
}
