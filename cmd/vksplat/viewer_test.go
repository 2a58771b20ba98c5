package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"image/jpeg"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/view"
	"vksplat/view/playtest"
)

// viewed is a run that is watched, or a model that is shown, in a process of its own.
type viewed struct {
	cmd     *exec.Cmd
	address string // as printed
	rest    chan string
}

// startViewed starts a run with --viewer.
func startViewed(t testing.TB, args ...string) *viewed {
	t.Helper()
	return startShown(t, "watch it in a browser: ", append([]string{"train"}, args...)...)
}

// startShown starts a command that says before its address what to do with that.
func startShown(t testing.TB, says string, args ...string) *viewed {
	t.Helper()
	v := &viewed{cmd: exec.Command("vksplat", args...), rest: make(chan string, 1)}
	out := must.Get(v.cmd.StdoutPipe())(t)
	var errors bytes.Buffer
	v.cmd.Stderr = &errors
	must.Do(t, v.cmd.Start())
	t.Cleanup(func() { _ = v.cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), says); ok {
			v.address = address
			break
		}
	}
	if v.address == "" {
		t.Fatalf("no address was printed\n%s", errors.String())
	}
	go func() {
		var rest strings.Builder
		for lines.Scan() {
			rest.WriteString(lines.Text() + "\n")
		}
		v.rest <- rest.String()
	}()
	return v
}

// wait waits for the end of the run.
func (v *viewed) wait(t testing.TB) string {
	t.Helper()
	rest := <-v.rest
	if err := v.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, rest)
	}
	return rest
}

// eventually is how long tests wait for what only a defect keeps away.
const eventually = 2 * time.Minute

// endless are the flags of a training that writes the model of a step and goes on, however fast the machine.
func endless(at string) []string {
	return []string{"--iterations", "1000000", "--save-at", at, "--progress", "none"}
}

// trainUntil runs an endless training until a file is there.
func trainUntil(t *testing.T, file string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command("vksplat", append([]string{"train"}, args...)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tooLate := time.After(eventually)
	for !output.IsFile(file) {
		select {
		case err := <-ended:
			t.Fatalf("it ended without %s: %v\n%s", file, err, &said)
		case <-tooLate:
			t.Fatalf("it wrote no %s\n%s", file, &said)
		case <-time.After(5 * time.Millisecond):
		}
	}
	must.Do(t, cmd.Process.Kill())
	<-ended // it was killed
}

// watchUntil pauses an endless training until n browsers have a frame each, and stops it once it has written a file.
func (v *viewed) watchUntil(t *testing.T, file string, n, width, height int) {
	t.Helper()
	c, err := playtest.Enter(t.Context(), v.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	order := func(command string) {
		must.Do(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"command":"`+command+`"}`)))
	}
	order("pause")
	frames, left := make([]atomic.Int64, n), make(chan error, n)
	for i := range frames {
		go func() { left <- v.watch(t.Context(), width, height, &frames[i]) }()
	}
	tooLate := time.After(eventually)
	await := func(what string, reached func() bool) {
		for !reached() {
			select {
			case err := <-left:
				t.Fatalf("%s: a browser left: %v", what, err)
			case <-tooLate:
				t.Fatalf("%s: not within %v", what, eventually)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	for i := range frames {
		await("frames", func() bool { return frames[i].Load() > 0 })
	}
	if output.IsFile(file) {
		t.Errorf("%s was written before all browsers had a frame", file)
	}
	order("resume")
	await(file, func() bool { return output.IsFile(file) })
	v.interrupt(t)
	for range frames {
		must.Do(t, <-left)
	}
}

// interrupt stops a run by Ctrl-C.
func (v *viewed) interrupt(t *testing.T) {
	t.Helper()
	must.Do(t, v.cmd.Process.Signal(os.Interrupt))
	rest := <-v.rest
	_ = v.cmd.Wait() // the code says more
	if code := v.cmd.ProcessState.ExitCode(); code != fault.ExitInterrupted {
		t.Errorf("exit code %d\n%s", code, rest)
	}
}

// watch moves a camera about as fast as browsers do, and counts the frames, until ctx or the run ends.
func (v *viewed) watch(ctx context.Context, width, height int, frames *atomic.Int64) error {
	c, err := playtest.Enter(ctx, v.address)
	if err != nil {
		return err
	}
	defer c.CloseNow()
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			half := float64(i) / 100
			mode := []view.Mode{view.ModePicture, view.ModeDepth, view.ModeCentres, view.ModeEllipsoids}[i/40%4]
			text := fmt.Sprintf(
				`{"view":{"camera":-1,"quaternion":[0,%g,0,%g],"position":[0,0,0],"tangent":0.6,"width":%d,"height":%d,"mode":%q}}`,
				math.Sin(half), math.Cos(half), width, height, mode)
			if c.Write(ctx, websocket.MessageText, []byte(text)) != nil {
				return
			}
			time.Sleep(33 * time.Millisecond)
		}
	}()
	for {
		kind, data, err := c.Read(ctx)
		if err != nil {
			return nil // the run has ended, or the watching
		}
		if kind != websocket.MessageBinary {
			continue
		}
		if _, err := jpeg.DecodeConfig(bytes.NewReader(data)); err != nil {
			return err
		}
		frames.Add(1)
		if c.Write(ctx, websocket.MessageText, []byte(`{"shown":1}`)) != nil {
			return nil
		}
	}
}

// TestViewerBytes has five browsers watch a run: the model has the bytes of a run that nobody watches.
func TestViewerBytes(t *testing.T) {
	capture, dir := smallScene(t, 300), t.TempDir()
	args := append(endless("60"), capture, "--refine-start", "5", "--refine-every", "10")
	const model = "point_cloud/iteration_60/point_cloud.ply"
	alone, watched := filepath.Join(dir, "alone", model), filepath.Join(dir, "watched", model)
	trainUntil(t, alone, append([]string{"-m", filepath.Join(dir, "alone")}, args...)...)
	t.Setenv(stepFloorVariable, "20ms") // so that the pause comes before the model
	v := startViewed(t, append([]string{"-m", filepath.Join(dir, "watched"), "--viewer"}, args...)...)
	v.watchUntil(t, watched, 5, 200, 150)
	filetest.Same(t, alone, watched)
}

// BenchmarkViewer trains the capture in VKSPLAT_BENCH_CAPTURE alone and with a browser that always asks for frames of
// 1280x720, and reports how many times as long the training loop takes.
func BenchmarkViewer(b *testing.B) {
	capture := os.Getenv("VKSPLAT_BENCH_CAPTURE")
	if capture == "" {
		b.Skip("VKSPLAT_BENCH_CAPTURE names no capture")
	}
	steps := os.Getenv("VKSPLAT_BENCH_STEPS")
	if steps == "" {
		steps = "3000"
	}
	seconds := func(out string) float64 {
		var st struct {
			Loop float64 `json:"loop_seconds"`
		}
		filetest.ReadJSON(b, filepath.Join(out, "stats.json"), &st)
		return st.Loop
	}
	for b.Loop() {
		dir := b.TempDir()
		args := []string{capture, "--iterations", steps, "--progress", "none", "--checkpoint-every", "0",
			"--report=false"}
		alone, watched := filepath.Join(dir, "alone"), filepath.Join(dir, "watched")
		if out, err := exec.Command("vksplat",
			append([]string{"train", "-m", alone}, args...)...).CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		v := startViewed(b, append([]string{"-m", watched, "--viewer"}, args...)...)
		var frames atomic.Int64
		done := make(chan error, 1)
		go func() { done <- v.watch(b.Context(), 1280, 720, &frames) }()
		v.wait(b)
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(seconds(watched)/seconds(alone), "times")
		b.ReportMetric(float64(frames.Load())/seconds(watched), "frames/s")
	}
}

// TestViewerSoak has five browsers watch for an hour, VKSPLAT_SOAK_MINUTES or so: the run's memory does not grow.
// Browsers leave and come back.
func TestViewerSoak(t *testing.T) {
	minutes, err := strconv.Atoi(os.Getenv("VKSPLAT_SOAK_MINUTES"))
	if err != nil {
		if minutes = 60; !filetest.Long() {
			t.Skip("VKSPLAT_LONG=1 watches for an hour")
		}
	}
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell the memory of a process as a file")
	}
	// Without refinement the model does not grow, and what grows is the viewer's.
	v := startViewed(t, smallScene(t, 300), "-m", filepath.Join(t.TempDir(), "out"), "--viewer", "--iterations",
		"1000000000", "--checkpoint-every", "0", "--progress", "none",
		"--refine-every", "0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(minutes)*time.Minute)
	defer cancel()
	var frames atomic.Int64
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			for stay := time.Duration(20+7*i) * time.Second; ctx.Err() == nil; {
				visit, leave := context.WithTimeout(ctx, stay)
				if err := v.watch(visit, 160+40*i, 120, &frames); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				leave()
			}
		})
	}
	var resident []float64 // MB, every five seconds
	for ctx.Err() == nil {
		time.Sleep(5 * time.Second)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		var kb float64
		if _, text, ok := strings.Cut(string(status), "VmRSS:"); ok {
			_, err = fmt.Sscan(text, &kb)
		}
		if err != nil || kb == 0 {
			t.Fatalf("no memory in %s", status)
		}
		resident = append(resident, kb/1024)
	}
	all.Wait()
	mean := func(list []float64) (sum float64) {
		for _, x := range list {
			sum += x / float64(len(list))
		}
		return sum
	}
	third := len(resident) / 3
	before, after := mean(resident[third:2*third]), mean(resident[2*third:])
	t.Logf("%d frames; resident %.1f MB, then %.1f", frames.Load(), before, after)
	if frames.Load() == 0 || after > 1.05*before+4 {
		t.Errorf("%d frames; resident memory went from %.1f to %.1f MB", frames.Load(), before, after)
	}
}
