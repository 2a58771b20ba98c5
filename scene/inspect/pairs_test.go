package inspect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene/photo"
)

func TestFindPairs(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, w, h int) {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, photo.WritePNG(path, make([]float32, 3*w*h), w, h))
	}
	write("renders/a/1.png", 12, 11)
	write("renders/2.PNG", 8, 9)
	write("gt/a/1.png", 12, 11)
	write("gt/2.png", 8, 9)
	write("gt/3.png", 8, 9)
	write("masks/2.png", 8, 9)
	renders, gt := filepath.Join(dir, "renders"), filepath.Join(dir, "gt")
	p, err := FindPairs(renders, gt, filepath.Join(dir, "masks"), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Renders) != 2 || p.Renders[0].Name != "2.PNG" || p.Photos[0].Path != filepath.Join(gt, "2.png") ||
		p.Photos[1].Width != 12 || p.Photos[1].Height != 11 {
		t.Errorf("pairs %+v", p)
	}
	if len(p.Unpaired) != 1 || p.Unpaired[0] != "3.png" || p.Photos[0].Mask == "" || p.Photos[1].Mask != "" {
		t.Errorf("unpaired %v, masks %q and %q", p.Unpaired, p.Photos[0].Mask, p.Photos[1].Mask)
	}
	if text := p.Warnings[0].String(); len(p.Warnings) != 1 || !strings.Contains(text, "1 of 2 photos have masks in") ||
		!strings.HasSuffix(text, "the others count whole: a/1.png") {
		t.Errorf("a photo without a mask: %v", p.Warnings)
	}
	write("masks/a/1.png", 120, 110)
	if p, err = FindPairs(renders, gt, filepath.Join(dir, "masks"), false); err != nil || len(p.Warnings) != 1 ||
		!strings.Contains(p.Warnings[0].String(),
			"1 of 2 masks have another size than their photos and are scaled to it: a/1.png") {
		t.Errorf("a mask of another size: %+v, %v", p, err)
	}
	write("masks/a/1.png", 120, 160)
	if _, err = FindPairs(renders, gt, filepath.Join(dir, "masks"), false); !errors.Is(err, fault.ErrData) ||
		fault.Hint(err) == "" || !strings.Contains(err.Error(), "1 of 2 masks have another shape than their photos") {
		t.Errorf("a mask of another shape: %v", err)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "masks", "a", "1.png"), []byte("\x89PNG\r\n\x1a\nxx"),
		0o666))
	if _, err = FindPairs(renders, gt, filepath.Join(dir, "masks"), false); !errors.Is(err, fault.ErrData) ||
		!strings.Contains(err.Error(), "decode mask") {
		t.Errorf("a broken mask: %v", err)
	}
	refused := func(want, renders, gt string) {
		t.Helper()
		if _, err := FindPairs(renders, gt, "", false); !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused("no such folder", filepath.Join(dir, "nowhere"), gt)
	refused("no such folder", renders, filepath.Join(dir, "nowhere"))
	refused("1 of 3 pictures", gt, renders)
	write("renders/3.png", 9, 8)
	refused("it has 9 x 8 pixels", renders, gt)
	must.Do(t, os.WriteFile(filepath.Join(renders, "3.png"), []byte("\x89PNG\r\n\x1a\nxx"), 0o666))
	refused("3.png", renders, gt)
	must.Do(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o777))
	refused("no picture", filepath.Join(dir, "empty"), gt)
}
