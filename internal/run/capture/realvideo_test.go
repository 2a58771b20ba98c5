//go:build unix

package capture

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene/photo"
)

// TestRealFfmpeg takes frames of videos with the ffmpeg that is installed: of one in which three of four frames are
// blurred, of one that is to be turned, and of one in HDR.
func TestRealFfmpeg(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("there is no ffmpeg here: apt-get install ffmpeg")
	}
	ffprobe, err := exec.LookPath("ffprobe")
	if err != nil {
		t.Skip("there is no ffprobe here: apt-get install ffmpeg")
	}
	const w, h, frames = 160, 96, 24
	dir := t.TempDir()
	for i := range frames {
		contrast := 0.1
		if i%4 == 2 {
			contrast = 1
		}
		must.Do(t, writePhoto(filepath.Join(dir, fmt.Sprintf("%03d.png", i)), w, h, contrast))
	}
	film := func(name string, more ...string) string {
		path := filepath.Join(dir, name)
		args := append([]string{"-loglevel", "error", "-framerate", "8", "-i", filepath.Join(dir, "%03d.png"), "-c:v",
			"libx264", "-pix_fmt", "yuv420p"}, more...)
		if out, err := exec.Command(ffmpeg, append(args, path)...).CombinedOutput(); err != nil {
			t.Skipf("this ffmpeg makes no such video: %v: %s", err, out)
		}
		return path
	}
	plain, turned := film("plain.mp4"), filepath.Join(dir, "turned.mp4")
	hdr := film("hdr.mp4", "-color_trc", "smpte2084", "-color_primaries", "bt2020", "-colorspace", "bt2020nc")
	turn := []string{"-loglevel", "error", "-i", plain, "-c", "copy", "-metadata:s:v", "rotate=90", turned}
	if out, err := exec.Command(ffmpeg, turn...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	install(t, "3.8", "colmap")
	bin := os.Getenv("PATH")
	must.Do(t, errors.Join(os.Symlink(ffmpeg, filepath.Join(bin, "ffmpeg")),
		os.Symlink(ffprobe, filepath.Join(bin, "ffprobe"))))
	for _, film := range []string{plain, turned, hdr} {
		o := optionsOf(t, film)
		said, err := run(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v\n%s", film, err, said)
		}
		if !strings.Contains(said, "6 frames, the sharpest of 24") {
			t.Errorf("%s: it says\n%s", film, said)
		}
		for i := range 6 {
			path := o.in(imagesFolder, fmt.Sprintf("%05d.jpg", i+1))
			l, err := lookAt(path)
			if err != nil || l.sharp < 500 {
				t.Errorf("%s: frame %d has a sharpness of %g, %v", film, i, l.sharp, err)
			}
			width, height, err := photo.Size(path)
			if film != turned && (err != nil || width != w || height != h) {
				t.Errorf("%s: frame %d has %dx%d pixels, %v", film, i, width, height, err)
			}
			if film == turned && width != h && turns(t, ffprobe, turned) {
				t.Errorf("a frame that is to be turned has %dx%d pixels", width, height)
			}
		}
	}
}

// turns says whether a video is to be turned: newer versions of ffmpeg do not take the old mark of that.
func turns(t *testing.T, ffprobe, film string) bool {
	t.Helper()
	out := must.Get(exec.Command(ffprobe, "-v", "error", "-show_streams", film).CombinedOutput())(t)
	return strings.Contains(string(out), "rotation=")
}
