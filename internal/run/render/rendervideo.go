package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/picture"
)

// videoKinds are the encoders of ffmpeg for each kind of file, with what else they need.
var videoKinds = map[string][]string{
	".mp4": {"-c:v", "libx264", "-movflags", "+faststart"}, ".m4v": {"-c:v", "libx264", "-movflags", "+faststart"},
	".mov": {"-c:v", "libx264", "-movflags", "+faststart"},
	".mkv": {"-c:v", "libx264"}, ".webm": {"-c:v", "libvpx-vp9", "-b:v", "0", "-row-mt", "1"},
}

// videoFormats are ffmpeg's names of these kinds, since the name of a temporary file tells nothing.
var videoFormats = map[string]string{".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska", ".webm": "webm"}

func videoSuffix(file string) string { return strings.ToLower(filepath.Ext(file)) }

const FfmpegName = "ffmpeg"

// videoFilter pads odd sizes to even ones, as 4:2:0 wants them, and converts sRGB's primaries, which are those of
// BT.709, with that standard's matrix.
const videoFilter = "pad=ceil(iw/2)*2:ceil(ih/2)*2,scale=out_color_matrix=bt709:out_range=tv:flags=accurate_rnd+full_chroma_int,format=yuv420p"

// encodeArgs are ffmpeg's arguments behind those of the input.
func encodeArgs(o *Options, to string) []string {
	args := []string{"-an", "-vf", videoFilter}
	args = append(args, videoKinds[videoSuffix(o.Video)]...)
	return append(args, "-crf", strconv.Itoa(o.Crf), "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc",
		"bt709", "-color_range", "tv",
		"-f", videoFormats[videoSuffix(o.Video)], "-y", to)
}

// videoPipe is a video that is being written. Its methods may be called of nil.
type videoPipe struct {
	file, temp string
	unlock     func() // no other render makes this file until then
	cmd        *exec.Cmd
	in         io.WriteCloser
	said       *tail
	ended      bool
}

// startVideo starts ffmpeg, if there is to be a video. Where the program is missing, pictures are written in place of
// the video.
func startVideo(console *cli.Console, r *rendering, cams []scene.Camera) error {
	o := r.o
	if o.Video == "" {
		return nil
	}
	width, height := cams[0].Width, cams[0].Height
	for _, c := range cams {
		if c.Width != width || c.Height != height {
			return fault.Usagef("give one with "+fault.Setting("size")+" WxH",
				"the pictures of a video have one size, these have %dx%d and %dx%d", width, height, c.Width, c.Height)
		}
	}
	if r.panorama != nil {
		width, height = r.panorama.width, r.panorama.height
	}
	program, err := exec.LookPath(FfmpegName)
	if err != nil {
		return picturesInstead(console, r)
	}
	v, err := openVideo(console, program, o, width, height)
	if v != nil {
		r.video = v
	}
	return err
}

// openVideo starts a program of ffmpeg's, which makes a video of pictures of one size. One that is returned with an
// error is to be abandoned, too.
func openVideo(console *cli.Console, program string, o *Options, width, height int) (*videoPipe, error) {
	if err := o.checkVideoFolder(); err != nil {
		return nil, err
	}
	v, err := newVideoPipe(o.Video)
	if err != nil {
		return nil, output.FolderError(filepath.Dir(o.Video), err)
	}
	args := append([]string{"-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file,pipe", "-f", "rawvideo",
		"-pix_fmt", "rgb0",
		"-s", fmt.Sprintf("%dx%d", width, height), "-r", fpsText(o.Fps), "-i", "pipe:0"},
		encodeArgs(o, "file:"+v.temp)...)
	v.cmd = exec.Command(program, args...)
	cli.Detach(v.cmd)
	v.cmd.Stderr = v.said
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		return v, err
	}
	if err := v.cmd.Start(); err != nil {
		v.cmd = nil
		return v, errors.Join(v.wrong(err), v.abandon())
	}
	console.OnAbort = cli.Both(console.OnAbort, func() { _ = v.abandon() })
	return v, nil
}

// newVideoPipe makes the temporary file of a video, and removes those of renders that were killed: with the lock nobody
// else writes one.
func newVideoPipe(file string) (*videoPipe, error) {
	dir, hidden := filepath.Dir(file), "."+filepath.Base(file)
	lock := filepath.Join(dir, hidden+output.LockName)
	unlock, err := output.WaitForLock(context.Background(), lock)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	var temp *os.File
	if err == nil {
		for _, e := range entries {
			if number, ok := strings.CutPrefix(e.Name(), hidden+".tmp"); ok && output.Digits.MatchString(number) &&
				e.Type().IsRegular() {
				_ = os.Remove(filepath.Join(dir, e.Name())) // a leftover only takes room
			}
		}
		temp, err = os.CreateTemp(dir, hidden+".tmp*")
	}
	if err == nil {
		err = temp.Close()
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return &videoPipe{file: file, temp: temp.Name(), unlock: unlock, said: &tail{}}, nil
}

func (o *Options) checkVideoFolder() error {
	if dir := filepath.Dir(o.Video); !output.IsFolder(dir) {
		return fault.Usagef("make the folder first, or choose another", "%s: there is no folder %s",
			fault.Named(o.VideoName), dir)
	}
	return nil
}

// fpsText prints a rate without an exponent.
func fpsText(fps float64) string { return strconv.FormatFloat(fps, 'f', -1, 64) }

// Errors of the program that makes videos.
var (
	ErrNoFFmpeg = fault.Sentinel(fault.ErrMissing, "ffmpeg is not installed", "")
	errFFmpeg   = fault.Sentinel(fault.ErrMachine, "ffmpeg failed", "")
)

// picturesInstead has pictures written for a video that cannot be made, and says with which command it can once they
// are there.
func picturesInstead(console *cli.Console, r *rendering) error {
	o := r.o
	r.missing = true
	if r.kind.Format == picture.FormatEXR || r.kind.Format == picture.FormatNPY || r.kind.Alpha ||
		o.Format == FormatNone {
		return fault.WithHint(fmt.Errorf("write video %s: %w", o.Video, ErrNoFFmpeg),
			"install ffmpeg, or leave "+fault.Setting("video")+" out")
	}
	if o.Out == "" {
		o.Out = strings.TrimSuffix(o.Video, filepath.Ext(o.Video)) + "_frames"
		release, err := output.Claim(o.Out, true)
		if err != nil {
			return err
		}
		r.release = release
		console.OnAbort = cli.Both(console.OnAbort, release)
	}
	if o.Name == "" {
		o.Name = framePattern
	}
	for i := range r.shots { // one after the other, as ffmpeg reads them
		r.shots[i].number = o.Start + i
		r.shots[i].name = fmt.Sprintf(o.Name, r.shots[i].number)
	}
	console.Warn("there is no program ffmpeg: pictures are written to " + o.Out + " in place of the video")
	return nil
}

// noFlag is a path that another program takes for no flag.
func noFlag(path string) string {
	if strings.HasPrefix(path, "-") {
		return "./" + path
	}
	return path
}

// errorWithoutFFmpeg is the error that ends a render whose video could not be made.
func (r *rendering) errorWithoutFFmpeg() error {
	o := r.o
	args := append([]string{FfmpegName, "-framerate", fpsText(o.Fps), "-start_number", strconv.Itoa(r.shots[0].number),
		"-i", noFlag(filepath.Join(o.Out, o.Name+r.suffix()))}, encodeArgs(o, noFlag(o.Video))...)
	for i := range args {
		args[i] = photo.ShellWord(args[i])
	}
	return fault.WithHint(fmt.Errorf("write video %s: %w; the pictures are written", o.Video, ErrNoFFmpeg),
		"install ffmpeg and run: "+strings.Join(args, " "))
}

func (v *videoPipe) write(rgba []uint8) error {
	if _, err := v.in.Write(rgba); err != nil {
		return v.wrong(err)
	}
	return nil
}

// wrong makes an error with what ffmpeg said of it.
func (v *videoPipe) wrong(err error) error {
	if v.cmd != nil && !v.ended {
		_ = v.in.Close() // it ends, and says why
		if waited := v.cmd.Wait(); waited != nil {
			err = waited
		}
		v.ended = true
	}
	text := wording.WithoutAddresses(strings.TrimSpace(v.said.String()))
	if text == "" {
		text = err.Error()
	}
	return fault.WithHint(fmt.Errorf("write video %s: %w: %s", v.file, errFFmpeg, strings.ReplaceAll(text, "\n", "; ")),
		"see ffmpeg's messages; it must be built with libx264 (libvpx-vp9 for .webm), and the disk must "+
			"have room")
}

// finish ends the video and puts it in its place.
func (v *videoPipe) finish() error {
	if v == nil {
		return nil
	}
	err := errors.Join(v.in.Close(), v.cmd.Wait())
	v.ended = true
	if err != nil {
		return v.wrong(err)
	}
	if err := os.Chmod(v.temp, 0o644); err != nil {
		return err
	}
	if err := os.Rename(v.temp, v.file); err != nil {
		return err
	}
	v.temp = ""
	return nil
}

// abandon removes what there is of a video that is not finished, and lets others make that file.
func (v *videoPipe) abandon() error {
	if v == nil || v.unlock == nil {
		return nil
	}
	defer v.unlock()
	v.unlock = nil
	if v.temp == "" {
		return nil
	}
	if v.cmd != nil && !v.ended {
		_ = v.cmd.Process.Kill() // it may have ended
		_ = v.in.Close()
		_ = v.cmd.Wait() // says that it was killed
		v.ended = true
	}
	temp := v.temp
	v.temp = ""
	return os.Remove(temp)
}

// tail keeps the end of what a program says.
type tail struct{ b []byte }

// maxTail is how much of it is kept, in bytes.
const maxTail = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > maxTail {
		t.b = bytes.Clone(t.b[len(t.b)-maxTail:])
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }
