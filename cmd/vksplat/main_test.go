package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/scene"
)

func TestExitCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("defect"), exitFailure},
		{usagef("", "nonsense"), exitUsage},
		{&fault.Error{Op: "read", Err: errors.New("cut short")}, exitData},
		{&fault.Error{Op: "write", Err: syscall.ENOSPC, Kind: fault.ErrTryAgain}, exitRetry},
		{&os.PathError{Op: "write", Err: syscall.EROFS}, exitRetry},
		{fmt.Errorf("pipeline: step: %w", pipeline.ErrDeviceLost), exitRetry},
		{&fault.Error{Op: "write", Path: "x", Err: pipeline.ErrDeviceLost}, exitRetry},
		{pipeline.ErrOutOfMemory, exitRetry},
		{fmt.Errorf("pipeline: train step 7: %w", pipeline.ErrNoSplats), exitData},
		{fmt.Errorf("vk: read limits: %w", pipeline.ErrBadLimits), exitUsage},
		{fmt.Errorf("%w after step 3", errInterrupted), exitInterrupted},
		{context.Canceled, exitInterrupted},
	}
	for _, tt := range tests {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.want)
		}
		if got := exitCode(errors.Join(tt.err, nil)); got != tt.want {
			t.Errorf("%v, joined: exit code %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestPictureNames(t *testing.T) {
	var cams []scene.Camera
	for _, name := range []string{"a.jpg", "sub/b.c.JPG", "x.png", "X.jpg", "../../etc/passwd", "/abs.jpg", "plain", "sub/.jpg"} {
		cams = append(cams, scene.Camera{Name: name})
	}
	want := []string{"a.png", "sub/b.c.png", "x.png.png", "X.jpg.png", "etc/passwd.png", "abs.png", "plain.png", "sub/.jpg.png"}
	if got := pictureNames(cams); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestShiftedCamerasComeBack(t *testing.T) {
	c := scene.Camera{R: [9]float64{0, 0, 1, 1, 0, 0, 0, 1, 0}, T: [3]float64{1, 2, 3}}
	away := shifted([]scene.Camera{c}, [3]float64{10, 20, 30})
	center, was := away[0].Center(), c.Center()
	for k, by := range []float64{10, 20, 30} {
		if center[k] != was[k]-by {
			t.Errorf("axis %d: the camera went from %g to %g, want %g less", k, was[k], center[k], by)
		}
	}
	if back := shifted(away, [3]float64{-10, -20, -30}); back[0].T != c.T {
		t.Errorf("back at %v, want %v", back[0].T, c.T)
	}
}

func TestReadOrigin(t *testing.T) {
	dir, other := t.TempDir(), [3]float64{1, 2, 3}
	if got, err := readOrigin(dir, other); err != nil || got != other {
		t.Errorf("without a file: %v, %v", got, err)
	}
	want := [3]float64{500000, -4500000, 0}
	if err := writeJSON(dir+"/"+originFile, originRecord{Origin: want}); err != nil {
		t.Fatal(err)
	}
	if got, err := readOrigin(dir, other); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	if err := os.WriteFile(dir+"/"+originFile, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readOrigin(dir, other); exitCode(err) != exitData || hint(err) == "" {
		t.Errorf("of a damaged file: %v, exit code %d, hint %q", err, exitCode(err), hint(err))
	}
}

func TestTexts(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{durationText(41.7), "42s"}, {durationText(185), "3m05s"}, {durationText(7620), "2h07m"},
		{compiledText(30, 0.9, false), ""}, {compiledText(30, 2.04, true), "compiling 30 kernels took 2.0 s"},
		{compiledText(30, 2.04, false), "compiling 30 kernels took 2.0 s; they are kept for the next run"}, {pipeline.BytesText(900), "900 B"}, {pipeline.BytesText(1536), "1.5 KiB"}, {pipeline.BytesText(512 << 20), "512 MiB"},
		{rateText(4.2), "4.20 steps/s"}, {rateText(317.4), "317 steps/s"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// TestProgressLines wants few plain lines where there is no terminal, the last
// step among them once, and no allocation on steps that print nothing.
func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, progressAuto, 0, 1000)
	for step := 1; step <= 1000; step++ {
		p.update(pipeline.Progress{Step: step, Loss: 0.25, Splats: 77})
	}
	if n := testing.AllocsPerRun(10, func() { p.update(p.last) }); n != 0 {
		t.Errorf("%g allocations per step", n)
	}
	p.interrupt()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "step 1000/1000  loss 0.25000  77 splats  ") || !strings.HasSuffix(lines[0], "ETA 0s") {
		t.Errorf("printed %q", lines)
	}
}

// TestProgressOfPictures wants of a command that draws its pictures and no loss.
func TestProgressOfPictures(t *testing.T) {
	for _, how := range []string{progressPlain, progressBar} {
		var out bytes.Buffer
		p := newProgress(&out, how, 0, 3)
		p.draws = true
		for i := range 3 {
			p.update(pipeline.Progress{Step: i + 1})
		}
		p.interrupt()
		want := map[string]string{progressPlain: "picture 3/3  ETA 0s\n", progressBar: "] 100%  3/3  ETA 0s\x1b[K\n"}[how]
		if text := out.String(); !strings.HasSuffix(text, want) || strings.Contains(text, "loss") || strings.Contains(text, "splat") {
			t.Errorf("%s: printed %q", how, text)
		}
	}
}

// TestProgressOfParts wants to see how far a large picture is, of which nothing is done before a minute has gone.
func TestProgressOfParts(t *testing.T) {
	for _, how := range []string{progressPlain, progressBar} {
		var out bytes.Buffer
		p := newProgress(&out, how, 0, 2)
		p.draws = true
		p.part(1, 4)
		if out.Len() > 0 {
			t.Errorf("%s: printed %q at once", how, &out)
		}
		p.shown = p.shown.Add(-20 * time.Second)
		p.mark = p.shown
		p.part(2, 4)
		if want := "0/2 and 2/4 of the next  ETA 1m00s"; !strings.Contains(out.String(), want) {
			t.Errorf("%s: printed %q, want %q", how, &out, want)
		}
		out.Reset()
		p.shown = p.shown.Add(-20 * time.Second)
		p.part(1, 1) // a picture that is drawn at once
		p.part(4, 4)
		p.update(pipeline.Progress{Step: 1})
		if text := out.String(); strings.Contains(text, "next") || !strings.Contains(text, "1/2  ETA ") {
			t.Errorf("%s: printed %q of a whole picture", how, text)
		}
	}
}

// TestHalfPicture aborts in the middle of a picture: nothing of it is left, and what was there before is.
func TestHalfPicture(t *testing.T) {
	dir := t.TempDir()
	var h halfPictures
	for _, name := range []string{"a.png", "b.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	begun, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = h.write(filepath.Join(dir, "a.png"), func(path string) error {
			return atomicfile.Write(path, func(w io.Writer) error {
				close(begun)
				<-end // of the process
				return errors.New("it goes on all the same")
			})
		})
	}()
	<-begun
	defer close(end)
	h.drop()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
}

// TestErrorLines wants the prefix on every line, a line for each of joined errors, and none twice.
func TestErrorLines(t *testing.T) {
	var errs bytes.Buffer
	a := newApp(nil, nil, &errs)
	one := errors.New("no room")
	a.fail(errors.Join(fmt.Errorf("save: %w", errors.Join(one, errors.New("no rights"))), one, errors.New("no rights")), "Make room.")
	if got, want := errs.String(), "vksplat: error: save: no room\nvksplat: error: no rights\nvksplat: error: no room\nhint: make room\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOutputChecked keeps the first error of standard output, but for a reader that is gone.
func TestOutputChecked(t *testing.T) {
	other, errPrint := errors.New("other"), errors.New("print")
	for _, tt := range []struct {
		write, err error
		want       string
		code       int
	}{
		{nil, nil, "", exitOK},
		{syscall.EPIPE, nil, "", exitOK},
		{syscall.EPIPE, errPrint, "", exitOK},
		{syscall.EPIPE, other, "other", exitFailure},
		{syscall.ENOSPC, nil, "write to standard output: no space left on device", exitRetry},
		{syscall.ENOSPC, errPrint, "write to standard output: no space left on device", exitRetry},
		{syscall.EIO, other, "other\nwrite to standard output: input/output error", exitRetry},
	} {
		o := &output{w: failingWriter{tt.write}}
		_, failed := o.Write([]byte("x"))
		got := ""
		if tt.err == errPrint { // of a command that looked at errors itself
			tt.err = fmt.Errorf("print plan: %w", failed)
		}
		err := o.checked(tt.err)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want || exitCode(err) != tt.code {
			t.Errorf("%v, then %v: %q, exit code %d", tt.write, tt.err, got, exitCode(err))
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: w.err}
	}
	return len(p), nil
}

func sameFile(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}
