//go:build unix

package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/internal/run/reconstruct"
	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene/colmap"
	"vksplat/scene/mapping"
)

// TestMasksGo removes the masks of an earlier call that the next one no longer has, but none of the user's.
func TestMasksGo(t *testing.T) {
	o := drawn(t, 6)
	o.Masks = t.TempDir()
	for i := range 6 {
		shade := uint8(255)
		if i == 3 {
			shade = 0
		}
		writePicture(t, filepath.Join(o.Masks, fmt.Sprintf("%03d.png", i)), 200, 150, func(x, _ int) uint8 {
			return shade
		})
	}
	said := must.Get(run(t.Context(), o))(t)
	dropped := "dropped:  003.png: its mask leaves nothing"
	if !strings.Contains(said, dropped) {
		t.Error(said)
	}
	if v := ReadReport(o.Out); v == nil || !strings.Contains(v.Missing(), dropped) {
		t.Errorf("the report: %+v", v)
	}
	if ReadReport(o.Masks) != nil {
		t.Error("a report where there is none")
	}
	mask := o.in(masksFolder, "001.png.png")
	mine := must.Get(os.ReadFile(mask))(t)
	plain := *o
	plain.Masks = ""
	must.Do(t, os.WriteFile(mask, []byte("mine"), 0o666))
	if _, err := run(t.Context(), &plain); !errors.Is(err, fault.ErrUsage) || !output.IsFile(mask) {
		t.Errorf("a mask was changed: %v", err)
	}
	must.Do(t, os.WriteFile(mask, mine, 0o666))
	if said := must.Get(run(t.Context(), &plain))(t); output.IsFolder(o.in(masksFolder)) ||
		!strings.Contains(said, "cameras:  6 of 6 photos") {
		t.Errorf("masks stay: %s", said)
	}
	must.Do(t, os.MkdirAll(o.in(masksFolder), 0o777))
	if must.Get(run(t.Context(), &plain))(t); !output.IsFolder(o.in(masksFolder)) {
		t.Error("masks of the user's go")
	}
}

// TestLeftovers removes what a kill left of files that were being written.
func TestLeftovers(t *testing.T) {
	o := drawn(t, 6)
	must.Get(run(t.Context(), o))(t)
	left := []string{o.in(".features.bin.tmp1"), o.in(".matches.bin.tmp22"), o.in(modelFolder, ".images.bin.tmp3"),
		o.in(imagesFolder, ".001.png.tmp4")}
	kept := []string{o.in(".mine.bin.tmp1"), o.in(imagesFolder, ".mine.txt.tmp1"), o.in(modelFolder, ".mine.bin.tmp1")}
	for _, path := range slices.Concat(left, kept) {
		must.Do(t, os.WriteFile(path, nil, 0o666))
	}
	must.Get(run(t.Context(), o))(t)
	if there := slices.DeleteFunc(left, func(path string) bool { return !output.IsFile(path) }); len(there) > 0 {
		t.Errorf("%v stay", there)
	}
	if gone := slices.DeleteFunc(kept, output.IsFile); len(gone) > 0 {
		t.Errorf("%v are removed", gone)
	}
}

// TestMoreOfChanged begins again with a model that was put into the scene after a stop, and with one that was repaired;
// the scene's own command counts the photos that were added.
func TestMoreOfChanged(t *testing.T) {
	o := drawn(t, walked)
	dirs := parts(t, o, []int{3}, []int{8})
	must.Get(run(t.Context(), o))(t)
	more := *o
	more.Inputs, more.More = dirs[:1], true
	file := o.in(modelFolder, "images.bin")
	good := must.Get(os.ReadFile(file))(t)
	must.Do(t, os.WriteFile(file, good[:len(good)/2], 0o666))
	if _, err := run(t.Context(), &more); fault.ExitCode(err) != fault.ExitData {
		t.Errorf("a damaged model: %v", err)
	}
	must.Do(t, os.WriteFile(file, good, 0o666))
	must.Get(run(t.Context(), &more))(t)
	if said := must.Get(run(t.Context(), o))(t); !strings.Contains(said, "cameras:  11 of 11 photos") ||
		reportOf(t, o).Registered != 11 {
		t.Errorf("the scene's own command says %s", said)
	}
	more.Inputs = dirs[1:]
	must.Get(run(t.Context(), &more))(t)
	stopAt(t, &more, "+"+stageMatches)
	model := modelIn(t, o)
	model.Images = slices.DeleteFunc(model.Images, func(img colmap.Image) bool { return img.Name == "008.png" })
	for i := range model.Points {
		model.Points[i].Pos[0] += 0.001
	}
	must.Do(t, colmap.Save(o.in(modelFolder), model.Files()))
	must.Get(run(t.Context(), &more))(t)
	wantKept(t, "a model of the user's", model, modelIn(t, o), 1)
}

// TestOwnErrors says what a device or a limit lacks, with the exit code that docs/output.md has for it.
func TestOwnErrors(t *testing.T) {
	for name, c := range map[string]struct {
		device     pipeline.DeviceOptions
		text, hint string
	}{
		"device": {pipeline.DeviceOptions{Select: "99"}, "select device 99", "vksplat devices"},
		"vram":   {pipeline.DeviceOptions{MaxVRAM: "1"}, "find features: device memory", "max-vram"},
		"ram":    {pipeline.DeviceOptions{MaxRAM: "1"}, "beside the program", "max-ram"},
	} {
		o := drawn(t, 4)
		o.Device = c.device
		_, err := run(t.Context(), o)
		if fault.ExitCode(err) != fault.ExitUsage || !strings.Contains(err.Error(), c.text) ||
			!strings.Contains(fault.Hint(err), c.hint) ||
			strings.Contains(err.Error(), featuresFile) {
			t.Errorf("%s: %v; %s", name, err, fault.Hint(err))
		}
	}
}

// TestLargePhoto refuses a photo that does not fit the RAM that may be used.
func TestLargePhoto(t *testing.T) {
	o := drawn(t, 3)
	o.Device.MaxRAM = "200M"
	for i := range 3 {
		must.Do(t, writePhoto(filepath.Join(o.Inputs[0], fmt.Sprintf("%03d.png", i)), 6000, 5000, 0))
	}
	_, err := run(t.Context(), o)
	if !errors.Is(err, pipeline.ErrLittleRAM) || !strings.Contains(err.Error(), "the largest photo") ||
		fault.ExitCode(err) != fault.ExitUsage || !strings.Contains(fault.Hint(err), "smaller photos") {
		t.Errorf("%v; %s", err, fault.Hint(err))
	}
}

// TestStoreErrors tells errors of what is stored from those of the disk.
func TestStoreErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	err := store(path, func(func([]byte) error) error { return io.ErrNoProgress })
	if err != io.ErrNoProgress || output.IsFile(path) {
		t.Errorf("an error of the photos: %v", err)
	}
	if err := store(filepath.Join(path, "no"), func(func([]byte) error) error { return nil }); err == nil {
		t.Error("what cannot be written is")
	}
}

// TestWhy counts the photos that hang together without a camera.
func TestWhy(t *testing.T) {
	w := &own{mapper: &mapper{base: &base{console: cli.New(nil, io.Discard, io.Discard)}}}
	w.photos = []reconstruct.Photo{{Name: "a"}, {Name: "b"}}
	w.found = []reconstruct.Features{{}, {}}
	w.found[0].Points = make([]features.Keypoint, fewFeatures)
	for want, m := range map[string]mapping.Missing{
		"only with 1 photo that has no camera":   {Best: -1, Part: 2},
		"only with 2 photos that have no camera": {Best: -1, Part: 3},
		"at best 2 matches, with b":              {Best: 1, Matches: 2},
		"it overlaps with no other photo":        {Best: -1, Part: 1},
	} {
		if got := w.why(&m); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTwoPhotos refuses a group that is too small to train on.
func TestTwoPhotos(t *testing.T) {
	o := drawn(t, walked)
	parts(t, o, []int{0, 1, 2, 5, 6, 7, 8, 9, 10, 11}) // which leaves two neighbours
	for i := range 2 {
		writePicture(t, filepath.Join(o.Inputs[0], fmt.Sprintf("x%d.png", i)), 200, 150,
			func(x, y int) uint8 { return scatter(i, x, y) })
	}
	_, err := run(t.Context(), o)
	if !errors.Is(err, errNoModel) || output.IsFolder(o.in(modelFolder)) || !output.IsFolder(o.in(componentsFolder, "0")) {
		t.Errorf("two photos with a camera: %v", err)
	}
}
