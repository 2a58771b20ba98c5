package photo

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// Names of hostile files cost little time and memory, whatever their length and number.
func TestLocatorBounds(t *testing.T) {
	l := NewLocator(t.TempDir())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	long := strings.Repeat("a/", 1<<19)
	for i := range 6 {
		for _, name := range []string{long, long[:2000]} {
			name = fmt.Sprintf("/%d/%sb.jpg", i, name)
			if at := l.Below(name, "rgb") + l.Find(name) + l.Foreign(name); at != "" {
				t.Errorf("%.40q is %s", name, at)
			}
		}
	}
	runtime.GC() // what is held, not what is left over
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 16<<20 {
		t.Errorf("the names of folders hold %d MB", held>>20)
	}
	if n := len(l.dirs); n > mostDirs {
		t.Errorf("%d folders are remembered", n)
	}
}

func TestEndsBounds(t *testing.T) {
	x := must.Get(IndexDir(t.TempDir()))(t)
	cams := []scene.Camera{{Name: strings.Repeat("/a", 1<<20)}, {Name: strings.Repeat("/a", 2000)}}
	start := time.Now()
	if x.FindByEnds(cams); time.Since(start) > 5*time.Second {
		t.Errorf("two names took %v", time.Since(start))
	}
}
