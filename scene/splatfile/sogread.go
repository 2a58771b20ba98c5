package splatfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/scene"
)

// sogFormat is version 2 of SOG of PlayCanvas, and version 1 for reading (developer.playcanvas.com, user manual, "The
// SOG format"): images of bytes, a pixel for each splat, with a meta.json that says what the bytes stand for; in a
// folder or in one archive.
var sogFormat = &Format{Name: sogName, Extensions: []string{sogMetaName, ".sog"}, Detect: detectSOG, Open: openSOG,
	Write: writer("write sog", writeSOG, 2)}

// detectSOG knows archives by the name of their first file, and meta.json by its first words.
func detectSOG(head []byte) bool {
	if name, ok := firstOfZip(head); ok {
		return name == sogMetaName || strings.HasSuffix(name, ".webp")
	}
	text := strings.TrimSpace(string(head))
	return strings.HasPrefix(text, "{") && strings.Contains(text, `"means"`) && strings.Contains(text, ".webp")
}

// firstOfZip is the name of the first file of an archive that begins with head.
func firstOfZip(head []byte) (name string, ok bool) {
	rest, ok := strings.CutPrefix(string(head), "PK\x03\x04")
	if !ok || len(rest) < 26 {
		return "", false
	}
	length := int(rest[22]) | int(rest[23])<<8
	return rest[26:min(26+length, len(rest))], true
}

const (
	sogName     = "sog"
	sogMetaName = "meta.json" // the file that makes a folder one of SOG
)

// sogSource is a SOG whose images are decoded when the first splat is asked for. They stay in memory: 20 bytes a splat.
type sogSource struct {
	indexed
	path   string
	meta   *sogMeta
	files  fs.FS
	closer io.Closer
	bytes  int64             // of all files
	notes  []string          // of the images
	sizes  map[string][2]int // width and height of the images
	data   *sogData          // nil before the first splat is asked for
}

const (
	opReadSOG   = "read sog"
	hintSOG     = "the model may be cut short: copy or export it again"
	hintSOGFile = "all images that meta.json names must be next to it, or in the archive: copy or export the model " +
		"again"
)

func (s *sogSource) fail(err error) error {
	hint := hintSOG
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = hintSOGFile
	}
	return readError(opReadSOG, s.path, err, hint)
}

func openSOG(path string) (Source, error) {
	s, err := newSOG(path)
	if err != nil {
		return nil, err // and no Source
	}
	return s, nil
}

// newSOG opens an archive, a meta.json, or the folder of one.
func newSOG(path string) (*sogSource, error) {
	s := &sogSource{path: path, sizes: map[string][2]int{}}
	s.decode = s.unpack
	info, err := os.Stat(path)
	if err != nil {
		return nil, readError(opReadSOG, path, err, "")
	}
	name, limit := sogMetaName, int64(-1)
	switch {
	case info.IsDir():
		s.files = folder(path)
	case !info.Mode().IsRegular():
		err = fault.ErrNotRegular
	case isZip(path):
		limit = info.Size()
		err = s.openZip(path)
	default:
		name = filepath.Base(path)
		s.files = folder(filepath.Dir(path))
	}
	if err == nil {
		err = s.readMeta(name, limit)
	}
	if err != nil {
		_ = s.Close() // the first error is the one to report
		return nil, s.fail(err)
	}
	return s, nil
}

// newSOGWithin opens the SOG of a meta.json, or what its name is, in a folder of an archive, which stays the caller's.
// limit is the size of the archive in bytes.
func newSOGWithin(path string, folder fs.FS, name string, limit int64) (*sogSource, error) {
	s := &sogSource{path: path, sizes: map[string][2]int{}, files: folder}
	s.decode = s.unpack
	if err := s.readMeta(name, limit); err != nil {
		return nil, s.fail(err)
	}
	return s, nil
}

// isZip tells whether a file begins as archives do.
func isZip(path string) bool {
	head, err := readHead(path)
	return err == nil && bytes.HasPrefix(head, []byte("PK"))
}

// folder is a folder that no name, and no link in it, leads out of. It is open only while a file of it is opened: a
// model may have thousands.
type folder string

func (f folder) Open(name string) (file fs.File, err error) {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, err
	}
	defer root.Close() // the file stays open
	return root.FS().Open(name)
}

func (s *sogSource) openZip(path string) error {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	s.files, s.closer = archive, archive
	return nil
}

func (s *sogSource) Close() error {
	s.data = nil
	if s.closer == nil {
		return nil
	}
	return s.closer.Close()
}

// readFile reads a file of at most limit bytes, whatever its header claims.
func (s *sogSource) readFile(name string, limit int64) ([]byte, error) {
	f, err := s.files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wording.Printable(name), withoutPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wording.Printable(name), withoutPath(err))
	}
	return data, nil
}

// readMeta reads meta.json and the sizes of the images. total is the size in bytes of the archive, or -1 for a folder.
func (s *sogSource) readMeta(name string, total int64) error {
	text, err := s.readFile(name, maxSogMeta)
	if err != nil {
		return err
	}
	if s.meta, err = parseSogMeta(text); err != nil {
		return err
	}
	sum := int64(0)
	for _, file := range s.images() {
		size, err := s.readSize(file)
		if err != nil {
			return err
		}
		sum += size
	}
	s.bytes = sum + int64(len(text))
	if total >= 0 {
		s.bytes, sum = total, min(sum, total)
	}
	if int64(s.meta.Count) > sogFreeSplats+sogSplatsPerByte*sum {
		return fmt.Errorf("meta.json: count is %d, but all images together have %d bytes", s.meta.Count, sum)
	}
	degree, err := s.degree()
	if err != nil {
		return err
	}
	s.info = s.meta.info(degree)
	s.info.Notes = append(s.info.Notes, s.notes...)
	return nil
}

// images lists the images that have a pixel for each splat, and the palette last.
func (s *sogSource) images() []string {
	m := s.meta
	out := append(append([]string{}, m.Means.Files...), m.Scales.Files[0], m.Quats.Files[0], m.SH0.Files[0])
	if m.SHN != nil {
		out = append(out, m.SHN.Files[1], m.SHN.Files[0])
	}
	return out
}

// riffHeader is what precedes what a WebP counts as its size, in bytes.
const riffHeader = 8

// readSize reads the size of an image, checks it, and gives its bytes.
func (s *sogSource) readSize(name string) (int64, error) {
	info, err := fs.Stat(s.files, name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", wording.Printable(name), withoutPath(err))
	}
	f, err := s.files.Open(name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", wording.Printable(name), withoutPath(err))
	}
	defer f.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("%s: %w", wording.Printable(name), withoutPath(err))
	}
	_, width, height, err := losslessPart(head[:n])
	if err == nil {
		end := riffHeader + int64(binary.LittleEndian.Uint32(head[4:]))
		if more := info.Size() - end - end%2; more > 0 {
			s.notes = append(s.notes, fmt.Sprintf("%s has %s more than its header says, not read",
				wording.Printable(name), wording.Count(more, "byte")))
		}
	}
	if palette := s.meta.SHN != nil && name == s.meta.SHN.Files[0]; err == nil && !palette {
		err = checkSogSize(width, height, s.meta.Count)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", wording.Printable(name), err)
	}
	s.sizes[name] = [2]int{width, height}
	return info.Size(), nil
}

// sogRow is how many entries of the palette lie beside each other.
const sogRow = 64

// maxPalette is how many entries 16 bits can number.
const maxPalette = 1 << 16

// degree gives the degree of the spherical harmonics, which version 1 tells by the width of the palette's image alone,
// and checks that image's size.
func (s *sogSource) degree() (int, error) {
	p := s.meta.SHN
	if p == nil || s.meta.Version == 2 && p.Bands == 0 {
		s.meta.SHN = nil
		return 0, nil
	}
	size := s.sizes[p.Files[0]]
	for degree := 1; degree <= scene.MaxSHDegree; degree++ {
		if size[0] != sogRow*(scene.SHCoefficients(degree)-1) || s.meta.Version == 2 && p.Bands != degree {
			continue
		}
		if s.meta.Version == 1 {
			p.Count = sogRow * size[1]
		}
		p.Count = min(p.Count, maxPalette)
		if size[1] > maxPalette/sogRow || p.Count < 0 || p.Count > sogRow*size[1] {
			return 0, fmt.Errorf("%s: it has %d x %d pixels for %d entries", wording.Printable(p.Files[0]), size[0],
				size[1], p.Count)
		}
		return degree, nil
	}
	return 0, fmt.Errorf("%s: it is %d pixels wide, which is not a width for a palette of degree %d",
		wording.Printable(p.Files[0]), size[0], p.Bands)
}

// sogData is the content of the images.
type sogData struct {
	low, high      []uint8 // [N*3] bytes of the means
	scales         []uint8 // [N*3]
	quats, sh0     []uint8 // [N*4]
	labels         []uint8 // [N*2] nil at degree 0
	palette        []float32
	scaleTable     []sogTable // [3]
	colour         []sogTable // [4] the last: logits of opacities
	start, perStep [3]float64 // of the means' logarithms
}

// load decodes the images, once.
func (s *sogSource) load() error {
	if s.data != nil {
		return nil
	}
	d, m := &sogData{}, s.meta
	if err := s.tables(d); err != nil {
		return fmt.Errorf("meta.json: %w", err)
	}
	for _, part := range []struct {
		to       *[]uint8
		name     string
		channels int
		tables   []sogTable
	}{
		{&d.low, m.Means.Files[0], 3, nil}, {&d.high, m.Means.Files[1], 3, nil},
		{&d.scales, m.Scales.Files[0], 3, d.scaleTable},
		{&d.quats, m.Quats.Files[0], 4, nil}, {&d.sh0, m.SH0.Files[0], 4, d.colour},
	} {
		if err := s.decodeImage(part.to, part.name, m.Count, part.channels, part.tables); err != nil {
			return fmt.Errorf("%s: %w", wording.Printable(part.name), err)
		}
	}
	if m.SHN != nil {
		if err := s.loadPalette(d); err != nil {
			return err
		}
	}
	s.data = d
	return nil
}

// decodeImage decodes n pixels of an image, and checks that its bytes stand for something.
func (s *sogSource) decodeImage(to *[]uint8, name string, n, channels int, tables []sogTable) error {
	size := s.sizes[name]
	data, err := s.readFile(name, 8*int64(size[0])*int64(size[1])+1<<16)
	if err != nil {
		return err
	}
	if *to, err = decodeLossless(data, size[0], size[1], n, channels); err != nil {
		return err
	}
	for c, t := range tables {
		for i := c; t.known < 256 && i < len(*to); i += channels {
			if int((*to)[i]) >= t.known {
				return fmt.Errorf("pixel %d is %d, but the codebook has %d entries", i/channels, (*to)[i], t.known)
			}
		}
	}
	return nil
}

// sogMinOpacity is what splat-transform takes opacities of 0 for, and one less for 1: their logits are finite.
const sogMinOpacity = 1e-6

// tables fills in what bytes stand for.
func (s *sogSource) tables(d *sogData) (err error) {
	m := s.meta
	for axis := range 3 {
		d.start[axis] = float64(m.Means.Mins[axis])
		d.perStep[axis] = float64(m.Means.Maxs[axis]) - d.start[axis]
		if d.perStep[axis] == 0 {
			d.perStep[axis] = 1
		}
	}
	if d.scaleTable, err = m.tables(m.Scales, 3); err != nil {
		return fmt.Errorf("scales: %w", err)
	}
	if d.colour, err = m.tables(m.SH0, 4); err != nil {
		return fmt.Errorf("sh0: %w", err)
	}
	if m.Version == 2 {
		for i := range 256 {
			opacity := min(max(float64(i)/255, sogMinOpacity), 1-sogMinOpacity)
			d.colour[3].value[i] = logit(opacity)
		}
		d.colour[3].known = 256
	}
	return nil
}

// loadPalette decodes the palette of spherical harmonics and the number of each splat's entry.
func (s *sogSource) loadPalette(d *sogData) error {
	p := s.meta.SHN
	table, err := rangeTable(p.Min, p.Max)
	if s.meta.Version == 2 {
		table, err = codebookTable(p.Codebook)
	}
	if err != nil {
		return fmt.Errorf("meta.json: shN: %w", err)
	}
	if err := s.decodeImage(&d.labels, p.Files[1], s.meta.Count, 2, nil); err != nil {
		return fmt.Errorf("%s: %w", wording.Printable(p.Files[1]), err)
	}
	var codes []uint8
	coefficients := scene.SHCoefficients(s.info.Degree) - 1
	if err := s.decodeImage(&codes, p.Files[0], p.Count*coefficients, 3, []sogTable{table, table, table}); err != nil {
		return fmt.Errorf("%s: %w", wording.Printable(p.Files[0]), err)
	}
	d.palette = make([]float32, len(codes))
	for i, code := range codes {
		d.palette[i] = table.value[code]
	}
	return nil
}
