package splatfile

import (
	"encoding/json"
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
// are shifted, under one tree: a large model to measure with. from and to are paths of lod-meta.json. Copies have means
// of their own, and share all other images with the model: as links where the file system has these.
func Repeat(from, to string, places [][3]float64) error {
	const op = "repeat streamed sog"
	m, err := readStreamed(from)
	switch {
	case err != nil:
		return readError(op, from, err, hintStreamed)
	case isZip(from) || m.Environment != "":
		return readError(op, from, fmt.Errorf("it is an archive, or has what is always drawn"), "convert to lod-meta.json")
	case len(places) == 0:
		return readError(op, from, fmt.Errorf("there is no place for a copy"), "")
	}
	all := &streamedMeta{Version: 1, Asset: m.Asset, Levels: m.Levels, Count: len(places) * m.Count}
	for _, n := range m.Counts {
		all.Counts = append(all.Counts, len(places)*n)
	}
	for i := range places {
		for _, name := range m.Files {
			all.Files = append(all.Files, copyName(i, name))
		}
	}
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	all.Tree = m.repeated(places, order)
	errs := make([]error, len(all.Files))
	parallel.For(len(m.Files), func(k int) {
		errs[k] = copyFolder(filepath.Join(filepath.Dir(from), filepath.FromSlash(m.Files[k])), places,
			func(i int) string {
				return filepath.Join(filepath.Dir(to), filepath.FromSlash(copyName(i, m.Files[k])))
			})
	})
	for _, err := range errs {
		if err != nil {
			return writeError(op, to, err, "")
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return atomicfile.Write(to, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// copyName is the name of a file of copy i.
func copyName(i int, name string) string { return path.Join("copy_"+strconv.Itoa(i), name) }

// repeated makes the tree of some copies, halved along the longer side of where they are.
func (m *streamedMeta) repeated(places [][3]float64, some []int) *streamedNode {
	if len(some) == 1 {
		return m.Tree.shifted(places[some[0]], some[0]*len(m.Files))
	}
	box := emptyBox()
	for _, i := range some {
		box.add([]float32{float32(places[i][0]), float32(places[i][1]), float32(places[i][2])})
	}
	axis, _ := box.longest()
	slices.SortStableFunc(some, func(a, b int) int {
		if d := places[a][axis] - places[b][axis]; d != 0 {
			return int(math.Copysign(1, d))
		}
		return 0
	})
	half := len(some) / 2
	n := &streamedNode{Bound: emptyBound(), Children: []*streamedNode{m.repeated(places, some[:half]),
		m.repeated(places, some[half:])}}
	for _, child := range n.Children {
		n.Bound.take(child.Bound)
	}
	return n
}

// shifted copies a tree to another place, where its files are so many numbers later.
func (n *streamedNode) shifted(by [3]float64, files int) *streamedNode {
	out := &streamedNode{Bound: n.Bound}
	for k := range 3 {
		out.Bound.Low[k], out.Bound.High[k] = n.Bound.Low[k]+float32(by[k]), n.Bound.High[k]+float32(by[k])
	}
	for _, child := range n.Children {
		out.Children = append(out.Children, child.shifted(by, files))
	}
	for level, r := range n.Runs {
		if out.Runs == nil {
			out.Runs = map[string]streamedRun{}
		}
		out.Runs[level] = streamedRun{r.File + files, r.Offset, r.Count}
	}
	return out
}

// copyFolder writes the copies of a folder, whose meta.json is at from; to gives the places of theirs.
func copyFolder(from string, places [][3]float64, to func(i int) string) error {
	s, err := newSOG(from)
	if err != nil {
		return err
	}
	if s.meta.Version != 2 {
		return fmt.Errorf("%s: it is of version %d, want 2", from, s.meta.Version)
	}
	if err := s.load(); err != nil {
		return err
	}
	errs := make([]error, len(places))
	parallel.For(len(places), func(i int) { errs[i] = s.copyTo(filepath.Dir(from), to(i), places[i]) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// copyTo writes a shifted copy of the folder dir.
func (s *sogSource) copyTo(dir, meta string, by [3]float64) error {
	folder := filepath.Dir(meta)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	means := s.meta.Means.Files
	for _, name := range s.images() {
		if slices.Contains(means, name) {
			continue
		}
		if err := linkOrCopy(filepath.Join(dir, name), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	w := &sogWriter{info: s.info}
	w.shift(s.data, by)
	for k, name := range means {
		data, err := w.encode(sogMeansLow + k)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), data, 0o666)
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
	if fields["means"], err = json.Marshal(sogPart{Mins: w.low[:], Maxs: w.high[:], Files: means}); err != nil {
		return err
	}
	if text, err = json.Marshal(fields); err != nil {
		return err
	}
	return os.WriteFile(meta, text, 0o666)
}

// shift makes the images of means that are elsewhere.
func (w *sogWriter) shift(d *sogData, by [3]float64) {
	n := w.info.N
	at := make([]float64, 3*n)
	for axis := range 3 {
		w.low[axis], w.high[axis] = math.Inf(1), math.Inf(-1)
		for i := range n {
			v := int(d.low[3*i+axis]) | int(d.high[3*i+axis])<<8
			x := sogLog(sogUnlog(d.start[axis]+d.perStep[axis]*(float64(v)/65535)) + by[axis])
			at[3*i+axis] = x
			w.low[axis], w.high[axis] = min(w.low[axis], x), max(w.high[axis], x)
		}
	}
	low, high := make([]uint8, 3*n), make([]uint8, 3*n)
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
