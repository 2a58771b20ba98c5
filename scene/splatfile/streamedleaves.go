package splatfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"sync"

	"vksplat/internal/parallel"
	"vksplat/scene"
)

// Leaves is a model of format StreamedFormat leaf by leaf and level by level.
type Leaves struct {
	Info    Info // of the finest level and what is always drawn
	List    []Leaf
	Folders []*LeafFolder // in which the splats are
	Always  int           // the folder of what is always drawn; -1: none
	Digest  uint64        // of all but the images
	closers []io.Closer   // of the archive, if it is one, and of each folder
}

// Leaf is a leaf of the tree: a box around splats of one standard deviation, and runs of splats from the finest level
// to the coarsest, as far as these have any.
type Leaf struct {
	Low, High [3]float32
	Runs      []LeafRun
}

// LeafRun is some splats of a folder.
type LeafRun struct{ Level, Folder, First, N int }

// LeafFolder is a folder of splats, which is decoded as a whole. Several goroutines may read it.
type LeafFolder struct {
	N   int // splats
	mu  sync.Mutex
	sog *sogSource
}

// IsStreamed reports whether a model is of format StreamedFormat.
func IsStreamed(path string) bool {
	head, err := readHead(path)
	return err == nil && choose(path, head) == streamed
}

// OpenLeaves opens a model of format StreamedFormat. No splat is read.
func OpenLeaves(file string) (l *Leaves, err error) {
	fail := func(err error) error { return readError(opReadStreamed, file, err, hintStreamed) }
	m, err := readStreamed(file)
	if err != nil {
		return nil, fail(err)
	}
	s := &streamedSource{}
	within, err := s.within(file)
	if err != nil {
		return nil, fail(err)
	}
	l = &Leaves{Always: -1}
	l.closes(s.archive)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
			l = nil
		}
	}()
	if at := slices.Index(m.Files, ""); at >= 0 {
		return l, fail(fmt.Errorf("file %d has no name", at))
	}
	if m.Environment != "" {
		l.Always = len(m.Files)
		m.Files = append(m.Files, m.Environment)
	}
	sources, errs := make([]Source, len(m.Files)), make([]error, len(m.Files))
	parallel.For(len(m.Files), func(i int) { sources[i], errs[i] = within(m.Files[i]) })
	for _, source := range sources {
		l.closes(source)
	}
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	for i, name := range m.Files {
		if errs[i] != nil {
			return l, errs[i]
		}
		sog, ok := sources[i].(*sogSource)
		if !ok {
			return l, fail(fmt.Errorf("%s is not a SOG", path.Clean(name)))
		}
		if l.add(sog); originOf(sog.info) != originOf(l.Info) {
			return l, fail(fmt.Errorf("%s has another origin than %s", path.Clean(name), path.Clean(m.Files[0])))
		}
		text, err := json.Marshal(sog.meta)
		if err != nil {
			return l, err
		}
		fmt.Fprintf(sum, "%s %s %d\n", name, text, sog.bytes)
	}
	if err := l.take(m.Tree); err != nil {
		return l, fail(err)
	}
	for _, leaf := range l.List {
		fmt.Fprintln(sum, leaf)
	}
	l.Digest = sum.Sum64()
	return l, nil
}

// closes has Close close what was opened, if it was.
func (l *Leaves) closes(c io.Closer) {
	if c != nil {
		l.closers = append(l.closers, c)
	}
}

// add adds a folder.
func (l *Leaves) add(sog *sogSource) {
	if len(l.Folders) == 0 {
		l.Info = sog.info
		l.Info.Format, l.Info.N = StreamedFormat, 0
	}
	l.Info.Degree = max(l.Info.Degree, sog.info.Degree)
	if len(l.Folders) == l.Always {
		l.Info.N += sog.info.N
	}
	l.Folders = append(l.Folders, &LeafFolder{N: sog.info.N, sog: sog})
}

// take adds the leaves of a tree.
func (l *Leaves) take(n *streamedNode) error {
	for _, child := range n.Children {
		if child == nil {
			return errors.New("a node of the tree is null")
		}
		if err := l.take(child); err != nil {
			return err
		}
	}
	if len(n.Runs) == 0 {
		return nil
	}
	leaf := Leaf{Low: n.Bound.Low, High: n.Bound.High}
	for k := range 3 {
		if !(leaf.Low[k] <= leaf.High[k]) || math.IsInf(float64(leaf.High[k]-leaf.Low[k]), 0) {
			return fmt.Errorf("a leaf reaches from %v to %v", leaf.Low, leaf.High)
		}
	}
	for name, r := range n.Runs {
		level, err := strconv.Atoi(name)
		// Another spelling, as "00" or "+0", would be a second run of a level.
		if err != nil || level < 0 || level >= streamedMaxLevels || strconv.Itoa(level) != name {
			return fmt.Errorf("a leaf has splats of level %q", name)
		}
		if r.File < 0 || r.File >= len(l.Folders) || r.File == l.Always {
			return fmt.Errorf("a leaf names file %d of %d", r.File, len(l.Folders))
		}
		if all := l.Folders[r.File].N; r.Offset < 0 || r.Count < 0 || r.Count > all || r.Offset > all-r.Count {
			return fmt.Errorf("a leaf has splats %d to %d of file %d, which has %d", r.Offset, r.Offset+r.Count, r.File,
				all)
		}
		if r.Count > 0 {
			leaf.Runs = append(leaf.Runs, LeafRun{level, r.File, r.Offset, r.Count})
		}
		if level == 0 {
			l.Info.N += r.Count
		}
	}
	if len(leaf.Runs) == 0 {
		return nil
	}
	slices.SortFunc(leaf.Runs, func(a, b LeafRun) int { return a.Level - b.Level })
	l.List = append(l.List, leaf)
	return nil
}

// Close closes the archive, if it is one, and folders that are archives of their own. Nothing may be read any more.
func (l *Leaves) Close() (err error) {
	for _, c := range l.closers {
		err = errors.Join(err, c.Close())
	}
	l.closers = nil
	return err
}

// Bytes is about what the folder takes in memory while it is decoded.
func (f *LeafFolder) Bytes() int64 {
	bytes := 20 * int64(f.N)
	if p := f.sog.meta.SHN; p != nil {
		bytes += 4 * 3 * int64(p.Count) * int64(scene.SHCoefficients(f.sog.info.Degree)-1)
	}
	return bytes
}

// LoadBytes is about what Load takes while it decodes the folder: beside Bytes the largest image, as four bytes a pixel
// and as it was read, which is no more than that, and three bytes of each pixel.
func (f *LeafFolder) LoadBytes() int64 {
	most := int64(0)
	for _, size := range f.sog.sizes {
		most = max(most, int64(size[0])*int64(size[1]))
	}
	return f.Bytes() + (4+4+3)*most
}

// Load decodes the folder, until Drop.
func (f *LeafFolder) Load() error {
	_, err := f.load()
	return err
}

func (f *LeafFolder) load() (*sogData, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.sog.load(); err != nil {
		return nil, f.sog.fail(err)
	}
	return f.sog.data, nil
}

// Read returns n splats from one on, with spherical harmonics of a degree. It decodes the folder first.
func (f *LeafFolder) Read(first, n, degree int) (*scene.Splats, error) {
	data, err := f.load()
	if err != nil {
		return nil, err
	}
	s := scene.NewSplats(n, f.sog.info.Degree)
	for i := range n {
		data.splat(s, i, first+i)
	}
	return s.WithDegree(degree), nil
}

// Drop lets go of what Read has decoded.
func (f *LeafFolder) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sog.data = nil
}
