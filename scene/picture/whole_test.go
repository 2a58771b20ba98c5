package picture

import (
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
)

// TestWholePicture cuts files of every format at many places, and fills the rest with zeros as file systems do: none is
// whole but the one that was written, of its own size in pixels.
func TestWholePicture(t *testing.T) {
	const width, height = 37, 21
	p := drawnPicture(width, height)
	path := filepath.Join(t.TempDir(), "a")
	for _, o := range []Options{{Format: FormatPNG}, {Format: FormatPNG16, Alpha: true}, {Format: FormatJPEG},
		{Format: FormatEXR, Alpha: true}, {Format: FormatNPY}, {Format: FormatNPY, Alpha: true}} {
		data := writeAndRead(t, p, o)
		whole := func(data []byte) bool {
			t.Helper()
			must.Do(t, os.WriteFile(path, data, 0o666))
			return WholePicture(path, width, height, o)
		}
		if !whole(data) {
			t.Errorf("%+v: a whole file is none", o)
		}
		if o.Format != FormatEXR && WholePicture(path, width+1, height, o) || WholePicture(path, width, height+17, o) {
			t.Errorf("%+v: a file of another size is whole", o)
		}
		for n := 0; n < len(data); n += 1 + len(data)/50 {
			if whole(data[:n]) {
				t.Errorf("%+v: cut to %d of %d bytes it is whole", o, n, len(data))
			}
			holed := append(append([]byte(nil), data[:n]...), make([]byte, len(data)-n)...)
			if o.Format != FormatNPY && o.Format != FormatEXR && whole(holed) {
				t.Errorf("%+v: with zeros from byte %d on it is whole", o, n)
			}
		}
		if whole(append(data, 0)) {
			t.Errorf("%+v: with a byte more it is whole", o)
		}
	}
	if err := WriteDepth(path, p.Depth, width, height); err != nil || !WholeDepth(path, width, height) ||
		WholeDepth(path, height, width) {
		t.Errorf("depth: %v", err)
	}
	if err := os.Truncate(path, 500); err != nil || WholeDepth(path, width, height) ||
		WholeDepth(path+"x", width, height) {
		t.Errorf("depth cut short: %v", err)
	}
}
