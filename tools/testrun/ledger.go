package main

import (
	"bufio"
	"cmp"
	"fmt"
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
	"pipeline":         {"ARCHITECTURE.md"},
	"pipeline/ref":     {"pipeline/testdata/"},
	"scene/inspect":    {"scene/photo/testdata/"},
	"scene/metric":     {"tools/lpips_weights.py"},
	"tools/archtest":   {"**"},
	"tools/release":    {"**"},
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
	with    string
	tools   []string
	entries map[string]entry
}

type entry struct {
	key     string
	seconds float64
}

// decides matches the variables that decide what tests find. Those that only say where a tool or a cache is are no part
// of it, and VKSPLAT_PACKAGES counts as a tool.
var decides = regexp.MustCompile(`^(VKSPLAT|VK|LP|MESA|GOLDEN)_`)

var elsewhere = []string{"VKSPLAT_PACKAGES", "VKSPLAT_PYTHON", "VKSPLAT_FARMD", "MESA_SHADER_CACHE_DIR"}

// surroundings returns the versions and settings that decide what tests find, and the optional tools that are here.
func surroundings() ledger {
	with := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	for _, name := range []string{"mesa-vulkan-drivers", "vulkan-validationlayers", "libvulkan1"} {
		version, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", name).Output()
		if err != nil {
			version = []byte("unknown")
		}
		with = append(with, name+"="+string(version))
	}
	for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
		name, value, _ := strings.Cut(variable, "=")
		if value != "" && decides.MatchString(name) && !slices.Contains(elsewhere, name) {
			with = append(with, variable)
		}
	}
	l := ledger{with: strings.Join(with, " "), entries: map[string]entry{}}
	for _, tool := range []string{"bash", "chromium", "colmap", "convert", "dpkg-deb", "ffmpeg", "ffprobe", "heif-enc",
		"initdb", "kubectl-validate", "man", "node", "npm", "openjd", "protoc", "python3", "sbatch", "slurmd", "unshare",
		"x86_64-w64-mingw32-gcc"} {
		if _, err := exec.LookPath(tool); err == nil {
			l.tools = append(l.tools, tool)
		}
	}
	for _, gpu := range []string{"/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/kfd"} {
		if found, _ := filepath.Glob(gpu); len(found) > 0 && !slices.Contains(l.tools, "gpu") {
			l.tools = append(l.tools, "gpu")
		}
	}
	if os.Getenv("VKSPLAT_PACKAGES") == "1" {
		l.tools = append(l.tools, "python-packages")
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
			l.with = rest
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
	fmt.Fprintf(&b, "# What make test-all passed: hash of the inputs, seconds, suite. Written by tools/testrun.\n")
	fmt.Fprintf(&b, "with %s\ntools %s\n", l.with, strings.Join(l.tools, " "))
	var names []string
	for s := range l.entries {
		names = append(names, s)
	}
	slices.Sort(names)
	for _, s := range names {
		fmt.Fprintf(&b, "%s %.1f %s\n", l.entries[s].key, l.entries[s].seconds, s)
	}
	return os.WriteFile(name, []byte(b.String()), 0o666)
}

// unusable says why nothing that old recorded counts here, or is empty.
func (l ledger) unusable(old ledger) string {
	if old.with == "" {
		return "no " + ledgerFile
	}
	if old.with != l.with {
		return fmt.Sprintf("%s is of %s; here it is %s", ledgerFile, old.with, l.with)
	}
	for _, tool := range l.tools {
		if !slices.Contains(old.tools, tool) {
			return fmt.Sprintf("%s is of a machine without %s, which some tests use", ledgerFile, tool)
		}
	}
	return ""
}
