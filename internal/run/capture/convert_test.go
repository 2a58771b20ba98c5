//go:build unix

package capture

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene/photo"
)

// TestConversion has a HEIC photo converted once.
func TestConversion(t *testing.T) {
	install(t, "3.8", "colmap", "heif-convert")
	dir := photosIn(t, 3)
	must.Do(t, os.WriteFile(filepath.Join(dir, "x.HEIC"), []byte(headOf["heic"]), 0o666))
	o := optionsOf(t, dir)
	for i := range 2 {
		must.Get(run(t.Context(), o))(t)
		wantFiles(t, o.Out, "images/x.HEIC.jpg")
		if n := strings.Count(strings.Join(commands(calls(t)), " "), "heif-convert"); n != 1-i {
			t.Errorf("run %d converts %d photos", i, n)
		}
	}
}

// TestSeveralPictures takes the first picture of a file with several, says so, and leaves no other behind.
func TestSeveralPictures(t *testing.T) {
	install(t, "3.8", "colmap", "convert")
	dir := photosIn(t, 3)
	for name, text := range map[string]string{"-one.tif": headOf["tiff"], "a[1]*%d.TIFF": headOf["tiff"] + "several",
		"raw.dng": headOf["tiff"], "raw.raf": headOf["raf"]} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	o := optionsOf(t, dir)
	said := must.Get(run(t.Context(), o))(t)
	for _, name := range []string{"-one.tif.png", "a[1]*%d.TIFF.png", "raw.dng.png", "raw.raf.png"} {
		if w, _, err := photo.Size(o.in(imagesFolder, name)); err != nil || w != 64 {
			t.Errorf("%s: %d pixels, %v", name, w, err)
		}
	}
	if !strings.Contains(said, "1 file with several pictures, as "+filepath.Join(dir, "a[1]*%d.TIFF")) {
		t.Errorf("it says\n%s", said)
	}
	if files := filesBelow([]string{o.in(imagesFolder)}); len(files) != 7 {
		t.Errorf("there are %q", files)
	}
	for _, line := range calls(t) {
		if words := strings.Fields(line); words[0] == "convert" && (len(words) != 3 || !slices.Contains([]string{
			"tiff:photo.tif[0-1]", "tiff:photo.tiff[0-1]", "dng:photo.dng", "dng:photo.raf"}, words[1])) {
			t.Errorf("it ran %s", line)
		}
	}
}

// TestDashes has no program take a path for a flag.
func TestDashes(t *testing.T) {
	install(t, "3.8", "colmap")
	dir := photosIn(t, 4)
	top := filepath.Dir(dir)
	t.Chdir(top)
	must.Do(t, errors.Join(os.Rename(dir, "-photos"), os.Mkdir("-masks", 0o777),
		writePhoto("-masks/p00.png", 64, 48, 0)))
	o := optionsOf(t, "-photos")
	o.Out, o.Masks = "-x", "-masks"
	if said, err := run(t.Context(), o); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	wantFiles(t, filepath.Join(top, "-x"), "images/p00.jpg", "masks/p00.jpg.png", "sparse/0/images.bin")
	for _, line := range calls(t) {
		for i, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") {
				t.Errorf("word %d is a flag: %s", i, line)
			}
		}
	}
}

// TestRealMagick converts files of one and of two pictures with the ImageMagick that is installed.
func TestRealMagick(t *testing.T) {
	program, err := exec.LookPath("convert")
	if err != nil {
		t.Skip("there is no ImageMagick here: apt-get install imagemagick")
	}
	dir := photosIn(t, 3)
	for name, colours := range map[string][]string{"one.tif": {"red"}, "two 50%d.tif": {"red", "blue"},
		"two.gif": {"red", "blue"}, "-x.bmp": {"red"}, "@list[0-1].tif": {"red"}, "gif:x.tif": {"red"}} {
		args := []string{"-size", "40x30"}
		for _, c := range colours {
			args = append(args, "xc:"+c)
		}
		temp := filepath.Join(t.TempDir(), "made"+filepath.Ext(name))
		if out, err := exec.Command(program, append(args, temp)...).CombinedOutput(); err != nil {
			t.Skipf("it makes no such file: %v: %s", err, out)
		}
		must.Do(t, os.Rename(temp, filepath.Join(dir, name)))
	}
	install(t, "3.8", "colmap")
	must.Do(t, os.Symlink(program, filepath.Join(os.Getenv("PATH"), "convert")))
	o := optionsOf(t, dir)
	said, err := run(t.Context(), o)
	if err != nil || !strings.Contains(said, "2 files with several pictures") {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, name := range []string{"one.tif.png", "two 50%d.tif.png", "two.gif.png", "-x.bmp.png", "@list[0-1].tif.png",
		"gif:x.tif.png"} {
		img, err := decodeFile(o.in(imagesFolder, name))
		if err != nil || img.Width != 40 || img.Pix[0] < 250 || img.Pix[2] > 5 {
			t.Errorf("%s: %d pixels wide, %v", name, img.Width, err)
		}
	}
}

// TestCoder tells ImageMagick what a photo holds, also that a TIFF is a raw photo, and nothing of a text.
func TestCoder(t *testing.T) {
	for head, want := range map[string]string{headOf["tiff"]: "tiff", "II*\x00\x10\x00\x00\x00CR\x02\x00": "dng",
		"IIRO\x08\x00": "dng", "GIF89a": "gif", headOf["heic"]: "", "<svg>": "", "push graphic-context\n": ""} {
		path := filepath.Join(t.TempDir(), "a.tif")
		must.Do(t, os.WriteFile(path, []byte(head), 0o666))
		if got, err := conversionOf(path).coder(path); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", head, got, err, want)
		}
	}
}
