package colmap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"vksplat/internal/geom"
	"vksplat/internal/textnum"
	"vksplat/scene"
)

// maxLine is how much of a line is kept, in bytes. What comes after it in a line
// of images.txt or points3D.txt are observations, which are not read.
const maxLine = 1 << 14

// textLines reads the lines of a text file without ever holding a long one.
type textLines struct {
	r    *bufio.Reader
	most int    // bytes of a line that are kept
	kept []byte // the line's first bytes
	cut  bool   // the line was longer
	at   int    // number of the line, from 1
}

func newTextLines(r io.Reader) *textLines {
	return &textLines{r: bufio.NewReaderSize(r, 1<<16), most: maxLine}
}

// next reads a line, without white space around it. The bytes are valid until the next call.
func (l *textLines) next() ([]byte, error) {
	l.kept, l.cut = l.kept[:0], false
	for first := true; ; first = false {
		piece, err := l.r.ReadSlice('\n')
		if err == io.EOF && first && len(piece) == 0 {
			return nil, io.EOF
		}
		if room := l.most - len(l.kept); len(piece) > room {
			l.kept, l.cut = append(l.kept, piece[:room]...), true
		} else {
			l.kept = append(l.kept, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil || err == io.EOF:
			l.at++
			line := l.kept
			if l.at == 1 {
				line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			}
			return bytes.TrimSpace(line), nil
		default:
			return nil, err
		}
	}
}

// record reads on to the next line that is neither empty nor a comment.
func (l *textLines) record() ([]byte, error) {
	for {
		line, err := l.next()
		if err != nil || len(line) > 0 && line[0] != '#' {
			return line, err
		}
	}
}

// each calls f with every record, and says where it was when f fails.
func (l *textLines) each(f func(line []byte) error) error {
	for {
		line, err := l.record()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case bytes.IndexByte(line, 0) >= 0:
			return fmt.Errorf("line %d is not text", l.at)
		}
		at := l.at
		if err := f(line); err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
	}
}

// words takes fields off the front of a line. After the first failure all reads
// give zero, and err says what failed.
type words struct {
	rest []byte
	err  error
}

func (w *words) next(what string) string {
	if w.err != nil {
		return ""
	}
	w.rest = bytes.TrimLeft(w.rest, " \t")
	if len(w.rest) == 0 {
		w.err = fmt.Errorf("the line ends where %s is expected", what)
		return ""
	}
	end := bytes.IndexAny(w.rest, " \t")
	if end < 0 {
		end = len(w.rest)
	}
	word := string(w.rest[:end])
	w.rest = w.rest[end:]
	return word
}

func (w *words) integer(what string, bits int) uint64 {
	s := w.next(what)
	if w.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, bits)
	if err != nil {
		w.err = fmt.Errorf("%.40q is not a %s", s, what)
	}
	return n
}

func (w *words) floats(dst []float64, what string) {
	for i := range dst {
		s := w.next(what)
		if w.err != nil {
			return
		}
		v, ok := textnum.Float(s) // those that are not finite are judged later
		if !ok {
			w.err = fmt.Errorf("%.40q is not a %s", s, what)
			return
		}
		dst[i] = v
	}
}

// parseTextCameras reads cameras.txt: lines of CAMERA_ID MODEL WIDTH HEIGHT PARAMS[].
func parseTextCameras(r io.Reader) (map[uint32]Camera, error) {
	out := map[uint32]Camera{}
	err := newTextLines(r).each(func(line []byte) error {
		w := &words{rest: line}
		cam := Camera{id: uint32(w.integer("camera id", 32))}
		name := w.next("a camera model")
		width, height := w.integer("width", 64), w.integer("height", 64)
		if w.err != nil {
			return w.err
		}
		model, known := scene.LensModelByName(name)
		if !known || int(model) >= len(scene.ColmapModels) {
			return fmt.Errorf("camera %d has the model %.40q, which COLMAP does not define", cam.id, name)
		}
		cam.Lens.Model = model
		cam.Lens.Params = make([]float64, model.NumParams())
		w.floats(cam.Lens.Params, "parameter")
		if w.err == nil && len(bytes.TrimSpace(w.rest)) > 0 {
			w.err = fmt.Errorf("camera %d has more than the %d parameters of %v", cam.id, model.NumParams(), model)
		}
		if w.err != nil {
			return w.err
		}
		if _, twice := out[cam.id]; twice {
			return fmt.Errorf("camera %d occurs twice", cam.id)
		}
		if err := cam.check(width, height); err != nil {
			return err
		}
		out[cam.id] = cam
		return nil
	})
	return out, err
}

// parseTextImages reads images.txt: pairs of lines, IMAGE_ID QW QX QY QZ TX TY TZ
// CAMERA_ID NAME and then the 2D points, which may be none. Poses are not checked.
func parseTextImages(r io.Reader) (out []Image, err error) {
	err = textImages(newTextLines(r), func(img *Image, _ []byte) error {
		out = append(out, *img)
		return nil
	})
	return out, err
}

// eachTextImage hands the images of images.txt to put, with the points that each was matched to.
func eachTextImage(r io.Reader, put func(img *Image, list []Seen)) error {
	lines := newTextLines(r)
	lines.most = math.MaxInt32
	return textImages(lines, func(img *Image, second []byte) error {
		var list []Seen
		w := &words{rest: second}
		for len(bytes.TrimSpace(w.rest)) > 0 && w.err == nil {
			var at [2]float64
			w.floats(at[:], "pixel")
			if id := w.next("a point id"); id != "-1" && w.err == nil {
				point, err := strconv.ParseUint(id, 10, 64)
				if err != nil {
					return fmt.Errorf("%.40q is not a point id", id)
				}
				if geom.Finite(at[:]...) {
					list = append(list, Seen{at[0], at[1], point})
				}
			}
		}
		put(img, list)
		return w.err
	})
}

// textImages hands each image to put, with the line of its 2D points.
func textImages(lines *textLines, put func(img *Image, second []byte) error) error {
	return lines.each(func(line []byte) error {
		img, err := parseTextImage(line)
		if err != nil {
			return err
		}
		if lines.cut {
			return errors.New("the line is too long for an image")
		}
		second, err := lines.next()
		if err == io.EOF {
			return put(&img, nil)
		}
		if err == nil && len(second) > 0 && second[0] != '#' {
			// A table without the second lines would lose every other image.
			if !numeric(second) && isTextImage(second) {
				return fmt.Errorf("line %d is an image too, where the 2D points of image %q belong: leave an empty "+
					"line after each image", lines.at, img.Name)
			}
		}
		if err != nil {
			return err
		}
		return put(&img, second)
	})
}

func isTextImage(line []byte) bool {
	_, err := parseTextImage(line)
	return err == nil
}

func parseTextImage(line []byte) (img Image, err error) {
	w := &words{rest: line}
	img.Id = uint32(w.integer("image id", 32))
	w.floats(img.Quat[:], "component of a rotation")
	w.floats(img.T[:], "component of a translation")
	img.Camera = uint32(w.integer("camera id", 32))
	if img.Name = strings.TrimSpace(string(w.rest)); img.Name == "" && w.err == nil {
		w.err = errors.New("the line ends where the name of the image is expected")
	}
	return img, w.err
}

// numeric says whether the line's tenth word is a number, as in a list of 2D points.
func numeric(line []byte) bool {
	w := &words{rest: line}
	for range 9 {
		w.next("")
	}
	_, ok := textnum.Float(w.next(""))
	return w.err == nil && ok
}

// countTextImages counts the images of images.txt, as far as it can be read.
func countTextImages(r io.Reader) (n uint64) {
	lines := newTextLines(r)
	for {
		if _, err := lines.record(); err != nil {
			return n
		}
		n++
		if _, err := lines.next(); err != nil {
			return n
		}
	}
}

// parseTextPoints reads points3D.txt: lines of POINT3D_ID X Y Z R G B ERROR
// TRACK[]. Points that are not finite, or absurdly far away, are left out and counted.
func parseTextPoints(r io.Reader) (points []scene.Point, bad int, err error) {
	bad, err = eachTextPoint(r, func(t *Track) { points = append(points, t.Point) }, false)
	return points, bad, err
}

// eachTextPoint hands the points of points3D.txt to put; with tracks, each with the images that it was matched in.
func eachTextPoint(r io.Reader, put func(t *Track), tracks bool) (bad int, err error) {
	var p Track
	err = newTextLines(r).each(func(line []byte) error {
		var e [1]float64
		w := &words{rest: line}
		p.ID = w.integer("point id", 64)
		w.floats(p.Pos[:], "coordinate")
		for k := range p.Color {
			p.Color[k] = uint8(w.integer("colour from 0 to 255", 8))
		}
		w.floats(e[:], "reprojection error")
		p.Error, p.Images = e[0], p.Images[:0]
		// an image id and an index, up to where a line that is too long was cut
		for t := (&words{rest: w.rest}); tracks; {
			id := t.integer("image id", 32)
			if t.integer("index", 32); t.err != nil {
				break
			}
			p.Images = append(p.Images, uint32(id))
		}
		switch {
		case w.err != nil:
			return w.err
		case scene.InRange(p.Pos):
			put(&p)
		default:
			bad++
		}
		return nil
	})
	return bad, err
}
