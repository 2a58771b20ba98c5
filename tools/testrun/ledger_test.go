package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
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

func TestLedger(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.txt")
	l := ledger{with: "go1 mesa=2", tools: []string{"colmap"},
		entries: map[string]entry{"vksplat/vk": {"aa", 2.5}, scriptPrefix + "a": {"bb", 0}}}
	must.Do(t, l.write(file))
	got, err := readLedger(file)
	if err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, %v, want %+v", got, err, l)
	}
	for here, usable := range map[string]bool{"colmap": true, "": true, "ffmpeg": false} {
		now := ledger{with: l.with, tools: strings.Fields(here)}
		if why := now.unusable(got); (why == "") != usable {
			t.Errorf("with %q: %q", here, why)
		}
	}
	if why := (ledger{with: "go2 mesa=2"}).unusable(got); !strings.Contains(why, "go2") {
		t.Errorf("another Go: %q", why)
	}
	if why := l.unusable(ledger{}); why == "" {
		t.Error("no ledger is one")
	}
}

// What chooses the device or the size of a test is part of the ledger; where a cache is, is not.
func TestSurroundings(t *testing.T) {
	before := surroundings().with
	t.Setenv("MESA_SHADER_CACHE_DIR", "/elsewhere")
	if now := surroundings().with; now != before {
		t.Errorf("a folder of a cache makes %s of %s", now, before)
	}
	for _, name := range []string{"VKSPLAT_DEVICE", "VKSPLAT_LONG", "VK_DRIVER_FILES", "LP_NATIVE_VECTOR_WIDTH"} {
		t.Setenv(name, "7")
		if now := surroundings().with; !strings.Contains(now, " "+name+"=7") {
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
