// Command crosscheck checks the types of all packages of the module, and of their tests, as the compiler for another
// system does, without its compilers: C stays unknown, and what other modules and the standard library do in functions.
// That takes seconds where a build takes minutes.
//
//	go run ./tools/crosscheck windows/amd64 darwin/arm64
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	failed := len(os.Args) < 2
	if failed {
		fmt.Fprintln(os.Stderr, "crosscheck: name systems, as windows/amd64")
	}
	for _, system := range os.Args[1:] {
		n, err := check(".", system)
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "crosscheck: %s: %v\n", system, err)
			continue
		}
		fmt.Printf("%s: %d packages and tests have the types that they need\n", system, n)
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as go list prints it. A package with its tests is one of its own.
type listed struct {
	ImportPath, Dir, ForTest string
	GoFiles, CgoFiles        []string
	ImportMap                map[string]string
	Module                   *struct{ Main bool }
	Error                    *struct{ Err string }
}

// check checks the module of a folder and returns how many packages that were.
func check(dir, system string) (n int, err error) {
	goos, goarch, _ := strings.Cut(system, "/")
	list := exec.Command("go", "list", "-e", "-deps", "-test",
		"-json=ImportPath,Dir,ForTest,GoFiles,CgoFiles,ImportMap,Module,Error", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=1")
	out, err := list.Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", err)
	}
	c := &checker{files: token.NewFileSet(), sizes: types.SizesFor("gc", goarch), done: map[string]*types.Package{},
		parsed: map[string]*ast.File{}}
	if c.sizes == nil {
		return 0, errors.New("the compiler does not know it")
	}
	for packages := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := packages.Decode(&p); err == io.EOF {
			return n, errors.Join(c.errs...)
		} else if err != nil {
			return n, fmt.Errorf("read the list: %w", err)
		}
		if strings.HasSuffix(p.ImportPath, ".test") { // go test writes it
			continue
		}
		if c.add(&p); p.own() {
			n++
		}
	}
}

func (p *listed) own() bool { return p.Module != nil && p.Module.Main }

// checker has what is checked so far: the list names a package after all that it imports.
type checker struct {
	files  *token.FileSet
	sizes  types.Sizes
	done   map[string]*types.Package // by import path, as go list writes it
	parsed map[string]*ast.File      // of the module: tests have them again
	errs   []error
}

// add checks a package. Errors of others than the module's own come of the C that is not known, and do not count.
func (c *checker) add(p *listed) {
	fail := func(err error) {
		if p.own() {
			c.errs = append(c.errs, err)
		}
	}
	if p.Error != nil {
		fail(errors.New(p.Error.Err))
	}
	var files []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		path := filepath.Join(p.Dir, name)
		f, known := c.parsed[path]
		if !known {
			var err error
			if f, err = parser.ParseFile(c.files, path, nil, parser.SkipObjectResolution); err != nil {
				fail(err)
				continue
			}
			if p.own() {
				c.parsed[path] = f
			}
		}
		files = append(files, f)
	}
	config := types.Config{FakeImportC: true, IgnoreFuncBodies: !p.own(), Sizes: c.sizes, Error: fail,
		Importer: importer(func(path string) (*types.Package, error) {
			if path == "unsafe" {
				return types.Unsafe, nil
			}
			if to := p.ImportMap[path]; to != "" {
				path = to
			}
			if found := c.done[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("package %s is not there", path)
		})}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.done[p.ImportPath], _ = config.Check(path, c.files, files, nil) // fail has the errors
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }
