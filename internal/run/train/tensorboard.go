package train

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// TensorBoard reads a folder of event files. Each is a list of TFRecords, and each
// record one message tensorflow.Event. The numbers below are the fields of
// tensorflow's event.proto and summary.proto.
const (
	eventWallTime    = 1 // Event
	eventStepNumber  = 2
	eventFileVersion = 3
	eventSummary     = 5
	eventSessionLog  = 7
	summaryValue     = 1 // Summary
	valueTag         = 1 // Summary.Value
	valueSimple      = 2
	valueImage       = 4
	imageHeight      = 1 // Summary.Image
	imageWidth       = 2
	imageColorspace  = 3
	imageEncoded     = 4
	sessionStatus    = 1 // SessionLog
	sessionStart     = 1 // its status when a run begins
)

// Bounds on the pictures of one evaluation.
const (
	tensorboardViews = 16
	tensorboardSide  = 640 // pixels of each of photo, render and error
)

// board writes curves and held-out pictures for TensorBoard.
type board struct {
	unsure
	dir   string
	at    func(path string) string
	file  *eventFile
	begun bool
	mu    sync.Mutex
	sheet map[int]*boardPicture // by number of the held-out photo, until all are measured
}

func newBoard(o *Options, console *cli.Console) (Observer, error) {
	if !o.Tensorboard {
		return nil, nil
	}
	return &board{unsure: unsure{console: console}, dir: filepath.Join(o.Out, output.TensorboardFolder)}, nil
}

// Observe writes what happened.
func (b *board) Observe(e Event) (err error) {
	switch e := e.(type) {
	case *Started:
		b.at = e.At
		if b.file, err = openEvents(b.at(b.dir), e.Line.Step); err != nil {
			return output.FolderError(e.Options.Out, err)
		}
	case *Begun:
		b.begun = true
	case *Replacing:
		b.check(moved(&b.file.f, filepath.Join(b.at(b.dir), filepath.Base(b.file.f.Name())), e))
	case *Logged:
		b.check(b.file.step(e.StepLine))
	case *Compared:
		return b.picture(e)
	case *Measured:
		b.measured(e)
	}
	return nil
}

// picture keeps one of the first pictures.
func (b *board) picture(e *Compared) error {
	if e.Index >= tensorboardViews {
		return nil
	}
	p, err := newBoardPicture(e.View.Name, e.Photo, e.Render)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sheet == nil {
		b.sheet = map[int]*boardPicture{}
	}
	b.sheet[e.Index] = p
	return err
}

// measured writes the pictures that were kept, and the scores.
func (b *board) measured(e *Measured) {
	for _, i := range slices.Sorted(maps.Keys(b.sheet)) {
		b.check(b.file.sheet(e.Step, b.sheet[i]))
	}
	b.sheet = nil
	b.check(b.file.eval(e.EvalLine))
}

// Close closes the file. Of a run that never began none is left.
func (b *board) Close() error {
	if b.file == nil {
		return nil
	}
	err := b.file.close()
	if !b.begun {
		err = errors.Join(err, os.Remove(b.file.f.Name()))
		_ = os.Remove(filepath.Dir(b.file.f.Name())) // refused unless empty
	}
	return err
}

// eventFile writes events for TensorBoard.
type eventFile struct{ f *os.File }

// scalar is a point of a curve.
type scalar struct {
	tag   string
	value float64
}

// openEvents begins an event file in dir for a run that continues after step. It
// tells TensorBoard to forget what older files say beyond it.
func openEvents(dir string, step int) (*eventFile, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil || strings.ContainsAny(host, `/\:`) {
		host = "host"
	}
	// Readers sort files by name: the time comes first, in digits of equal number.
	now := time.Now()
	name := fmt.Sprintf(output.TensorboardPrefix+"%010d.%s.%09d%s", now.Unix(), host, now.Nanosecond(),
		output.TensorboardSuffix)
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	e := &eventFile{f}
	if err := e.write(appendText(nil, eventFileVersion, "brain.Event:2"), 0); err != nil {
		return nil, err
	}
	start := protowire.AppendVarint(protowire.AppendTag(nil, sessionStatus, protowire.VarintType), sessionStart)
	return e, e.write(appendBytes(nil, eventSessionLog, start), step+1)
}

// write appends the event with the given fields, the time and the step in one write.
func (e *eventFile) write(fields []byte, step int) error {
	var m []byte
	m = protowire.AppendFixed64(protowire.AppendTag(m, eventWallTime, protowire.Fixed64Type),
		math.Float64bits(float64(time.Now().UnixMicro())/1e6))
	m = protowire.AppendVarint(protowire.AppendTag(m, eventStepNumber, protowire.VarintType), uint64(step))
	_, err := e.f.Write(appendRecord(nil, append(m, fields...)))
	return err
}

// scalars writes points of curves.
func (e *eventFile) scalars(step int, points ...scalar) error {
	var s []byte
	for _, p := range points {
		if math.IsNaN(p.value) {
			continue
		}
		v := appendText(nil, valueTag, p.tag)
		v = protowire.AppendFixed32(protowire.AppendTag(v, valueSimple, protowire.Fixed32Type),
			math.Float32bits(float32(p.value)))
		s = appendBytes(s, summaryValue, v)
	}
	return e.write(appendBytes(nil, eventSummary, s), step)
}

// picture writes a picture, given as PNG.
func (e *eventFile) picture(step int, tag string, png []byte, width, height int) error {
	var img []byte
	for _, field := range []struct{ number, value int }{{imageHeight, height}, {imageWidth, width},
		{imageColorspace, 3}} {
		img = protowire.AppendVarint(protowire.AppendTag(img, protowire.Number(field.number), protowire.VarintType),
			uint64(field.value))
	}
	img = appendBytes(img, imageEncoded, png)
	v := appendBytes(appendText(nil, valueTag, tag), valueImage, img)
	return e.write(appendBytes(nil, eventSummary, appendBytes(nil, summaryValue, v)), step)
}

// boardPicture is a photo, its render and four times their difference side by side, as PNG.
type boardPicture struct {
	name          string
	png           []byte
	width, height int
}

func newBoardPicture(name string, shot scene.Image, render []float32) (*boardPicture, error) {
	made := photo.FromFloats(render, shot.Width, shot.Height)
	sheet := photo.Sheet(photo.Fit(shot, tensorboardSide), photo.Fit(made, tensorboardSide))
	png, err := photo.PNG(sheet)
	return &boardPicture{name, png, sheet.Width, sheet.Height}, err
}

// sheet writes a picture of a held-out photo.
func (e *eventFile) sheet(step int, p *boardPicture) error {
	return e.picture(step, "held-out/"+filepath.ToSlash(p.name), p.png, p.width, p.height)
}

// step writes what a line of metrics.jsonl says.
func (e *eventFile) step(l *meter.StepLine) error {
	return e.scalars(l.Step, scalar{"train/loss", float64(l.Loss)}, scalar{"train/l1", float64(l.L1)},
		scalar{"train/ssim", float64(l.SSIM)},
		scalar{"train/psnr", float64(l.PSNR)}, scalar{"model/splats", float64(l.Splats)},
		scalar{"view/visible", float64(l.Visible)},
		scalar{"view/isects", float64(l.Isects)}, scalar{"speed/steps_per_s", float64(l.Rate)},
		scalar{"memory/device_bytes", float64(l.DeviceBytes)}, scalar{"memory/peak_rss_bytes", float64(l.RSSBytes)})
}

// eval writes what a measurement says.
func (e *eventFile) eval(l *EvalLine) error {
	return e.scalars(l.Step, scalar{"held-out/psnr", float64(l.PSNR)}, scalar{"held-out/ssim", float64(l.SSIM)},
		scalar{"held-out/psnr_median", float64(l.PSNRMedian)}, scalar{"held-out/ssim_median", float64(l.SSIMMedian)})
}

func (e *eventFile) close() error { return e.f.Close() }

func appendText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// appendRecord appends data as a TFRecord: its length, the length's checksum, the
// data, its checksum, little endian.
func appendRecord(b, data []byte) []byte {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(data)))
	b = append(b, length[:]...)
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(length[:]))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the checksum of TFRecords: CRC-32C, rotated and moved, so that the
// checksum of data with checksums in it stays a good one.
func maskedCRC(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
