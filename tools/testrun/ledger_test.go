package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil { // the repository's root, where testrun runs
		panic(err)
	}
	os.Exit(m.Run())
}

// A change reruns the suites that can see it, and no others.
func TestChanges(t *testing.T) {
	tree := must.Get(readTree())(t)
	byName := map[string][]string{}
	for _, s := range tree.suites() {
		byName[s.name] = s.inputs
	}
	for file, want := range map[string]struct{ rerun, kept []string }{
		"shaders/spv/rasterize.spv": {
			[]string{"vksplat/pipeline", "vksplat/pipeline/check", "vksplat/cmd/vksplat", scriptPrefix + "train", "vksplat"},
			[]string{"vksplat/scene/ply", "vksplat/pipeline/ref", "vksplat/vk", secondSuite}},
		"scene/splatfile/spz.go": {
			[]string{"vksplat/scene/splatfile", "vksplat/cmd/vksplat", scriptPrefix + "convert"},
			[]string{"vksplat/vk", "vksplat/scene/colmap", "vksplat/pipeline/ref"}},
		"cmd/vksplat/testdata/script/convert.txtar": {
			[]string{scriptPrefix + "convert"},
			[]string{"vksplat/cmd/vksplat", scriptPrefix + "train", "vksplat", serverSuite}},
		"cmd/vksplat/flags_train.go": {
			[]string{"vksplat/cmd/vksplat", scriptPrefix + "train", "vksplat"}, []string{"vksplat/pipeline", "vksplat/vk"}},
		"docs/train.md": {
			[]string{"vksplat/cmd/vksplat", "vksplat/tools/archtest"},
			[]string{scriptPrefix + "train", "vksplat/pipeline", serverSuite}},
		"farm/store/store.go": {
			[]string{"vksplat/farm/store", "vksplat/farm/local", serverSuite, "vksplat/cmd/vksplat"},
			[]string{"vksplat/pipeline", "vksplat/internal/run/train"}},
		"internal/fault/errors.go": {[]string{serverSuite, "vksplat/vk"}, []string{"vksplat/internal/philox"}},
		"vk/device_test.go":        {[]string{"vksplat/vk", secondSuite}, []string{"vksplat/pipeline"}},
		"go.sum":                   {[]string{"vksplat/internal/philox", serverSuite}, nil},
		"scene/photo/testdata/420.jpg": {
			[]string{"vksplat/scene/photo", "vksplat/scene/inspect"}, []string{"vksplat/scene/load"}},
	} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
			continue
		}
		for _, name := range want.rerun {
			if !slices.Contains(byName[name], file) {
				t.Errorf("%s does not rerun %s", file, name)
			}
		}
		for _, name := range want.kept {
			if byName[name] == nil || slices.Contains(byName[name], file) {
				t.Errorf("%s reruns %s, or that does not exist", file, name)
			}
		}
	}
}

// A test that reads the repository outside its package names a path that begins with "..", and one that builds a
// program "./" and its package. Each is an input of its suite. Paths of dots alone are not judged: most are hostile
// input.
func TestBeyond(t *testing.T) {
	tree := must.Get(readTree())(t)
	for _, s := range tree.suites() {
		dir := strings.TrimPrefix(strings.TrimPrefix(s.name, module), "/")
		if tree.packages[dir] == nil {
			continue
		}
		for _, name := range tree.packages[dir].tests {
			if path.Ext(name) != ".go" {
				continue
			}
			for _, read := range readsOutside(t, tree, name) {
				if !slices.Contains(s.inputs, read) {
					t.Errorf("%s reads %s: it belongs into beyond[%q]", name, read, dir)
					break
				}
			}
		}
	}
}

// readsOutside returns the files of the repository that string constants of a test name, from its folder.
func readsOutside(t *testing.T, tree *tree, name string) []string {
	parsed := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			if strings.HasPrefix(text, "../") && strings.Trim(text, "./") != "" {
				at := path.Join(path.Dir(name), text)
				found = append(found, tree.matching(at, at+"/")...)
			} else if program := tree.packages[path.Join(path.Dir(name), text)]; strings.HasPrefix(text, "./") &&
				program != nil {
				found = append(found, program.source...)
			}
		}
		return true
	})
	return found
}

// A record counts where there are the same versions and settings, and no tool that was missing. A difference is named.
func TestLedger(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.txt")
	l := ledger{with: []string{"go1", "mesa=2", "VK_X=a b"}, tools: []string{"colmap", "ffmpeg"},
		entries: map[string]entry{"vksplat/vk": {"aa", 2}, scriptPrefix + "a": {"bb", 0}}}
	must.Do(t, l.write(file))
	got, err := readLedger(file)
	if err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, %v, want %+v", got, err, l)
	}
	for name, c := range map[string]struct {
		here ledger
		want string
	}{
		"the same":   {l, ""},
		"fewer":      {ledger{with: l.with, tools: []string{"ffmpeg"}}, ""},
		"no tools":   {ledger{with: l.with}, ""},
		"more":       {ledger{with: l.with, tools: []string{"ffmpeg", "sbatch"}}, "was recorded without sbatch, which"},
		"another Go": {ledger{with: []string{"go2", "mesa=2", "VK_X=a b"}}, "was recorded with go1; here is go2"},
		"unset":      {ledger{with: []string{"go1", "mesa=2"}}, "was recorded with VK_X=a b; here is no such setting"},
		"set":        {ledger{with: append(slices.Clone(l.with), "gpu")}, "with no such setting; here is gpu"},
	} {
		if why := c.here.unusable(got); (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
	if why := l.unusable(ledger{}); why == "" {
		t.Error("no ledger is one")
	}
}

// smallTree writes a repository of two packages, of which b uses a, and makes it the current folder.
func smallTree(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module vksplat\n\ngo 1.26\n", "go.sum": "",
		"Makefile":    secondSuite + " " + serverSuite + ":\n",
		"a/a.go":      "package a\n\nconst One = 1\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"b/b_test.go": "package b\n\nimport (\n\"testing\"\n\"vksplat/a\"\n)\n\n" +
			"func TestB(t *testing.T) {\nif a.One != 1 {\nt.Error(a.One)\n}\n}\n",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o777))
		must.Do(t, os.WriteFile(name, []byte(text), 0o666))
	}
	must.Do(t, os.Mkdir(".ci", 0o777))
	git(t, "init", "-q")
}

func git(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"-c", "user.name=a", "-c", "user.email=a"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A red run records nothing, a whole one all suites; after it nothing runs but what changes, also on a machine with
// fewer tools.
func TestWholeRun(t *testing.T) {
	smallTree(t)
	tests := func(all, list bool) (string, bool) {
		t.Helper()
		var out strings.Builder
		r := newReporter(&out)
		err := runTests(r, all, list, false)
		return out.String(), err == nil && len(r.failed) == 0
	}
	change := func(name, from, to string) {
		t.Helper()
		text := string(must.Get(os.ReadFile(name))(t))
		if !strings.Contains(text, from) {
			t.Fatalf("no %q in %s", from, text)
		}
		must.Do(t, os.WriteFile(name, []byte(strings.ReplaceAll(text, from, to)), 0o666))
	}
	expect := func(all, list, passes bool, words ...string) {
		t.Helper()
		out, ok := tests(all, list)
		for _, w := range words {
			if ok != passes || !strings.Contains(out, w) {
				t.Errorf("passes is %v, no %q in:\n%s", ok, w, out)
			}
		}
	}
	change("a/a.go", "1", "2")
	expect(true, false, false, "all 4 suites run", "failed: b TestB")
	if _, err := os.Stat(ledgerFile); !os.IsNotExist(err) {
		t.Errorf("a red run is recorded: %v", err)
	}
	change("a/a.go", "2", "1")
	expect(true, false, true, "2 tests passed, 0 failed")
	git(t, "add", ".")
	git(t, "commit", "-qm", "one")
	expect(false, false, true, "4 of 4 suites have not changed", "0 tests passed")

	change(ledgerFile, "\ntools ", "\ntools a-tool-of-another-machine ")
	change("a/a_test.go", "{}", "{ t.Log() }")
	expect(false, true, true, "3 of 4 suites", "0 s  vksplat/a  a/a_test.go\n")
	expect(false, false, true, "3 of 4 suites", "1 tests passed")
	change("a/a.go", "1", "1 + 0")
	expect(false, true, true, "2 of 4 suites", "vksplat/a  a/a.go a/a_test.go\n", "vksplat/b  a/a.go\n")
	change(ledgerFile, runtime.Version(), "go1.0")
	expect(false, true, true, "all tests run: .ci/ledger.txt was recorded with go1.0; here is go", serverSuite)
}

// A suite without a result, or one that changed while the tests ran, leaves the ledger as it is.
func TestPartialRun(t *testing.T) {
	smallTree(t)
	now, _, err := keys()
	must.Do(t, err)
	seconds := map[string]float64{"vksplat/a": 1, secondSuite: 1, serverSuite: 1}
	if err := record(now, seconds); err == nil || !strings.Contains(err.Error(), "vksplat/b has no result") {
		t.Error(err)
	}
	seconds["vksplat/b"] = 1
	must.Do(t, os.WriteFile("go.sum", []byte("\n"), 0o666))
	if err := record(now, seconds); err == nil || !strings.Contains(err.Error(), "changed while the tests ran") {
		t.Error(err)
	}
	if _, err := os.Stat(ledgerFile); !os.IsNotExist(err) {
		t.Errorf("written all the same: %v", err)
	}
}

// What chooses the device or the size of a test is part of the ledger; where a cache is, is not.
func TestSurroundings(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	before := surroundings().with
	t.Setenv("MESA_SHADER_CACHE_DIR", "/elsewhere")
	t.Setenv("GOFLAGS", "-buildvcs=false -trimpath")
	if now := surroundings().with; !slices.Equal(now, before) {
		t.Errorf("a folder of a cache makes %s of %s", now, before)
	}
	t.Setenv("GOFLAGS", "-trimpath -short")
	if now := surroundings().with; !slices.Contains(now, "GOFLAGS=-short") {
		t.Errorf("tests are short, and nothing says so: %s", now)
	}
	for _, name := range []string{"VKSPLAT_DEVICE", "VKSPLAT_LONG", "VK_DRIVER_FILES", "LP_NATIVE_VECTOR_WIDTH"} {
		t.Setenv(name, "7")
		if now := surroundings().with; !slices.Contains(now, name+"=7") {
			t.Errorf("%s is not in %s", name, now)
		}
	}
}

func TestCommands(t *testing.T) {
	base := module + "/" + scriptDir
	old := ledger{entries: map[string]entry{base: {}, scriptPrefix + "a": {}, scriptPrefix + "b": {},
		"vksplat/vk": {"", 1}, "vksplat/pipeline": {"", 9}}}
	set := func(names ...string) map[string]bool {
		m := map[string]bool{}
		for _, n := range names {
			m[n] = true
		}
		return m
	}
	for _, c := range []struct {
		todo map[string]bool
		want [][]string
	}{
		{set(), nil},
		{set("vksplat/vk", "vksplat/pipeline", secondSuite), [][]string{{"vksplat/pipeline", "vksplat/vk"}}},
		{set(base, scriptPrefix+"a", scriptPrefix+"b"), [][]string{{base}}},
		{set(scriptPrefix + "b"), [][]string{{"-run", "^TestScripts$/^(b)$", base}}},
		{set(base), [][]string{{"-skip", "^TestScripts$", base}}},
		{set(base, scriptPrefix+"a"), [][]string{{"-skip", "^TestScripts$", base},
			{"-run", "^TestScripts$/^(a)$", base}}},
	} {
		if got := commands(c.todo, old); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %q, want %q", c.todo, got, c.want)
		}
	}
}
