package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	must "vksplat/internal/musttest"
)

const module = "vksplat/"

// bindings are the Vulkan bindings that vk hides.
var bindings = []string{"github.com/goki/vulkan", "github.com/vulkan-go/vulkan"}

// queued are the modules of Temporal, and of gRPC, of which only farmd may link what they have: they would make the
// trainer a fifth to a third larger. Tests may hold farm/wire against them.
var queued = regexp.MustCompile(`^(go\.temporal\.io|google\.golang\.org/grpc)(/|$)`)

// sdk runs workflows. Only farmd imports it, tests or not: so it is no part of the trainer's module.
const sdk = "go.temporal.io/sdk"

// team are the packages that speak to a farm's server: a farm without one, and trainings, need none of them.
var (
	team    = []string{"farm/wire", "farm/flow", "farm/worker", "farm/client", "farmd/..."}
	teamFor = append([]string{"cmd/vksplat"}, team...)
)

var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base"}

// Limits in lines. A test function may be a long table of cases.
const (
	maxGoFile   = 500
	maxFunc     = 60
	maxTestFunc = 100
	maxShader   = 300
)

// longer lists what may exceed its limit ("file" or "file:function") and the reason.
var longer = map[string]string{}

type rule struct {
	text *regexp.Regexp
	why  string
}

// forbidden text, spelled so that this file does not contain it.
var forbidden = []rule{
	{regexp.MustCompile(`(?i)keep in ` + `sync`),
		"two places that must agree are generated from one, or a test compares them"},
	{regexp.MustCompile(`(?m)^\s*#\s*if ` + `0\b`), "dead code is deleted; git remembers it"},
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b(?:$|[^(]|\([^#])`),
		"unfinished work carries an issue number, TO" + "DO(#12), or is done"},
}

type goFile struct {
	path    string // slashes, relative to the root
	dir     string
	ast     *ast.File
	lines   int
	isTest  bool
	isMade  bool // generated
	imports []string
}

type repository struct {
	root  string
	fset  *token.FileSet
	files []goFile
	texts map[string]string // every source and document by path
}

// load returns the repository, which is read once and changed by no test.
func load(t *testing.T) *repository {
	t.Helper()
	r := must.Get(read())(t)
	return r
}

// read parses every Go file and reads every text.
var read = sync.OnceValues(func() (*repository, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, err
	}
	r := &repository{root: root, fset: token.NewFileSet(), texts: map[string]string{}}
	// What git ignores is left out: programs and runs.
	err = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			built := filepath.Dir(p) == root && slices.Contains([]string{"build", "bin", "vksplat-demo"}, name)
			if p != root && (built || strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(name)
		if !slices.Contains([]string{".go", ".comp", ".glsl", ".c", ".h", ".md", ".sh", ".mod", ".js", ".css",
			".html"}, ext) &&
			name != "Makefile" {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return r.add(filepath.ToSlash(rel), ext)
	})
	return r, err
})

func (r *repository) add(rel, ext string) error {
	raw, err := os.ReadFile(filepath.Join(r.root, rel))
	if err != nil {
		return err
	}
	r.texts[rel] = string(raw)
	if ext != ".go" {
		return nil
	}
	f, err := parser.ParseFile(r.fset, rel, raw, parser.ParseComments)
	if err != nil {
		return err
	}
	g := goFile{path: rel, dir: path.Dir(rel), ast: f, lines: lineCount(string(raw)),
		isTest: strings.HasSuffix(rel, "_test.go"), isMade: ast.IsGenerated(f)}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		g.imports = append(g.imports, p)
	}
	r.files = append(r.files, g)
	return nil
}

// names lists the texts in order, so that messages come in one.
func (r *repository) names() []string { return slices.Sorted(maps.Keys(r.texts)) }

func lineCount(text string) int { return strings.Count(text, "\n") }

// isBelow says whether a package is within one of several.
func isBelow(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return within(dir, p) })
}

// within reports whether dir is the package pattern names ("x"), lies at or below it ("x/...") or directly below
// ("x/*").
func within(dir, pattern string) bool {
	if top, direct := strings.CutSuffix(pattern, "/*"); direct {
		return path.Dir(dir) == top
	}
	base, below := strings.CutSuffix(pattern, "/...")
	return dir == base || below && strings.HasPrefix(dir, base+"/")
}

func layerOf(dir string) (layer, bool) {
	for _, l := range layers {
		if within(dir, l.dir+"/...") {
			return l, true
		}
	}
	return layer{}, false
}

// topOf returns the first folder of a path.
func topOf(dir string) string {
	top, _, _ := strings.Cut(dir, "/")
	return top
}

// isForTests reports whether a package is there for tests of others: its name says so, as in vk/vktest.
func isForTests(dir string) bool { return strings.HasSuffix(dir, "test") }

func TestImports(t *testing.T) {
	for _, f := range load(t).files {
		l, known := layerOf(f.dir)
		if !known && f.dir != "." {
			t.Errorf("%s: the folder %s has no import rule: add it to layers with its reason", f.path, f.dir)
			continue
		}
		for _, imp := range f.imports {
			if inside, ok := strings.CutPrefix(imp, module); ok {
				if isForTests(inside) {
					if !f.isTest && !isForTests(f.dir) {
						t.Errorf("%s imports %s: only tests do, and packages for tests", f.path, imp)
					}
					continue
				}
				// tests may look at what others make of a thing
				tested := f.isTest && within(inside, topOf(f.dir)+"/...")
				if !tested && !slices.ContainsFunc(l.may, func(p string) bool { return within(inside, p) }) {
					t.Errorf("%s imports %s: %s may import only %v, because %s", f.path, imp, l.dir, l.may, l.why)
				}
			}
			isTest := f.isTest || isForTests(f.dir)
			if queued.MatchString(imp) && !within(f.dir, "farmd/...") && (!isTest || strings.HasPrefix(imp, sdk)) {
				t.Errorf("%s imports %s: the trainer speaks to Temporal by farm/wire alone", f.path, imp)
			}
			if ours, is := strings.CutPrefix(imp, module); is && isBelow(ours, team) && !isBelow(f.dir, teamFor) {
				t.Errorf("%s imports %s: only %v have to do with a farm's server", f.path, imp, teamFor)
			}
			if slices.Contains(bindings, imp) && !within(f.dir, "vk/...") {
				t.Errorf("%s imports %s: only vk names a Vulkan binding, because the bindings have memory-safety "+
					"traps that vk works around and must stay replaceable", f.path, imp)
			}
			if imp == "C" && l.pure {
				t.Errorf("%s uses cgo: %s must not, because %s", f.path, l.dir, l.why)
			}
			if (imp == "unsafe" || imp == "C") && !within(f.dir, "vk/...") && !strings.HasSuffix(f.path, "_gen.go") {
				t.Errorf("%s imports %q: only vk and generated files do, so that whoever looks for memory errors has "+
					"one place to look", f.path, imp)
			}
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, f := range load(t).files {
		for _, name := range []string{f.ast.Name.Name, path.Base(f.dir)} {
			if slices.Contains(emptyNames, strings.TrimSuffix(name, "_test")) {
				t.Errorf("%s: a package named %s says nothing about what is in it: name it after what it provides",
					f.path, name)
			}
		}
	}
}

// TestPackageComments demands of every package a comment that says what it is for.
func TestPackageComments(t *testing.T) {
	said, folders := map[string]bool{}, map[string]bool{}
	for _, f := range load(t).files {
		if f.isTest {
			continue
		}
		folders[f.dir] = true
		said[f.dir] = said[f.dir] || f.ast.Doc != nil
	}
	for dir := range folders {
		if !said[dir] {
			t.Errorf("%s: the package has no comment: say what it is for, its model, and where to start", dir)
		}
	}
}

func TestLength(t *testing.T) {
	r := load(t)
	used := map[string]bool{}
	check := func(what, name string, lines, limit int, why string) {
		if lines <= limit {
			return
		}
		if longer[name] != "" {
			used[name] = true
			return
		}
		t.Errorf("%s: %s of %d lines, the limit is %d: %s", name, what, lines, limit, why)
	}
	for _, f := range r.files {
		if f.isMade {
			continue
		}
		check("file", f.path, f.lines, maxGoFile, "split it by subject, one screenful of headings each")
		limit := maxFunc
		if f.isTest {
			limit = maxTestFunc
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				lines := r.fset.Position(fn.End()).Line - r.fset.Position(fn.Pos()).Line + 1
				check("function", f.path+":"+fn.Name.Name, lines, limit,
					"give its steps names and functions of their own")
			}
		}
	}
	for _, name := range r.names() {
		text := r.texts[name]
		switch filepath.Ext(name) {
		case ".comp", ".glsl":
			check("shader", name, lineCount(text), maxShader,
				"move what is shared or separable to shaders/shared, or split the pass")
		case ".c", ".h", ".js", ".css", ".html":
			check("file", name, lineCount(text), maxGoFile, "split it by subject")
		}
	}
	for name := range longer {
		if !used[name] {
			t.Errorf("%s is listed as an exception and is none: delete it from the list", name)
		}
	}
}

var twinLine = regexp.MustCompile(`(?m)^// twin: (.+)$`)

// TestKernels demands of every kernel a header that says what it is and a twin in pipeline/ref: a file of its name or
// a line `// twin: <kernel> <kernel>` for kernels that are parts of one computation.
func TestKernels(t *testing.T) {
	r := load(t)
	twins := map[string]bool{}
	for name, text := range r.texts {
		if path.Dir(name) != "pipeline/ref" || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		twins[strings.TrimSuffix(path.Base(name), ".go")] = true
		for _, found := range twinLine.FindAllStringSubmatch(text, -1) {
			for _, kernel := range strings.FieldsFunc(found[1], func(c rune) bool { return c == ' ' || c == ',' }) {
				twins[kernel] = true
			}
		}
	}
	for _, name := range r.names() {
		text := r.texts[name]
		if path.Dir(name) != "shaders" || filepath.Ext(name) != ".comp" {
			continue
		}
		kernel := strings.TrimSuffix(path.Base(name), ".comp")
		if !twins[kernel] {
			t.Errorf("%s has no twin: add pipeline/ref/%s.go, or name it in a `// twin: %s` line there, because no "+
				"kernel is trusted that nothing judges", name, kernel, kernel)
		}
		if !regexp.MustCompile(`(?m)^// ` + kernel + `\b`).MatchString(text) {
			t.Errorf("%s: its header does not begin with `// %s ...`: say what the kernel computes, what it reads and "+
				"writes, what one invocation is", name, kernel)
		}
	}
}

func TestForbiddenText(t *testing.T) {
	r := load(t)
	for _, name := range r.names() {
		text := r.texts[name]
		for _, f := range forbidden {
			for _, at := range f.text.FindAllStringIndex(text, -1) {
				line := 1 + strings.Count(text[:at[0]], "\n")
				t.Errorf("%s:%d: %q: %s", name, line, strings.TrimSpace(text[at[0]:at[1]]), f.why)
			}
		}
	}
}

// TestDependencies demands a reason beside or above every direct dependency of go.mod.
func TestDependencies(t *testing.T) {
	text := load(t).texts["go.mod"]
	above := false
	inBlock := false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		code, comment, _ := strings.Cut(line, "//")
		code, comment = strings.TrimSpace(code), strings.TrimSpace(comment)
		single, isRequire := strings.CutPrefix(code, "require ")
		switch {
		case code == "":
			above = comment != ""
			continue
		case isRequire && strings.TrimSpace(single) == "(":
			inBlock = true
		case code == ")":
			inBlock = false
		case (inBlock || isRequire) && !strings.HasPrefix(comment, "indirect") && comment == "" && !above:
			t.Errorf("go.mod:%d: %s: say in a comment why this dependency is worth having", i+1, code)
		}
		above = false
	}
}

// TestRules checks that the rules themselves bite.
func TestRules(t *testing.T) {
	for dir, want := range map[string]string{"pipeline/ref/goldentest": "pipeline/ref", "pipeline": "pipeline",
		"shaders/layout": "shaders/layout", "vk": "vk", "vkx": "", "tools/kernelstat": "tools/kernelstat"} {
		if l, _ := layerOf(dir); l.dir != want {
			t.Errorf("layer of %s is %q, want %q", dir, l.dir, want)
		}
	}
	if within("shaders/layout", "shaders") || !within("scene/colmap", "scene/...") ||
		!within("internal/cli", "internal/*") || within("internal/run/train", "internal/*") ||
		within("scenery", "scene/...") {
		t.Error("within is wrong")
	}
	for text, want := range map[string]bool{
		"Keep in " + "sync with x": true, "#if " + "0\n": true, "# if " + "0": true, "#if " + "01": false,
		"// TO" + "DO later": true, "// TO" + "DO(#12): later": false, "FIX" + "ME": true, "TO" + "DO(me)": true,
		"mastodon": false,
	} {
		found := slices.ContainsFunc(forbidden, func(f rule) bool { return f.text.MatchString(text) })
		if found != want {
			t.Errorf("%q: forbidden %v, want %v", text, found, want)
		}
	}
}
