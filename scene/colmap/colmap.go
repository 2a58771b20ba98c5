package colmap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Camera is a record of cameras.bin or cameras.txt.
type Camera struct {
	id   uint32
	Lens scene.Calibration
}

// check refuses a camera whose numbers make no sense; width and height are as in the file.
func (c *Camera) check(width, height uint64) error {
	if width == 0 || height == 0 || width > geom.MaxSide || height > geom.MaxSide {
		return fmt.Errorf("camera %d has the size %d x %d", c.id, width, height)
	}
	c.Lens.Width, c.Lens.Height = int(width), int(height)
	return nil
}

// Calibration implements calibrator: the record says all.
func (c Camera) Calibration(int, int) scene.Calibration { return c.Lens }

// Image is a record of images.bin or images.txt without its 2D points.
type Image struct {
	Id, Camera uint32
	Quat       [4]float64 // w, x, y, z, world to camera
	T          [3]float64
	Name       string
}

// errCut is the cause of every error about a file that ends too early.
var errCut = errors.New("the file ends too early")

// cursor reads little-endian values from a file, of which a few kilobytes are in
// memory at a time. After the first failure all reads give zero, and err says
// what failed.
type cursor struct {
	r        *bufio.Reader
	at, size uint64 // in bytes
	err      error
}

// NewCursor begins at the start of a file of that size. What is written behind it meanwhile is not read.
func NewCursor(r io.Reader, size int64) *cursor {
	return &cursor{r: bufio.NewReaderSize(io.LimitReader(r, size), 1<<16), size: uint64(max(size, 0))}
}

func (c *cursor) left() uint64 { return c.size - c.at }

// has reports whether n bytes are left, and sets err otherwise.
func (c *cursor) has(n uint64) bool {
	if c.err == nil && n > c.left() {
		c.err = fmt.Errorf("%w: %d bytes wanted at byte %d of %d", errCut, n, c.at, c.size)
	}
	return c.err == nil
}

// failed notes an error of reading.
func (c *cursor) failed(err error) {
	if errors.Is(err, io.EOF) { // the file has become shorter
		err = fmt.Errorf("%w: nothing comes after byte %d of %d", errCut, c.at, c.size)
	}
	c.err = err
}

// take gives the next n bytes, at most a few, until the next call; nil after
// setting err.
func (c *cursor) take(n int) []byte {
	if !c.has(uint64(n)) {
		return nil
	}
	b, err := c.r.Peek(n)
	if err == nil {
		_, err = c.r.Discard(n)
	}
	if err != nil {
		c.failed(err)
		return nil
	}
	c.at += uint64(n)
	return b
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) floats(dst []float64) {
	for i := range dst {
		dst[i] = math.Float64frombits(c.u64())
	}
}

// text reads up to a NUL.
func (c *cursor) text() string {
	if c.err != nil {
		return ""
	}
	b, err := c.r.ReadBytes(0)
	if err == io.EOF {
		c.err = fmt.Errorf("%w: a name that begins at byte %d never ends", errCut, c.at)
	} else {
		c.err = err
	}
	if c.err != nil {
		return ""
	}
	c.at += uint64(len(b))
	return string(b[:len(b)-1])
}

// count reads a number of records of at least size bytes each and refuses one
// that the rest of the file cannot hold, so that nothing is allocated for it.
func (c *cursor) count(size uint64, what string) int {
	n := c.u64()
	if c.err == nil && n > c.left()/size {
		c.err = fmt.Errorf("%w: it claims %d %s of at least %d bytes, and %d bytes follow", errCut, n, what, size,
			c.left())
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

// skip passes over a counted list of records of size bytes.
func (c *cursor) skip(size uint64, what string) {
	n := uint64(c.count(size, what)) * size
	if !c.has(n) {
		return
	}
	for c.at += n; n > 0 && c.err == nil; {
		some := int(min(n, 1<<30))
		if _, err := c.r.Discard(some); err != nil {
			c.failed(err)
		}
		n -= uint64(some)
	}
}

// end refuses bytes after the last record: they mean that the records were
// misread or that the file was damaged.
func (c *cursor) end() error {
	if c.err == nil && c.left() > 0 {
		c.err = fmt.Errorf("%d bytes follow the last record", c.left())
	}
	return c.err
}

// ParseCameras reads cameras.bin. Models that COLMAP does not define are
// refused: how long their records are is not known.
func ParseCameras(c *cursor) (map[uint32]Camera, error) {
	n := c.count(24+2*8, "cameras") // the fewest parameters are two
	out := make(map[uint32]Camera, n)
	for i := 0; i < n && c.err == nil; i++ {
		cam := Camera{id: c.u32()}
		model := int32(c.u32())
		width, height := c.u64(), c.u64()
		if c.err != nil {
			break
		}
		if model < 0 || int(model) >= len(scene.ColmapModels) {
			return nil, fmt.Errorf("camera %d has model id %d, which COLMAP does not define", cam.id, model)
		}
		cam.Lens.Model = scene.LensModel(model)
		cam.Lens.Params = make([]float64, cam.Lens.Model.NumParams())
		c.floats(cam.Lens.Params)
		if c.err != nil {
			break
		}
		if err := cam.check(width, height); err != nil {
			return nil, err
		}
		if _, twice := out[cam.id]; twice {
			return nil, fmt.Errorf("camera %d occurs twice", cam.id)
		}
		out[cam.id] = cam
	}
	return out, c.end()
}

// ParseImages reads images.bin in the order of the file. Poses are not
// checked.
func ParseImages(c *cursor) ([]Image, error) {
	return parseImages(c, func(*Image) { c.skip(seenBytes, "2D points") })
}

const seenBytes = 24 // of a 2D point: x, y and a point id

// parseImages is ParseImages with a function that reads the 2D points of an image, or skips them.
func parseImages(c *cursor, seen func(img *Image)) ([]Image, error) {
	// Ids, quaternion, translation, a NUL and the count of 2D points.
	n := c.count(4+7*8+4+1+8, "images")
	out := make([]Image, 0, n)
	for i := 0; i < n && c.err == nil; i++ {
		var img Image
		img.Id = c.u32()
		c.floats(img.Quat[:])
		c.floats(img.T[:])
		img.Camera = c.u32()
		img.Name = c.text()
		seen(&img)
		if c.err == nil {
			out = append(out, img)
		}
	}
	return out, c.end()
}

// seen reads the 2D points of an image that were matched.
func (c *cursor) seen() (list []Seen) {
	for n := c.count(seenBytes, "2D points"); n > 0 && c.err == nil; n-- {
		var at [2]float64
		c.floats(at[:])
		if id := c.u64(); id != noPoint && geom.Finite(at[:]...) {
			list = append(list, Seen{at[0], at[1], id})
		}
	}
	return list
}

// ParsePoints reads points3D.bin in the order of the file. Points that are
// not finite, or absurdly far away, are left out and counted.
func ParsePoints(c *cursor) (points []scene.Point, bad int, err error) {
	bad, err = eachColmapPoint(c, func(n int) { points = make([]scene.Point, 0, n) },
		func(t *Track) { points = append(points, t.Point) }, false)
	return points, bad, err
}

// eachColmapPoint hands the points of points3D.bin to put, and before that their number at most to begin; with tracks,
// each with the images that it was matched in.
func eachColmapPoint(c *cursor, begin func(n int), put func(t *Track), tracks bool) (bad int, err error) {
	// Id, position, colour, error and the length of the track.
	n := c.count(8+3*8+3+8+8, "points")
	begin(n)
	var t Track
	for i := 0; i < n && c.err == nil; i++ {
		t.ID = c.u64()
		c.floats(t.Pos[:])
		copy(t.Color[:], c.take(3))
		t.Error = math.Float64frombits(c.u64())
		const element = 8 // an image id and an index
		if !tracks {
			c.skip(element, "track elements")
		} else {
			t.Images = t.Images[:0]
			for k := c.count(element, "track elements"); k > 0 && c.err == nil; k-- {
				t.Images = append(t.Images, c.u32())
				c.u32()
			}
		}
		switch {
		case c.err != nil:
		case scene.InRange(t.Pos):
			put(&t)
		default:
			bad++
		}
	}
	return bad, c.end()
}
