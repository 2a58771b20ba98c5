package view

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/splatfile"
)

const (
	// maxPlain is the largest PLY file, in bytes, that the browser gets as it is: the page loads it whole. Larger ones
	// go compressed, at about a tenth.
	maxPlain = 256 << 20
	// maxPage is the most that a page of its own may hold, in bytes: browsers bound a text's length, and as base64 it
	// is a third longer.
	maxPage = 320 << 20
	// maxPositions is how many splats are looked at for the first view.
	maxPositions = 200_000
	// plyHead is where a PLY file's header is looked for.
	plyHead = 1 << 14
)

// compactExtension ends the names of compressed PLY files.
const compactExtension = ".compressed.ply"

// Names that the viewer knows formats by.
const (
	plainName   = "scene.ply"
	compactName = "scene" + compactExtension
	sogName     = "scene.sog"
)

// Model is a file that the viewer reads.
type Model struct {
	Splats    int
	Meta      ply.Meta
	Positions [][3]float64 // of some of the splats, in the file's frame
	Lost      []string     // what the conversion could not keep, a sentence each
	Converted bool         // the file is a temporary one

	path, name string
	parts      *splatfile.Parts // of a streamed model; nil: the file at path is all
}

// Streamed reports whether the browser loads the model part by part.
func (m *Model) Streamed() bool { return m.parts != nil }

// Close closes what Prepare opened.
func (m *Model) Close() error {
	if m.parts == nil {
		return nil
	}
	return m.parts.Close()
}

// Prepare makes a model ready for the viewer: the file itself where the viewer reads it well, otherwise a conversion in
// the folder tempDir. Small asks for the smallest file. A streamed model goes as it is, unless it has to be one file.
func Prepare(path, tempDir string, small bool) (*Model, error) {
	source, err := splatfile.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := prepare(path, tempDir, source, small)
	return m, errors.Join(err, source.Close())
}

func prepare(path, tempDir string, source splatfile.Source, small bool) (*Model, error) {
	info := source.Info()
	m := &Model{Splats: info.N, Meta: info.Meta, path: path}
	if info.N == 0 {
		return nil, &fault.Error{Op: "view model", Path: path, Err: errors.New("it holds no splats"),
			Hint: "name a file of splats, or the folder of a training run"}
	}
	if info.Format == splatfile.StreamedFormat && !small {
		return m, m.streamed()
	}
	var err error
	var broken int
	if m.Positions, broken, err = somePositions(source); err != nil {
		return nil, err
	}
	if broken == info.N {
		return nil, &fault.Error{Op: "view model", Path: path,
			Err: fmt.Errorf("none of its splats can be drawn: all hold NaN or infinite numbers, or are longer than e^%d",
				scene.HugeLog),
			Hint: "the training that made this file diverged, or the file is damaged: make or copy it again"}
	}
	if broken > 0 {
		m.Lost = append(m.Lost,
			fmt.Sprintf("%d of %d splats hold NaN or infinite numbers, or are longer than e^%d, and may hide the "+
				"others; vksplat convert leaves them out", broken, info.N, scene.HugeLog))
	}
	size, err := fileSize(path)
	if err != nil {
		return nil, err
	}
	compact := compactFormat()
	shrinkable := compact != nil
	kind := readable(path)
	switch {
	case kind == compactName, kind == sogName:
		m.name = kind
		return m, nil
	case kind == plainName && !(small && shrinkable) && (size <= maxPlain || !shrinkable):
		m.name = kind
		return m, nil
	}
	m.Converted = true
	if shrinkable && (small || int64(info.N)*splatBytes(info.Degree) > maxPlain) {
		m.path, m.name = filepath.Join(tempDir, compactName), compactName
		lost, err := compact.Write(m.path, source, splatfile.WriteOptions{TempDir: tempDir})
		m.Lost = append(m.Lost, lost...)
		return m, err
	}
	m.path, m.name = filepath.Join(tempDir, plainName), plainName
	return m, ply.WritePieces(m.path, info.N, info.Degree, info.Meta, source.Read)
}

// partsFolder is below what the viewer finds the files of a streamed model, none of which can so take the place of one
// of the page's.
const partsFolder = "model/"

// streamed has the viewer load a streamed model part by part. Only its coarsest level is looked at: the first picture
// is not to wait for the finest.
func (m *Model) streamed() error {
	source, err := splatfile.OpenCoarsest(m.path)
	if err != nil {
		return err
	}
	m.Positions, _, err = somePositions(source)
	if err = errors.Join(err, source.Close()); err != nil {
		return err
	}
	m.parts, err = splatfile.StreamedParts(m.path)
	if err == nil {
		m.name = partsFolder + splatfile.StreamedMain
	}
	return err
}

// handle registers what the viewer asks for.
func (m *Model) handle(s *Server) {
	if m.parts == nil {
		s.Handle(m.name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serveFile(w, r, m.path, "the model no longer exists", http.StatusGone)
		}))
		return
	}
	for _, name := range m.parts.Names {
		s.Handle(partsFolder+name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, err := m.parts.Read(name)
			if err != nil {
				http.Error(w, "this part of the model no longer exists", http.StatusGone)
				return
			}
			bytesHandler(name, data).ServeHTTP(w, r)
		}))
	}
}

// splatBytes is what a splat takes in a PLY file: positions, normals, opacity, scales, rotation and spherical harmonics
// as floats.
func splatBytes(degree int) int64 { return 4 * int64(14+3*scene.SHCoefficients(degree)) }

// compactFormat is the format that models are converted to where their size matters, nil where it cannot be written.
func compactFormat() *splatfile.Format {
	f := splatfile.ByName(compactName)
	if f == nil || f.Write == nil || !slices.Contains(f.Extensions, compactExtension) { // plain PLY files end likewise
		return nil
	}
	return f
}

// fileSize is the size of a file, 0 for a folder.
func fileSize(path string) (int64, error) {
	st, err := os.Stat(path)
	if err != nil || st.IsDir() {
		return 0, err
	}
	return st.Size(), nil
}

// readable says by which of our names the viewer reads a file as it is, "" if it does not. Of PLY files it reads binary
// ones of this machine's byte order, in which every property of a splat is a float, and the compressed kind.
func readable(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() // only read
	head := make([]byte, plyHead)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) && strings.EqualFold(filepath.Ext(path), ".sog") {
		return sogName
	}
	header, _, ended := bytes.Cut(head, []byte("\nend_header\n"))
	text := string(header)
	switch {
	case !ended || !strings.HasPrefix(text, "ply\n") || !strings.Contains(text, "\nformat binary_little_endian 1.0"):
		return ""
	case strings.Contains(text, "\nproperty uint packed_position"):
		return compactName
	case strings.Contains(text, "\nproperty float scale_1") && !strings.Contains(text, "\nproperty float scale_2"):
		return "" // flat splats, which the viewer does not know
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "property ") && !strings.HasPrefix(line, "property float ") ||
			strings.HasPrefix(line, "element ") && !strings.HasPrefix(line, "element vertex ") {
			return ""
		}
	}
	return plainName
}

// somePositions reads the positions of up to maxPositions splats, evenly over the file, without those that are not
// finite. It also counts all splats that nothing can draw.
func somePositions(source splatfile.Source) (list [][3]float64, broken int, err error) {
	each := 1 + (source.Info().N-1)/maxPositions
	at := 0
	err = source.Read(func(piece *scene.Splats) error {
		broken += piece.NonFinite() + piece.Huge()
		for i := range piece.N {
			p := [3]float64{float64(piece.Means[3*i]), float64(piece.Means[3*i+1]), float64(piece.Means[3*i+2])}
			if sum := p[0] + p[1] + p[2]; at%each == 0 && !math.IsNaN(sum) && !math.IsInf(sum, 0) {
				list = append(list, p)
			}
			at++
		}
		return nil
	})
	return list, broken, err
}

// serveFile answers with a file, or says that it is missing.
func serveFile(w http.ResponseWriter, r *http.Request, path, missing string, status int) {
	f, err := os.Open(path)
	if err != nil {
		http.Error(w, missing, status)
		return
	}
	defer f.Close() // only read
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		http.Error(w, missing, status)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	revalidated(w, fmt.Sprintf(`"%x-%x"`, st.Size(), st.ModTime().UnixNano()))
	http.ServeContent(w, r, "", st.ModTime(), f)
}

// checkPage refuses a model that is too large for a page of its own.
func (m *Model) checkPage() error {
	size, err := fileSize(m.path)
	if err == nil && size > maxPage {
		err = &fault.Error{Op: "write page", Path: m.path,
			Err:  fmt.Errorf("a single page can hold %d MiB, the model takes %d", maxPage>>20, size>>20),
			Hint: "make the model smaller, or serve it: vksplat view FILE"}
	}
	return err
}
