//go:build unix

package capture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// Variables that say how the programs behave that this test program stands for.
const (
	fakeHelp       = "CAPTURE_TEST_HELP"       // file of testdata with COLMAP's help texts
	fakeCUDA       = "CAPTURE_TEST_CUDA"       // not empty: COLMAP 4 is built with CUDA
	fakeCalls      = "CAPTURE_TEST_CALLS"      // file that command lines are added to
	fakeFails      = "CAPTURE_TEST_FAILS"      // command that fails
	fakeTrace      = "CAPTURE_TEST_TRACE"      // not empty: what fails prints a stack trace, 1 or 2
	fakeHangs      = "CAPTURE_TEST_HANGS"      // command that does not end by itself
	fakeComponents = "CAPTURE_TEST_COMPONENTS" // photos in each component, as in 5,3
	fakeEndless    = "CAPTURE_TEST_ENDLESS"    // not empty: a frame of the video is repeated without end
	fakeSeconds    = "CAPTURE_TEST_SECONDS"    // length that the video says in place of three seconds
)

// TestMain lets the test program stand for the programs that capture runs: it is linked to by their names.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	fakes := map[string]func([]string) error{"colmap": fakeColmap, "glomap": fakeColmap, "ffmpeg": fakeFfmpeg,
		"ffprobe": fakeFfprobe, "heif-convert": fakeHeif, "convert": fakeMagick}
	fake := fakes[name]
	if fake == nil {
		os.Exit(m.Run())
	}
	if err := fake(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// install puts fakes of programs, and nothing else, into the search path.
func install(t *testing.T, version string, programs ...string) {
	t.Helper()
	dir := t.TempDir()
	self := must.Get(os.Executable())(t)
	for _, p := range programs {
		must.Do(t, os.Symlink(self, filepath.Join(dir, p)))
	}
	help := must.Get(filepath.Abs(filepath.Join("testdata", "colmap-"+version+".txt")))(t)
	t.Setenv("PATH", dir)
	t.Setenv(fakeHelp, help)
	t.Setenv(fakeCalls, filepath.Join(dir, "calls"))
	for _, name := range []string{fakeFails, fakeCUDA, fakeTrace, fakeHangs, fakeComponents} {
		t.Setenv(name, "")
	}
}

// calls gives the command lines of fakes since the last time, without questions for help.
func calls(t *testing.T) (list []string) {
	t.Helper()
	path := os.Getenv(fakeCalls)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	must.Do(t, os.WriteFile(path, nil, 0o666))
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func note(program string, args []string) error {
	f, err := os.OpenFile(os.Getenv(fakeCalls), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, program, strings.Join(args, " "))
	return err
}

// gpuTrace is what COLMAP 3.8 prints where it is to use a GPU that is not there, shortened.
const gpuTrace = `F20251125 21:39:27.998289 24691 opengl_utils.cc:56] Check failed: context_.create()
*** Check failure stack trace: ***
    @     0x7fcbe6b331ed  google::LogMessage::Fail()
    @     0x55e4aaead331  colmap::OpenGLContextManager::OpenGLContextManager()
    @     0x55e4aad9f29f  main
    @     0x7fcbe4645305  __libc_start_main
    @     0x55e4aac893a1  _start`

// networkTrace is what COLMAP 4.2 prints that is built without downloads and is to find features of ALIKED, shortened.
const networkTrace = "\x1b[0;31mE20261125 22:00:11.024279 11085 onnx_utils.cc:61] ONNX Runtime error: Load model from  " +
	"failed:Load model  failed. File doesn't exist\n\x1b[mterminate called after throwing an instance of " +
	"'Ort::Exception'\n  what():  Load model from  failed:Load model  failed. File doesn't exist\n" +
	"PC: @                0x0 (unknown)\n    @     0x7ff6854f8416 (unknown)"

// addressTrace is what ffmpeg prints of a video that is cut short.
const addressTrace = "[mov,mp4,m4a,3gp,3g2,mj2 @ 0x55d7b768b840] moov atom not found"

// fullTrace is what COLMAP 3.8 prints where the disk has no room for its database.
const fullTrace = "SQLite error [./src/base/database.cc, line 989]: database or disk is full"

// misbehave fails or hangs, if the command is to.
func misbehave(command string) error {
	switch command {
	case os.Getenv(fakeFails):
		if trace := os.Getenv(fakeTrace); trace != "" {
			return errors.New(map[string]string{"1": gpuTrace, "2": networkTrace, "3": addressTrace,
				"4": fullTrace}[trace])
		}
		return errors.New("something is wrong with " + command)
	case os.Getenv(fakeHangs):
		fmt.Println(command, "hangs")
		time.Sleep(time.Minute)
	}
	return nil
}

// value gives the value of an option in a command line.
func value(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func fakeColmap(args []string) error {
	if args[0] == "help" || len(args) > 1 && args[1] == "-h" {
		data, err := os.ReadFile(os.Getenv(fakeHelp))
		_, text, _ := strings.Cut(string(data), "== "+args[0]+"\n")
		text, _, _ = strings.Cut(text, "== ")
		if os.Getenv(fakeCUDA) != "" {
			text = strings.Replace(text, "without GPU support", "with CUDA", 1)
		}
		fmt.Print(text)
		return err
	}
	if err := note(filepath.Base(os.Args[0]), args); err != nil {
		return err
	}
	switch args[0] {
	case "feature_extractor", "database_cleaner", "exhaustive_matcher", "sequential_matcher", "vocab_tree_matcher",
		"matches_importer":
		f, err := os.OpenFile(value(args, "--database_path"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := fmt.Fprintln(f, args[0]); err != nil {
			return err
		}
	case "mapper", "global_mapper":
		if err := fakeModels(value(args, "--image_path"), value(args, "--output_path")); err != nil {
			return err
		}
	}
	return misbehave(args[0])
}

// fakeModels writes components with the first photos, the next ones, and so on.
func fakeModels(images, to string) error {
	photos := filesBelow([]string{images})
	slices.Sort(photos)
	counts := os.Getenv(fakeComponents)
	if counts == "none" {
		return errors.New("no good initial image pair found")
	}
	if counts == "" {
		counts = strconv.Itoa(len(photos))
	}
	for i, text := range strings.Split(counts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		var cams []scene.Camera
		for k, p := range photos[:n] {
			rel, err := filepath.Rel(images, p)
			if err != nil {
				return err
			}
			cams = append(cams, scene.Camera{Name: filepath.ToSlash(rel), Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32,
				Cy: 24, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, T: [3]float64{float64(k), 0, 0}})
		}
		photos = photos[n:]
		dir := filepath.Join(to, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if err := colmap.Write(dir, cams, nil); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "points3D.bin"), fakePoints(len(cams)), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// fakePoints are points that all cameras see, with an error of half a pixel.
func fakePoints(cams int) []byte {
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a bytes.Buffer takes all
	put(uint64(10))
	for i := range 10 {
		put(uint64(i))
		put([3]float64{-float64(cams) / 2, float64(i), 5})
		put([3]uint8{})
		put(0.5)
		put(uint64(cams))
		for k := range cams {
			put([2]uint32{uint32(k + 1), uint32(i)})
		}
	}
	return b.Bytes()
}

func fakeFfprobe([]string) error {
	fmt.Fprintln(os.Stderr, "[h264 @ 0x55d7b768b840] error while decoding MB 3 4") // of a frame: the video is read
	fmt.Printf(`{"streams": [{"width": 64, "height": 48, "avg_frame_rate": "10/1"}], "format": {"duration": "%s"}}`,
		cmp.Or(os.Getenv(fakeSeconds), "3.0"))
	return nil
}

// fakeFfmpeg prints 30 grey pictures, or as many as it may, of which every third has most detail, or writes as many
// JPEGs as are selected.
func fakeFfmpeg(args []string) error {
	if err := note("ffmpeg", args); err != nil {
		return err
	}
	if err := misbehave("ffmpeg"); err != nil {
		return err
	}
	filters := value(args, "-vf")
	if !strings.Contains(filters, "select=") {
		most, err := strconv.Atoi(value(args, "-frames:v"))
		if err != nil {
			return err
		}
		if os.Getenv(fakeEndless) == "" {
			most = min(most, 30)
		}
		for i := range most {
			grey := make([]byte, 64*48)
			for k := range grey {
				grey[k] = byte(128 + (1+i%3%2)*20*(k%2))
			}
			if _, err := os.Stdout.Write(grey); err != nil {
				return err
			}
		}
		return nil
	}
	pattern := args[len(args)-1]
	for i := range strings.Count(filters, "eq(n,") {
		if err := writePhoto(fmt.Sprintf(pattern, i+1), 64, 48, 1); err != nil {
			return err
		}
	}
	return nil
}

func fakeHeif(args []string) error {
	if err := errors.Join(note("heif-convert", args), misbehave("heif-convert")); err != nil {
		return err
	}
	return writePhoto(args[len(args)-1], 64, 48, 1)
}

// fakeMagick writes as many pictures as the file says, of those that are asked for.
func fakeMagick(args []string) error {
	if err := note("convert", args); err != nil {
		return err
	}
	_, in, _ := strings.Cut(args[0], ":")
	in, two := strings.CutSuffix(in, "[0-1]")
	said, err := os.ReadFile(in)
	if err != nil || !strings.HasSuffix(string(said), "several") {
		return errors.Join(err, writePhoto(args[1], 64, 48, 1))
	}
	if !two {
		return errors.New("all of them would be written")
	}
	stem := strings.TrimSuffix(args[1], ".png")
	return errors.Join(writePhoto(stem+"-0.png", 64, 48, 1), writePhoto(stem+"-1.png", 32, 24, 1))
}

// writePhoto writes stripes: the higher the contrast, the sharper.
func writePhoto(path string, w, h int, contrast float64) error {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		v := uint8(128 + contrast*100*math.Sin(float64(i%w)))
		img.Set(i%w, i/w, color.NRGBA{v, v, v, 255})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	encode := func(w io.Writer) error { return jpeg.Encode(w, img, nil) }
	if filepath.Ext(path) == ".png" {
		encode = func(w io.Writer) error { return png.Encode(w, img) }
	}
	return errors.Join(encode(f), f.Close())
}

// photosIn makes a folder of photos.
func photosIn(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "photos")
	must.Do(t, os.MkdirAll(dir, 0o777))
	for i := range n {
		must.Do(t, writePhoto(filepath.Join(dir, fmt.Sprintf("p%02d.jpg", i)), 64, 48, 1))
	}
	return dir
}

// run runs capture, and gives what it printed.
func run(ctx context.Context, o *Options) (string, error) {
	var out bytes.Buffer
	console := cli.Within(ctx, nil)
	console.Stdout, console.Stderr = &out, &out
	err := Run(console, o)
	return out.String(), err
}

// optionsOf gives the options of a test.
func optionsOf(t *testing.T, inputs ...string) *Options {
	t.Helper()
	o := NewOptions()
	o.Inputs, o.Out, o.Mapper = inputs, filepath.Join(t.TempDir(), "scene"), MapIncremental
	return o
}

// withPhotos installs COLMAP 3.8 alone, and gives options for n photos.
func withPhotos(t *testing.T, n int) *Options {
	t.Helper()
	install(t, "3.8", "colmap")
	return optionsOf(t, photosIn(t, n))
}

// installFilms installs COLMAP 3.8 and what reads videos.
func installFilms(t *testing.T) {
	t.Helper()
	install(t, "3.8", "colmap", "ffmpeg", "ffprobe")
}

// inPlace gives options for a scene that is made around its folder of n photos.
func inPlace(t *testing.T, n int) *Options {
	t.Helper()
	top := t.TempDir()
	o := optionsOf(t, filepath.Join(top, imagesFolder))
	o.Out = top
	must.Do(t, os.Rename(photosIn(t, n), o.in(imagesFolder)))
	return o
}

// headOf are the first bytes of files.
var headOf = map[string]string{"mp4": "\x00\x00\x00\x18ftypisom", "heic": "\x00\x00\x00\x18ftypheic",
	"tiff": "II*\x00\x08\x00\x00\x00", "raf": "FUJIFILMCCD-RAW 0201"}

// filmFile is a file that the fake of ffprobe takes for a video of three seconds with ten frames each.
func filmFile(t *testing.T) string {
	t.Helper()
	film := filepath.Join(t.TempDir(), "film.mp4")
	must.Do(t, os.WriteFile(film, []byte(headOf["mp4"]), 0o666))
	return film
}

// wantFiles checks that files are there.
func wantFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if !output.IsFile(filepath.Join(dir, name)) {
			t.Errorf("there is no %s", name)
		}
	}
}

// writePicture writes a grey PNG.
func writePicture(t *testing.T, path string, w, h int, pixel func(x, y int) uint8) {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = pixel(i%w, i/w)
	}
	var b bytes.Buffer
	must.Do(t, png.Encode(&b, img))
	must.Do(t, os.WriteFile(path, b.Bytes(), 0o666))
}
