package pipeline

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"vksplat/scene"
)

// TestHostPlanOfMuchRAM plans more photos than a large machine's RAM holds: all cores decode, however large the numbers are.
func TestHostPlanOfMuchRAM(t *testing.T) {
	old := runtime.GOMAXPROCS(8)
	defer runtime.GOMAXPROCS(old)
	const side = 12_000
	// The header of a PNG is all that a plan reads of it.
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), side)
	head = append(binary.BigEndian.AppendUint32(head, side), 8, 2, 0, 0, 0)
	data := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	path := filepath.Join(t.TempDir(), "photo.png")
	if err := os.WriteFile(path, binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(head)), 0o666); err != nil {
		t.Fatal(err)
	}
	cams := make([]scene.Camera, 3000)
	for i := range cams {
		cams[i] = scene.Camera{Path: path, Width: side, Height: side}
	}
	cfg := DefaultConfig()
	for _, budget := range []int64{16 << 30, 128 << 30, 1 << 40} {
		p := &planner{shape: &engine{}, cfg: &cfg, o: &TrainerOptions{Decode: cams}}
		plan := &Plan{}
		if err := p.host(plan, budget); err != nil {
			t.Fatal(err)
		}
		h, cost := plan.Host, cams[0].DecodeBytes()
		if h.CacheAll || h.Decode != int64(h.Workers)*cost || h.Cache+h.Decode > budget || h.Cache < budget/2 {
			t.Errorf("%d bytes of RAM: %d for decoding, where a photo takes %d; cache %d", budget, h.Decode, cost, h.Cache)
		}
	}
}
