package bundler

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/textnum"
	"vksplat/scene"
	"vksplat/scene/exported"
	"vksplat/scene/photo"
)

// mark is the first line of a bundle.
const mark = "# Bundle file v"

// maxList bounds a list of photos, in bytes.
const maxList = 1 << 26

// Find lists the bundles of a capture: in its folder, or in bundle, where Bundler writes them. What Bundler wrote on
// the way, as bundle_001.out, comes after bundle.out.
func Find(root string) (files []string) {
	for _, dir := range []string{root, filepath.Join(root, "bundle")} {
		files = append(files, exported.Files(dir, ".out", func(head []byte) bool {
			return bytes.HasPrefix(head, []byte(mark))
		})...)
	}
	slices.SortStableFunc(files, func(a, b string) int { return middle(a) - middle(b) })
	return files
}

// middle is 1 for a file that Bundler wrote on the way.
func middle(file string) int {
	if strings.HasPrefix(filepath.Base(file), "bundle_") {
		return 1
	}
	return 0
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, _ scene.LoadOptions) ([]scene.Record, error) {
	f, err := exported.Open(c.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	b, err := parse(f)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	names, err := list(c, len(b.cameras))
	if err != nil {
		return nil, err
	}
	var records []scene.Record
	var lost []string
	for i, cam := range b.cameras {
		if cam.f == 0 {
			lost = append(lost, names[i])
			continue
		}
		r := scene.Record{Cam: scene.Camera{Name: names[i]}, Lens: exported.Lens(cam.lens)}
		if err := exported.ToCamera(&r.Cam, cam.r, cam.t); err != nil {
			r.Bad = exported.Badf(c.Model, "camera %d: %w", i, err)
		}
		records = append(records, r)
	}
	if len(lost) > 0 {
		c.Warn("unaligned-photos", fmt.Sprintf("%d of %d photos have no pose and are not used", len(lost), len(names)),
			lost)
	}
	if err := exported.Locate(c, records); err != nil {
		return nil, err
	}
	if c.Points = b.points; len(c.Points) == 0 {
		return records, exported.Cloud(c)
	}
	c.WarnBadPoints(b.bad)
	return records, nil
}

type camera struct {
	f, k1, k2 float64
	r         [9]float64
	t         [3]float64
}

// lens is a scene.LensRadial whose principal point is the middle of the photo.
func (c camera) lens(width, height int) scene.Calibration {
	k := scene.Calibration{Model: scene.LensRadial, Width: width, Height: height,
		Params: []float64{c.f, float64(width) / 2, float64(height) / 2, c.k1, c.k2}}
	if c.k1 == 0 && c.k2 == 0 {
		k.Model, k.Params = scene.LensSimplePinhole, k.Params[:3]
	}
	return k
}

type bundle struct {
	cameras []camera
	points  []scene.Point
	bad     int // points that are left out
}

// parse reads a bundle. What a count claims is allocated as it comes.
func parse(r io.Reader) (*bundle, error) {
	lines := bufio.NewReaderSize(r, 1<<16)
	first, err := lines.ReadSlice('\n') // of a line that is longer than the buffer, an error
	if err != nil || !bytes.HasPrefix(first, []byte(mark+"0.3")) {
		return nil, fmt.Errorf("it begins with %.40q; version 0.3 is read", first)
	}
	w := &words{scanner: bufio.NewScanner(lines)}
	w.scanner.Buffer(make([]byte, 1<<12), 1<<12)
	w.scanner.Split(bufio.ScanWords)
	nCameras, nPoints := w.count("number of cameras"), w.count("number of points")
	b := &bundle{}
	for i := 0; i < nCameras && w.err == nil; i++ {
		var v [15]float64
		w.floats(v[:])
		cam := camera{f: v[0], k1: v[1], k2: v[2], r: [9]float64(v[3:12]), t: [3]float64(v[12:15])}
		if w.err == nil && geom.Finite(v[:3]...) && (cam.f < 0 || cam.f > scene.MaxCoordinate) {
			return nil, fmt.Errorf("camera %d has the focal length %g and the distortion %g, %g", i, cam.f, cam.k1,
				cam.k2)
		}
		cam.r, cam.t = exported.FromOpenGLToCamera(cam.r, cam.t)
		b.cameras = append(b.cameras, cam)
	}
	for i := 0; i < nPoints && w.err == nil; i++ {
		var v [6]float64
		w.floats(v[:])
		for range w.count("number of views") {
			if w.skip(4); w.err != nil {
				break
			}
		}
		p := scene.Point{Pos: [3]float64(v[:3])}
		for k := range p.Color {
			p.Color[k] = scene.ToByte(v[3+k])
		}
		switch {
		case w.err != nil:
		case scene.InRange(p.Pos):
			b.points = append(b.points, p)
		default:
			b.bad++
		}
	}
	return b, w.err
}

// words reads numbers. After the first failure all reads give zero.
type words struct {
	scanner *bufio.Scanner
	err     error
}

func (w *words) next(what string) string {
	if w.err == nil && !w.scanner.Scan() {
		if w.err = w.scanner.Err(); w.err == nil {
			w.err = fmt.Errorf("the file ends where a %s is expected", what)
		}
	}
	if w.err != nil {
		return ""
	}
	return w.scanner.Text()
}

func (w *words) count(what string) int {
	text := w.next(what)
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%.40q is not a %s", text, what)
	}
	return int(n)
}

func (w *words) floats(dst []float64) {
	for i := range dst {
		text := w.next("number")
		v, ok := textnum.Float(text)
		if !ok && w.err == nil {
			w.err = fmt.Errorf("%.40q is not a number", text)
		}
		dst[i] = v
	}
}

func (w *words) skip(n int) {
	for range n {
		w.next("number")
	}
}

// list finds the names of n photos: a text beside the bundle or in the folder above it with so many lines that begin
// with the name of a photo. A focal length may follow the name.
func list(c *scene.Capture, n int) ([]string, error) {
	for _, dir := range []string{filepath.Dir(c.Model), c.Root} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			file := filepath.Join(dir, e.Name())
			info, err := e.Info()
			if err != nil || !strings.EqualFold(filepath.Ext(file), ".txt") || fault.Regular(file) != nil ||
				info.Size() > maxList {
				continue
			}
			if photosOf(wholeLines(exported.Head(file))) == nil {
				continue // else every text beside a bundle would be read whole
			}
			data, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			if names := photosOf(string(data)); len(names) == n && n > 0 {
				return names, nil
			}
		}
	}
	return nil, &fault.Error{Op: "read " + filepath.Base(c.Model), Path: c.Model,
		Err:  fmt.Errorf("there is no list of its %d photos", n),
		Hint: "put the list of photos next to it, list.txt, one name per line, in the order of the cameras"}
}

// wholeLines is a head without a line that it may have cut.
func wholeLines(head []byte) string {
	if end := bytes.LastIndexByte(head, '\n'); end >= 0 {
		head = head[:end]
	}
	return string(head)
}

// photosOf gives the photo that each line begins with, nil if one does not.
func photosOf(text string) (names []string) {
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name := photoOf(line)
		if name == "" {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// photoOf takes the focal length, as in "a b.jpg 0 500.5", off a line.
func photoOf(line string) string {
	fields := strings.Fields(line)
	for strip := range min(3, len(fields)) {
		name := line
		for _, number := range slices.Backward(fields[len(fields)-strip:]) {
			if _, ok := textnum.Float(number); !ok {
				return ""
			}
			name = strings.TrimSpace(strings.TrimSuffix(name, number))
		}
		if photo.IsPhoto(name) || photo.ForeignKindOf(name) != nil {
			return name
		}
	}
	return ""
}
