package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// stub stands for the program: it prints completions and writes pages, as little as packages need.
const stub = `#!/bin/sh
case $1 in
completion) echo "# completes for $2" ;;
manual) printf '.TH VKSPLAT 1\n.SH NAME\nvksplat \\- stub\n' >"$2/vksplat.1" ;;
esac
`

var testStamp = newStamp("0123456789ab", "v1.2.3", false, time.Unix(1_700_000_000, 0).UTC())

// released makes the packages of a release of stubs in a new folder.
func released(t *testing.T) string {
	t.Helper()
	m := &maker{root: "../..", out: t.TempDir(), work: t.TempDir(), stamp: testStamp}
	info := &buildinfo.BuildInfo{GoVersion: "go1.99.0",
		Deps: []*debug.Module{{Path: "example.org/module", Version: "v1.0.0", Sum: "h1:sum"}}}
	for _, c := range components {
		for _, x := range targets {
			p := program{c, x, filepath.Join(m.work, c.name+x.os+x.arch), []byte(stub), info}
			must.Do(t, os.WriteFile(p.path, p.binary, 0o755))
			m.programs = append(m.programs, p)
		}
	}
	root := filepath.Join(m.work, "root.tar")
	status := "Package: libc6\nArchitecture: amd64\nVersion: 2.41-12\n\nPackage: tool\nArchitecture: all\nVersion: 1+b1\n"
	var b bytes.Buffer
	err := writeTar(&b, []file{{"var/lib/dpkg/status", 0o644, []byte(status)}}, ".", testStamp.time)
	must.Do(t, errors.Join(err, os.WriteFile(root, b.Bytes(), 0o644), m.packages(), m.imageOn(root),
		writeSums(m.out)))
	return m.out
}

// TestSameBytes makes everything twice.
func TestSameBytes(t *testing.T) {
	a, b := released(t), released(t)
	entries, err := os.ReadDir(a)
	if err != nil || len(entries) != 15 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		if x, y := read(t, a, e.Name()), read(t, b, e.Name()); !bytes.Equal(x, y) {
			t.Errorf("%s differs from run to run", e.Name())
		}
	}
	sums := exec.Command("sha256sum", "--quiet", "-c", "SHA256SUMS")
	sums.Dir = a
	if out, err := sums.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(path...)))(t)
	return data
}

// entriesOf lists a tar archive, and checks times and owners.
func entriesOf(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	list := map[string]string{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		data := must.Get(io.ReadAll(archive))(t)
		if _, twice := list[h.Name]; twice || !h.ModTime.Equal(testStamp.time) || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: twice %v, time %v, owner %d:%d", h.Name, twice, h.ModTime, h.Uid, h.Gid)
		}
		if strings.Contains(h.Name, "bin/vksplat") && h.Mode != 0o755 {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		list[h.Name] = string(data)
	}
}

func unzipped(t *testing.T, data []byte) io.Reader {
	t.Helper()
	z := must.Get(gzip.NewReader(bytes.NewReader(data)))(t)
	return z
}

// TestArchives wants each archive to be one folder, with the program, the pages and the licences.
func TestArchives(t *testing.T) {
	out := released(t)
	for _, arch := range []string{"amd64", "arm64"} {
		top := "vksplat-1.2.3-linux-" + arch + "/"
		list := entriesOf(t, unzipped(t, read(t, out, "vksplat-1.2.3-linux-"+arch+".tar.gz")))
		for _, name := range []string{"", "bin/", "share/man/man1/", "bin/vksplat", "share/man/man1/vksplat.1",
			"share/bash-completion/completions/vksplat", "share/zsh/site-functions/_vksplat",
			"share/fish/vendor_completions.d/vksplat.fish", "share/doc/vksplat/README.md",
			"share/doc/vksplat/LICENSE", "share/doc/vksplat/docs/capture.md", "share/doc/vksplat/docs/plush.jpg"} {
			if _, found := list[top+name]; !found {
				t.Errorf("%s has no %s", arch, name)
			}
		}
		for name := range list {
			if !strings.HasPrefix(name, top) {
				t.Errorf("%s is outside of the folder", name)
			}
		}
		licences := list[top+"share/doc/vksplat/THIRD-PARTY.txt"]
		for _, name := range []string{"Go, LICENSE", "github.com/goki/vulkan v", "github.com/spf13/cobra v",
			"SuperSplat viewer, LICENSE"} {
			if !strings.Contains(licences, "\n"+name) {
				t.Errorf("the licence of %s is missing", name)
			}
		}
	}
	farmd := "vksplat-farmd-1.2.3-linux-arm64"
	list := entriesOf(t, unzipped(t, read(t, out, farmd+".tar.gz")))
	for _, name := range []string{"bin/vksplat-farmd", "share/doc/vksplat-farmd/LICENSE",
		"share/doc/vksplat-farmd/docs/farm-server.md"} {
		if _, found := list[farmd+"/"+name]; !found {
			t.Errorf("the server's archive has no %s", name)
		}
	}
	if text := list[farmd+"/share/doc/vksplat-farmd/THIRD-PARTY.txt"]; !strings.Contains(text, "\ngo.temporal.io/server v") ||
		strings.Contains(text, "SuperSplat") {
		t.Error("the licences are not those of the server")
	}
	z := must.Get(zip.OpenReader(filepath.Join(out, "vksplat-1.2.3-windows-amd64.zip")))(t)
	defer z.Close()
	var names []string
	for _, f := range z.File {
		name, inside := strings.CutPrefix(f.Name, "vksplat-1.2.3-windows-amd64/")
		if !inside || !f.Modified.Equal(testStamp.time) {
			t.Errorf("%s of %v", f.Name, f.Modified)
		}
		names = append(names, name)
	}
	for _, name := range []string{"vksplat.exe", "vksplat.ps1", "README.md", "LICENSE", "THIRD-PARTY.txt",
		"docs/capture.md"} {
		if !slices.Contains(names, name) {
			t.Errorf("the zip has no %s", name)
		}
	}
}

// TestDeb has dpkg-deb unpack the packages.
func TestDeb(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no dpkg-deb on this machine")
	}
	out := released(t)
	for _, arch := range []string{"amd64", "arm64"} {
		deb, root := filepath.Join(out, "vksplat_1.2.3_"+arch+".deb"), t.TempDir()
		for _, args := range [][]string{{"--raw-extract", deb, root}, {"--contents", deb}} {
			if text, err := exec.Command("dpkg-deb", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", args, err, text)
			}
		}
		fields, err := exec.Command("dpkg-deb", "--field", deb, "Package", "Version", "Architecture",
			"Depends").Output()
		want := "Package: vksplat\nVersion: 1.2.3\nArchitecture: " + arch + "\nDepends: libc6 (>= 2.28), libvulkan1\n"
		if err != nil || string(fields) != want {
			t.Errorf("%v: %s", err, fields)
		}
		sums := exec.Command("md5sum", "--quiet", "-c", "DEBIAN/md5sums")
		sums.Dir = root
		if text, err := sums.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		if got := read(t, root, "usr/bin/vksplat"); string(got) != stub {
			t.Errorf("the program is %q", got)
		}
		for _, name := range []string{"usr/share/bash-completion/completions/vksplat",
			"usr/share/zsh/vendor-completions/_vksplat", "usr/share/doc/vksplat/copyright"} {
			read(t, root, name)
		}
		page, err := io.ReadAll(unzipped(t, read(t, root, "usr/share/man/man1/vksplat.1.gz")))
		if err != nil || !strings.HasPrefix(string(page), ".TH VKSPLAT 1") {
			t.Errorf("%v: %q", err, page)
		}
	}
}

// TestImage follows the image from its index to its files, and checks every digest on the way.
func TestImage(t *testing.T) {
	out := released(t)
	files := entriesOf(t, bytes.NewReader(read(t, out, "vksplat-1.2.3-image-amd64.oci.tar")))
	blob := func(d descriptor) string {
		data := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(data))); sum != d.Digest || d.Size != int64(len(data)) {
			t.Errorf("blob %s has %d bytes of %s", d.Digest, len(data), sum)
		}
		return data
	}
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config imageConfig
	decode := func(text string, v any) {
		must.Do(t, json.Unmarshal([]byte(text), v))
	}
	decode(files["index.json"], &index)
	decode(blob(index.Manifests[0]), &manifest)
	decode(blob(manifest.Config), &config)
	if files["oci-layout"] != `{"imageLayoutVersion":"1.0.0"}` || len(manifest.Layers) != 2 ||
		len(config.RootFS.DiffIDs) != 2 || config.Architecture != "amd64" {
		t.Fatalf("%q, %+v, %+v", files["oci-layout"], manifest, config)
	}
	all := map[string]string{}
	for i, l := range manifest.Layers {
		plain := must.Get(io.ReadAll(unzipped(t, []byte(blob(l)))))(t)
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(plain)); sum != config.RootFS.DiffIDs[i] {
			t.Errorf("layer %d has the digest %s", i, sum)
		}
		for name, data := range entriesOf(t, bytes.NewReader(plain)) {
			all[name] = data
		}
	}
	if all["./usr/bin/vksplat"] != stub {
		t.Error("the program is not in the image")
	}
	bill := string(read(t, out, "vksplat-1.2.3-image-amd64.cdx.json"))
	for _, part := range []string{"pkg:deb/debian/libc6@2.41-12?arch=amd64", "tool@1%2Bb1?arch=all", `"CycloneDX"`} {
		if !strings.Contains(bill, part) {
			t.Errorf("the bill lacks %s", part)
		}
	}
	bill = string(read(t, out, "vksplat-1.2.3.cdx.json"))
	for _, part := range []string{"pkg:golang/example.org/module@v1.0.0", "pkg:golang/std@1.99.0", "h1:sum",
		"linux/arm64", "supersplat"} {
		if !strings.Contains(bill, part) {
			t.Errorf("the bill lacks %s", part)
		}
	}
}

// TestStamp names versions.
func TestStamp(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, s := range map[string]stamp{
		"1.2.0":                    newStamp("abc", "v1.2.0\nv1.1.0", false, at),
		"0.0.0+20300102.abc":       newStamp("abc", "", false, at),
		"0.0.0+20300102.abc.dirty": newStamp("abc", "v1.2.0", true, at),
	} {
		if s.version != want {
			t.Errorf("got %s, want %s", s.version, want)
		}
	}
	if _, err := stampOf(t.TempDir()); err == nil {
		t.Error("a folder without git has a version")
	}
}

// TestProgramChecks wants programs that ask for too much to be refused.
func TestProgramChecks(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"2.4", "2.28", false}, {"2.28", "2.28", false}, {"2.29", "2.28", true}, {"2.2.5", "2.28", false},
		{"3", "2.28", true}, {"PRIVATE", "2.28", true}} {
		if newer(c.a, c.b) != c.want {
			t.Errorf("%s newer than %s: %v", c.a, c.b, !c.want)
		}
	}
	self := read(t, os.Args[0])
	if err := checkWindows(self); err == nil {
		t.Error("a program for Linux passes as one for Windows")
	}
	shell, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skip("no /bin/true on this machine")
	}
	if err := checkLinux(shell, "2.1"); err == nil || !strings.Contains(err.Error(), "more than 2.1") {
		t.Errorf("a program of this machine passes as one for glibc 2.1: %v", err)
	}
	if err := checkLinux(shell, "2.999"); err != nil {
		t.Error(err)
	}
	if err := checkStatic(shell); err == nil || !strings.Contains(err.Error(), "libc.so.6") {
		t.Errorf("a program of this machine passes as one that needs no library: %v", err)
	}
}

// TestCompiler builds a program in C and Go for every target twice, once by a compiler in a folder with a blank in its
// name, and checks what it asks for.
func TestCompiler(t *testing.T) {
	zig := must.Get(filepath.Abs("../../build/zig"))(t)
	if _, err := os.Stat(filepath.Join(zig, "made-from.txt")); err != nil {
		t.Skip("no zig in build/zig: make release fetches it")
	}
	spaced := filepath.Join(t.TempDir(), "a folder")
	must.Do(t, os.Symlink(zig, spaced))
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module small\n\ngo 1.26\n", "main.go": "package main\n\n" +
		"// #include <math.h>\n// #cgo LDFLAGS: -lm\nimport \"C\"\n\nfunc main() { println(C.pow(2, 0.5)) }\n"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for _, x := range targets {
		if _, err := exec.LookPath("x86_64-w64-mingw32-gcc"); err != nil && x.os == "windows" {
			continue // make windows installs it
		}
		var builds [2][]byte
		for i, compiler := range []string{zig, spaced} {
			path := filepath.Join(t.TempDir(), "small")
			must.Do(t, x.goBuild(compiler, dir, ".", path))
			builds[i] = read(t, path)
		}
		if err := x.check(builds[0], true); err != nil {
			t.Errorf("%s/%s: %v", x.os, x.arch, err)
		}
		if !bytes.Equal(builds[0], builds[1]) {
			t.Errorf("%s/%s: two builds differ", x.os, x.arch)
		}
	}
}

// TestOut refuses a folder that holds something.
func TestOut(t *testing.T) {
	dir := t.TempDir()
	filetest.Make(t, dir, "mine")
	if err := release(".", dir, "cc", false); err == nil || !strings.Contains(err.Error(), "no empty folder") {
		t.Errorf("got %v", err)
	}
}
