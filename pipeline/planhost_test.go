package pipeline

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// TestHostPlanOfMuchRAM plans more photos than a large machine's RAM holds: all cores decode, however large the numbers
// are.
func TestHostPlanOfMuchRAM(t *testing.T) {
	old := runtime.GOMAXPROCS(8)
	defer runtime.GOMAXPROCS(old)
	const side = 12_000
	// The header of a PNG is all that a plan reads of it.
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), side)
	head = append(binary.BigEndian.AppendUint32(head, side), 8, 2, 0, 0, 0)
	data := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	path := filepath.Join(t.TempDir(), "photo.png")
	must.Do(t, os.WriteFile(path, binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(head)), 0o666))
	cams := make([]scene.Camera, 3000)
	for i := range cams {
		cams[i] = scene.Camera{Path: path, Width: side, Height: side}
	}
	cfg := recipe.Default()
	for _, budget := range []int64{16 << 30, 128 << 30, 1 << 40} {
		p := &planner{shape: &setup{}, cfg: &cfg, o: &TrainerOptions{Decode: cams}}
		plan := &Plan{}
		must.Do(t, p.host(plan, budget))
		h, cost := plan.Host, photo.DecodeBytes(cams[0])
		if h.CacheAll || h.Decode != int64(h.Workers)*cost || h.Cache+h.Decode > budget || h.Cache < budget/2 {
			t.Errorf("%d bytes of RAM: %d for decoding, where a photo takes %d; cache %d", budget, h.Decode, cost,
				h.Cache)
		}
	}
}

// TestLittleRAM words a pool as it was given.
func TestLittleRAM(t *testing.T) {
	for given, want := range map[string]string{"1": ": 1 B for everything", "1K": ": 1.0 KiB for everything",
		"1M": ": 1.0 MiB for everything", "128M": ": 128 MiB for everything"} {
		device, host, err := memoryBudgets(DeviceOptions{MaxRAM: given}, 10<<30, true, hostMemory{Available: 8 << 30})
		p := &planner{budget: device, unified: true, driver: 80 << 20}
		short := p.shortOfPool(host, ErrTooSmall)
		if err != nil || !errors.Is(short, ErrLittleRAM) || !strings.Contains(short.Error(), want) {
			t.Errorf("of %s: %v, %v", given, short, err)
		}
	}
}

// TestMeasuringKeepsToThePlan lends the memory of photos to an evaluation, from the least that a plan accepts to ample:
// what is in memory at once fits there, and more of it is in memory where more fits.
func TestMeasuringKeepsToThePlan(t *testing.T) {
	old := runtime.GOMAXPROCS(8)
	defer runtime.GOMAXPROCS(old)
	d := testDevice(t)
	cams, _, init, _, cfg := peakScene(t)
	for i := range cams {
		cams[i].Width, cams[i].Height = 1600, 1200
	}
	total, largest := photos.Totals(cams)
	last := 0
	for _, budget := range []int64{1, 2, 3, 5, 9, 40} {
		p := &planner{shape: &setup{dev: d.dev}, cfg: &cfg, o: &TrainerOptions{Pictures: cams, Decode: cams},
			splats: init.N}
		p.shape.drawn.maxPixels = 1600 * 1200
		plan := &Plan{}
		need := p.hostNeeds(plan).least
		must.Do(t, p.host(plan, need+(budget-1)*largest))
		h := &plan.Host
		o, atOnce := h.Measuring(cams)
		if took := int64(atOnce)*h.Picture + o.Bytes + o.FlightBytes; took > h.Cache+h.Decode || atOnce < last ||
			o.Bytes < min(total, int64(atOnce+1)*largest) {
			t.Errorf("%d pictures at once after %d, %d bytes for photos and %d for decoding: %d of %d", atOnce, last,
				o.Bytes, o.FlightBytes, took, h.Cache+h.Decode)
		}
		last = atOnce
	}
	if last < 3 {
		t.Errorf("%d pictures at once in ample memory", last)
	}
}
