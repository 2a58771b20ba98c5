package capture

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/blocks"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
)

// component is a model that the mapper made: photos that hang together.
type component struct {
	Number  int     `json:"number"`
	Photos  int     `json:"photos"`
	Points  int     `json:"points"`
	Error   float64 `json:"reprojection_error"` // pixels, mean over the points
	Angle   float64 `json:"angle"`              // degrees: median over points of the widest angle they are seen under
	dir     string
	names   []string       // of its photos
	seen    map[string]int // points that each photo sees
	centers map[uint32][3]float64
}

// listComponents gives the folders of models that a mapper made, by number. The global mapper may write the files of
// its only model into the folder itself.
func listComponents(folder string) (dirs []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var numbers []int
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if _, has := colmap.FormOf(filepath.Join(folder, e.Name())); err == nil && has {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		dirs = append(dirs, filepath.Join(folder, strconv.Itoa(n)))
	}
	if _, has := colmap.FormOf(folder); has && len(dirs) == 0 {
		dirs = []string{folder}
	}
	return dirs
}

// readComponents reads the models that the mapper made.
func (r *running) readComponents() (list []*component, err error) {
	for i, dir := range listComponents(r.o.in(componentsFolder)) {
		c, err := readComponent(dir)
		if err != nil {
			return nil, err
		}
		if c.Number, err = strconv.Atoi(filepath.Base(dir)); err != nil {
			c.Number = i
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, r.noModel()
	}
	return list, nil
}

// readComponent reads a model.
func readComponent(dir string) (*component, error) {
	c := &component{dir: dir, seen: map[string]int{}, centers: map[uint32][3]float64{}}
	form, _ := colmap.FormOf(dir)
	if form == nil || form.Ext != ".bin" {
		return nil, fault.Data("read model", dir, "run the same command again", "the mapper wrote no binary model")
	}
	names := map[uint32]string{}
	err := form.Read(filepath.Join(dir, "images.bin"), func(f io.Reader) error {
		views, err := form.Images(f)
		for _, v := range views {
			names[v.Id], c.centers[v.Id] = v.Name, center(v)
			c.names = append(c.names, v.Name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.Photos = len(c.names)
	slices.Sort(c.names)
	path := filepath.Join(dir, "points3D.bin")
	f, err := os.Open(path)
	if err != nil {
		return nil, &fault.Error{Op: "read model", Path: path, Err: fault.TrimPath(err), Kind: fault.ReadKind(err)}
	}
	defer f.Close() // only read
	if err := c.readPoints(bufio.NewReaderSize(f, 1<<20), names); err != nil {
		return nil, fault.Data("read model", path, "remove the file, then run the same command again", "%w", err)
	}
	return c, nil
}

// center is where a photo was taken from.
func center(v colmap.Image) (at [3]float64) {
	w, x, y, z := v.Quat[0], v.Quat[1], v.Quat[2], v.Quat[3]
	n := w*w + x*x + y*y + z*z
	rows := [3][3]float64{
		{w*w + x*x - y*y - z*z, 2 * (x*y - w*z), 2 * (x*z + w*y)},
		{2 * (x*y + w*z), w*w - x*x + y*y - z*z, 2 * (y*z - w*x)},
		{2 * (x*z - w*y), 2 * (y*z + w*x), w*w - x*x - y*y + z*z}}
	for i := range 3 {
		for j := range 3 {
			at[i] -= rows[j][i] * v.T[j] / n
		}
	}
	return at
}

// pointHead is what points3D.bin holds of a point before its track.
type pointHead struct {
	ID    uint64
	Pos   [3]float64
	Color [3]uint8
	Error float64
	Track uint64
}

const (
	mostPoints = 1 << 32 // of a model; more is a broken file
	mostTrack  = 1 << 24
	angleOf    = 5000 // points whose angles are looked at
)

// readPoints reads points3D.bin: how well points fit the photos, and how many of them each photo sees.
func (c *component) readPoints(r io.Reader, names map[uint32]string) error {
	var count uint64
	if err := binary.Read(r, binary.LittleEndian, &count); err != nil {
		return err
	}
	if count > mostPoints {
		return fmt.Errorf("it claims %d points", count)
	}
	var sum float64
	var angles []float64
	var track [][2]uint32
	var err error
	every := max(count/angleOf, 1)
	for i := range count {
		var p pointHead
		if err := binary.Read(r, binary.LittleEndian, &p); err != nil {
			return short(err)
		}
		if p.Track > mostTrack {
			return fmt.Errorf("it claims a point in %d photos", p.Track)
		}
		if track, err = readTrack(r, track[:0], int(p.Track)); err != nil {
			return short(err)
		}
		sum += p.Error
		for _, t := range track {
			c.seen[names[t[0]]]++
		}
		if i%every == 0 {
			angles = append(angles, c.widest(p.Pos, track))
		}
	}
	c.Points = int(count)
	if count > 0 {
		c.Error = sum / float64(count)
		slices.Sort(angles)
		c.Angle = angles[len(angles)/2]
	}
	return nil
}

// trackPiece is how many elements of a track are read at once: what a number claims is allocated as it comes.
const trackPiece = 1 << 12

// readTrack adds n elements to a track: photos, and the places of features in them.
func readTrack(r io.Reader, track [][2]uint32, n int) ([][2]uint32, error) {
	for n > 0 {
		at, more := len(track), min(n, trackPiece)
		track = slices.Grow(track, more)[:at+more]
		if err := binary.Read(r, binary.LittleEndian, track[at:]); err != nil {
			return track, err
		}
		n -= more
	}
	return track, nil
}

func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}

// widest is the widest angle in degrees between the rays to a point from the first photo that sees it and from others.
func (c *component) widest(at [3]float64, track [][2]uint32) (widest float64) {
	var first [3]float64
	for i, t := range track {
		from := c.centers[t[0]]
		ray, length := [3]float64{}, 0.0
		for k := range 3 {
			ray[k] = from[k] - at[k]
			length += ray[k] * ray[k]
		}
		length = math.Sqrt(length)
		dot := 0.0
		for k := range 3 {
			ray[k] /= length
			dot += ray[k] * first[k]
		}
		if i == 0 {
			first = ray
		} else {
			widest = max(widest, math.Acos(min(max(dot, -1), 1))*180/math.Pi)
		}
	}
	return widest
}

// choose takes a component: the one that was asked for, or that with most photos, the first of equals.
func (o *Options) choose(list []*component) (*component, error) {
	if o.Model == LargestModel {
		return slices.MaxFunc(list, func(a, b *component) int {
			return cmp.Or(cmp.Compare(a.Photos, b.Photos), cmp.Compare(b.Number, a.Number))
		}), nil
	}
	var have []int
	for _, c := range list {
		if c.Number == o.Model {
			return c, nil
		}
		have = append(have, c.Number)
	}
	return nil, fault.Usagef("these are there: "+cli.SharesText(have), "%s: there is no component %d",
		fault.Named("model"), o.Model)
}

// takeModel copies the chosen component to where training finds it.
func (r *running) takeModel(c *component) error {
	do := func() (string, error) {
		to := r.o.in(modelFolder)
		if err := os.MkdirAll(to, 0o777); err != nil {
			return "", output.FolderError(to, err)
		}
		entries, err := os.ReadDir(c.dir)
		for _, e := range entries {
			if err == nil && e.Type().IsRegular() {
				err = output.CopyWhole(filepath.Join(c.dir, e.Name()), filepath.Join(to, e.Name()))
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", output.FolderError(to, err)
		}
		if err := r.drawCoverage(); err != nil { // the model is there
			r.console.Note("there is no " + coverageFile + ": " + err.Error())
		}
		return fmt.Sprintf("component %d, in %s", c.Number, filepath.ToSlash(to)), nil
	}
	return r.do(stage{name: stageModel, key: text(c.Number), outputs: []string{modelFolder, coverageFile}, do: do})
}

// drawCoverage draws the scene from above.
func (r *running) drawCoverage() error {
	c, err := load.Capture(r.o.Out, scene.LoadOptions{})
	if err != nil {
		return err
	}
	return blocks.WriteCoverage(r.o.in(coverageFile), c)
}
