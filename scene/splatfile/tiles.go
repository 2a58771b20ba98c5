package splatfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/tiles"
)

// tilesFormat is 3D Tiles 1.1: a tree of tiles, each a binary glTF of some tens of thousands of splats, which viewers
// of maps load as a camera needs them. Its path is that of tileset.json; the tiles lie in a folder beside it.
var tilesFormat = &Format{
	Name:       tiles3D,
	Extensions: []string{tilesName},
	Detect:     isTiles,
	Open:       openTiles,
	Write:      writer("write 3d tiles", writeTiles),
}

const (
	tiles3D     = "3d-tiles"
	tilesName   = "tileset.json"
	tilesFolder = "tiles"

	// tileSplats is the most splats of a tile: one to two megabytes at degree 3.
	tileSplats = 1 << 16
	// tileReach is how many standard deviations of a splat a tile's box takes in.
	tileReach = 3
	// tilePixels is at how many pixels of error a viewer of 3D Tiles draws the children by default.
	tilePixels = 16
	// tileSigma is how large in pixels the standard deviation of a tile's median splat is then.
	tileSigma = 2
)

// tiler writes a model as tiles.
type tiler struct {
	most  int // splats of a tile
	model Gatherer
	means []float32 // of all, [N*3]
	o     WriteOptions
	temp  string // folder in which the tileset is made
	count int
	packs spzPacked // what packing cut, all tiles of the model itself together
}

// tile is a part of the tree with what is in it.
type tile struct {
	*tiles.Tile
	splats *scene.Splats
	low    [3]float32 // of the box of all that it and its children draw
	high   [3]float32
}

func writeTiles(path string, model Source, o WriteOptions) (lost []string, err error) {
	return (&tiler{most: tileSplats, o: o}).run(path, model)
}

func (t *tiler) run(path string, model Source) (lost []string, err error) {
	info := model.Info()
	if info.N == 0 {
		return nil, refusal("write another format", "tiles cannot hold a model without splats")
	}
	if err := checkPlaces(path, []string{tilesFolder}, earlierTiles(path)); err != nil {
		return nil, err
	}
	free := func() error { return nil }
	if t.model, free, err = gatherable(model, t.o.FolderFor(path)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free()) }()
	if t.means, err = readMeans(t.model); err != nil {
		return nil, err
	}
	if t.temp, err = folderBeside(path); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(t.temp) }() // what is left there is of a failure, which is reported
	if err := os.Mkdir(filepath.Join(t.temp, tilesFolder), 0o777); err != nil {
		return nil, err
	}
	ids := make([]uint32, info.N)
	for i := range ids {
		ids[i] = uint32(i)
	}
	root, err := t.node(ids)
	if err == nil {
		err = t.publish(path, root.Tile, info)
	}
	if err != nil {
		return nil, named(err, t.temp, path)
	}
	lost = lostComments(info, "3D Tiles")
	if !t.o.PlainTiles {
		lost = t.packs.lost(lost)
	}
	return lost, nil
}

// node makes the tile of some splats, in whose order these are afterwards, and all below it. A tile that has children
// shows half of their splats, by merging alike ones.
func (t *tiler) node(ids []uint32) (*tile, error) {
	if len(ids) <= t.most {
		return t.leaf(ids)
	}
	box := emptyBox()
	for _, id := range ids {
		box.add(t.means[3*int(id) : 3*int(id)+3])
	}
	axis, _ := box.longest()
	middle := len(ids) / 2
	selectNth(ids, middle, func(id uint32) float32 { return t.means[3*int(id)+axis] })
	a, err := t.node(ids[:middle])
	if err != nil {
		return nil, err
	}
	b, err := t.node(ids[middle:])
	if err != nil {
		return nil, err
	}
	return t.above(a, b)
}

// leaf is a tile of the model's own splats.
func (t *tiler) leaf(ids []uint32) (*tile, error) {
	slices.Sort(ids)
	s := scene.NewSplats(len(ids), t.model.Info().Degree)
	if err := t.model.Gather(ids, s); err != nil {
		return nil, err
	}
	if err := makeWritable(s, func(i int) int { return int(ids[i]) }); err != nil {
		return nil, err
	}
	leaf := &tile{Tile: &tiles.Tile{}, splats: s}
	cut, err := t.write(leaf)
	t.packs.cut.scales += cut.cut.scales
	t.packs.cut.colors += cut.cut.colors
	t.packs.cut.sh += cut.cut.sh
	if t.packs.head.bits == 0 || cut.head.bits < t.packs.head.bits {
		t.packs.head.bits = cut.head.bits
	}
	t.packs.farthest = max(t.packs.farthest, cut.farthest)
	return leaf, err
}

// above is the tile of two others.
func (t *tiler) above(a, b *tile) (*tile, error) {
	n := a.splats.N + b.splats.N
	both := scene.NewSplats(n, a.splats.Degree)
	copySplats(both, 0, a.splats, 0, a.splats.N)
	copySplats(both, a.splats.N, b.splats, 0, b.splats.N)
	fewer, err := Decimate(Memory(both, ply.Meta{}), (n+1)/2, t.temp, t.o.Stop)
	if err != nil {
		return nil, err
	}
	s, err := All(fewer)
	if err = errors.Join(err, fewer.Close()); err != nil {
		return nil, err
	}
	up := &tile{Tile: &tiles.Tile{Children: []*tiles.Tile{a.Tile, b.Tile}}, splats: s}
	if _, err := t.write(up); err != nil {
		return nil, err
	}
	for k := range 3 {
		up.low[k] = min(up.low[k], a.low[k], b.low[k])
		up.high[k] = max(up.high[k], a.high[k], b.high[k])
	}
	up.Volume = tiles.VolumeOf(up.low, up.high)
	up.Error = max(medianSize(s)*tilePixels/tileSigma, a.Error, b.Error)
	return up, nil
}

// write makes the file of a tile, and gives it its name and the box of its splats.
func (t *tiler) write(to *tile) (cut spzPacked, err error) {
	if err := t.o.stopped(); err != nil {
		return cut, err
	}
	name := fmt.Sprintf("%d.glb", t.count)
	t.count++
	to.low, to.high = boundsOf(to.splats)
	to.Volume = tiles.VolumeOf(to.low, to.high)
	to.Content = &tiles.Content{URI: tilesFolder + "/" + name}
	info := t.model.Info()
	info.N = to.splats.N
	path, o := filepath.Join(t.temp, tilesFolder, name), t.o
	o.Version = 0
	if t.o.PlainTiles {
		_, err = writeGLB(path, inMemory(to.splats, info), o)
		return cut, err
	}
	return writeGLBPacked(path, inMemory(to.splats, info), o)
}

// publish puts the tileset in its place once all of it is on the disk. An earlier one goes before, and the new
// tileset.json comes last: none is ever beside tiles that are not its own.
func (t *tiler) publish(path string, root *tiles.Tile, info Info) error {
	extensions := glbPackedExtensions
	if t.o.PlainTiles {
		extensions = []string{glbSplats}
	}
	switch {
	case t.o.Place != nil:
		root.Transform = t.o.Place.Transform()
	case info.Meta.Origin != nil:
		root.Transform = tiles.Moved(*info.Meta.Origin)
	}
	made := filepath.Join(t.temp, tilesName)
	if err := atomicfile.WriteJSON(made, tiles.New(root, t.o.Generator, extensions), ""); err != nil {
		return err
	}
	return replace(t.temp, made, path, []string{tilesFolder}, earlierTiles(path))
}

// earlierTiles lists the tiles of a tileset that is there; nil where there is none that can be read.
func earlierTiles(path string) []string {
	set, err := readTileset(path)
	if err != nil {
		return nil
	}
	var own []string
	for _, name := range set.Root.Files() {
		if dir, file := filepath.Split(filepath.FromSlash(name)); filepath.Clean(dir) == tilesFolder && file != "" {
			own = append(own, filepath.Join(tilesFolder, file))
		}
	}
	return own
}

// boundsOf is the box around splats, which reach some standard deviations far.
func boundsOf(s *scene.Splats) (low, high [3]float32) {
	b := emptyBox()
	for i := range s.N {
		for k, sigma := range spreadOf(s, i) {
			at, far := s.Means[3*i+k], float32(tileReach*sigma)
			b.low[k], b.high[k] = min(b.low[k], at-far), max(b.high[k], at+far)
		}
	}
	return b.low, b.high
}

// medianSize is the median of the splats' size, which is the geometric mean of the standard deviations of their two
// longer axes.
func medianSize(s *scene.Splats) float64 {
	sizes := make([]float32, s.N)
	for i := range sizes {
		axes := s.LogScales[3*i : 3*i+3]
		shortest := slices.MinFunc(axes, cmp.Compare[float32])
		sizes[i] = (axes[0] + axes[1] + axes[2] - shortest) / 2
	}
	slices.Sort(sizes)
	return math.Exp(float64(sizes[len(sizes)/2]))
}
