package mapping

import (
	"encoding/gob"
	"os"
	"runtime"
	"testing"
)

func TestZZ(t *testing.T) {
	f, _ := os.Open("/tmp/mg/bonsai_146.gob")
	var in Input
	gob.NewDecoder(f).Decode(&in)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base := m.HeapAlloc
	peak := uint64(0)
	_, err := Map(t.Context(), &in, Options{Progress: func(int, int) { runtime.GC(); runtime.ReadMemStats(&m); peak = max(peak, m.HeapAlloc) }})
	n := 0
	for _, p := range in.Photos { n += len(p.Keypoints) }
	runtime.ReadMemStats(&m)
	t.Log(err, len(in.Photos), n, "input MiB", base>>20, "live peak MiB", peak>>20, "sys", m.HeapSys>>20)
}
