package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"strings"
	"time"
)

// control is what dpkg and apt read of a package. A driver, COLMAP and ffmpeg are recommended: a render node with
// NVIDIA's driver needs none of them.
const control = `Package: %s
Version: %s
Architecture: %s
Maintainer: the vksplat authors
Installed-Size: %d
%sSection: graphics
Priority: optional
Description: %s
`

// controlOf has what control says of each component alone.
var controlOf = map[string]struct{ needs, about string }{
	"vksplat": {"Depends: libc6 (>= " + glibc + "), libvulkan1\n" +
		"Recommends: mesa-vulkan-drivers | vulkan-icd, colmap, ffmpeg\n",
		`train 3D Gaussian splats from photographs on any GPU
 vksplat trains 3D Gaussian splats from photographs or videos, draws, measures,
 converts and shows them. It is one program on Vulkan compute and runs on
 NVIDIA, AMD and Intel GPUs, and on the CPU through software Vulkan.`},
	"vksplat-farmd": {"", `serve a farm of machines that train 3D Gaussian splats
 vksplat-farmd keeps the jobs of a team and hands their tasks to the machines
 that joined, which run vksplat. It needs no GPU.`},
}

// debianFiles moves the files of a prefix to where Debian has them, compressed where Debian compresses.
func debianFiles(files []file, of component) (list []file, err error) {
	docs := of.docs()
	for _, f := range files {
		switch f.path {
		case completions["zsh"]:
			f.path = "share/zsh/vendor-completions/_vksplat"
		case docs + "CHANGELOG.md":
			f.path = docs + "changelog"
		case docs + "LICENSE": // common-licenses has it
			continue
		case docs + "THIRD-PARTY.txt":
			f.path = docs + "copyright"
			f.data = append([]byte("Copyright: the vksplat authors. On Debian systems the Apache License 2.0 is in "+
				"/usr/share/common-licenses/Apache-2.0.\n\n"), f.data...)
		}
		if strings.HasPrefix(f.path, manFolder) || f.path == docs+"changelog" {
			var z bytes.Buffer
			err := gzipped(&z, func(w writer) error { _, err := w.Write(f.data); return err })
			if err != nil {
				return nil, err
			}
			f.path, f.data = f.path+".gz", z.Bytes()
		}
		f.path = "usr/" + f.path
		list = append(list, f)
	}
	sorted(list)
	return list, nil
}

// writeDeb writes a Debian package of the files of a prefix, in the format 2.0 of deb(5).
func writeDeb(w io.Writer, files []file, of stamp, p program) error {
	files, err := debianFiles(files, p.component)
	if err != nil {
		return err
	}
	var sums strings.Builder
	size := 0
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.path)
		size += (len(f.data) + 1023) / 1024
	}
	own := controlOf[p.name]
	about := fmt.Sprintf(control, p.name, of.version, p.arch, size, own.needs, own.about)
	var parts [2]bytes.Buffer
	head := []file{{"control", 0o644, []byte(about)}, {"md5sums", 0o644, []byte(sums.String())}}
	for i, list := range [][]file{head, files} {
		err := gzipped(&parts[i], func(w writer) error { return writeTar(w, list, ".", of.time) })
		if err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, member := range []file{{"debian-binary", 0o644, []byte("2.0\n")},
		{"control.tar.gz", 0o644, parts[0].Bytes()}, {"data.tar.gz", 0o644, parts[1].Bytes()}} {
		if err := writeMember(w, member, of.time); err != nil {
			return err
		}
	}
	return nil
}

// writeMember writes a member of an ar archive, whose data begin at even offsets.
func writeMember(w io.Writer, f file, at time.Time) error {
	if _, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.path, at.Unix(), 0, 0, 0o100000|f.mode,
		len(f.data)); err != nil {
		return err
	}
	data := f.data
	if len(data)%2 == 1 {
		data = append(data[:len(data):len(data)], '\n')
	}
	_, err := w.Write(data)
	return err
}
