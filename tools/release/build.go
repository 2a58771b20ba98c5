package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"debug/pe"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// glibc is the oldest version that the programs for Linux run with: Debian 10, Ubuntu 20.04, RHEL 8.
const glibc = "2.28"

// target is a system that programs are built for, with zig's name of it. The program for Windows is built by mingw-w64,
// as make windows builds it.
type target struct{ os, arch, zig string }

var targets = []target{
	{"linux", "amd64", "x86_64-linux-gnu." + glibc},
	{"linux", "arm64", "aarch64-linux-gnu." + glibc},
	{"windows", "amd64", ""},
}

// component is a program of the release, which has packages of its own. One without C code needs no library of a
// system.
type component struct {
	name, dir, pkg string // dir is that of its module
	c              bool
}

// The server of a farm is 160 MB: who only trains need not download it.
var components = []component{
	{"vksplat", ".", "./cmd/vksplat", true},
	{"vksplat-farmd", "farmd", ".", false},
}

// program is the build of a component for a target.
type program struct {
	component
	target
	path   string
	binary []byte
	info   *buildinfo.BuildInfo
}

// own is the trainer for this machine, which the image holds, too.
func (m *maker) own() program {
	return m.programs[slices.IndexFunc(m.programs, func(p program) bool {
		return p.name == components[0].name && p.os == "linux" && p.arch == "amd64"
	})]
}

// build builds a component for a target, and checks what it asks of a system.
func (m *maker) build(c component, t target, zig string) error {
	started := time.Now()
	p := program{component: c, target: t, path: filepath.Join(m.work, c.name+"-"+t.os+"-"+t.arch)}
	path, err := filepath.Abs(p.path)
	if err != nil {
		return err
	}
	const cli = "-X vksplat/internal/cli."
	if !c.c {
		zig = ""
	}
	if err := t.goBuild(zig, filepath.Join(m.root, c.dir), c.pkg, path, cli+"version="+m.stamp.version,
		cli+"revision="+m.stamp.commit); err != nil {
		return err
	}
	if p.binary, err = os.ReadFile(path); err != nil {
		return err
	}
	if p.info, err = buildinfo.Read(bytes.NewReader(p.binary)); err != nil {
		return fmt.Errorf("read what %s was built from: %w", path, err)
	}
	if err := t.check(p.binary, c.c); err != nil {
		return fmt.Errorf("check %s for %s/%s: %w", c.name, t.os, t.arch, err)
	}
	m.programs = append(m.programs, p)
	fmt.Printf("  %-48s %6.1f MB  %4.0f s\n", c.name+" for "+t.os+"/"+t.arch, float64(len(p.binary))/1e6,
		time.Since(started).Seconds())
	return nil
}

// goBuild builds a package in dir for the target, without C code where no C compiler is named.
func (t target) goBuild(zig, dir, pkg, path string, settings ...string) error {
	cc, cgo := "x86_64-w64-mingw32-gcc", "1"
	switch {
	case zig == "":
		cc, cgo = "none", "0"
	case t.zig != "":
		// The compiler takes its target from its name: Go's linker tries flags without the others that CC may have.
		cc = filepath.Join(zig, "cc-"+t.zig)
		if err := os.Symlink("cc", cc); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("name the C compiler for %s: %w", t.zig, err)
		}
	}
	flags := append([]string{"-s -w -buildid="}, settings...)
	// Zig describes C code for debuggers, with paths of this machine: they change the bytes.
	if t.os == "linux" && cgo == "1" {
		flags = append(flags, "-extldflags=-Wl,--strip-all")
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "-ldflags", strings.Join(flags, " "),
		pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=", "GOEXPERIMENT=",
		"CGO_ENABLED="+cgo, `CC="`+cc+`"`, "CGO_CFLAGS=-O2 -g0", "CGO_CPPFLAGS=", "CGO_LDFLAGS=", "GOAMD64=v1",
		"GOARM64=v8.0")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for %s/%s: %w", t.os, t.arch, err)
	}
	return nil
}

// check refuses a program that asks for more than every system of the target has.
func (t target) check(binary []byte, c bool) error {
	switch {
	case t.os == "windows":
		return checkWindows(binary)
	case c:
		return checkLinux(binary, glibc)
	}
	return checkStatic(binary)
}

// checkStatic refuses a program that asks for any library.
func checkStatic(binary []byte) error {
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	libraries, err := f.ImportedLibraries()
	if err == nil && len(libraries) > 0 {
		err = fmt.Errorf("it needs %s", strings.Join(libraries, ", "))
	}
	return err
}

// ofGlibc are the libraries that come with glibc.
var ofGlibc = []string{"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2", "librt.so.1",
	"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

// checkLinux refuses a program that asks for a newer glibc than a version, or for libraries beside it: the Vulkan
// loader is opened at run time.
func checkLinux(binary []byte, newest string) error {
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, l := range libraries {
		if !slices.Contains(ofGlibc, l) {
			return fmt.Errorf("it needs %s, which is none of glibc's", l)
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return err
	}
	versions := 0
	for _, s := range symbols {
		version, isGlibc := strings.CutPrefix(s.Version, "GLIBC_")
		if isGlibc {
			versions++
		}
		if isGlibc && newer(version, newest) {
			return fmt.Errorf("%s asks for glibc %s, more than %s", s.Name, version, newest)
		}
	}
	if versions == 0 {
		return errors.New("it names no version of glibc: is it linked with it?")
	}
	return nil
}

// newer compares versions of numbers: 2.4 is older than 2.28.
func newer(a, b string) bool {
	numbers := func(version string) (list []int) {
		for word := range strings.SplitSeq(version, ".") {
			n, err := strconv.Atoi(word)
			if err != nil {
				n = 1 << 30 // GLIBC_PRIVATE, which no program may ask for
			}
			list = append(list, n)
		}
		return list
	}
	return slices.Compare(numbers(a), numbers(b)) > 0
}

// checkWindows refuses a program that asks for libraries that do not come with Windows 10.
func checkWindows(binary []byte) error {
	f, err := pe.NewFile(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	libraries, err := importedDLLs(f)
	if err != nil {
		return err
	}
	for _, l := range libraries {
		l = strings.ToLower(l)
		if !strings.HasPrefix(l, "api-ms-win-") && !slices.Contains(ofWindows, l) {
			return fmt.Errorf("it needs %s, which may not be there", l)
		}
	}
	return nil
}

var ofWindows = []string{"kernel32.dll", "ntdll.dll", "msvcrt.dll", "advapi32.dll", "ws2_32.dll", "shell32.dll"}

// importedDLLs lists the libraries of the symbols that a program imports, each once.
func importedDLLs(f *pe.File) (list []string, err error) {
	symbols, err := f.ImportedSymbols()
	for _, s := range symbols { // name:library
		_, library, _ := strings.Cut(s, ":")
		if !slices.Contains(list, library) {
			list = append(list, library)
		}
	}
	if err == nil && len(list) == 0 {
		err = errors.New("it imports nothing: is it a program for Windows?")
	}
	return list, err
}
