package capture

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// converter is a program that makes a readable photo of one that is not.
type converter struct {
	program string
	args    func(in, out, coder string) []string
	ppm     bool // it prints a PPM to standard output instead of writing a file
}

func inOut(more ...string) func(in, out, _ string) []string {
	return func(in, out, _ string) []string { return slices.Concat(more, []string{in, out}) }
}

// firstPages has ImageMagick read the first two pictures of a file: whether there is a second is of interest.
func firstPages(in, out, coder string) []string {
	if in = coder + ":" + in; coder != rawCoder {
		in += "[0-1]"
	}
	return []string{in, out}
}

// Converters of each kind of photo, the best first. The first word of all is the program.
var (
	heifConvert = converter{program: "heif-convert", args: inOut("-q", "95")}
	heifDec     = converter{program: "heif-dec", args: inOut("-q", "95")}
	magick      = converter{program: "magick", args: firstPages}
	// ImageMagick 6; on Windows another program of the system has this name
	convert  = converter{program: "convert", args: firstPages}
	darkroom = converter{program: "darktable-cli", args: inOut()}
	dcraw    = converter{program: "dcraw", ppm: true,
		args: func(in, _, _ string) []string { return []string{"-c", "-w", in} }}
)

// conversion is how photos with some extensions are converted.
type conversion struct {
	extensions []string
	suffix     string            // of the file that is made, behind the whole old name
	coders     map[string]string // ImageMagick's word for what the files may hold, by photo.ForeignKindIn
	by         []converter
}

// rawCoder is ImageMagick's word for raw photos, many of which begin as a TIFF does.
const rawCoder = "dng"

var conversions = []conversion{
	{[]string{".heic", ".heif", ".hif"}, ".jpg", map[string]string{"heic": "heic"},
		[]converter{heifConvert, heifDec, magick, convert}},
	{[]string{".avif"}, ".png", map[string]string{"heic": "heic"}, []converter{magick, convert, heifDec}},
	{[]string{".tif", ".tiff", ".bmp", ".gif"}, ".png",
		map[string]string{"tiff": "tiff", "bmp": "bmp", "gif": "gif", "dng": rawCoder}, []converter{magick, convert}},
	{[]string{".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".rw2", ".orf"}, ".png",
		map[string]string{"dng": rawCoder, "tiff": rawCoder}, []converter{dcraw, darkroom, magick, convert}},
}

// conversionOf gives how a photo is converted, nil for photos that are read as they are.
func conversionOf(name string) *conversion {
	ext := strings.ToLower(filepath.Ext(name))
	for i := range conversions {
		if slices.Contains(conversions[i].extensions, ext) {
			return &conversions[i]
		}
	}
	return nil
}

// convertedSuffix is added to a photo's name when it is converted, "" for photos that are read as they are.
func convertedSuffix(name string) string {
	if c := conversionOf(name); c != nil {
		return c.suffix
	}
	return ""
}

// coder is ImageMagick's word for what a photo holds by its first bytes.
func (c *conversion) coder(path string) (string, error) {
	if kind := photo.ForeignKindIn(path); kind != nil && c.coders[kind.Reader] != "" {
		return c.coders[kind.Reader], nil
	}
	return "", fmt.Errorf("its content is not that of %s files", strings.ToLower(filepath.Ext(path)))
}

// isReadable tells whether a photo is read as it is, whatever its name.
func isReadable(path string) bool {
	_, _, err := photo.Size(path)
	return err == nil
}

func (c *conversion) program(file string) (*converter, error) {
	for i := range c.by {
		if has(c.by[i].program) {
			return &c.by[i], nil
		}
	}
	first := c.by[0].program
	return nil, &fault.Error{Op: "convert photo", Path: file, Kind: fault.ErrMachine,
		Err: fmt.Errorf("%s files are not read, and no program that converts them is installed: %w",
			filepath.Ext(file), fault.ErrMissing),
		Hint: "of " + strings.Join(c.programs(), ", ") + " one is enough; for " + first + ", " + installHint(first)}
}

func (c *conversion) programs() (names []string) {
	for _, by := range c.by {
		names = append(names, by.program)
	}
	return names
}

// convertingFolder is where a photo is converted, beside its place, by programs that run in it. Names there are plain,
// however the photo is called: no program takes one for a pattern, a number or a flag. It is removed with all that a
// program leaves there.
const convertingFolder = ".converting"

// otherEnding is the remedy for a photo with a wrong extension.
const otherEnding = "give it the extension of its real format, or copy it again from the camera or card"

// convertPhoto writes a photo that is read to a file, which appears whole. Of files with several pictures it takes the
// first.
func (b *base) convertPhoto(in, out string) error {
	c := conversionOf(in)
	coder, err := c.coder(in)
	if err != nil {
		return fault.Data("convert photo", in, otherEnding, "%v", err)
	}
	by, err := c.program(in)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(by.program)
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(out), convertingFolder)
	defer os.RemoveAll(dir) // leftovers are harmless: the next one removes them
	from, to := "photo"+strings.ToLower(filepath.Ext(in)), "made"+c.suffix
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)); err != nil {
		return output.FolderError(b.o.Out, err)
	}
	if err := linkOrCopy(in, filepath.Join(dir, from)); err != nil {
		return err
	}
	p := process{stage: stagePhotos, program: output.Absolute(path), dir: dir, args: by.args(from, to, coder)}
	ppm, err := os.Create(filepath.Join(dir, "ppm"))
	if err != nil {
		return output.FolderError(b.o.Out, err)
	}
	defer ppm.Close() // only read from by then
	if by.ppm {
		p.stdout = ppm
	}
	if err := b.run(p); err != nil {
		if errors.Is(err, fault.ErrInterrupted) {
			return err
		}
		return &fault.Error{Op: "convert photo", Path: in, Err: err,
			Hint: "check that another program shows it; convert it by hand, or take it out of the photos"}
	}
	if by.ppm {
		err = writePNG(ppm, filepath.Join(dir, to))
	}
	made, bad := filepath.Glob(filepath.Join(output.EscapeGlob(dir), "made*"+c.suffix))
	if err = cmp.Or(err, bad); err == nil && len(made) == 0 {
		err = errors.New("there is no file")
	}
	if err == nil { // made-0.png, made-1.png and so on of several pictures
		slices.SortFunc(made, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
		_, _, err = photo.Size(made[0])
	}
	if err != nil {
		return &fault.Error{Op: "convert photo", Path: in, Err: fmt.Errorf("%s made no photo: %w", by.program, err),
			Hint: "convert it by hand, and give that file"}
	}
	if len(made) > 1 {
		b.several = append(b.several, in)
	}
	return os.Rename(made[0], out)
}

// writePNG writes a PPM of 8 bits as a PNG.
func writePNG(ppm *os.File, path string) error {
	if _, err := ppm.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReader(ppm)
	var width, height, most int
	if _, err := fmt.Fscanf(r, "P6\n%d %d\n%d", &width, &height, &most); err != nil {
		return fmt.Errorf("no PPM: %w", err)
	}
	if _, err := r.ReadByte(); err != nil {
		return err
	}
	switch {
	case most != 255 || width <= 0 || height <= 0:
		return errors.New("a PPM without 8 bits per colour")
	case width > scene.MaxPixels/height:
		return fmt.Errorf("a PPM of %d x %d pixels; %d pixels are the most that is read", width, height,
			scene.MaxPixels)
	}
	pix, err := io.ReadAll(io.LimitReader(r, int64(3*width*height)))
	if err != nil {
		return err
	}
	if len(pix) < 3*width*height { // before anything is made for what it claims
		return fmt.Errorf("a PPM of %d x %d pixels that ends after %d bytes", width, height, len(pix))
	}
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		copy(img.Pix[4*i:], []byte{pix[3*i], pix[3*i+1], pix[3*i+2], 255})
	}
	return atomicfile.Write(path, func(w io.Writer) error { return photo.EncodePNG(w, img) })
}
