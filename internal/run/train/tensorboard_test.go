package train

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/scene/photo"
)

// message is a decoded protobuf message: the values of each field, in order.
type message map[protowire.Number][]any

// decode reads a message's own fields; those of messages within stay bytes.
func decode(t *testing.T, data []byte) message {
	t.Helper()
	m := message{}
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		data = data[n:]
		var v any
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			v, n = protowire.ConsumeFixed32(data)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(data)
		default:
			t.Fatalf("field %d of kind %d", field, kind)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		m[field] = append(m[field], v)
		data = data[n:]
	}
	return m
}

// inner decodes the only message of a field.
func (m message) inner(t *testing.T, field protowire.Number) message {
	t.Helper()
	if len(m[field]) != 1 {
		t.Fatalf("field %d is there %d times", field, len(m[field]))
	}
	return decode(t, m[field][0].([]byte))
}

// readRecords undoes TFRecord framing and checks its sums, computed bit by bit.
func readRecords(t *testing.T, data []byte) (records [][]byte) {
	t.Helper()
	check := func(b []byte, want uint32) {
		t.Helper()
		crc := ^uint32(0)
		for _, x := range b {
			crc ^= uint32(x)
			for range 8 {
				crc = crc>>1 ^ 0x82f63b78&-(crc&1)
			}
		}
		if crc = ^crc; (crc>>15|crc<<17)+0xa282ead8 != want {
			t.Fatalf("checksum %08x of %d bytes", want, len(b))
		}
	}
	for len(data) > 0 {
		n := binary.LittleEndian.Uint64(data)
		check(data[:8], binary.LittleEndian.Uint32(data[8:]))
		check(data[12:12+n], binary.LittleEndian.Uint32(data[12+n:]))
		records = append(records, data[12:12+n])
		data = data[16+n:]
	}
	return records
}

// writeEvents makes an event file as a run does and returns its folder.
func writeEvents(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tensor board")
	e := must.Get(openEvents(dir, 0))(t)
	photo := photo.FromFloats(bytes2floats(bytes.Repeat([]byte{255, 0, 0}, 6)), 3, 2)
	must.Do(t, e.step(&meter.StepLine{Step: 100, Loss: 0.25, Splats: 300, Rate: meter.Rounded(math.NaN())}))
	must.Do(t, e.eval(&EvalLine{Step: 100, PSNR: 21.5}))
	picture := must.Get(newBoardPicture("sub/view.png", photo, make([]float32, 18)))(t)
	must.Do(t, e.sheet(100, picture))
	must.Do(t, e.close())
	return dir
}

func bytes2floats(b []byte) []float32 {
	f := make([]float32, len(b))
	for i, x := range b {
		f[i] = float32(x) / 255
	}
	return f
}

func TestTensorBoardEvents(t *testing.T) {
	dir := writeEvents(t)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || !strings.HasPrefix(files[0].Name(), "events.out.tfevents.") {
		t.Fatalf("files %v, %v", files, err)
	}
	data := must.Get(os.ReadFile(filepath.Join(dir, files[0].Name())))(t)
	records := readRecords(t, data)
	if len(records) != 5 {
		t.Fatalf("%d events, want version, start, step, eval, picture", len(records))
	}
	first := decode(t, records[0])
	if got := string(first[eventFileVersion][0].([]byte)); got != "brain.Event:2" {
		t.Errorf("version %q", got)
	}
	if wall := math.Float64frombits(first[eventWallTime][0].(uint64)); wall < 1.6e9 || wall > 1e10 {
		t.Errorf("time %g", wall)
	}
	start := decode(t, records[1])
	if s := start.inner(t, eventSessionLog); s[sessionStatus][0].(uint64) != sessionStart ||
		start[eventStepNumber][0].(uint64) != 1 {
		t.Errorf("session %v of step %v", s, start[eventStepNumber])
	}
	curves := map[string]float32{}
	for _, r := range records[2:4] {
		event := decode(t, r)
		if event[eventStepNumber][0].(uint64) != 100 {
			t.Errorf("step %v", event[eventStepNumber])
		}
		for _, v := range event.inner(t, eventSummary)[summaryValue] {
			value := decode(t, v.([]byte))
			curves[string(value[valueTag][0].([]byte))] = math.Float32frombits(value[valueSimple][0].(uint32))
		}
	}
	if curves["train/loss"] != 0.25 || curves["model/splats"] != 300 || curves["held-out/psnr"] != 21.5 {
		t.Errorf("curves %v", curves)
	}
	if _, found := curves["speed/steps_per_s"]; found {
		t.Error("a point that is not a number was written")
	}
	value := decode(t, records[4]).inner(t, eventSummary).inner(t, summaryValue)
	pic := value.inner(t, valueImage)
	img, err := png.Decode(bytes.NewReader(pic[imageEncoded][0].([]byte)))
	if err != nil || string(value[valueTag][0].([]byte)) != "held-out/sub/view.png" {
		t.Fatalf("picture %s, %v", value[valueTag][0], err)
	}
	if size := img.Bounds(); uint64(size.Dx()) != pic[imageWidth][0].(uint64) ||
		uint64(size.Dy()) != pic[imageHeight][0].(uint64) || size.Dy() != 2 {
		t.Errorf("a picture of %v that claims %v", size, pic[imageWidth])
	}
	if r, _, b, _ := img.At(0, 0).RGBA(); r != 0xffff || b != 0 {
		t.Error("the photo is not on the left")
	}
}

// TestTensorBoardGoesOn wants a resumed run to keep older files, and to tell
// readers which steps to forget.
func TestTensorBoardGoesOn(t *testing.T) {
	dir := writeEvents(t)
	e, err := openEvents(dir, 50)
	if err != nil {
		t.Fatal(err)
	}
	name := e.f.Name()
	must.Do(t, e.close())
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 || filepath.Join(dir, files[1].Name()) != name {
		t.Fatalf("files %v, %v; the new one must come last", files, err)
	}
	data := must.Get(os.ReadFile(name))(t)
	if start := decode(t, readRecords(t, data)[1]); start[eventStepNumber][0].(uint64) != 51 {
		t.Errorf("steps are forgotten from %v on, want 51", start[eventStepNumber])
	}
}

// TestMaskedCRC pins the checksum of RFC 3720's example: 32 zero bytes.
func TestMaskedCRC(t *testing.T) {
	if c := crc32.Checksum(make([]byte, 32), castagnoli); c != 0x8a9136aa {
		t.Errorf("CRC-32C %08x", c)
	}
	plain := uint32(0x8a9136aa)
	if got := maskedCRC(make([]byte, 32)); got != (plain>>15|plain<<17)+0xa282ead8 {
		t.Errorf("masked %08x", got)
	}
}

// TestTensorBoardReads lets TensorBoard's own reader, where there is one, read the events.
func TestTensorBoardReads(t *testing.T) {
	filetest.NeedPython(t, "tensorboard")
	const script = `
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1]); a.Reload()
loss = a.Scalars('train/loss'); pic = a.Images('held-out/sub/view.png')
print(len(loss), loss[0].step, loss[0].value, a.Scalars('held-out/psnr')[0].value, pic[0].step, pic[0].width, pic[0].height)`
	out, err := exec.Command("python3", "-c", script, writeEvents(t)).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || !strings.HasSuffix(got, "1 100 0.25 21.5 100 17 2") {
		t.Errorf("TensorBoard read %q, %v", got, err)
	}
}
