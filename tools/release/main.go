// Command release makes the downloads of a version from the commit that is checked out: archives for Linux and Windows,
// Debian packages, a container image, bills of materials and checksums. Two runs on the same commit write the same
// bytes. Times are the commit's; the C compiler for Linux is pinned (.ci/zig), that for Windows is Debian's mingw-w64,
// and go.mod says which Go. The container image holds Debian packages besides, and changes when Debian's archive does.
//
//	go run ./tools/release -zig build/zig -o bin/release
//
// build.go says for which systems. layout.go says what is in a package; archive.go, deb.go and image.go write it.
// docs/release.md is the page for whoever makes a release.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// release makes everything in out.
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
	for _, t := range targets {
		if err := m.build(t, zig); err != nil {
			return err
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
	common          []file // what all packages share, as layout makes it
	programs        []program
}

// packages writes archives, Debian packages and the bill of materials of the programs.
func (m *maker) packages() (err error) {
	if m.common, err = m.layout(); err != nil {
		return err
	}
	for _, p := range m.programs {
		name := fmt.Sprintf("vksplat-%s-%s-%s", m.stamp.version, p.os, p.arch)
		if p.os == "windows" {
			err = m.write(name+".zip", func(w *counted) error {
				return writeZip(w, windowsFiles(m.common, p.binary), name, m.stamp.time)
			})
		} else {
			files := unixFiles(m.common, p.binary)
			err = errors.Join(m.write(name+".tar.gz", func(w *counted) error {
				return gzipped(w, func(w writer) error { return writeTar(w, files, name, m.stamp.time) })
			}), m.write(fmt.Sprintf("vksplat_%s_%s.deb", m.stamp.version, p.arch), func(w *counted) error {
				return writeDeb(w, files, m.stamp, p.arch)
			}))
		}
		if err != nil {
			return err
		}
	}
	return m.write("vksplat-"+m.stamp.version+".cdx.json", func(w *counted) error {
		return writeJSON(w, programBill(m.stamp, m.programs, m.viewer()))
	})
}

// viewer is the version of the viewer that is embedded in the programs.
func (m *maker) viewer() string {
	text, err := os.ReadFile(filepath.Join(m.root, "view/supersplat/VERSION"))
	if err != nil {
		panic(err) // the programs were built with it
	}
	return strings.TrimSpace(string(text))
}
