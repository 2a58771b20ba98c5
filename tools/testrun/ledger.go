package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ledgerFile says what the last whole run tested, and with what: see ledger.
const ledgerFile = ".ci/ledger.txt"

const (
	scriptDir    = "cmd/vksplat"
	scripts      = scriptDir + "/testdata/script/"
	secondSuite  = "second-binding" // these two are targets of the Makefile
	serverSuite  = "test-farmd"
	scriptPrefix = module + "/" + scriptDir + " TestScripts/"
)

// beyond lists what tests read outside their package, by folder; TestBeyond finds what is missing here.
var beyond = map[string][]string{
	".":                {"examples/", "vk/", "docs/*.md", "README.md"},
	"cmd/vksplat":      {"docs/", "README.md", "CHANGELOG.md", "examples/", "farm/spec/options.json"},
	"farm/export":      {"docs/*.md", "examples/"},
	"farm/spec":        {"docs/*.md", "examples/"},
	"farm/task":        {"docs/*.md"},
	"pipeline":         {"ARCHITECTURE.md"},
	"pipeline/ref":     {"pipeline/testdata/"},
	"scene/inspect":    {"scene/photo/testdata/"},
	"scene/metric":     {"tools/lpips_weights.py"},
	"tools/archtest":   {"**"},
	"tools/release":    {"**"},
	"tools/shadergen":  {"shaders/spv/"},
	"tools/supersplat": {"view/"},
	"tools/testrun":    {"**"},
}

// builds lists the programs that tests build and run, by folder; TestBeyond finds what is missing here, too. The suite
// of the server is the exception: its tests start the trainer as a worker, and are keyed by the farm's part of it.
var builds = map[string]string{".": "cmd/vksplat"}

// suite is what runs or is left out as one: a package's tests, a script of cmd/vksplat, or a target of the Makefile.
type suite struct {
	name   string
	inputs []string
}

// suites lists everything that make test runs.
func (t *tree) suites() []suite {
	var all []suite
	for dir, p := range t.packages {
		if !p.hasTests || dir == "farmd" || strings.HasPrefix(dir, "farmd/") || strings.HasPrefix(dir, "examples/") {
			continue
		}
		inputs := slices.Concat(t.inputs(dir, true), t.matching(beyond[dir]...), t.inputs(builds[dir], false))
		if dir == scriptDir {
			isScript := func(name string) bool { return strings.HasPrefix(name, scripts) }
			inputs = slices.DeleteFunc(inputs, isScript)
			common := slices.DeleteFunc(t.inputs(dir, true), isScript)
			for _, name := range t.matching(scripts) {
				s := scriptPrefix + strings.TrimSuffix(path.Base(name), ".txtar")
				all = append(all, suite{s, append(slices.Clone(common), name)})
			}
		}
		all = append(all, suite{path.Join(module, dir), inputs})
	}
	all = append(all, suite{secondSuite, t.inputs("vk", true)})
	server := t.matching("farmd/", "farm/", "go.mod", "go.sum", "cmd/vksplat/farm*.go")
	server = slices.DeleteFunc(server, func(name string) bool {
		return strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "farmd/")
	})
	for dir := range t.packages {
		if dir == "farmd" || strings.HasPrefix(dir, "farmd/") {
			server = append(server, t.inputs(dir, true)...)
		}
	}
	all = append(all, suite{serverSuite, server})
	slices.SortFunc(all, func(a, b suite) int { return cmp.Compare(a.name, b.name) })
	return all
}

// ledger records which suites have passed: by name, a hash of their inputs and the seconds that they took. They count
// with the same Go, drivers and settings, and for tests that skip without a tool, where that tool was there.
type ledger struct {
	with    []string
	tools   []string
	entries map[string]entry
}

type entry struct {
	key     string
	seconds float64
}

// decides matches the variables that decide what tests find. Those that only say where a tool or a cache is are no part
// of it, and VKSPLAT_PACKAGES counts as a tool.
var decides = regexp.MustCompile(`^((VKSPLAT|VK|LP|MESA|GOLDEN)_|GO(FLAGS|DEBUG|EXPERIMENT|AMD64)$)`)

var elsewhere = []string{"VKSPLAT_PACKAGES", "VKSPLAT_FARMD", "MESA_SHADER_CACHE_DIR"}

// recordsOnly matches the flags of GOFLAGS that change what a program knows of its origin, and nothing that it does.
var recordsOnly = regexp.MustCompile(`-(buildvcs|trimpath)(=\S*)? *`)

// optional lists the programs without which some tests skip.
var optional = []string{"bash", "chromium", "colmap", "convert", "dpkg-deb", "ffmpeg", "ffprobe", "heif-enc", "initdb",
	"kubectl-validate", "man", "node", "npm", "openjd", "protoc", "python3", "sbatch", "slurmd", "unshare",
	"x86_64-w64-mingw32-gcc"}

// surroundings returns the versions and settings that decide what tests find, and the optional tools that are here.
func surroundings() ledger {
	l := ledger{with: []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, entries: map[string]entry{}}
	for _, name := range []string{"mesa-vulkan-drivers", "vulkan-validationlayers", "libvulkan1"} {
		version, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", name).Output()
		if err != nil {
			version = []byte("unknown")
		}
		l.with = append(l.with, name+"="+string(version))
	}
	for _, gpu := range []string{"/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/kfd"} {
		if found, _ := filepath.Glob(gpu); len(found) > 0 && !slices.Contains(l.with, "gpu") {
			l.with = append(l.with, "gpu")
		}
	}
	for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
		name, value, _ := strings.Cut(variable, "=")
		if name == "GOFLAGS" {
			value = strings.TrimSpace(recordsOnly.ReplaceAllString(value, ""))
		}
		if value != "" && decides.MatchString(name) && !slices.Contains(elsewhere, name) {
			l.with = append(l.with, name+"="+value)
		}
	}
	for _, tool := range optional {
		if _, err := exec.LookPath(tool); err == nil {
			l.tools = append(l.tools, tool)
		}
	}
	if os.Getenv("VKSPLAT_PACKAGES") == "1" {
		versions, _ := hashOf(".ci/python.txt")
		l.tools = append(l.tools, fmt.Sprintf("python-packages-%.8s", versions))
	}
	if _, err := os.Stat(filepath.FromSlash("../shared/data")); err == nil {
		l.tools = append(l.tools, "captures")
	}
	return l
}

// readLedger returns an empty ledger where there is none.
func readLedger(name string) (ledger, error) {
	l := ledger{entries: map[string]entry{}}
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "with "); ok {
			l.with = append(l.with, rest)
		} else if rest, ok := strings.CutPrefix(line, "tools "); ok {
			l.tools = strings.Fields(rest)
		} else if fields := strings.SplitN(line, " ", 3); len(fields) == 3 && !strings.HasPrefix(line, "#") {
			seconds, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return l, fmt.Errorf("read %s: %w", name, err)
			}
			l.entries[fields[2]] = entry{fields[0], seconds}
		}
	}
	return l, lines.Err()
}

func (l ledger) write(name string) error {
	var b strings.Builder
	b.WriteString("# What make test-all passed: hash of the inputs, seconds, suite. Written by tools/testrun.\n")
	for _, with := range l.with {
		fmt.Fprintf(&b, "with %s\n", with)
	}
	fmt.Fprintf(&b, "tools %s\n", strings.Join(l.tools, " "))
	for _, s := range slices.Sorted(maps.Keys(l.entries)) {
		fmt.Fprintf(&b, "%s %.0f %s\n", l.entries[s].key, l.entries[s].seconds, s)
	}
	return os.WriteFile(name, []byte(b.String()), 0o666)
}

// unusable says why nothing that old recorded counts here, or is empty. What passed where more tools are counts.
func (l ledger) unusable(old ledger) string {
	if len(old.with) == 0 {
		return "no " + ledgerFile
	}
	if then, now := lacking(l.with, old.with), lacking(old.with, l.with); then+now != "" {
		return fmt.Sprintf("%s was recorded with %s; here is %s", ledgerFile, cmp.Or(then, "no such setting"),
			cmp.Or(now, "no such setting"))
	}
	if tools := lacking(old.tools, l.tools); tools != "" {
		return fmt.Sprintf("%s was recorded without %s, which some tests use", ledgerFile, tools)
	}
	return ""
}

// lacking lists what of all is not in some.
func lacking(some, all []string) string {
	isThere := func(s string) bool { return slices.Contains(some, s) }
	return strings.Join(slices.DeleteFunc(slices.Clone(all), isThere), ", ")
}

// todo returns the suites that run, and why in a line.
func (l ledger) todo(old ledger, all bool) (map[string]bool, string) {
	why := l.unusable(old)
	todo := map[string]bool{}
	for name, e := range l.entries {
		if all || why != "" || old.entries[name].key != e.key {
			todo[name] = true
		}
	}
	switch {
	case all:
		return todo, fmt.Sprintf("all %d suites run", len(todo))
	case why != "":
		return todo, "all tests run: " + why
	}
	return todo, fmt.Sprintf("%d of %d suites have not changed since they passed (%s)", len(l.entries)-len(todo),
		len(l.entries), ledgerFile)
}
