package splatfile

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/philox"
	"vksplat/scene"
)

// The images of a SOG, in the order in which they are written.
const (
	sogMeansLow = iota
	sogMeansHigh
	sogScales
	sogQuats
	sogSH0
	sogLabels
	sogCentroids
	sogImages
)

var (
	sogNames = [sogImages]string{"means_l.webp", "means_u.webp", "scales.webp", "quats.webp", "sh0.webp",
		"shN_labels.webp", "shN_centroids.webp"}
	sogChannels = [sogImages]int{3, 3, 3, 4, 4, 2, 3}
)

// sogWriter holds a model as bytes: about 20 a splat.
type sogWriter struct {
	info       Info
	place      []uint32 // which pixel a splat has
	low, high  [3]float64
	scales     []float32 // codebooks
	colours    []float32
	harmonics  []float32
	palette    *palette
	images     [sogImages][]uint8
	scaleCode  *coder
	colourCode *coder
	labels     []uint16 // of a piece
}

// writeSOG writes version 2: into one archive, or, if path is a folder or its name ends in meta.json, into files of
// that folder.
func writeSOG(path string, model Source, o WriteOptions) (lost []string, err error) {
	info := model.Info()
	if info.N > maxSogSplats {
		return nil, refusal("write a part of the model", "%d splats, but images of %d pixels a side hold %d", info.N,
			maxWebPSide, maxSogSplats)
	}
	w := &sogWriter{info: info}
	if err := w.survey(model, o); err != nil {
		return nil, err
	}
	if err := w.quantise(model); err != nil {
		return nil, err
	}
	meta, err := w.meta(o)
	if err != nil {
		return nil, err
	}
	if dir, ok := sogFolder(path); ok {
		err = w.writeFolder(dir, meta)
	} else {
		err = atomicfile.Write(path, func(to io.Writer) error { return w.writeZip(to, meta) })
	}
	return lostComments(info, "SOG"), err
}

// sogFolder gives the folder that files go to, if they do not go into an archive.
func sogFolder(path string) (dir string, ok bool) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path, true
	}
	if strings.EqualFold(filepath.Base(path), sogMetaName) {
		return filepath.Dir(path), true
	}
	return "", false
}

// Outputs lists the files that writing a model to path may replace: path, or of SOG as loose files all of them.
func Outputs(path string) []string {
	dir, loose := sogFolder(path)
	if !loose {
		return []string{path}
	}
	files := []string{filepath.Join(dir, sogMetaName)}
	for _, name := range sogNames {
		files = append(files, filepath.Join(dir, name))
	}
	return files
}

// survey finds the order of the splats, the codebooks and the palette.
func (w *sogWriter) survey(model Source, o WriteOptions) error {
	w.place = make([]uint32, w.info.N)
	if o.inOrder {
		for i := range w.place {
			w.place[i] = uint32(i)
		}
	} else {
		order, err := mortonOrder(model)
		if err != nil {
			return err
		}
		for pixel, id := range order {
			w.place[id] = uint32(pixel)
		}
	}
	means := emptyBox()
	scales, colours := newHistogram(), newHistogram()
	sample := newSample(w.info)
	err := eachWritable(model, func(first int, piece *scene.Splats) error {
		means.add(piece.Means)
		scales.add(piece.LogScales...)
		for i, width := 0, 3*piece.K(); i < len(piece.SH); i += width {
			colours.add(piece.SH[i : i+3]...)
		}
		sample.take(piece, first)
		return nil
	})
	if err != nil {
		return err
	}
	for axis := 0; axis < 3 && w.info.N > 0; axis++ {
		w.low[axis], w.high[axis] = sogLog(float64(means.low[axis])), sogLog(float64(means.high[axis]))
	}
	w.scales, w.colours = scales.codebook(), colours.codebook()
	w.scaleCode, w.colourCode = newCoder(w.scales), newCoder(w.colours)
	if w.info.Degree > 0 && w.info.N > 0 {
		iterations := o.Iterations
		if iterations <= 0 {
			iterations = paletteIterations
		}
		w.palette = trainPalette(sample.rows, sample.width, sogPaletteSize(w.info.N), iterations)
		w.quantisePalette()
	}
	return nil
}

// sogSample is how many splats, at most, the palette is made for; the others choose from it.
const sogSample = 1 << 20

// paletteSample collects the spherical harmonics beyond degree 0 of some splats: of one in each of equal stretches of
// the model.
type paletteSample struct {
	rows       []float32
	width      int
	n, of      int
	taken, due int
}

func newSample(info Info) *paletteSample {
	s := &paletteSample{width: 3 * (scene.SHCoefficients(info.Degree) - 1), n: min(info.N, sogSample), of: info.N}
	if s.width == 0 {
		s.n = 0
	}
	s.rows = make([]float32, 0, s.n*s.width)
	s.next()
	return s
}

// next draws which splat is taken next.
func (s *paletteSample) next() {
	if s.taken == s.n {
		s.due = -1
		return
	}
	lo, hi := int64(s.taken)*int64(s.of)/int64(s.n), int64(s.taken+1)*int64(s.of)/int64(s.n)
	random := philox.Block([4]uint32{uint32(s.taken), 1, streamPalette, 0}, philox.Key(0))
	s.due = int(lo + int64(philox.Uniform(random[0])*float64(hi-lo)))
}

func (s *paletteSample) take(piece *scene.Splats, first int) {
	for s.due >= 0 && s.due < first+piece.N {
		at := (s.due - first) * (s.width + 3)
		s.rows = append(s.rows, piece.SH[at+3:at+3+s.width]...)
		s.taken++
		s.next()
	}
}

// sogPaletteSize is how many entries splat-transform's palettes have: the largest power of 2 up to the number of
// splats, 65,536 at most. Small models get an entry a splat.
func sogPaletteSize(n int) int {
	k := 1
	for 2*k <= min(n, maxPalette) {
		k *= 2
	}
	return max(k, min(n, 1<<10))
}

// quantisePalette finds the palette's codebook, makes its image, and continues with the rounded values in the image.
func (w *sogWriter) quantisePalette() {
	rows := w.palette.rows()
	h := newHistogram()
	h.add(rows...)
	w.harmonics = h.codebook()
	code := newCoder(w.harmonics)
	codes := make([]uint8, len(rows))
	for i, x := range rows {
		codes[i] = code.code(x)
		rows[i] = w.harmonics[codes[i]]
	}
	w.palette.replace(rows)
	w.images[sogCentroids] = codes
}

// quantise fills the images.
func (w *sogWriter) quantise(model Source) error {
	for i := range sogCentroids {
		if i != sogLabels || w.palette != nil {
			w.images[i] = make([]uint8, sogChannels[i]*w.info.N)
		}
	}
	return eachWritable(model, func(first int, piece *scene.Splats) error {
		if w.palette != nil {
			w.labels = append(w.labels[:0], make([]uint16, piece.N)...)
			w.palette.labels(w.labels, piece.SH[3:], 3*piece.K())
		}
		for i := range piece.N {
			w.splat(int(w.place[first+i]), piece, i)
		}
		return nil
	})
}

func (w *sogWriter) splat(pixel int, piece *scene.Splats, i int) {
	sh := piece.SH[3*piece.K()*i:]
	for axis := range 3 {
		v := uint16(0)
		if span := w.high[axis] - w.low[axis]; span > 0 {
			at := (sogLog(float64(piece.Means[3*i+axis])) - w.low[axis]) / span
			v = uint16(math.Round(65535 * min(max(at, 0), 1)))
		}
		w.images[sogMeansLow][3*pixel+axis], w.images[sogMeansHigh][3*pixel+axis] = uint8(v), uint8(v>>8)
		w.images[sogScales][3*pixel+axis] = w.scaleCode.code(piece.LogScales[3*i+axis])
		w.images[sogSH0][4*pixel+axis] = w.colourCode.code(sh[axis])
	}
	w.images[sogSH0][4*pixel+3] = opacityByte(piece.LogitOpacities[i])
	quat := sogPackQuat(doubles(piece.Quats[4*i : 4*i+4]))
	copy(w.images[sogQuats][4*pixel:], quat[:])
	if w.palette != nil {
		w.images[sogLabels][2*pixel], w.images[sogLabels][2*pixel+1] = uint8(w.labels[i]), uint8(w.labels[i]>>8)
	}
}

// sogFile is meta.json as it is written.
type sogFile struct {
	Version   int            `json:"version"`
	Asset     map[string]any `json:"asset,omitempty"`
	Count     int            `json:"count"`
	Antialias bool           `json:"antialias,omitempty"`
	Model     string         `json:"model,omitempty"`
	Means     any            `json:"means"`
	Scales    any            `json:"scales"`
	Quats     any            `json:"quats"`
	SH0       any            `json:"sh0"`
	SHN       any            `json:"shN,omitempty"`
	Extras    *extras        `json:"extras,omitempty"`
}

type sogPart struct {
	Mins     []float64 `json:"mins,omitempty"`
	Maxs     []float64 `json:"maxs,omitempty"`
	Count    int       `json:"count,omitempty"`
	Bands    int       `json:"bands,omitempty"`
	Codebook []float32 `json:"codebook,omitempty"`
	Files    []string  `json:"files"`
}

func (w *sogWriter) meta(o WriteOptions) ([]byte, error) {
	m := sogFile{
		Version: 2, Count: w.info.N,
		Means:  sogPart{Mins: w.low[:], Maxs: w.high[:], Files: sogNames[sogMeansLow : sogMeansHigh+1]},
		Scales: sogPart{Codebook: w.scales, Files: sogNames[sogScales : sogScales+1]},
		Quats:  sogPart{Files: sogNames[sogQuats : sogQuats+1]},
		SH0:    sogPart{Codebook: w.colours, Files: sogNames[sogSH0 : sogSH0+1]},
	}
	if generator := o.Generator; generator != "" {
		m.Asset = map[string]any{"generator": generator}
	}
	if w.info.Meta.Antialiased {
		m.Antialias, m.Model = true, sogAntialiased
	}
	if w.palette != nil {
		m.SHN = sogPart{Count: w.palette.graph.k(), Bands: w.info.Degree, Codebook: w.harmonics,
			Files: []string{sogNames[sogCentroids], sogNames[sogLabels]}}
	}
	m.Extras = extrasOf(w.info.Meta, false)
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("splatfile: write sog: meta.json: %w", err)
	}
	return text, nil
}

// encode compresses an image and lets go of its pixels.
func (w *sogWriter) encode(image int) ([]byte, error) {
	pixels := w.images[image]
	w.images[image] = nil
	width, height := sogSize(w.info.N)
	if image == sogCentroids {
		width = sogRow * (scene.SHCoefficients(w.info.Degree) - 1)
		height = (len(pixels)/3 + width - 1) / width
	}
	m := losslessImage{pixels, sogChannels[image], width, height}
	return m.encode()
}

// sogSize gives the size of the images of n splats: almost square, in multiples of 4 as splat-transform's are.
func sogSize(n int) (width, height int) {
	width = max(4*int(math.Ceil(math.Sqrt(float64(n))/4)), 4)
	return width, max((n+4*width-1)/(4*width), 1) * 4
}

// writeZip writes the archive. Nothing in it is compressed again, and no time is in it: same model, same bytes.
func (w *sogWriter) writeZip(to io.Writer, meta []byte) error {
	archive := zip.NewWriter(to)
	if err := addStored(archive, sogMetaName, meta); err != nil {
		return err
	}
	for i, name := range sogNames {
		if w.images[i] == nil && i >= sogLabels {
			continue
		}
		data, err := w.encode(i)
		if err == nil {
			err = addStored(archive, name, data)
		}
		if err != nil {
			return err
		}
	}
	return archive.Close()
}

// addStored adds a file as it is, without a time.
func addStored(archive *zip.Writer, name string, data []byte) error {
	header := &zip.FileHeader{Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(data),
		CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data))}
	file, err := archive.CreateRaw(header)
	if err == nil {
		_, err = file.Write(data)
	}
	return err
}

// writeFolder writes the files of a folder. An earlier meta.json goes before the first image comes, and the new one
// comes last: none is ever beside images that are not its own.
func (w *sogWriter) writeFolder(dir string, meta []byte) error {
	var files [sogImages][]byte
	for i := range files {
		if w.images[i] == nil && i >= sogLabels {
			continue
		}
		var err error
		if files[i], err = w.encode(i); err != nil {
			return err
		}
	}
	main := filepath.Join(dir, sogMetaName)
	if err := os.Remove(main); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &fault.Error{Op: "replace", Path: main, Err: withoutPath(err),
			Hint: "choose another output folder or change its permissions", Kind: fault.ErrTryAgain}
	}
	for i, data := range files {
		if data == nil {
			continue
		}
		if err := atomicfile.WriteText(filepath.Join(dir, sogNames[i]), data); err != nil {
			return err
		}
	}
	return atomicfile.WriteText(main, meta)
}
