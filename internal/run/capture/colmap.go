package capture

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// colmapName is the program that finds cameras.
const colmapName = "colmap"

const colmapUse = "finding the cameras"

// colmapTool is an installed COLMAP. Its options have other names in other versions: those of a command are read from
// its help.
type colmapTool struct {
	path     string
	version  string // as in 3.8
	cuda     bool   // built with CUDA
	commands map[string]bool
	options  map[string]map[string]string // by command and name; the default, "" for none
}

var (
	versionLine = regexp.MustCompile(`COLMAP (\d[\w.\-]*)`)
	optionLine  = regexp.MustCompile(`(?m)^\s+--([A-Za-z][\w.]*)(?: arg)?(?: \(=(.*)\))?`)
	commandLine = regexp.MustCompile(`(?m)^  ([a-z][a-z_]+)\s*$`)
)

func probeColmap(ctx context.Context) (*colmapTool, error) {
	path, err := need(colmapName, colmapUse)
	if err != nil {
		return nil, err
	}
	said, err := ask(ctx, path, "help")
	m := versionLine.FindStringSubmatch(said)
	if m == nil {
		if err == nil {
			err = fmt.Errorf("its help names no version: %.100q", said)
		}
		return nil, &fault.Error{Op: "start colmap", Path: path, Err: err, Kind: fault.ErrMachine,
			Hint: "run it by hand; it must be COLMAP 3.8 or newer"}
	}
	c := &colmapTool{path: path, version: m[1], cuda: strings.Contains(said, "with CUDA"), commands: map[string]bool{},
		options: map[string]map[string]string{}}
	for _, m := range commandLine.FindAllStringSubmatch(said, -1) {
		c.commands[m[1]] = true
	}
	return c, nil
}

// colmapEnv lets COLMAP run where there is no display.
var colmapEnv = []string{"QT_QPA_PLATFORM=offscreen"}

// ask gives all that a program says to a question. Some versions print their help to standard error, and end with 1.
func ask(ctx context.Context, path string, args ...string) (string, error) {
	said, errs, err := answers(ctx, path, args...)
	return said + errs, err
}

// answers gives what a program prints to standard output and to standard error.
func answers(ctx context.Context, path string, args ...string) (said, errs string, err error) {
	var out, more bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), colmapEnv...), &out, &more
	if err = cmd.Run(); ctx.Err() != nil {
		return "", "", fault.ErrInterrupted
	}
	return out.String(), more.String(), err
}

func (c *colmapTool) from(version [2]int) bool {
	var is [2]int
	if _, err := fmt.Sscanf(c.version, "%d.%d", &is[0], &is[1]); err != nil {
		return true // one that counts otherwise
	}
	return is[0] > version[0] || is[0] == version[0] && is[1] >= version[1]
}

func (c *colmapTool) learn(ctx context.Context, command string) error {
	if c.options[command] != nil {
		return nil
	}
	said, err := ask(ctx, c.path, command, "-h")
	options := map[string]string{}
	for _, m := range optionLine.FindAllStringSubmatch(said, -1) {
		options[m[1]] = m[2]
	}
	if len(options) == 0 {
		if err == nil {
			err = fmt.Errorf("its help names no options: %.100q", said)
		}
		return &fault.Error{Op: "start colmap " + command, Path: c.path, Err: err, Kind: fault.ErrMachine,
			Hint: "run it by hand; COLMAP must be 3.8 or newer"}
	}
	c.options[command] = options
	return nil
}

// colmapCall is a command line of COLMAP that is put together.
type colmapCall struct {
	c       *colmapTool
	command string
	args    []string
}

func (c *colmapTool) call(ctx context.Context, command string) (*colmapCall, error) {
	if err := c.learn(ctx, command); err != nil {
		return nil, err
	}
	return &colmapCall{c: c, command: command, args: []string{command}}, nil
}

// arguments is the command line with options that all versions have: their names and values.
func (k *colmapCall) arguments(more ...string) []string {
	return append(slices.Clone(k.args), options(more...)...)
}

// options spells names and values of COLMAP's options as arguments.
func options(names ...string) (args []string) {
	for i := 0; i < len(names); i += 2 {
		args = append(args, "--"+names[i], names[i+1])
	}
	return args
}

// set gives the first of the names that is an option a value. It reports whether there is one.
func (k *colmapCall) set(value string, names ...string) bool {
	for _, name := range names {
		if _, known := k.c.options[k.command][name]; known {
			k.args = append(k.args, "--"+name, value)
			return true
		}
	}
	return false
}

// must is set of options that the work cannot do without.
func (k *colmapCall) must(value, setting string, names ...string) error {
	if k.set(value, names...) {
		return nil
	}
	err := fmt.Errorf("COLMAP %s has no option %s", k.c.version, names[0])
	if setting == "" {
		return &fault.Error{Op: "start colmap " + k.command, Err: err, Kind: fault.ErrMachine,
			Hint: "install COLMAP 3.8 or newer"}
	}
	return &fault.Error{Op: "start colmap " + k.command, Err: err, Kind: fault.ErrUsage,
		Hint: "leave out " + fault.Setting(setting) + ", or install a newer COLMAP"}
}

// gpu is 1 if COLMAP computes on a GPU, else 0. Without CUDA it would need a display for that.
func (c *colmapTool) gpu() string {
	if c.cuda && hasNVIDIA() {
		return "1"
	}
	return "0"
}

// nvidiaDevices exist on a system with a CUDA GPU; the last on WSL.
var nvidiaDevices = []string{"/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/dxg"}

// hasNVIDIA tells whether there seems to be a GPU that CUDA runs on.
func hasNVIDIA() bool {
	if runtime.GOOS == "windows" {
		return has("nvidia-smi")
	}
	for _, device := range nvidiaDevices {
		if found, err := filepath.Glob(device); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// print says which COLMAP runs.
func (c *colmapTool) print(console *cli.Console) {
	with := "without CUDA"
	if c.cuda {
		with = "with CUDA"
	}
	console.Printf("%-9s COLMAP %s %s\n", "tools:", c.version, with)
}
