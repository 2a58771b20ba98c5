package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// wine runs the program for Windows under Wine, on software Vulkan.
type wine struct {
	wine, exe string // Wine's program and ours
	prefix    string // the folder of Wine's disks
}

// prng is what Go needs of Windows and Wine 8 lacks.
const prng = `#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return RtlGenRandom(p, (ULONG)n); }
`

// startWine builds the program for Windows and gives it a new disk C:.
func startWine(t *testing.T) *wine {
	t.Helper()
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 runs the program for Windows")
	}
	const compiler = "x86_64-w64-mingw32-gcc"
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/lib/wine") // where Debian puts the programs of wine64
	drivers, _ := filepath.Glob("/usr/share/vulkan/icd.d/lvp_icd*.json")
	for _, program := range []string{"wine64", "wineserver", "Xvfb", compiler} {
		if _, err := exec.LookPath(program); err != nil || len(drivers) == 0 {
			t.Skip("one of wine64, xvfb, mingw-w64 and mesa-vulkan-drivers is not installed")
		}
	}
	dir := t.TempDir()
	w := &wine{wine: "wine64", exe: filepath.Join(dir, "vksplat.exe"), prefix: filepath.Join(dir, "wine")}
	for _, v := range [][2]string{{"WINEPREFIX", w.prefix}, {"WINEDEBUG", "-all"}, {"WINEDLLOVERRIDES", "mscoree,mshtml="},
		{"LC_ALL", "C.UTF-8"}, {"VK_DRIVER_FILES", drivers[0]}, {"VK_ICD_FILENAMES", drivers[0]},
		{"VKSPLAT_VALIDATE", ""}, {"DISPLAY", startDisplay(t)}} {
		t.Setenv(v[0], v[1])
	}
	build := exec.Command("go", "build", "-o", w.exe, ".")
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=1", "CC="+compiler)
	source := filepath.Join(dir, "prng.c")
	must.Do(t, os.WriteFile(source, []byte(prng), 0o666))
	for _, cmd := range []*exec.Cmd{build, exec.Command(w.wine, "wineboot", "-i"), exec.Command("wineserver", "-w"),
		exec.Command(compiler, "-shared", "-o", w.onC("windows/system32/bcryptprimitives.dll"), source, "-ladvapi32")} {
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, said)
		}
	}
	t.Cleanup(func() {
		_ = exec.Command("wineserver", "-k").Run() // ends what a failed test left running
		_ = exec.Command("wineserver", "-w").Run()
	})
	return w
}

// startDisplay starts an X server, without which Wine has no Vulkan, and returns its name.
func startDisplay(t *testing.T) string {
	t.Helper()
	r, w, err := os.Pipe()
	must.Do(t, err)
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "640x480x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{w}
	must.Do(t, errors.Join(cmd.Start(), w.Close()))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	number := must.Get(bufio.NewReader(r).ReadString('\n'))(t)
	return ":" + strings.TrimSpace(number)
}

// onC is the place of a file of disk C:.
func (w *wine) onC(name string) string {
	return filepath.Join(w.prefix, "drive_c", filepath.FromSlash(name))
}

// start starts the program for Windows.
func (w *wine) start(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(w.wine, append([]string{w.exe}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	must.Do(t, cmd.Start())
	return cmd, &out
}

// run runs the program for Windows, which must end with an exit code, and returns what it prints.
func (w *wine) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd, out := w.start(t, args...)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("vksplat %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out.String()
}

// backslashes is a path of this system as Windows has it under Wine.
func backslashes(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }

// TestWine trains, is killed, resumes, converts and shows a model by the program for Windows, in folders with spaces,
// letters of many scripts and names beyond 260 characters, on two disks, by slashes of both kinds. Models and
// checkpoints have the bytes that the program for this system gives them on the same driver.
func TestWine(t *testing.T) {
	w := startWine(t)
	const odd = "Räume 日本 😀 & [1]"
	capture, long := smallScene(t, 300), t.TempDir()
	for range 4 {
		long = filepath.Join(long, strings.Repeat("long name ", 7)+"x")
	}
	must.Do(t, os.CopyFS(w.onC(odd+"/scene"), os.DirFS(capture)))
	settings := []string{"--iterations", "180", "--checkpoint-every", "60", "--max-splats", "1000", "--refine-start",
		"90", "--refine-every", "60", "--progress", "none", "--eval"}
	whole, part, here := w.onC(odd+"/whole"), filepath.Join(long, "part"), filepath.Join(t.TempDir(), "here")
	if cmd, said := startTrain(t, append(settings, capture, "-m", here)...); cmd.Wait() != nil {
		t.Fatalf("%s", said)
	}
	w.run(t, 0, append([]string{"train", `C:\` + odd + `\scene`, "-m", `C:\` + odd + `\whole`}, settings...)...)

	args := append([]string{"train", "C:/" + odd + "/scene", "-m", "Z:" + part, "--resume"}, settings...)
	cmd, said := w.start(t, args...)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	awaitCheckpoint(t, part, ended)
	must.Do(t, cmd.Process.Kill())
	if <-ended == nil {
		t.Fatalf("it ended before it could be killed\n%s", said)
	}
	if text := w.run(t, 0, args...); !strings.Contains(text, "resuming from") {
		t.Errorf("it did not resume\n%s", text)
	}
	for _, dir := range []string{whole, part} {
		for _, name := range []string{"point_cloud/iteration_180/point_cloud.ply", "results.json",
			output.CheckpointFolder + "/step_180.safetensors", "test/ours_180/view_000.png"} {
			filetest.Same(t, filepath.Join(here, name), filepath.Join(dir, name))
		}
	}
	t.Run("convert", func(t *testing.T) {
		w.run(t, 0, "convert", backslashes(part), `C:\`+odd+`\m o d e l.spz`)
		vksplat(t, "convert", here, filepath.Join(here, "model.spz"))
		filetest.Same(t, filepath.Join(here, "model.spz"), w.onC(odd+"/m o d e l.spz"))
		text := w.run(t, fault.ExitUsage, "convert", backslashes(part), "lpt1.ply")
		if !strings.Contains(text, `"lpt1.ply" is a device on Windows`) {
			t.Errorf("a name that Windows reserves:\n%s", text)
		}
	})
	t.Run("doctor", func(t *testing.T) {
		w.run(t, 0, "doctor", "--report", `C:\report.txt`)
		if text, err := os.ReadFile(w.onC("report.txt")); !strings.Contains(string(text), "windows/amd64") {
			t.Errorf("%v\n%s", err, text)
		}
	})
	t.Run("view", func(t *testing.T) { w.view(t, backslashes(part)) })
	t.Run("console", func(t *testing.T) {
		w.console(t, "train", backslashes(capture), "-m", `C:\console`, "--iterations", "100000", "--max-splats", "1000")
	})
}

// view asks for the page that shows a model.
func (w *wine) view(t *testing.T, model string) {
	cmd := exec.Command(w.wine, w.exe, "view", model, "--no-open")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, found := strings.Cut(lines.Text(), "open in a browser: "); found {
			answer := must.Get(http.Get(strings.TrimSpace(url)))(t)
			page := must.Get(io.ReadAll(answer.Body))(t)
			if answer.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("<title>vksplat</title>")) {
				t.Errorf("%s: %s\n%.200s", url, answer.Status, page)
			}
			return
		}
	}
	t.Error("view printed no address")
}

// escapes are what Wine's console writes to a terminal beside text.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// console trains in a console of 80 columns, until it is stopped by Ctrl-C: no line is longer, and the run is saved.
func (w *wine) console(t *testing.T, args ...string) {
	const columns = 80
	keyboard, terminal := openTerminal(t, columns)
	cmd := exec.Command(w.wine, append([]string{w.exe}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(t, errors.Join(cmd.Start(), terminal.Close()))
	timeout := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	var said strings.Builder
	pressed := false
	for piece := make([]byte, 1<<16); ; {
		n, err := keyboard.Read(piece)
		said.Write(piece[:n])
		if err != nil { // all of the terminal's other ends are closed
			break
		}
		if !pressed && strings.Contains(said.String(), "steps/s") {
			pressed = true
			must.Get(keyboard.Write([]byte{3}))(t)
		}
	}
	_ = cmd.Wait()
	text := escapes.ReplaceAllString(said.String(), "")
	if code := cmd.ProcessState.ExitCode(); code != fault.ExitInterrupted ||
		!strings.Contains(text, `continue with: vksplat resume C:\console`) {
		t.Errorf("exit code %d\n%s", code, text)
	}
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if len([]rune(line)) > columns {
			t.Errorf("a line of %d columns: %s", len([]rune(line)), line)
		}
	}
}

// openTerminal makes a terminal, and returns the end where a user would sit first.
func openTerminal(t *testing.T, columns uint16) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard = must.Get(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = keyboard.Close() })
	fd := int(keyboard.Fd())
	must.Do(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	must.Do(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 25, Col: columns}))
	peer, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if e != 0 {
		t.Fatal(e)
	}
	return keyboard, os.NewFile(peer, "terminal")
}
