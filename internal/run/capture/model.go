package capture

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/geom"
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
	centers map[uint32]geom.Vec
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
func (m *mapper) readComponents() (list []*component, err error) {
	for i, dir := range listComponents(m.o.in(componentsFolder)) {
		c, err := readComponent(dir)
		if err != nil {
			return nil, fault.WithHint(err, "remove "+m.o.in(componentsFolder)+", then run the same command again")
		}
		if c.Number, err = strconv.Atoi(filepath.Base(dir)); err != nil {
			c.Number = i
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, m.noModel()
	}
	return list, nil
}

// readComponent reads a model: how well its points fit the photos, and how many of them each photo sees.
func readComponent(dir string) (*component, error) {
	c := &component{dir: dir, seen: map[string]int{}, centers: map[uint32]geom.Vec{}}
	form, has := colmap.FormOf(dir)
	if !has {
		return nil, fault.Data("read model", dir, "", "it has gone")
	}
	names := map[uint32]string{}
	err := form.Read(filepath.Join(dir, "images"+form.Ext), func(f io.Reader) error {
		views, err := form.Images(f)
		for _, v := range views {
			names[v.Id], c.centers[v.Id] = v.Name, center(v)
			c.names = append(c.names, v.Name)
		}
		return err
	})
	var sum float64
	var angles []float64
	if err == nil {
		err = form.Read(filepath.Join(dir, "points3D"+form.Ext), func(f io.Reader) error {
			return form.Tracks(f, func(t *colmap.Track) {
				for _, id := range t.Images {
					c.seen[names[id]]++
				}
				if geom.Finite(t.Error) { // else verdict.json could not hold the mean
					sum += t.Error
				}
				angles = append(angles, c.widest(t))
			})
		})
	}
	if err != nil {
		return nil, err
	}
	c.Photos, c.Points = len(c.names), len(angles)
	slices.Sort(c.names)
	if c.Points > 0 {
		c.Error = sum / float64(c.Points)
		slices.Sort(angles)
		c.Angle = angles[len(angles)/2]
	}
	return c, nil
}

func center(v colmap.Image) geom.Vec {
	r, _ := geom.RotationFromQuat(v.Quat) // training refuses what has none
	return geom.TranslationOf(geom.Transposed(r), v.T)
}

// widest is the widest angle in degrees between the rays to a point from the first photo that sees it and from others.
func (c *component) widest(t *colmap.Track) float64 {
	least := 1.0 // cosine
	var first geom.Vec
	for i, id := range t.Images {
		ray := c.centers[id].Sub(t.Pos).Unit()
		if i == 0 {
			first = ray
		}
		if dot := ray.Dot(first); dot < least { // a photo that was taken from the point itself has no ray
			least = dot
		}
	}
	return math.Acos(max(least, -1)) * 180 / math.Pi
}

// choose takes a component: the one that was asked for, or that with most photos, the first of equals.
func (o *Options) choose(list []*component) (*component, error) {
	if o.Model == largestModel {
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
		if err != nil {
			return "", output.FolderError(to, err)
		}
		if err := r.drawCoverage(); err != nil { // the model is there
			r.console.Note("there is no " + coverageFile + ": " + err.Error())
		}
		return fmt.Sprintf("component %d, in %s", c.Number, filepath.ToSlash(to)), nil
	}
	outputs := []string{modelFolder, coverageFile}
	return r.stages.do(stage{name: stageModel, key: text(c.Number), outputs: outputs, do: do})
}

func (b *base) drawCoverage() error {
	c, err := load.Capture(b.o.Out, scene.LoadOptions{})
	if err != nil {
		return err
	}
	return blocks.WriteCoverage(b.o.in(coverageFile), c)
}
