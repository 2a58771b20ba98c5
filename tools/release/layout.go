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

const (
	docFolder = "share/doc/vksplat/"
	manFolder = "share/man/man1/"
)

// layout makes what all packages share: pages, manual pages and completions, which the program for this machine prints.
func (m *maker) layout() (files []file, err error) {
	own := m.own()
	add := func(path string, data []byte) { files = append(files, file{path, 0o644, data}) }
	for shell, at := range completions {
		script, err := exec.Command(own.path, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("print completions for %s: %w", shell, err)
		}
		add(at, script)
	}
	pages := filepath.Join(m.work, "man")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return nil, err
	}
	if out, err := exec.Command(own.path, "manual", pages).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("print the manual: %w: %s", err, out)
	}
	if err := addFolder(pages, manFolder, add, "*.1"); err != nil {
		return nil, err
	}
	if err := addFolder(m.root, docFolder, add, "README.md", "CHANGELOG.md", "LICENSE"); err != nil {
		return nil, err
	}
	if err := addFolder(filepath.Join(m.root, "docs"), docFolder+"docs/", add, "*.md", "*.png", "*.jpg", "*.svg",
		"*.json"); err != nil {
		return nil, err
	}
	licences, err := thirdParty(m.root)
	if err != nil {
		return nil, err
	}
	add(docFolder+"THIRD-PARTY.txt", licences)
	sorted(files)
	return files, nil
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
func unixFiles(common []file, binary []byte) []file {
	files := append(slices.Clone(common), file{"bin/vksplat", 0o755, binary})
	files = slices.DeleteFunc(files, func(f file) bool { return f.path == completions["powershell"] })
	sorted(files)
	return files
}

// windowsFiles is one folder: the program, the pages, and PowerShell's completions.
func windowsFiles(common []file, binary []byte) []file {
	files := []file{{"vksplat.exe", 0o755, binary}}
	for _, f := range common {
		rest, isDoc := strings.CutPrefix(f.path, docFolder)
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

// thirdParty collects the licences of everything that is linked into the program: Go, its modules, the viewer.
func thirdParty(root string) ([]byte, error) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}",
		"./cmd/vksplat")
	list.Dir, list.Stderr = root, os.Stderr
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
	lines = append([]string{"Go\t" + strings.TrimSpace(string(goroot)),
		"SuperSplat viewer\t" + filepath.Join(root, "view/supersplat")}, slices.Compact(lines)...)
	var b bytes.Buffer
	b.WriteString("vksplat is under the Apache License 2.0. The program holds the following works under their own licences.\n")
	for _, line := range lines {
		name, dir, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(name, "vksplat ") {
			continue
		}
		if err := addLicences(&b, name, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

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
	if !found {
		return fmt.Errorf("find the licence of %s: there is none in %s", name, dir)
	}
	return nil
}
