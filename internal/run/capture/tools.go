package capture

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"vksplat/internal/fault"
)

// installers are the commands that install packages, with the names of the packages that hold a program.
var installers = []struct {
	program  string // that is there where the command works
	system   string // of package runtime, "" for any
	command  string
	packages map[string]string // by program, where the name is another one
}{
	{"apt-get", "linux", "sudo apt-get install ", map[string]string{"ffprobe": "ffmpeg",
		"heif-convert": "libheif-examples", "magick": "imagemagick"}},
	{"dnf", "linux", "sudo dnf install ", map[string]string{"ffprobe": "ffmpeg", "heif-convert": "libheif-tools",
		"magick": "ImageMagick"}},
	{"pacman", "linux", "sudo pacman -S ", map[string]string{"ffprobe": "ffmpeg", "heif-convert": "libheif",
		"magick": "imagemagick"}},
	{"brew", "", "brew install ", map[string]string{"ffprobe": "ffmpeg", "heif-convert": "libheif",
		"magick": "imagemagick"}},
	{"conda", "", "conda install conda-forge::", map[string]string{"ffprobe": "ffmpeg", "heif-convert": "libheif",
		"magick": "imagemagick"}},
}

// installHint says how a program gets installed here, or where no installer is known, on the usual systems.
func installHint(program string) string {
	var here, all []string
	for _, i := range installers {
		name := i.packages[program]
		if name == "" {
			name = program
		}
		command := i.command + name
		all = append(all, command)
		if _, err := exec.LookPath(i.program); err == nil && (i.system == "" || i.system == runtime.GOOS) {
			here = append(here, command)
		}
	}
	if len(here) > 0 {
		return "install it: " + here[0]
	}
	return "install it, by one of: " + strings.Join(all, "; ")
}

func need(program, what string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, exec.ErrNotFound) {
		return "", &fault.Error{Op: "start " + program, Err: err, Kind: fault.ErrMachine,
			Hint: "check the program and its permissions"}
	}
	return "", &fault.Error{Op: "start " + program, Err: fmt.Errorf("%s needs it, and %w", what, fault.ErrMissing),
		Kind: fault.ErrMachine, Hint: installHint(program) + "; then run the same command again"}
}

// Missing is the error of a machine without COLMAP, nil where it is installed.
func Missing() error {
	if has(colmapName) {
		return nil
	}
	return &fault.Error{Op: "start " + colmapName, Err: fmt.Errorf("%s needs it, and %w", colmapUse, fault.ErrMissing),
		Kind: fault.ErrMachine, Hint: installHint(colmapName)}
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
