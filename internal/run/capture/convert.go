package capture

import (
	"bytes"
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
	args    func(in, out string) []string
	ppm     bool // it prints a PPM to standard output instead of writing a file
}

func inOut(more ...string) func(in, out string) []string {
	return func(in, out string) []string { return slices.Concat(more, []string{in, out}) }
}

// Converters of each kind of photo, the best first. The first word of all is the program.
var (
	heifConvert = converter{program: "heif-convert", args: inOut("-q", "95")}
	heifDec     = converter{program: "heif-dec", args: inOut("-q", "95")}
	magick      = converter{program: "magick", args: inOut()}
	// ImageMagick 6; on Windows another program of the system has this name
	convert  = converter{program: "convert", args: inOut()}
	darkroom = converter{program: "darktable-cli", args: inOut()}
	dcraw    = converter{program: "dcraw", ppm: true,
		args: func(in, _ string) []string { return []string{"-c", "-w", in} }}
)

// conversion is how photos with some extensions are converted.
type conversion struct {
	extensions []string
	suffix     string // of the file that is made, behind the whole old name
	by         []converter
}

var conversions = []conversion{
	{[]string{".heic", ".heif", ".hif"}, ".jpg", []converter{heifConvert, heifDec, magick, convert}},
	{[]string{".avif"}, ".png", []converter{magick, convert, heifDec}},
	{[]string{".tif", ".tiff", ".bmp", ".gif"}, ".png", []converter{magick, convert}},
	{[]string{".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".rw2", ".orf"}, ".png", []converter{dcraw, darkroom,
		magick, convert}},
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

// convertedSuffix is what a photo's name gets when it is converted, "" for photos that are read as they are.
func convertedSuffix(name string) string {
	if c := conversionOf(name); c != nil {
		return c.suffix
	}
	return ""
}

// program gives the converter that is installed.
func (c *conversion) program(file string) (*converter, error) {
	for i := range c.by {
		if has(c.by[i].program) {
			return &c.by[i], nil
		}
	}
	first := c.by[0].program
	return nil, &fault.Error{Op: "convert photo", Path: file, Kind: fault.ErrMachine,
		Err: fmt.Errorf("%s files are not read, and of the programs that convert them none is there: %w",
			filepath.Ext(file), fault.ErrMissing),
		Hint: "of " + strings.Join(c.programs(), ", ") + " one is enough; for " + first + ", " + installHint(first)}
}

func (c *conversion) programs() (names []string) {
	for _, by := range c.by {
		names = append(names, by.program)
	}
	return names
}

// convertPhoto writes a photo that is read to a file. It appears whole.
func (r *running) convertPhoto(in, out string) error {
	c := conversionOf(in)
	by, err := c.program(in)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(by.program)
	if err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(out), ".converting"+c.suffix)
	defer os.Remove(temp) // it is gone where all is well
	ppm := bounded{most: mostPPM}
	p := process{stage: stagePhotos, program: path, args: by.args(output.Absolute(in), output.Absolute(temp))}
	if by.ppm {
		p.stdout = &ppm
	}
	if err := r.run(p); err != nil {
		if errors.Is(err, fault.ErrInterrupted) {
			return err
		}
		return &fault.Error{Op: "convert photo", Path: in, Err: err,
			Hint: "check that another program shows it; convert it by hand, or take it out of the photos"}
	}
	if by.ppm {
		if err := ppm.writePNG(temp); err != nil {
			return &fault.Error{Op: "convert photo", Path: in, Err: err, Hint: "convert it by hand, and give that file"}
		}
	}
	if _, _, err := photo.Size(temp); err != nil {
		return &fault.Error{Op: "convert photo", Path: in, Err: fmt.Errorf("%s made no photo: %w", by.program, err),
			Hint: "convert it by hand, and give that file"}
	}
	return os.Rename(temp, out)
}

// mostPPM is as much as the PPM of the largest photo that is read has, in bytes.
const mostPPM = 3*scene.MaxPixels + 1<<10

// bounded keeps what is written to it, up to a number of bytes.
type bounded struct {
	data []byte
	most int
	over bool // there was more, which is gone
}

// Write implements io.Writer. It takes everything, so that the program that writes comes to its end.
func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), b.most-len(b.data))
	b.data = append(b.data, p[:room]...)
	b.over = b.over || room < len(p)
	return len(p), nil
}

// writePNG writes a PPM of 8 bits as a PNG.
func (b *bounded) writePNG(path string) error {
	r := bytes.NewReader(b.data)
	var width, height, most int
	if _, err := fmt.Fscanf(r, "P6\n%d %d\n%d", &width, &height, &most); err != nil {
		return fmt.Errorf("no PPM: %w", err)
	}
	if _, err := r.ReadByte(); err != nil {
		return err
	}
	switch {
	case most != 255 || width <= 0 || height <= 0:
		return errors.New("a PPM of another kind than 8 bits a colour")
	case width > scene.MaxPixels/height || b.over:
		return fmt.Errorf("a PPM of %d x %d pixels; %d pixels are the most that is read", width, height,
			scene.MaxPixels)
	case r.Len() < 3*width*height: // before anything is made for what it claims
		return fmt.Errorf("a PPM of %d x %d pixels that ends after %d bytes", width, height, len(b.data))
	}
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	pix := b.data[len(b.data)-r.Len():]
	for i := range width * height {
		copy(img.Pix[4*i:], []byte{pix[3*i], pix[3*i+1], pix[3*i+2], 255})
	}
	return atomicfile.Write(path, func(w io.Writer) error { return photo.EncodePNG(w, img) })
}
