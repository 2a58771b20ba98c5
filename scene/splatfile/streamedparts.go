package splatfile

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"

	"vksplat/internal/wording"
)

// Parts are the files of a streamed model, for those who hand them to viewers.
type Parts struct {
	Names []string // all files, with slashes; the first is StreamedMain

	main   string // what that is called in files
	files  fs.FS
	closer io.Closer
	most   int64 // bytes of a file
}

// StreamedMain is the name by which viewers know every streamed model.
const StreamedMain = streamedName

// StreamedParts finds the files of a model of format StreamedFormat. Who has Parts closes them.
func StreamedParts(file string) (p *Parts, err error) {
	fail := func(err error) error { return readError(opReadStreamed, file, err, hintStreamed) }
	m, err := readStreamed(file)
	if err != nil {
		return nil, fail(err)
	}
	if p, err = openParts(file); err != nil {
		return nil, fail(err)
	}
	p.Names = []string{StreamedMain}
	for _, name := range m.names() {
		name = path.Clean(name)
		text, err := p.Read(name)
		if err != nil {
			return nil, errors.Join(fail(err), p.Close())
		}
		meta, err := parseSogMeta(text)
		if err != nil {
			return nil, errors.Join(fail(fmt.Errorf("%s: %w", wording.Printable(name), err)), p.Close())
		}
		p.Names = append(p.Names, name)
		for _, image := range (&sogSource{meta: meta}).images() {
			p.Names = append(p.Names, path.Join(path.Dir(name), image))
		}
	}
	return p, nil
}

// openParts opens the folder of a streamed model, or the archive that holds it.
func openParts(file string) (*Parts, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if isZip(file) {
		archive, err := zip.OpenReader(file)
		return &Parts{main: streamedName, files: archive, closer: archive, most: st.Size()}, err
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	return &Parts{main: filepath.Base(file), files: root.FS(), closer: root, most: math.MaxInt64}, nil
}

// Read reads a file. Of an archive it has at most as many bytes as all of that, whatever it would unpack to.
func (p *Parts) Read(name string) ([]byte, error) {
	if name == StreamedMain {
		name = p.main
	}
	f, err := p.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	data, err := io.ReadAll(io.LimitReader(f, p.most))
	if n, _ := f.Read(make([]byte, 1)); err == nil && n > 0 {
		err = fmt.Errorf("%s: it unpacks to more than the archive has", wording.Printable(name))
	}
	return data, err
}

func (p *Parts) Close() error { return p.closer.Close() }

// sampleFolders is how many folders OpenCoarsest reads at most.
const sampleFolders = 32

// OpenCoarsest opens the coarsest level of a model of format StreamedFormat or, where that has many folders, some of
// these from all over it.
func OpenCoarsest(path string) (Source, error) {
	m, err := readStreamed(path)
	if err != nil {
		return nil, readError(opReadStreamed, path, err, hintStreamed)
	}
	return openLevel(path, m, max(m.Levels, 1)-1, sampleFolders)
}
