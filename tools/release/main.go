// Command release makes the downloads of a version from the commit that is checked out, of the trainer and of a farm's
// server: archives for Linux and Windows, Debian packages, a container image, bills of materials and checksums. Two
// runs on the same commit write the same bytes. Times are the commit's; the C compiler for Linux is pinned (.ci/zig),
// that for Windows is Debian's mingw-w64, and go.mod says which Go. The container image holds Debian packages besides,
// and changes when Debian's archive does.
//
//	go run ./tools/release -zig build/zig -o bin/release
//
// build.go says what is built for which systems. layout.go says what is in a package; archive.go, deb.go and image.go
// write it. docs/release.md is the page for whoever makes a release.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "bin/release", "`folder` to write to; it must not exist or be empty")
	zig := flag.String("zig", "build/zig", "`folder` of zig's C compiler, as .ci/zig makes it")
	image := flag.Bool("image", true, "make the container image, which needs mmdebstrap")
	flag.Parse()
	if err := release(".", *out, *zig, *image); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(root, out, zig string, image bool) (err error) {
	if old, err := os.ReadDir(out); err != nil && !errors.Is(err, fs.ErrNotExist) || len(old) > 0 {
		return fmt.Errorf("write to %s: it is no empty folder", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "vksplat-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	of, err := stampOf(root)
	if err != nil {
		return err
	}
	started := time.Now()
	fmt.Printf("vksplat %s, commit %s of %s\n", of.version, of.commit, of.time.Format(time.DateTime))
	if zig, err = filepath.Abs(zig); err != nil {
		return err
	}
	m := &maker{root: root, out: out, work: work, stamp: of}
	for _, c := range components {
		for _, t := range targets {
			if err := m.build(c, t, zig); err != nil {
				return err
			}
		}
	}
	if err := m.packages(); err != nil {
		return err
	}
	if image {
		if err := m.image(); err != nil {
			return err
		}
	}
	if err := writeSums(out); err != nil {
		return err
	}
	fmt.Printf("%s holds the release; %.0f s\n", out, time.Since(started).Seconds())
	return nil
}

// maker makes the packages of one commit.
type maker struct {
	root, out, work string // the repository, the results, and what is in between
	stamp           stamp
	common          map[string][]file // what all packages of a component share, as layout makes it
	programs        []program
}

// packages writes archives, Debian packages and the bills of materials of the programs.
func (m *maker) packages() error {
	m.common = map[string][]file{}
	for _, c := range components {
		var err error
		if m.common[c.name], err = m.layout(c); err != nil {
			return err
		}
	}
	for _, p := range m.programs {
		if err := m.pack(p); err != nil {
			return err
		}
	}
	for _, c := range components {
		of := slices.DeleteFunc(slices.Clone(m.programs), func(p program) bool { return p.name != c.name })
		bill := programBill(m.stamp, c.name, of)
		if c.name == components[0].name {
			bill.addViewer(m.viewer())
		}
		if err := m.write(c.name+"-"+m.stamp.version+".cdx.json", func(w *counted) error {
			return writeJSON(w, bill.sort())
		}); err != nil {
			return err
		}
	}
	return nil
}

// pack writes the packages of a program.
func (m *maker) pack(p program) error {
	name := fmt.Sprintf("%s-%s-%s-%s", p.name, m.stamp.version, p.os, p.arch)
	if p.os == "windows" {
		return m.write(name+".zip", func(w *counted) error {
			return writeZip(w, windowsFiles(m.common[p.name], p), name, m.stamp.time)
		})
	}
	files := unixFiles(m.common[p.name], p)
	return errors.Join(m.write(name+".tar.gz", func(w *counted) error {
		return gzipped(w, func(w writer) error { return writeTar(w, files, name, m.stamp.time) })
	}), m.write(fmt.Sprintf("%s_%s_%s.deb", p.name, m.stamp.version, p.arch), func(w *counted) error {
		return writeDeb(w, files, m.stamp, p)
	}))
}

// viewer is the version of the viewer that is embedded in the programs.
func (m *maker) viewer() string {
	text, err := os.ReadFile(filepath.Join(m.root, "view/supersplat/VERSION"))
	if err != nil {
		panic(err) // the programs were built with it
	}
	return strings.TrimSpace(string(text))
}
