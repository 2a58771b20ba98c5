//go:build unix

package capture

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// withGPU lets the machine seem to have a GPU, and COLMAP 4 to be built for it. It comes after install.
func withGPU(t *testing.T) {
	t.Helper()
	was := nvidiaDevices
	nvidiaDevices = []string{t.TempDir()}
	t.Cleanup(func() { nvidiaDevices = was })
	t.Setenv(fakeCUDA, "1")
}

// cutShort leaves the first half of a file.
func cutShort(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestBrokenPhotos leaves photos out that are cut short or none, names the user's files, and refuses too few others.
func TestBrokenPhotos(t *testing.T) {
	install(t, "3.8", "colmap")
	dir := photosIn(t, 6)
	half, none := filepath.Join(dir, "p01.jpg"), filepath.Join(dir, "p04.jpg")
	cutShort(t, half)
	must.Do(t, os.WriteFile(none, []byte("<html>"), 0o666))
	o := optionsOf(t, dir)
	said, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{half + " is left out: the file is cut short", none + " is left out", "4 photos, ",
		"left out: " + half} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	list, err := os.ReadFile(o.in(logsFolder, photoList))
	if err != nil || string(list) != "p00.jpg\np02.jpg\np03.jpg\np05.jpg\n" {
		t.Errorf("COLMAP is to use %q, %v", list, err)
	}
	cutShort(t, filepath.Join(dir, "p00.jpg"))
	cutShort(t, filepath.Join(dir, "p02.jpg"))
	o = optionsOf(t, dir)
	_, err = run(t.Context(), o)
	if !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), dir+": 2 photos found, and 4 that cannot") {
		t.Errorf("of two photos: %v", err)
	}
	if output.IsFolder(o.Out) {
		t.Error("a folder is left behind")
	}
	cutShort(t, filepath.Join(dir, "p03.jpg"))
	cutShort(t, filepath.Join(dir, "p05.jpg"))
	if said, err = run(t.Context(), o); err == nil || strings.Contains(said, "twice as wide") {
		t.Errorf("of no photo: %v\n%s", err, said)
	}
}

// TestOddNames leaves photos out that COLMAP cannot have by their names, those of the command line, too, and keeps the
// line of a message whole.
func TestOddNames(t *testing.T) {
	install(t, "3.8", "colmap")
	dir := photosIn(t, 6)
	odd := filepath.Join(dir, "p0\n1.jpg")
	must.Do(t, os.Rename(filepath.Join(dir, "p01.jpg"), odd))
	for _, inputs := range [][]string{{dir}, {odd, filepath.Join(dir, "p00.jpg"), filepath.Join(dir, "p02.jpg"),
		filepath.Join(dir, "p03.jpg")}} {
		o := optionsOf(t, dir)
		o.Inputs = inputs
		said := must.Get(run(t.Context(), o))(t)
		for _, want := range []string{`p0\n1.jpg" is left out: COLMAP cannot read names with line breaks`, "; rename it\n",
			`p0\n1.jpg": COLMAP cannot read`} {
			if !strings.Contains(said, want) {
				t.Errorf("it does not say %q:\n%s", want, said)
			}
		}
		if list, err := os.ReadFile(o.in(logsFolder, photoList)); err != nil || strings.Contains(string(list), "p0\n") {
			t.Errorf("COLMAP is to use %q, %v", list, err)
		}
	}
}

// TestBrokenConversion names the user's file.
func TestBrokenConversion(t *testing.T) {
	install(t, "3.8", "colmap", "heif-convert")
	dir := photosIn(t, 3)
	bad := filepath.Join(dir, "x.HEIC")
	must.Do(t, os.WriteFile(bad, []byte(headOf["heic"]), 0o666))
	t.Setenv(fakeFails, "heif-convert")
	_, err := run(t.Context(), optionsOf(t, dir))
	if err == nil || !strings.Contains(err.Error(), "convert photo: "+bad) || !strings.Contains(fault.Hint(err), "by hand") {
		t.Errorf("%v; %s", err, fault.Hint(err))
	}
}

// TestOutIsFile refuses a file as the scene, and a folder below one.
func TestOutIsFile(t *testing.T) {
	o := withPhotos(t, 4)
	file := o.Out
	must.Do(t, os.WriteFile(file, []byte("mine"), 0o666))
	for _, out := range []string{file, filepath.Join(file, "deeper", "scene")} {
		o.Out = out
		if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), file+" is a file") {
			t.Errorf("%s: %v", out, err)
		}
	}
}

// TestUnableFirst refuses what COLMAP cannot do before a video is decoded.
func TestUnableFirst(t *testing.T) {
	install(t, "3.8", "colmap", "ffmpeg", "ffprobe")
	o := optionsOf(t, filmFile(t))
	o.Mapper = MapGlobal
	_, err := run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "no global_mapper") || fault.Hint(err) == "" {
		t.Errorf("%v; %s", err, fault.Hint(err))
	}
	if got := calls(t); got[0] != "" || output.IsFolder(o.Out) {
		t.Errorf("it ran %q", got)
	}
}

// TestNoTrace keeps COLMAP's stack trace in the log.
func TestNoTrace(t *testing.T) {
	install(t, "4.2", "colmap")
	withGPU(t)
	t.Setenv(fakeFails, "feature_extractor")
	t.Setenv(fakeTrace, "1")
	o := optionsOf(t, photosIn(t, 4))
	_, err := run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "Check failed: context_.create()") ||
		strings.Contains(err.Error(), "@") || strings.Contains(err.Error(), "***") {
		t.Errorf("the error is %v", err)
	}
	log, err := os.ReadFile(o.in(logsFolder, "features.log"))
	if err != nil || !strings.Contains(string(log), "@     0x7fcbe6b331ed") {
		t.Errorf("the log has %s, %v", log, err)
	}
}

// TestNoColours shows what COLMAP prints in words without colours.
func TestNoColours(t *testing.T) {
	install(t, "4.2", "colmap")
	t.Setenv(fakeFails, "feature_extractor")
	t.Setenv(fakeTrace, "2")
	_, err := run(t.Context(), optionsOf(t, photosIn(t, 4)))
	if err == nil || strings.Contains(err.Error(), "\x1b") || !strings.Contains(err.Error(), "File doesn't exist") {
		t.Errorf("%v; %s", err, fault.Hint(err))
	}
}

// TestTooFewFrames names the flag, and says how many frames it gives.
func TestTooFewFrames(t *testing.T) {
	for _, c := range []struct {
		fps        float64
		frames     int
		want, hint string
	}{
		{fps: 0.01, want: "fps 0.01: a video of 3 seconds has 1 frame at that rate", hint: "fps 10: 30 frames"},
		{fps: 0.5, want: "fps 0.5: a video of 3 seconds has 2 frames", hint: "fps 10: 30 frames"},
		{frames: 2, want: "frames 2: a video of 3 seconds has 2 frames", hint: "frames 50"},
	} {
		installFilms(t)
		o := optionsOf(t, filmFile(t))
		o.Fps, o.Frames = c.fps, c.frames
		_, err := run(t.Context(), o)
		if !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(fault.Hint(err), c.hint) {
			t.Errorf("%v; %s", err, fault.Hint(err))
		}
		if got := calls(t); got[0] != "" || output.IsFolder(o.Out) {
			t.Errorf("it ran %q", got)
		}
	}
	if hint := new(running).rateHint(&video{rate: 3, seconds: 0.6}); !strings.Contains(hint, "take a longer video") {
		t.Errorf("a video of two frames: %s", hint)
	}
	installFilms(t)
	o := optionsOf(t, filmFile(t), photosIn(t, 4))
	o.Frames = 1
	if _, err := run(t.Context(), o); err != nil {
		t.Errorf("a frame beside photos: %v", err)
	}
}

// TestEndlessVideo ends where ffmpeg repeats a frame without end, and refuses rates of which nobody takes the frames.
func TestEndlessVideo(t *testing.T) {
	for _, c := range []struct {
		seconds, endless string
		fps              float64
		want             string
	}{
		{endless: "1", want: "it lasts 3 seconds, and ffmpeg makes more than 160 frames of it at 10 a second"},
		{endless: "1", fps: 1, want: "more than 130 frames of it at 5 a second"},
		{seconds: "N/A", endless: "1", fps: 0.02, want: "more than 8640 frames at 0.1 a second"},
		{seconds: "N/A", want: ""},
		{seconds: "1e7", fps: 1, want: "it lasts 1e+07 seconds, which are 1e+07 frames at 1 a second"},
	} {
		installFilms(t)
		t.Setenv(fakeSeconds, c.seconds)
		t.Setenv(fakeEndless, c.endless)
		o := optionsOf(t, filmFile(t))
		o.Fps = c.fps
		_, err := run(t.Context(), o)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, fault.ErrData) ||
			!strings.Contains(err.Error(), c.want) || fault.Hint(err) == "") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestNamedTwice takes each photo and video once.
func TestNamedTwice(t *testing.T) {
	installFilms(t)
	dir, film := photosIn(t, 4), filmFile(t)
	below := filepath.Join(dir, "below")
	must.Do(t, os.Rename(photosIn(t, 3), below))
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(dir, link))
	for _, c := range []struct {
		inputs []string
		photos int
		told   string
	}{
		{[]string{dir, dir}, 7, "7 files named more than once"},
		{[]string{dir, below}, 7, "3 files named more than once"},
		{[]string{below, link}, 7, "3 files named more than once"},
		{[]string{film, film}, 6, "1 file named more than once"},
		{[]string{dir, filepath.Join(dir, "p01.jpg")}, 7, "1 file named more than once: used once"},
		{[]string{dir}, 7, ""},
	} {
		o := optionsOf(t, c.inputs...)
		said := must.Get(run(t.Context(), o))(t)
		if n := len(filesBelow([]string{o.in(imagesFolder)})); n != c.photos || !strings.Contains(said, c.told) ||
			c.told == "" && strings.Contains(said, "used once") {
			t.Errorf("%v: %d photos\n%s", c.inputs, n, said)
		}
	}
}

// releasing releases a lock when it is told that somebody waits for it.
type releasing struct {
	bytes.Buffer
	release func()
}

func (w *releasing) Write(p []byte) (int, error) {
	if w.release != nil && strings.Contains(string(p), "waiting a few seconds") {
		w.release()
		w.release = nil
	}
	return w.Buffer.Write(p)
}

func (w *releasing) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// TestWaiting says that it waits for another command in the same folder.
func TestWaiting(t *testing.T) {
	o := withPhotos(t, 4)
	must.Do(t, os.MkdirAll(o.Out, 0o777))
	release := must.Get(output.Claim(o.Out, true))(t)
	out := &releasing{release: release}
	console := cli.Within(t.Context(), nil)
	console.Stdout, console.Stderr = out, out
	must.Do(t, Run(console, o))
	if !strings.Contains(out.String(), "another command is writing in "+o.Out) {
		t.Errorf("it says\n%s", out.String())
	}
}

// TestOwnPhotosStay keeps the photos of a scene around them, whatever is said to be replaced.
func TestOwnPhotosStay(t *testing.T) {
	installFilms(t)
	o := inPlace(t, 4)
	must.Get(run(t.Context(), o))(t)
	o.Inputs, o.Overwrite = []string{filmFile(t)}, true
	if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a video in the place of photos: %v; %s", err, fault.Hint(err))
	}
	wantFiles(t, o.Out, "images/p00.jpg", "images/p03.jpg")
}

// TestVideoErrors words a length in the singular, and what ffmpeg says without addresses of memory.
func TestVideoErrors(t *testing.T) {
	o := NewOptions()
	o.Fps = 0.5
	r := newRunning(t.Context(), nil, o, []*source{{video: true, film: &video{rate: 10, seconds: 1}}})
	if err := r.enough(); err == nil || !strings.Contains(err.Error(), "a video of 1 second has 1 frame") {
		t.Error(err)
	}
	installFilms(t)
	t.Setenv(fakeFails, "ffmpeg")
	t.Setenv(fakeTrace, "3")
	_, err := run(t.Context(), optionsOf(t, filmFile(t)))
	if err == nil || !strings.Contains(err.Error(), "[mov,mp4,m4a,3gp,3g2,mj2] moov atom not found") {
		t.Error(err)
	}
}
