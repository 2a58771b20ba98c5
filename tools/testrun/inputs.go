package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the import path of the repository's root.
const module = "vksplat"

// tree is the repository's files by package.
type tree struct {
	files    []string // what Git knows or would, with slashes
	packages map[string]*pkg
	hashes   map[string]string // of files that were read
}

// pkg is a folder with Go files. Files without .go below it count as its own, as far as no package is between: it may
// embed them.
type pkg struct {
	source, tests        []string
	imports, testImports map[string]bool // folders
	hasTests             bool
}

// readTree lists the files of the repository in the current folder. Build tags are ignored: a package depends on what
// any of its files imports.
func readTree() (*tree, error) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	t := &tree{packages: map[string]*pkg{}, hashes: map[string]string{}}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		// One that was removed is still listed. The ledger is no input of what it records.
		if _, err := os.Lstat(name); err == nil && name != ledgerFile {
			t.files = append(t.files, name)
		}
	}
	slices.Sort(t.files)
	t.files = slices.Compact(t.files)
	for _, name := range t.files {
		if path.Ext(name) == ".go" && !strings.Contains(name, "testdata/") {
			if err := t.addGo(name); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range t.files {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			t.addOther(name)
		}
	}
	return t, nil
}

func (t *tree) addGo(name string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	p := t.packages[path.Dir(name)]
	if p == nil {
		p = &pkg{imports: map[string]bool{}, testImports: map[string]bool{}}
		t.packages[path.Dir(name)] = p
	}
	imports := p.imports
	if strings.HasSuffix(name, "_test.go") {
		p.tests, p.hasTests, imports = append(p.tests, name), true, p.testImports
	} else {
		p.source = append(p.source, name)
	}
	for _, i := range parsed.Imports {
		at, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return fmt.Errorf("read imports of %s: %w", name, err)
		}
		if at == module {
			imports["."] = true
		} else if folder, ok := strings.CutPrefix(at, module+"/"); ok {
			imports[folder] = true
		}
	}
	return nil
}

func (t *tree) addOther(name string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if p := t.packages[dir]; p != nil {
			if strings.Contains(name, "testdata/") {
				p.tests = append(p.tests, name)
			} else {
				p.source = append(p.source, name)
			}
			return
		}
	}
}

// inputs returns the files that decide what the tests of the package in dir find: its own, and the sources of all
// packages that it and its tests use. With tests unset, those of the package as others use it.
func (t *tree) inputs(dir string, tests bool) []string {
	seen, files := map[string]bool{}, []string{"go.mod", "go.sum"}
	var visit func(string)
	visit = func(d string) {
		p := t.packages[d]
		if p == nil || seen[d] {
			return
		}
		seen[d] = true
		files = append(files, p.source...)
		for _, i := range slices.Sorted(maps.Keys(p.imports)) {
			visit(i)
		}
	}
	visit(dir)
	if p := t.packages[dir]; p != nil && tests {
		files = append(files, p.tests...)
		for _, i := range slices.Sorted(maps.Keys(p.testImports)) {
			visit(i)
		}
	}
	return files
}

// matching returns the files that a pattern of path.Match names, those below a folder that ends in a slash, or all of
// them with **.
func (t *tree) matching(patterns ...string) []string {
	var found []string
	for _, name := range t.files {
		for _, p := range patterns {
			ok, _ := path.Match(p, name)
			if ok || p == "**" || strings.HasSuffix(p, "/") && strings.HasPrefix(name, p) {
				found = append(found, name)
				break
			}
		}
	}
	return found
}

// key is a hash of names and contents, whatever their order.
func (t *tree) key(files []string) (string, error) {
	var all bytes.Buffer
	sorted := slices.Sorted(slices.Values(files))
	for _, name := range slices.Compact(sorted) {
		hash, ok := t.hashes[name]
		if !ok {
			var err error
			if hash, err = hashOf(name); err != nil {
				return "", err
			}
			t.hashes[name] = hash
		}
		fmt.Fprintf(&all, "%s %s\n", hash, name)
	}
	return fmt.Sprintf("%x", sha256.Sum256(all.Bytes()))[:32], nil
}

// hashOf hashes a file, or where a link leads.
func hashOf(name string) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	var content []byte
	if info.Mode()&fs.ModeSymlink != 0 {
		var to string
		to, err = os.Readlink(name)
		content = []byte(to)
	} else {
		content, err = os.ReadFile(name)
	}
	return fmt.Sprintf("%x", sha256.Sum256(content)), err
}
