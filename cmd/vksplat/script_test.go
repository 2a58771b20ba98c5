//go:build unix

package main

import (
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/meter"
	"vksplat/pipeline"
	"vksplat/scene/safetensors"
	"vksplat/scene/splatfile"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"vksplat": main})
}

// passedOn are the variables of the test's environment that scripts see. VKSPLAT_VALIDATE is one of the long form: the
// layer has watched kernels and steps in other tests, and each of the many processes here would start it.
var passedOn = []string{"VKSPLAT_LOADER", "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "LP_NATIVE_VECTOR_WIDTH",
	"LD_LIBRARY_PATH"}

// TestScripts runs testdata/script/*.txtar. Each is a story of commands with
// their outputs, see the commands below and those of package testscript.
func TestScripts(t *testing.T) {
	cache := t.TempDir() // of compiled kernels, for all scripts
	devices, err := pipeline.ListDevices()
	hasDevice := err == nil && len(devices) > 0
	shared := must.Get(filepath.Abs("../../../shared/data"))(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", cache)
			env.Setenv("MESA_SHADER_CACHE_DIR", machineCode())
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("CAPTURES", shared)
			if filetest.Long() {
				env.Setenv("VKSPLAT_VALIDATE", os.Getenv("VKSPLAT_VALIDATE"))
			}
			for _, name := range passedOn {
				if v, ok := os.LookupEnv(name); ok {
					env.Setenv(name, v)
				}
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "device":
				return hasDevice, nil
			case "root": // whom permissions do not stop
				return os.Geteuid() == 0, nil
			case "captures":
				_, err := os.Stat(shared)
				return err == nil, nil
			case "namespaces":
				return hasNamespaces(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"bent":    cmdBent,
			"capture": cmdCapture, "photo": cmdPhoto, "patch": cmdPatch, "cut": cmdCut, "fails": cmdFails,
			"interrupts": cmdInterrupts, "killed": cmdKilled, "stopped": cmdStopped, "bucket": cmdBucket,
			"older": cmdOlder, "photos": cmdPhotos,
		},
	})
}

// machineCode is the folder of what software Vulkan compiles: the user's, as in other tests, also where the rest of the
// caches is a test's own. To compile it takes longer than most scripts.
func machineCode() string {
	dir := os.Getenv("MESA_SHADER_CACHE_DIR")
	if user, err := os.UserCacheDir(); err == nil && dir == "" {
		dir = user
	}
	return dir
}

// hasNamespaces says whether this user can mount things that only his own processes see.
func hasNamespaces() bool {
	return exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", os.TempDir()).Run() == nil
}

// number parses an argument of a script command.
func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.ParseInt(s, 0, 64)
	ts.Check(err)
	return int(n)
}

// cmdCapture is "capture DIR [POINTS]": a procedural capture of 8 photos of 64x48
// and 300 points.
func cmdCapture(ts *testscript.TestScript, _ bool, args []string) {
	o := synth.Options{Images: 8, Width: 64, Height: 48, Points: 300}
	if len(args) > 1 {
		o.Points = number(ts, args[1])
	}
	ts.Check(synthtest.Write(ts.MkAbs(args[0]), o))
}

// cmdPhotos is "photos DIR N WIDTH HEIGHT": photos whose cameras COLMAP finds.
func cmdPhotos(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	w, h := number(ts, args[2]), number(ts, args[3])
	ts.Check(capturetest.Photos(dir, number(ts, args[1]), w, h, capturetest.Pinhole))
}

// cmdPhoto is "photo FILE WIDTH HEIGHT": a black PNG of that size.
func cmdPhoto(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(errors.Join(png.Encode(f, image.NewGray(image.Rect(0, 0, number(ts, args[1]), number(ts, args[2])))),
		f.Close()))
}

// cmdPatch is "patch FILE OFFSET BYTE...": writes bytes over those at OFFSET.
func cmdPatch(ts *testscript.TestScript, _ bool, args []string) {
	data := make([]byte, 0, len(args)-2)
	for _, a := range args[2:] {
		data = append(data, byte(number(ts, a)))
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt(data, int64(number(ts, args[1])))
	ts.Check(errors.Join(err, f.Close()))
}

// cmdCut is "cut FILE SIZE": keeps the first bytes; with a negative SIZE, all but the last.
func cmdCut(ts *testscript.TestScript, _ bool, args []string) {
	path, size := ts.MkAbs(args[0]), int64(number(ts, args[1]))
	if size < 0 {
		info, err := os.Stat(path)
		ts.Check(err)
		size += info.Size()
	}
	ts.Check(os.Truncate(path, size))
}

// formerly are the words of a checkpoint's header, and what versions from before presets followed captures had in their
// place.
var formerly = [][2]string{{`"preset":"3dgs",`, ""}, {`"strategy":"3dgs"`, `"strategy":"default"`}, {`"huber":0,`, ""}}

// cmdOlder is "older FILE": makes a checkpoint that the preset 3dgs began one of an earlier version.
func cmdOlder(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	file, err := safetensors.Open(path)
	ts.Check(err)
	_, text, err := splatfile.ReadCheckpointHeader(file)
	ts.Check(err)
	header := string(text)
	for _, w := range formerly {
		if !strings.Contains(header, w[0]) {
			ts.Fatalf("no %s in %s", w[0], header)
		}
		header = strings.Replace(header, w[0], w[1], 1)
	}
	var tensors []safetensors.TensorData
	for _, info := range file.Tensors {
		tensors = append(tensors, safetensors.TensorData{TensorInfo: info, Write: func(w io.Writer) error {
			_, err := io.Copy(w, file.Reader(info.Name))
			return err
		}})
	}
	ts.Check(safetensors.Write(path, splatfile.CheckpointMetadata(header), tensors)) // replaces the file as a whole
	ts.Check(file.Close())
}

// Bounds on what a refusal may cost. Processor time is measured, so that a busy
// machine does not fail tests.
const (
	failSeconds = 1.0
	failBytes   = 128 << 20
)

// cmdFails is "fails CODE COMMAND...": the command must end with that exit code,
// print exactly one error and one hint in whole lines, name only flags that it
// has, and cost little.
func cmdFails(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		ts.Fatalf("the command did not fail: %v", err)
	}
	if got := exit.ExitCode(); got != number(ts, args[0]) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stderr"), "\n"), "\n")
	n := len(lines)
	if n < 2 || !strings.HasPrefix(lines[n-2], "vksplat: error: ") || !strings.HasPrefix(lines[n-1], "hint: ") {
		ts.Fatalf("the last two lines are no error with a hint:\n%s", strings.Join(lines, "\n"))
	}
	if args[1] == "vksplat" {
		if strange := strangeFlags(rootCommand(cli.New(nil, io.Discard, io.Discard)), args[2:],
			lines[n-1]); len(strange) > 0 {
			ts.Fatalf("the hint names flags that the command does not have: %q", strange)
		}
	}
	if s := (exit.UserTime() + exit.SystemTime()).Seconds(); s > failSeconds {
		ts.Fatalf("took %.2f s of processor time", s)
	}
	// A command begins as a copy of this process, whose peak counts as its own.
	if u, ok := exit.SysUsage().(*syscall.Rusage); ok && u.Maxrss<<10 > max(failBytes, meter.PeakRSS()) {
		ts.Fatalf("took %d MiB of memory", u.Maxrss>>10)
	}
}

// environment is that of commands which are not run by exec.
func environment(ts *testscript.TestScript) []string {
	return append(os.Environ(), "XDG_CACHE_HOME="+ts.Getenv("XDG_CACHE_HOME"),
		"XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"), "VKSPLAT_VALIDATE="+ts.Getenv("VKSPLAT_VALIDATE"),
		stepFloorVariable+"="+ts.Getenv(stepFloorVariable))
}

// cmdKilled is "killed FILE COMMAND...": starts the command and kills it, as kill -9 does, once FILE, or one of that
// pattern, exists.
func cmdKilled(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	ts.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			ts.Fatalf("the command ended before there was %s: %v", args[0], err)
		case <-time.After(5 * time.Millisecond):
		}
		there, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		if len(there) > 0 {
			ts.Check(cmd.Process.Kill())
			<-done
			return
		}
	}
}

// cmdInterrupts is "interrupts TIMES TEXT COMMAND...": starts the command, sends
// so many SIGINTs once its output holds TEXT, and wants exit code 130. The output
// goes to the files stdout.txt and stderr.txt.
func cmdInterrupts(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	stdout, err := os.Create(ts.MkAbs("stdout.txt"))
	ts.Check(err)
	defer stdout.Close() // only written to by the command
	stderr, err := os.Create(ts.MkAbs("stderr.txt"))
	ts.Check(err)
	defer stderr.Close() // likewise
	cmd.Stdout, cmd.Stderr = stdout, stderr
	ts.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	err = nil
	for sent := 0; ; {
		select {
		case err = <-done:
			if cmd.ProcessState.ExitCode() != fault.ExitInterrupted {
				ts.Fatalf("ended with %v, want exit code %d\n%s", err, fault.ExitInterrupted, ts.ReadFile("stderr.txt"))
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
		if sent > 0 || strings.Contains(ts.ReadFile("stdout.txt"), args[1]) {
			if sent < number(ts, args[0]) {
				// It may have ended since: of the first one of two.
				if err := cmd.Process.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
					ts.Check(err)
				}
				sent++
			}
		}
	}
}
