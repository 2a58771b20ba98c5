package splatfile

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
)

// streamed is streamed SOG of PlayCanvas, version 1 (developer.playcanvas.com, user manual, "Streamed SOG"): levels of
// detail of a model, cut into folders of SOG, of which viewers load what a camera needs. Its path is that of
// lod-meta.json, beside which the folders lie, or of an archive of all.
var streamed = &Format{
	Name:       StreamedFormat,
	Extensions: []string{streamedName, streamedArchive},
	Detect:     isStreamed,
	Open:       openStreamed,
	Write:      writer("write streamed sog", writeStreamed, 1),
}

// StreamedFormat is the name of a format whose models are read level by level: see OpenCoarsest and StreamedParts.
const StreamedFormat = "streamed-sog"

const (
	streamedName    = "lod-meta.json"
	streamedArchive = ".ssog"

	// StreamedLevels is how many levels of detail are written unless another number is asked for. Each has half the
	// splats of the one before.
	StreamedLevels = 4
	// MostStreamedLevels is the most there can be.
	MostStreamedLevels = 12
)

// The JSON of lod-meta.json.
type (
	streamedMeta struct {
		Version     int           `json:"version"`
		Asset       streamedAsset `json:"asset"`
		Count       int           `json:"count"`
		Counts      []int         `json:"counts"` // splats of each level
		Levels      int           `json:"lodLevels"`
		Environment string        `json:"environment,omitempty"` // folder of what is always drawn
		Files       []string      `json:"filenames"`
		Tree        *streamedNode `json:"tree"`
	}
	streamedAsset struct {
		Generator string `json:"generator,omitempty"`
	}
	// streamedNode has two children, or runs of splats by level.
	streamedNode struct {
		Bound    streamedBound          `json:"bound"`
		Children []*streamedNode        `json:"children,omitempty"`
		Runs     map[string]streamedRun `json:"lods,omitempty"`
	}
	streamedBound struct {
		Low  [3]float32 `json:"min"`
		High [3]float32 `json:"max"`
	}
	streamedRun struct {
		File   int `json:"file"`
		Offset int `json:"offset"`
		Count  int `json:"count"`
	}
)

func (b *streamedBound) take(o streamedBound) {
	for k := range 3 {
		b.Low[k], b.High[k] = min(b.Low[k], o.Low[k]), max(b.High[k], o.High[k])
	}
}

// streamer writes a model and its levels.
type streamer struct {
	most  int     // splats of a leaf, and of a folder but for the leaf that fills it
	least int     // a leaf of fewer is not cut, however long it is
	side  float32 // a leaf that is longer is cut

	levels  []Gatherer
	first   []int        // of each level, among the splats of all; one more: how many these are
	means   [][3]float32 // of all
	leaf    []int32      // of all: which leaf they are in
	bounds  []streamedBound
	folders [][]streamedFolder // by level
	meta    streamedMeta
}

// streamedFolder is a folder of a level: its splats, leaf after leaf.
type streamedFolder struct {
	name string
	ids  []uint32
}

// writeStreamed writes lod-meta.json and the folders that it names, with leaves as other writers cut them.
func writeStreamed(path string, model Source, o WriteOptions) (lost []string, err error) {
	return (&streamer{most: 512 << 10, least: 8 << 10, side: 16}).run(path, model, o)
}

func (s *streamer) run(path string, model Source, o WriteOptions) (lost []string, err error) {
	s.meta = streamedMeta{Version: 1, Asset: streamedAsset{o.Generator}}
	free, err := s.makeLevels(append([]Source{model}, o.Coarser...), path, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free()) }()
	if err := s.plan(); err != nil {
		return nil, err
	}
	return lostComments(model.Info(), "SOG"), s.write(path, o)
}

func (o WriteOptions) stopped() error {
	if o.Stop == nil {
		return nil
	}
	return o.Stop()
}

func (o WriteOptions) levels() int {
	if o.Levels == 0 {
		return StreamedLevels
	}
	return min(o.Levels, MostStreamedLevels)
}

// makeLevels makes the levels, as many as there are splats to halve: those that are given, and below them by merging.
func (s *streamer) makeLevels(given []Source, path string, o WriteOptions) (free func() error, err error) {
	tempDir := o.FolderFor(path)
	var frees []func() error
	free = func() (err error) {
		for _, f := range frees {
			err = errors.Join(err, f())
		}
		return err
	}
	for len(s.levels) < o.levels() {
		var level Gatherer
		var done func() error
		if k := len(s.levels); k < len(given) {
			level, done, err = gatherable(given[k], tempDir)
		} else {
			above := s.levels[k-1]
			if above.Info().N < 2 {
				break
			}
			if level, err = Decimate(above, (above.Info().N+1)/2, tempDir, o.Stop); err == nil {
				done = level.Close
			}
		}
		if err != nil {
			return nil, errors.Join(err, free())
		}
		s.levels, frees = append(s.levels, level), append(frees, done)
	}
	return free, nil
}

// plan finds the tree of all levels, and which splats go into which folder.
func (s *streamer) plan() error {
	for _, level := range s.levels {
		s.first = append(s.first, len(s.means))
		means, err := readMeans(level)
		if err != nil {
			return err
		}
		for i := 0; i < len(means); i += 3 {
			s.means = append(s.means, [3]float32(means[i:]))
		}
		s.meta.Counts = append(s.meta.Counts, level.Info().N)
	}
	s.first = append(s.first, len(s.means))
	s.leaf = make([]int32, len(s.means))
	s.folders = make([][]streamedFolder, len(s.levels))
	s.meta.Count, s.meta.Levels = len(s.means), len(s.levels)
	ids := make([]uint32, len(s.means))
	for i := range ids {
		ids[i] = uint32(i)
	}
	s.meta.Tree = s.node(ids)
	if err := s.findBounds(); err != nil {
		return err
	}
	at := 0
	s.meta.Tree.bound(s.bounds, &at)
	return nil
}

// node makes the tree of some splats, in whose order these are afterwards.
func (s *streamer) node(ids []uint32) *streamedNode {
	box := emptyBox()
	for _, id := range ids {
		box.add(s.means[id][:])
	}
	axis, longest := box.longest()
	if len(ids) <= s.most && (longest <= s.side || len(ids) <= s.least) {
		return s.makeLeaf(ids)
	}
	middle := len(ids) / 2
	selectNth(ids, middle, func(id uint32) float32 { return s.means[id][axis] })
	return &streamedNode{Children: []*streamedNode{s.node(ids[:middle]), s.node(ids[middle:])}}
}

// makeLeaf gives the splats of a leaf, level by level and along a Z-order curve, to the folders.
func (s *streamer) makeLeaf(ids []uint32) *streamedNode {
	node := &streamedNode{Runs: map[string]streamedRun{}}
	slices.Sort(ids) // by level
	for level := range s.levels {
		end, _ := slices.BinarySearch(ids, uint32(s.first[level+1]))
		run := ids[:end]
		ids = ids[end:]
		if len(run) == 0 {
			continue
		}
		order := zOrder(len(run), func(i int) []float32 { return s.means[run[i]][:] })
		folders := &s.folders[level]
		if n := len(*folders); n == 0 || len((*folders)[n-1].ids) > s.most {
			*folders = append(*folders, streamedFolder{name: fmt.Sprintf("%d_%d", level, n)})
		}
		u := &(*folders)[len(*folders)-1]
		node.Runs[strconv.Itoa(level)] = streamedRun{s.file(u.name + "/" + sogMetaName), len(u.ids), len(run)}
		for _, i := range order {
			u.ids = append(u.ids, run[i]-uint32(s.first[level]))
			s.leaf[run[i]] = int32(len(s.bounds))
		}
	}
	s.bounds = append(s.bounds, emptyBound())
	return node
}

func emptyBound() streamedBound {
	b := emptyBox()
	return streamedBound{b.low, b.high}
}

// file is the number of a name in filenames.
func (s *streamer) file(name string) int {
	at := slices.Index(s.meta.Files, name)
	if at < 0 {
		at = len(s.meta.Files)
		s.meta.Files = append(s.meta.Files, name)
	}
	return at
}

// findBounds finds the boxes of the leaves, around splats of one standard deviation.
func (s *streamer) findBounds() error {
	for level, model := range s.levels {
		err := eachWritable(model, func(first int, piece *scene.Splats) error {
			for i := range piece.N {
				b := &s.bounds[s.leaf[s.first[level]+first+i]]
				for k, sigma := range spreadOf(piece, i) {
					at, far := piece.Means[3*i+k], float32(sigma)
					b.Low[k], b.High[k] = min(b.Low[k], at-far), max(b.High[k], at+far)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bound sets the boxes of a tree whose leaves have them in their order.
func (n *streamedNode) bound(leaves []streamedBound, at *int) {
	n.Bound = emptyBound()
	if len(n.Children) == 0 {
		n.Bound = leaves[*at]
		*at++
	}
	for _, child := range n.Children {
		child.bound(leaves, at)
		n.Bound.take(child.Bound)
	}
}

// write makes the folders in one beside their places and moves them there, or puts them into an archive. An earlier
// lod-meta.json goes before, and the new one comes last: none is ever beside folders that are not its own.
func (s *streamer) write(path string, o WriteOptions) error {
	archive := strings.HasSuffix(strings.ToLower(path), streamedArchive)
	var folders []string
	for _, level := range s.folders {
		for _, u := range level {
			folders = append(folders, u.name)
		}
	}
	if !archive {
		if err := checkPlaces(path, folders, earlierStreamed(path)); err != nil {
			return err
		}
	}
	temp, err := folderBeside(path)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }() // what is left there is of a failure, which is reported
	if err := s.writeFolders(temp, o); err != nil {
		return named(err, temp, path)
	}
	text, err := json.Marshal(&s.meta)
	if err != nil {
		return err
	}
	if archive {
		return atomicfile.Write(path, func(to io.Writer) error { return s.writeArchive(to, temp, text) })
	}
	made := filepath.Join(temp, streamedName)
	if err := atomicfile.WriteText(made, text); err != nil {
		return named(err, temp, path)
	}
	return replace(temp, made, path, folders, earlierStreamed(path))
}

// writeFolders makes the folders of all levels in dir.
func (s *streamer) writeFolders(dir string, o WriteOptions) error {
	o.inOrder, o.Version = true, 0
	for level, folders := range s.folders {
		for _, u := range folders {
			if err := o.stopped(); err != nil {
				return err
			}
			folder := filepath.Join(dir, u.name)
			if err := os.Mkdir(folder, 0o777); err != nil {
				return err
			}
			_, err := sogFormat.Write(filepath.Join(folder, sogMetaName), pick(s.levels[level], u.ids), o)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// writeArchive packs lod-meta.json and the folders, which lie in dir. Nothing is compressed again, and no time is in
// it: same model, same bytes.
func (s *streamer) writeArchive(to io.Writer, dir string, meta []byte) error {
	archive := zip.NewWriter(to)
	if err := addStored(archive, streamedName, meta); err != nil {
		return err
	}
	for _, folders := range s.folders {
		for _, u := range folders {
			for _, name := range append([]string{sogMetaName}, sogNames[:]...) {
				data, err := os.ReadFile(filepath.Join(dir, u.name, name))
				if errors.Is(err, os.ErrNotExist) { // without harmonics there is no palette
					continue
				}
				if err == nil {
					err = addStored(archive, u.name+"/"+name, data)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return archive.Close()
}

// earlierStreamed lists the files of SOG in the folders that an earlier model of a path names, and nothing else: its
// lod-meta.json may come from anywhere.
func earlierStreamed(path string) (files []string) {
	meta, err := readStreamed(path)
	if err != nil { // none, or none that this program knows: it is replaced alone
		return nil
	}
	for _, name := range meta.Files {
		folder, base := filepath.Split(filepath.Clean(name))
		if base != sogMetaName || folder == "" {
			continue
		}
		for _, file := range append([]string{sogMetaName}, sogNames[:]...) {
			files = append(files, filepath.Join(folder, file))
		}
	}
	return files
}

// pick is some splats of a model, in an order of their own.
func pick(model Gatherer, ids []uint32) Source {
	info := model.Info()
	info.N = len(ids)
	return &memory{indexed{info, func(first int, into *scene.Splats) error {
		return model.Gather(ids[first:first+into.N], into)
	}}}
}

// selectNth orders numbers so that none before n has a larger key than the one there, and none behind it a smaller one
// (Hoare's selection, the pivot being the median of three).
func selectNth(ids []uint32, n int, key func(id uint32) float32) {
	for lo, hi := 0, len(ids)-1; lo < hi; {
		a, b, c := key(ids[lo]), key(ids[(lo+hi)/2]), key(ids[hi])
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for key(ids[i]) < pivot {
				i++
			}
			for key(ids[j]) > pivot {
				j--
			}
			if i <= j {
				ids[i], ids[j] = ids[j], ids[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return
		}
	}
}
