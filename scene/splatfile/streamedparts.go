package splatfile

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Parts are the files of a streamed model, for those who hand them to viewers.
type Parts struct {
	Main  string   // lod-meta.json
	Names []string // all files, with slashes, as Main names them

	files  fs.FS
	closer io.Closer
}

// StreamedParts finds the files of a model of format StreamedFormat. Who has Parts closes them.
func StreamedParts(file string) (p *Parts, err error) {
	fail := func(err error) error { return readError(opReadStreamed, file, err, hintStreamed) }
	m, err := readStreamed(file)
	if err != nil {
		return nil, fail(err)
	}
	p = &Parts{Main: filepath.Base(file)}
	if isZip(file) {
		archive, err := zip.OpenReader(file)
		if err != nil {
			return nil, fail(err)
		}
		p.Main, p.files, p.closer = streamedName, archive, archive
	} else {
		root, err := os.OpenRoot(filepath.Dir(file))
		if err != nil {
			return nil, fail(err)
		}
		p.files, p.closer = root.FS(), root
	}
	p.Names = []string{p.Main}
	for _, name := range append(slices.Clone(m.Files), m.Environment) {
		if name == "" {
			continue
		}
		text, err := p.Read(name)
		if err != nil {
			return nil, errors.Join(fail(err), p.Close())
		}
		meta, err := parseSogMeta(text)
		if err != nil {
			return nil, errors.Join(fail(fmt.Errorf("%s: %w", name, err)), p.Close())
		}
		p.Names = append(p.Names, name)
		for _, image := range (&sogSource{meta: meta}).images() {
			p.Names = append(p.Names, path.Join(path.Dir(name), image))
		}
	}
	return p, nil
}

// Read reads a file.
func (p *Parts) Read(name string) ([]byte, error) { return fs.ReadFile(p.files, name) }

// Close closes the folder or the archive.
func (p *Parts) Close() error { return p.closer.Close() }

// OpenCoarsest opens the coarsest level of a model of format StreamedFormat.
func OpenCoarsest(path string) (Source, error) {
	m, err := readStreamed(path)
	if err != nil {
		return nil, readError(opReadStreamed, path, err, hintStreamed)
	}
	return openLevel(path, m, max(m.Levels, 1)-1)
}
