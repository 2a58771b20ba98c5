package splatfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"vksplat/internal/strictjson"
)

const (
	opReadStreamed   = "read streamed sog"
	hintStreamed     = "the model may be cut short: copy or export it again, with all folders that it names"
	streamedMaxFiles = 1 << 16
	// levels that are read leaf by leaf: each halves the splats, of which 2^31 are allowed
	streamedMaxLevels = 32

	// The most bytes and objects of a tree in JSON, where a leaf takes some 300 and up to fifteen: a hostile one is
	// nothing but brackets, of which each takes a hundred times as much memory as in the file.
	maxTreeBytes   = 64 << 20
	maxTreeObjects = 4 << 20
)

// readTree reads the JSON of a tree of parts.
func readTree(from io.Reader, tree any) error {
	text, err := io.ReadAll(io.LimitReader(from, maxTreeBytes+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxTreeBytes:
		return fmt.Errorf("more than %d bytes of JSON", maxTreeBytes)
	case bytes.Count(text, []byte("{")) > maxTreeObjects:
		return fmt.Errorf("more than %d objects of JSON", maxTreeObjects)
	}
	if err := json.Unmarshal(text, tree); err != nil {
		return strictjson.JSONError(err)
	}
	return nil
}

// isStreamed knows lod-meta.json by its first words, which other writers put into another order, and an archive by the
// first file in it.
func isStreamed(head []byte) bool {
	if name, ok := firstOfZip(head); ok {
		return name == streamedName || path.Base(name) != name && (path.Base(name) == sogMetaName ||
			path.Ext(name) == ".webp")
	}
	text := bytes.TrimSpace(head)
	return bytes.HasPrefix(text, []byte("{")) && (bytes.Contains(text, []byte(`"lodLevels"`)) ||
		bytes.Contains(text, []byte(`"filenames"`)) && bytes.Contains(text, []byte(`"tree"`)))
}

// streamedSource is the finest level and what is always drawn, folder after folder.
type streamedSource struct {
	merged
	folders []Source
	archive io.Closer // nil for a folder
}

func (s *streamedSource) Close() (err error) {
	if s.archive != nil {
		err = s.archive.Close()
	}
	for _, folder := range s.folders {
		err = errors.Join(err, folder.Close())
	}
	return err
}

// readStreamed reads and checks lod-meta.json, whether it is a file of its own or the first of an archive.
func readStreamed(file string) (*streamedMeta, error) {
	var f fs.File
	f, err := os.Open(file) // of a folder it may be a link that leads out of that
	if err == nil && isZip(file) {
		_ = f.Close() // only its first bytes were wanted
		var p *Parts
		if p, err = openParts(file); err == nil {
			defer p.Close() // only read
			f, err = p.files.Open(p.main)
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	m := &streamedMeta{}
	if err := readTree(f, m); err != nil {
		return nil, err
	}
	switch {
	case m.Version > 1:
		return nil, fmt.Errorf("its version is %d, only 1 is supported", m.Version)
	case m.Tree == nil || len(m.Files) == 0:
		return nil, errors.New("it names no tree or no files")
	case len(m.Files) > streamedMaxFiles:
		return nil, fmt.Errorf("%d files, the limit is %d", len(m.Files), streamedMaxFiles)
	}
	known := map[string]bool{}
	for _, name := range m.names() {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("the name %q leads out of the folder", name)
		}
		if name = path.Clean(name); known[name] {
			return nil, fmt.Errorf("the name %q occurs twice", name)
		}
		known[name] = true
	}
	return m, nil
}

// names lists the files of SOG.
func (m *streamedMeta) names() []string {
	all := append(slices.Clone(m.Files), m.Environment)
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// level marks the files of a level below a node.
func (n *streamedNode) level(level string, used []bool) error {
	if run, ok := n.Runs[level]; ok {
		if run.File < 0 || run.File >= len(used) {
			return fmt.Errorf("a leaf names file %d of %d", run.File, len(used))
		}
		used[run.File] = true
	}
	for _, child := range n.Children {
		if child == nil {
			return errors.New("a node of the tree is null")
		}
		if err := child.level(level, used); err != nil {
			return err
		}
	}
	return nil
}

func openStreamed(path string) (Source, error) {
	m, err := readStreamed(path)
	if err != nil {
		return nil, readError(opReadStreamed, path, err, hintStreamed)
	}
	return openLevel(path, m, 0, streamedMaxFiles)
}

// openLevel opens a level, 0 being the finest, and what is always drawn; of the level's folders as many as most, evenly
// chosen.
func openLevel(path string, m *streamedMeta, level, most int) (Source, error) {
	fail := func(err error) error { return readError(opReadStreamed, path, err, hintStreamed) }
	used := make([]bool, len(m.Files))
	if err := m.Tree.level(strconv.Itoa(level), used); err != nil {
		return nil, fail(err)
	}
	thin(used, most)
	s := &streamedSource{}
	within, err := s.within(path)
	if err != nil {
		return nil, fail(err)
	}
	for i, name := range append(slices.Clone(m.Files), m.Environment) {
		if name == "" || i < len(used) && !used[i] {
			continue
		}
		folder, err := within(name)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.folders = append(s.folders, folder)
	}
	if len(s.folders) == 0 {
		return nil, fail(fmt.Errorf("no leaf has splats of level %d", level))
	}
	all, err := Merge(s.folders)
	if err != nil {
		return nil, errors.Join(fail(err), s.Close())
	}
	s.merged = *all.(*merged)
	s.info.Format = StreamedFormat
	return s, nil
}

// thin leaves as many marks as most, evenly.
func thin(marks []bool, most int) {
	n := 0
	for _, marked := range marks {
		if marked {
			n++
		}
	}
	at := 0
	for i := range marks {
		if marks[i] {
			marks[i] = n <= most || at*most/n != (at+1)*most/n
			at++
		}
	}
}

// within returns what opens the SOG of a name in the model.
func (s *streamedSource) within(file string) (func(name string) (Source, error), error) {
	if !isZip(file) {
		return func(name string) (Source, error) {
			return openSOG(filepath.Join(filepath.Dir(file), filepath.FromSlash(name)))
		}, nil
	}
	parts, err := openParts(file)
	if err != nil {
		return nil, err
	}
	s.archive = parts
	return func(name string) (Source, error) {
		folder, err := fs.Sub(parts.files, path.Dir(name))
		if err != nil {
			return nil, readError(opReadStreamed, file, err, hintStreamed)
		}
		sog, err := newSOGWithin(file, folder, path.Base(name), parts.most)
		if err != nil {
			return nil, err // and no Source
		}
		return sog, nil
	}, nil
}

// streamedSize is how many bytes the files of all levels take.
func streamedSize(path string) (sum int64, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, readError(opReadStreamed, path, err, "")
	}
	if isZip(path) {
		return st.Size(), nil
	}
	m, err := readStreamed(path)
	if err != nil {
		return 0, readError(opReadStreamed, path, err, hintStreamed)
	}
	for _, name := range m.names() {
		bytes, err := Size(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))
		if err != nil {
			return 0, err
		}
		sum += bytes
	}
	return sum + st.Size(), nil
}
