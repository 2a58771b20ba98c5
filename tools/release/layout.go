package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file of a package. Its path is below a prefix such as /usr or ~/.local.
type file struct {
	path string
	mode fs.FileMode
	data []byte
}

// completions say where shells look for what completes command lines.
var completions = map[string]string{
	"bash":       "share/bash-completion/completions/vksplat",
	"zsh":        "share/zsh/site-functions/_vksplat",
	"fish":       "share/fish/vendor_completions.d/vksplat.fish",
	"powershell": "share/powershell/vksplat.ps1",
}

const manFolder = "share/man/man1/"

// docs is the folder of a component's pages: packages of Debian share no files.
func (c component) docs() string { return "share/doc/" + c.name + "/" }

// pages are those of docs/ that each component comes with. Pictures are of the trainer's.
var pages = map[string][]string{
	"vksplat":       {"*.md", "*.webp", "*.jpg", "*.svg", "*.json"},
	"vksplat-farmd": {"farm*.md"},
}

// layout makes what all packages of a component share: pages, and of the trainer manual pages and completions.
func (m *maker) layout(c component) (files []file, err error) {
	add := func(path string, data []byte) { files = append(files, file{path, 0o644, data}) }
	if c.name == components[0].name {
		if err := m.printed(add); err != nil {
			return nil, err
		}
	}
	if err := addFolder(m.root, c.docs(), add, "README.md", "CHANGELOG.md", "LICENSE"); err != nil {
		return nil, err
	}
	if err := addFolder(filepath.Join(m.root, "docs"), c.docs()+"docs/", add, pages[c.name]...); err != nil {
		return nil, err
	}
	licences, err := thirdParty(m.root, c)
	if err != nil {
		return nil, err
	}
	add(c.docs()+"THIRD-PARTY.txt", licences)
	sorted(files)
	return files, nil
}

// printed adds manual pages and completions, which the program for this machine prints.
func (m *maker) printed(add func(path string, data []byte)) error {
	own := m.own()
	for shell, at := range completions {
		script, err := exec.Command(own.path, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("print completions for %s: %w", shell, err)
		}
		add(at, script)
	}
	manual := filepath.Join(m.work, "man")
	if err := os.MkdirAll(manual, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command(own.path, "manual", manual).CombinedOutput(); err != nil {
		return fmt.Errorf("print the manual: %w: %s", err, out)
	}
	return addFolder(manual, manFolder, add, "*.1")
}

// addFolder adds the files of a folder that match patterns.
func addFolder(dir, at string, add func(path string, data []byte), patterns ...string) error {
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			add(at+filepath.Base(name), data)
		}
	}
	return nil
}

func sorted(files []file) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
}

// unixFiles is a prefix with bin and share.
func unixFiles(common []file, p program) []file {
	files := append(slices.Clone(common), file{"bin/" + p.name, 0o755, p.binary})
	files = slices.DeleteFunc(files, func(f file) bool { return f.path == completions["powershell"] })
	sorted(files)
	return files
}

// windowsFiles is one folder: the program, the pages, and PowerShell's completions.
func windowsFiles(common []file, p program) []file {
	files := []file{{p.name + ".exe", 0o755, p.binary}}
	for _, f := range common {
		rest, isDoc := strings.CutPrefix(f.path, p.docs())
		switch {
		case isDoc:
			files = append(files, file{rest, f.mode, f.data})
		case f.path == completions["powershell"]:
			files = append(files, file{path.Base(f.path), f.mode, f.data})
		}
	}
	sorted(files)
	return files
}

// thirdParty collects the licences of everything that is linked into a component: Go, its modules, the viewer.
func thirdParty(root string, c component) ([]byte, error) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}", c.pkg)
	list.Dir, list.Stderr = filepath.Join(root, c.dir), os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	own := []string{"Go\t" + strings.TrimSpace(string(goroot))}
	if c.name == components[0].name {
		own = append(own, "SuperSplat viewer\t"+filepath.Join(root, "view/supersplat"))
	}
	lines = append(own, slices.Compact(lines)...)
	var b bytes.Buffer
	b.WriteString("vksplat is under the Apache License 2.0. The program holds the following works under their own licences.\n")
	for _, line := range lines {
		name, dir, _ := strings.Cut(line, "\t")
		if path, _, _ := strings.Cut(name, " "); path == "vksplat" || strings.HasPrefix(path, "vksplat/") || name == "" {
			continue
		}
		if err := addLicences(&b, name, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// withoutLicence has the licences of modules that come without the file, or says why they are in the program.
var withoutLicence = map[string]string{
	"github.com/nexus-rpc/nexus-proto-annotations v0.1.0": "This version has no licence file. Temporal Technologies Inc. " +
		"publishes it, as a part that\nits go.temporal.io/api needs, whose licence stands in this file.",
	"github.com/cactus/go-statsd-client/statsd v0.0.0-20200423205355-cb0885a1018c": statsdLicence,
}

// statsdLicence is that of go-statsd-client, whose folder statsd is a module without the file.
const statsdLicence = `Copyright (c) 2012-2016 Eli Janssen

Permission is hereby granted, free of charge, to any person obtaining a copy of
this software and associated documentation files (the "Software"), to deal in
the Software without restriction, including without limitation the rights to
use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies
of the Software, and to permit persons to whom the Software is furnished to do
so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.`

// addLicences appends the licences in a folder.
func addLicences(b *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("find the licence of %s: %w", name, err)
	}
	found := false
	for _, e := range entries {
		word := strings.ToLower(strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())))
		if e.IsDir() || !slices.Contains([]string{"license", "licence", "copying", "notice"}, word) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(text))
		found = true
	}
	if words := withoutLicence[name]; words != "" && !found {
		fmt.Fprintf(b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), name, words)
		found = true
	}
	if !found {
		return fmt.Errorf("find the licence of %s: there is none in %s", name, dir)
	}
	return nil
}
