package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vksplat/farm/spec"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// templateFolder has the templates for schedulers.
const templateFolder = "../../examples/farm/"

// templateTexts reads the templates, by name.
func templateTexts(t *testing.T) map[string]string {
	t.Helper()
	files := must.Get(os.ReadDir(templateFolder))(t)
	texts := map[string]string{}
	for _, f := range files {
		data := must.Get(os.ReadFile(templateFolder + f.Name()))(t)
		texts[f.Name()] = string(data)
	}
	for scheduler, name := range templates {
		if texts[name] == "" {
			t.Errorf("there is no template %s for %s", name, scheduler)
		}
	}
	return texts
}

// TestTemplateFlags wants every flag that a template gives to run-task, and those that run-task needs.
func TestTemplateFlags(t *testing.T) {
	flags := farmRunTaskCommand(cli.New(nil, io.Discard, io.Discard)).Flags()
	calls := 0
	for name, text := range templateTexts(t) {
		for n, call := range strings.Split(text, "run-task")[1:] {
			calls++
			if end := regexp.MustCompile(`(?m)[\])]$|"$`).FindStringIndex(call); end != nil {
				call = call[:end[0]]
			}
			given := regexp.MustCompile(`--[a-z-]+`).FindAllString(call, -1)
			for _, flag := range given {
				if flags.Lookup(strings.TrimPrefix(flag, "--")) == nil {
					t.Errorf("%s, call %d: run-task has no flag %s", name, n+1, flag)
				}
			}
			for _, needed := range []string{"--spec", "--roots", "--index"} {
				if !slices.Contains(given, needed) {
					t.Errorf("%s, call %d: without %s: %q", name, n+1, needed, given)
				}
			}
		}
	}
	if calls != 7 { // five steps, one command, one submit file
		t.Errorf("%d calls of run-task in the templates, want 7", calls)
	}
}

// TestTemplateSyntax parses each template: those in YAML, Python and bash by their own programs, where these are
// installed.
func TestTemplateSyntax(t *testing.T) {
	parsers := map[string][]string{
		".yaml": {"python3", "-c", "import sys, yaml; yaml.safe_load(open(sys.argv[1]))"},
		".py":   {"python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"},
		".sh":   {"bash", "-n"},
	}
	lines := map[string]*regexp.Regexp{
		".sub": regexp.MustCompile(`^(#.*|\w+ = .+|queue|)$`),
		".dag": regexp.MustCompile(`^(#.*|JOB \S+ htcondor\.sub|VARS \S+( \w+="\d+")+|PARENT( \S+)+ CHILD( \S+)+|)$`),
	}
	for name, text := range templateTexts(t) {
		if form := lines[filepath.Ext(name)]; form != nil {
			for n, line := range strings.Split(text, "\n") {
				if !form.MatchString(line) {
					t.Errorf("%s:%d: %s", name, n+1, line)
				}
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			parser := parsers[filepath.Ext(name)]
			if parser == nil {
				t.Fatal("no parser knows it")
			}
			said, err := exec.Command(parser[0], append(parser[1:], templateFolder+name)...).CombinedOutput()
			if errors.Is(err, exec.ErrNotFound) || strings.Contains(string(said), "No module named") {
				if os.Getenv("VKSPLAT_PACKAGES") == "1" {
					t.Fatal(parser[0] + " was installed and is not in the path")
				}
				t.Skip(parser[0] + " is not installed")
			}
			if err != nil {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// TestTemplateTasks wants the templates to run each task of the job that they were written for once, after those that
// it needs.
func TestTemplateTasks(t *testing.T) {
	_, plan, err := readJob("../../examples/three-scenes.toml")
	if err != nil {
		t.Fatal(err)
	}
	texts := templateTexts(t)
	step := regexp.MustCompile(`(?m)^  - name: (\w+)\n(?:    dependencies: .*dependsOn: (\w+).*\n)?` +
		`(?:    host.*\n)?    parameterSpace: .*range: "([0-9-]+)"`)
	layer := regexp.MustCompile(`(?m)^    \("(\w+)", "([0-9-]+)", (?:None|"(\w+)"),`)
	var steps, layers [][]string
	for _, m := range step.FindAllStringSubmatch(texts["openjd.yaml"], -1) {
		steps = append(steps, []string{m[1], m[3], m[2]})
	}
	for _, m := range layer.FindAllStringSubmatch(texts["opencue.py"], -1) {
		layers = append(layers, m[1:])
	}
	checkStages(t, "openjd.yaml", plan, steps)
	checkStages(t, "opencue.py", plan, layers)

	dag := texts["htcondor.dag"]
	names := map[int]string{}
	for _, m := range regexp.MustCompile(`VARS (\S+) index="(\d+)" gpus="(\d)"`).FindAllStringSubmatch(dag, -1) {
		i, _ := strconv.Atoi(m[2])
		names[i] = m[1]
		if i < len(plan.Tasks) && (m[3] == "1") != plan.Tasks[i].Kind.NeedsDevice {
			t.Errorf("htcondor.dag: %s gets %s GPUs", m[1], m[3])
		}
	}
	for i, task := range plan.Tasks {
		for _, k := range task.Needs {
			edge := regexp.MustCompile(`(?m)^PARENT .*\b` + names[k] + `\b.* CHILD .*\b` + names[i] + `\b`)
			indirect := plan.Tasks[k].Kind.Name == "demo" && task.Kind.Name == "eval" // by way of the models
			if names[i] == "" || !indirect && !edge.MatchString(dag) {
				t.Errorf("htcondor.dag: task %d does not wait for task %d", i, k)
			}
		}
	}
	if len(names) != len(plan.Tasks) {
		t.Errorf("htcondor.dag has %d nodes, want %d", len(names), len(plan.Tasks))
	}
}

// checkStages checks stages of a template: name, tasks, and the stage that each waits for.
func checkStages(t *testing.T, file string, plan *spec.Plan, stages [][]string) {
	t.Helper()
	stageOf, before := map[int]string{}, map[string]string{}
	for _, s := range stages {
		before[s[0]] = s[2]
		first, last, _ := strings.Cut(s[1], "-")
		if last == "" {
			last = first
		}
		a, _ := strconv.Atoi(first)
		b, _ := strconv.Atoi(last)
		for i := a; i <= b; i++ {
			if stageOf[i] != "" || i >= len(plan.Tasks) || plan.Tasks[i].Kind.Name != s[0] {
				t.Fatalf("%s: task %d is not one of %s", file, i, s[0])
			}
			stageOf[i] = s[0]
		}
	}
	for i, task := range plan.Tasks {
		for _, k := range task.Needs {
			from := before[stageOf[i]]
			for from != "" && from != stageOf[k] {
				from = before[from]
			}
			if stageOf[i] == "" || from == "" {
				t.Errorf("%s: task %d does not wait for task %d", file, i, k)
			}
		}
	}
}

// TestContract wants help and page to name the exit codes that schedulers obey.
func TestContract(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/farm-export.md"))(t)
	help := farmRunTaskCommand(cli.New(nil, io.Discard, io.Discard)).Long
	for _, code := range []int{fault.ExitOK, fault.ExitTryAgain, fault.ExitUsage, fault.ExitData, fault.ExitSetup} {
		text := strconv.Itoa(code)
		if !regexp.MustCompile(`\b`+text+`\b`).MatchString(help) || !strings.Contains(string(page), "\n| "+text+" |") {
			t.Errorf("help or page have no exit code %d", code)
		}
	}
}
