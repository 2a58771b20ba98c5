package splatfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"vksplat/internal/atomicfile"
	"vksplat/internal/parallel"
)

// Repeat writes copies of a model of format StreamedFormat beside each other, one for each of the places by which they
// are shifted, under one tree: a large model to measure with. from and to are paths of lod-meta.json. A folder has as
// many copies as make it as large as those of other writers. Folders have means of their own, and share all other
// images: as links where the file system has these.
func Repeat(from, to string, places [][3]float64) error {
	const op = "repeat streamed sog"
	m, err := readStreamed(from)
	switch {
	case err != nil:
		return readError(op, from, err, hintStreamed)
	case isZip(from) || m.Environment != "":
		return readError(op, from, errors.New("it is an archive, or has what is always drawn"),
			"convert to lod-meta.json")
	case len(places) == 0:
		return readError(op, from, errors.New("there is no place for a copy"), "")
	}
	r := &repeater{from: filepath.Dir(from), to: filepath.Dir(to), places: slices.Clone(places),
		all: streamedMeta{Version: 1, Asset: m.Asset, Levels: m.Levels, Count: len(places) * m.Count}}
	for _, n := range m.Counts {
		r.all.Counts = append(r.all.Counts, len(places)*n)
	}
	alongTree(r.places)
	for _, name := range m.Files {
		if err := r.folder(name); err != nil {
			return writeError(op, to, err, "")
		}
	}
	r.all.Tree = r.tree(m.Tree, 0, len(places))
	text, err := json.Marshal(&r.all)
	if err != nil {
		return err
	}
	return atomicfile.Write(to, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

type repeater struct {
	from, to string       // folders
	places   [][3]float64 // in the order of the tree
	all      streamedMeta
	groups   []copyGroup // by file of the model
}

// copyGroup is how the copies of a folder of the model lie in files.
type copyGroup struct {
	first int // file
	of    int // copies of a file
	n     int // splats of a copy
}

// alongTree orders places along a tree: halves along the longer side, each of them likewise.
func alongTree(places [][3]float64) {
	if len(places) < 2 {
		return
	}
	box := emptyBox()
	for _, p := range places {
		box.add([]float32{float32(p[0]), float32(p[1]), float32(p[2])})
	}
	axis, _ := box.longest()
	slices.SortStableFunc(places, func(a, b [3]float64) int { return cmp.Compare(a[axis], b[axis]) })
	half := len(places) / 2
	alongTree(places[:half])
	alongTree(places[half:])
}

func (r *repeater) tree(one *streamedNode, lo, hi int) *streamedNode {
	if hi == lo+1 {
		return r.shifted(one, lo)
	}
	half := lo + (hi-lo)/2
	n := &streamedNode{Bound: emptyBound(), Children: []*streamedNode{r.tree(one, lo, half), r.tree(one, half, hi)}}
	for _, child := range n.Children {
		n.Bound.take(child.Bound)
	}
	return n
}

func (r *repeater) shifted(n *streamedNode, place int) *streamedNode {
	out := &streamedNode{Bound: n.Bound}
	for k, by := range r.places[place] {
		out.Bound.Low[k], out.Bound.High[k] = n.Bound.Low[k]+float32(by), n.Bound.High[k]+float32(by)
	}
	for _, child := range n.Children {
		out.Children = append(out.Children, r.shifted(child, place))
	}
	for level, run := range n.Runs {
		if out.Runs == nil {
			out.Runs = map[string]streamedRun{}
		}
		g := r.groups[run.File]
		out.Runs[level] = streamedRun{g.first + place/g.of, place%g.of*g.n + run.Offset, run.Count}
	}
	return out
}

// folder writes the copies of a folder of the model.
func (r *repeater) folder(name string) error {
	s, err := newSOG(filepath.Join(r.from, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	if s.meta.Version != 2 {
		return fmt.Errorf("%s is of version %d, want 2", name, s.meta.Version)
	}
	if err := s.load(); err != nil {
		return err
	}
	g := copyGroup{len(r.all.Files), max(1, repeatedSplats/max(s.info.N, 1)), s.info.N}
	g.of = min(g.of, len(r.places))
	r.groups = append(r.groups, g)
	n := (len(r.places) + g.of - 1) / g.of
	first := len(r.all.Files)
	for i := range n {
		r.all.Files = append(r.all.Files, path.Join("part_"+strconv.Itoa(i), name))
	}
	write := func(i int) error {
		some := r.places[i*g.of : min((i+1)*g.of, len(r.places))]
		like := ""
		if i > 0 && len(some) == g.of {
			like = r.all.Files[first]
		}
		return r.group(s, r.all.Files[first+i], some, filepath.Dir(filepath.FromSlash(like)), name)
	}
	if err := write(0); err != nil {
		return err
	}
	errs := make([]error, n)
	parallel.For(n-1, func(i int) { errs[i] = write(i + 1) })
	return errors.Join(errs...)
}

// repeatedSplats is how many splats of copies a folder has at most, unless one copy has more.
const repeatedSplats = 512 << 10

// group writes copies of a folder into one, whose images but for the means are those of the folder like, "." for none.
func (r *repeater) group(s *sogSource, file string, places [][3]float64, like, source string) error {
	meta := filepath.Join(r.to, filepath.FromSlash(file))
	dir := filepath.Dir(meta)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	w := &sogWriter{info: s.info}
	w.info.N *= len(places)
	w.shift(s.data, places)
	if like == "." {
		w.images[sogScales], w.images[sogQuats] = bytes.Repeat(s.data.scales, len(places)),
			bytes.Repeat(s.data.quats, len(places))
		w.images[sogSH0], w.images[sogLabels] = bytes.Repeat(s.data.sh0, len(places)),
			bytes.Repeat(s.data.labels, len(places))
	}
	for i, name := range s.images() { // in the order of sogNames
		to := filepath.Join(dir, name)
		var err error
		switch {
		case i == sogCentroids:
			err = linkOrCopy(filepath.Join(r.from, filepath.Dir(filepath.FromSlash(source)), name), to)
		case w.images[i] == nil:
			err = linkOrCopy(filepath.Join(r.to, like, name), to)
		default:
			var data []byte
			if data, err = w.encode(i); err == nil {
				err = os.WriteFile(to, data, 0o666)
			}
		}
		if err != nil {
			return err
		}
	}
	text, err := fs.ReadFile(s.files, sogMetaName)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	fields["count"] = json.RawMessage(strconv.Itoa(w.info.N))
	means := sogPart{Mins: w.low[:], Maxs: w.high[:], Files: s.meta.Means.Files}
	if fields["means"], err = json.Marshal(means); err != nil {
		return err
	}
	if text, err = json.Marshal(fields); err != nil {
		return err
	}
	return os.WriteFile(meta, text, 0o666)
}

// shift makes the images of means that are elsewhere.
func (w *sogWriter) shift(d *sogData, places [][3]float64) {
	n := len(d.low) / 3
	at := make([]float64, 0, 3*w.info.N)
	for axis := range 3 {
		w.low[axis], w.high[axis] = math.Inf(1), math.Inf(-1)
	}
	for _, by := range places {
		for i := range 3 * n {
			k, v := i%3, int(d.low[i])|int(d.high[i])<<8
			x := sogLog(sogUnlog(d.start[k]+d.perStep[k]*(float64(v)/65535)) + by[k])
			w.low[k], w.high[k] = min(w.low[k], x), max(w.high[k], x)
			at = append(at, x)
		}
	}
	low, high := make([]uint8, len(at)), make([]uint8, len(at))
	for i, x := range at {
		k, v := i%3, uint16(0)
		if span := w.high[k] - w.low[k]; span > 0 {
			v = uint16(math.Round(65535 * (x - w.low[k]) / span))
		}
		low[i], high[i] = uint8(v), uint8(v>>8)
	}
	w.images[sogMeansLow], w.images[sogMeansHigh] = low, high
}

// linkOrCopy makes a file that is there appear at another place.
func linkOrCopy(from, to string) error {
	if err := os.Remove(to); err != nil && !os.IsNotExist(err) {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o666)
	}
	return err
}
