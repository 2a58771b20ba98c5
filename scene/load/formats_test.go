package load_test

import (
	"encoding/binary"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/photo"
	"vksplat/scene/scenetest"
)

// monstree_exif has 19 photos that a viewer turns.
func TestOrientationOfCapture(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/monstree_exif/images/*.JPG") // the pattern is well-formed
	if len(files) == 0 {
		t.Skip("the capture monstree_exif is not beside the repository")
	}
	counts := map[int]int{}
	for _, f := range files {
		v := must.Get(photo.Orientation(f))(t)
		counts[v]++
	}
	if fmt.Sprint(counts) != "map[1:4 6:19]" {
		t.Errorf("orientations %v", counts)
	}
}

// A capture of photos of another kind says how to convert them; one of turned photos, that their tag has not been
// applied.
func TestCaptureHints(t *testing.T) {
	upright := scenetest.PngBytes(t, image.NewGray(image.Rect(0, 0, scenetest.TinyHeight, scenetest.TinyWidth)))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"heic": {[]byte("\x00\x00\x00\x1cftypheic\x00\x00\x00\x00"), "heif-convert -q 95"},
		"tagged": {scenetest.WithChunk(upright, "eXIf", scenetest.ExifBlock(binary.LittleEndian, 6)),
			"orientation tag 6"},
		"turned": {scenetest.WithChunk(upright, "eXIf", scenetest.ExifBlock(binary.LittleEndian, 3)),
			"without applying"},
	} {
		root := loadtest.TinyCapture(t)
		scenetest.Put(t, filepath.Join(root, "images", scenetest.TinyCameras()[2].Name), c.data)
		if _, err := load.Capture(root, scene.LoadOptions{Model: scene.AnyModel, Strict: true}); err == nil ||
			!strings.Contains(fault.Hint(err), c.want) {
			t.Errorf("%s: %v with hint %q, want %q", name, err, fault.Hint(err), c.want)
		}
	}
}

// Photos are found under every name that isPhoto lists, in any case.
func TestWebPCapture(t *testing.T) {
	root := loadtest.TinyCapture(t)
	name := scenetest.TinyCameras()[1].Name
	must.Do(t, os.Remove(filepath.Join(root, "images", name)))
	shot := filepath.Join(root, "images", strings.TrimSuffix(name, ".png")+".WEBP")
	scenetest.Put(t, shot, readTestdata(t, "lossless.webp"))
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	i := slices.IndexFunc(c.Cameras, func(cam scene.Camera) bool { return cam.Path == shot })
	if i < 0 {
		t.Fatalf("the photo is not found: %v", c.Warnings)
	}
	if img, err := photo.Decode(c.Cameras[i]); err != nil || img.Width != c.Cameras[i].Width {
		t.Errorf("%d pixels wide, %v", img.Width, err)
	}
}

// A model of JPEGs beside which only the phone's own files lie: the message says how to convert them.
func TestMissingPhotoOfAnotherKind(t *testing.T) {
	for name, test := range map[string]struct {
		files   []string
		command string
	}{
		"heic":       {[]string{"p1.HEIC", "p1.mov"}, `heif-convert`},
		"heif":       {[]string{"p1.heif"}, `heif-convert`},
		"avif":       {[]string{"p1.avif"}, `mogrify -format png`},
		"canon":      {[]string{"p1.cr2"}, `darktable-cli`},
		"nikon":      {[]string{"P1.NEF"}, `darktable-cli`},
		"dng":        {[]string{"p1.dng"}, `darktable-cli`},
		"with both":  {[]string{"p1.png.heic"}, `heif-convert`},
		"video only": {[]string{"p1.mp4"}, ``},
		"others":     {[]string{"p11.heic", "p.heic"}, ``},
	} {
		for _, json := range []bool{false, true} {
			root := loadtest.TinyCapture(t)
			if json {
				scenetest.PutJSON(t, filepath.Join(root, "transforms.json"), scenetest.TinyTop())
				loadtest.Removed("sparse")(t, root)
			}
			loadtest.Removed("images/p1.png")(t, root)
			for _, f := range test.files {
				scenetest.Put(t, filepath.Join(root, "images", f), []byte("x"))
			}
			want := ""
			if test.command != "" {
				want = photo.ConversionHint(filepath.Join(root, "images", test.files[0]))
			}
			c := loadtest.MustLoad(t, root, loadtest.AnyModel())
			w, ok := scenetest.WarningOf(c, "missing-photos")
			if !ok || w.Remedy != want || !strings.Contains(w.Remedy, test.command) ||
				strings.Contains(w.Text, test.files[0]) != (want != "") {
				t.Errorf("%s, JSON %v: %q, remedy %q", name, json, w.Text, w.Remedy)
			}
			p, _ := problem(inspected(t, c), "missing-photos")
			if want != "" && p.Remedy != want || want == "" && p.Remedy != scene.Remedies["missing-photos"] {
				t.Errorf("%s, JSON %v: %+v", name, json, p)
			}
			o := loadtest.AnyModel()
			o.Strict = true
			if _, err := load.Capture(root, o); err == nil || want != "" &&
				(!strings.HasSuffix(fault.Hint(err), "or "+want) || !strings.Contains(err.Error(), test.files[0])) {
				t.Errorf("%s, JSON %v: %v, hint %q", name, json, err, fault.Hint(err))
			}
		}
	}
}

// Photos and videos that nothing describes are footage; parts of a capture, and folders that hold one, are not.
func TestIsFootage(t *testing.T) {
	root := t.TempDir()
	scenetest.Put(t, filepath.Join(root, "loose", "a.jpg"), []byte("x"))
	scenetest.Put(t, filepath.Join(root, "films", "a.MOV"), []byte("x"))
	scenetest.Put(t, filepath.Join(root, "raw", "a.DNG"), []byte("x"))
	scenetest.Put(t, filepath.Join(root, "begun", "images", "a.jpg"), []byte("x"))
	scenetest.Put(t, filepath.Join(root, "scene", "images", "a.jpg"), []byte("x"))
	scenetest.Put(t, filepath.Join(root, "scene", "transforms.json"), []byte("{}"))
	scenetest.Put(t, filepath.Join(root, "text", "a.txt"), []byte("x"))
	for name, want := range map[string]bool{"loose": true, "films": true, "films/a.MOV": true, "raw": true,
		"loose/a.jpg": false, "begun": false, "scene": false, "scene/images": false, "text": false, "none": false} {
		if got := load.IsFootage(filepath.Join(root, filepath.FromSlash(name))); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// A folder of photos that must be converted, without a model: capture converts them.
func TestFootageOfAnotherKind(t *testing.T) {
	root := t.TempDir()
	scenetest.Put(t, filepath.Join(root, "images", "IMG_1.HEIC"), []byte("x"))
	scenetest.Put(t, filepath.Join(root, "images", "IMG_1.MOV"), []byte("x"))
	if _, err := load.Capture(root, loadtest.AnyModel()); err == nil ||
		!strings.HasSuffix(fault.Hint(err), "capture "+filepath.Join(root, "images")+" -o "+root) {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}
