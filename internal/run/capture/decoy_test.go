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

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// playlists are texts that ffmpeg takes for videos, whatever their names; %s is the file that it shows instead.
var playlists = map[string]string{
	"hls": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:4.0,\nfile://%s\n#EXT-X-ENDLIST\n",
	"dash": `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"
		mediaPresentationDuration="PT4S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><AdaptationSet
		mimeType="video/mp4"><Representation id="0" bandwidth="1"><BaseURL>file://%s</BaseURL></Representation>
		</AdaptationSet></Period></MPD>`,
	"concat": "ffconcat version 1.0\nfile '%s'\n",
	"sdp":    "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=%s\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n",
}

// drawings are texts that ImageMagick takes for pictures, likewise.
var drawings = map[string]string{
	"svg": `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="48">
		<image xlink:href="%s" width="64" height="48"/></svg>`,
	"mvg":  "push graphic-context\nviewbox 0 0 64 48\nimage over 0,0 64,48 '%s'\npop graphic-context\n",
	"msl":  `<?xml version="1.0"?><image><read filename="%s"/></image>`,
	"text": "%s\n",
	"pdf":  "%%PDF-1.4\n%% %s\n",
	"ps":   "%%!PS-Adobe-3.0\n(%s) run\n",
}

// decoy writes a text that leads to a file.
func decoy(t *testing.T, path, text, to string) string {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(fmt.Sprintf(text, to)), 0o666))
	return path
}

// TestPlaylists gives ffmpeg no text with the name of a video.
func TestPlaylists(t *testing.T) {
	installFilms(t)
	for kind, text := range playlists {
		for _, ending := range []string{".mp4", ".mkv", ".avi", ".MOV", ".webm", ".insv"} {
			o := optionsOf(t, decoy(t, filepath.Join(t.TempDir(), "film"+ending), text, filmFile(t)))
			_, err := run(t.Context(), o)
			if !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), "playlists, which") ||
				!strings.Contains(fault.Hint(err), "the video itself") {
				t.Errorf("%s named %s: %v", kind, ending, err)
			}
		}
	}
	if list := calls(t); list[0] != "" {
		t.Errorf("it ran %q", list)
	}
}

// TestDrawings gives no program a text with the name of a photo, and takes a photo for what it is, whatever its name.
func TestDrawings(t *testing.T) {
	install(t, "3.8", "colmap", "convert", "heif-convert")
	dir := photosIn(t, 4)
	must.Do(t, os.Rename(filepath.Join(dir, "p03.jpg"), filepath.Join(dir, "jpeg.heic")))
	for kind, text := range drawings {
		for _, ending := range []string{".tif", ".BMP", ".gif", ".heic", ".avif", ".dng"} {
			decoy(t, filepath.Join(dir, kind+ending), text, filepath.Join(dir, "p00.jpg"))
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "other.tif"), []byte(headOf["heic"]), 0o666))
	o := optionsOf(t, dir)
	said := must.Get(run(t.Context(), o))(t)
	for _, want := range []string{"is left out: its content is not that of .", otherEnding, "photos:   4 photos, 0s"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if n := len(filesBelow([]string{o.in(imagesFolder)})); n != 4 {
		t.Errorf("there are %d photos", n)
	}
	wantFiles(t, o.in(imagesFolder), "jpeg.heic.jpg")
	if list := strings.Join(calls(t), "\n"); strings.Contains(list, "convert") {
		t.Errorf("it ran\n%s", list)
	}
}

// TestRealDecoys has the programs that are installed refuse the texts, too, where they are told what to expect.
func TestRealDecoys(t *testing.T) {
	dir := t.TempDir()
	ffprobe, err := exec.LookPath("ffprobe")
	if err != nil {
		t.Skip("there is no ffprobe here: apt-get install ffmpeg")
	}
	private := filepath.Join(dir, "private.ts")
	make := exec.Command("ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "color=red:s=64x48:d=1", "-c:v", "mpeg2video",
		private)
	if out, err := make.CombinedOutput(); err != nil {
		t.Skipf("this ffmpeg makes no video: %v: %s", err, out)
	}
	if out, err := exec.Command(ffprobe, opening("mpegts", private)...).CombinedOutput(); err != nil {
		t.Errorf("the video itself: %v: %s", err, out)
	}
	for kind, text := range playlists {
		list := decoy(t, filepath.Join(dir, kind+".mp4"), text, private)
		for _, format := range []string{"mov", "matroska", "avi", "mpegts", "mpeg"} {
			if out, err := exec.Command(ffprobe, append([]string{"-show_entries", "stream=width"},
				opening(format, list)...)...).CombinedOutput(); err == nil && strings.Contains(string(out), "width=64") {
				t.Errorf("%s as %s: %v: %s", kind, format, err, out)
			}
		}
	}
	convert, err := exec.LookPath("convert")
	if err != nil {
		t.Skip("there is no ImageMagick here: apt-get install imagemagick")
	}
	red := filepath.Join(dir, "private.png")
	must.Do(t, writePhoto(red, 64, 48, 1))
	for kind, text := range drawings {
		for _, coder := range []string{"tiff", "bmp", "gif", "heic", rawCoder} {
			drawing := decoy(t, filepath.Join(dir, kind+".tif"), text, red)
			made := filepath.Join(t.TempDir(), "made.png")
			if out, err := exec.Command(convert, firstPages(drawing, made, coder)...).CombinedOutput(); err == nil {
				t.Errorf("%s as %s: it is drawn: %s", kind, coder, out)
			}
		}
	}
}
