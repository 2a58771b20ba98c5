package export

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestValidators lets the tools of OpenJD and Kubernetes judge the exports, where they are installed, and a broken copy
// of each. make python-env installs the one, make schedulers the other; the variables say that they were.
func TestValidators(t *testing.T) {
	j, p := mixed(t)
	installed := map[string]string{"openjd": "VKSPLAT_PACKAGES", "kubectl-validate": "VKSPLAT_SCHEDULERS"}
	for _, v := range []struct {
		writer  int
		tool    []string
		file    string // that is broken
		from    string
		to      string
		because string
	}{
		{1, []string{"openjd", "check"}, OpenJDName, `"dependsOn"`, `"dependson"`, "dependson"},
		{1, []string{"openjd", "check"}, OpenJDName, `"dependsOn": "01-train"`, `"dependsOn": "01-x"`, "01-x"},
		{1, []string{"openjd", "check"}, OpenJDName, "NOTIFY_THEN", "NOTIFY_AND", "cancelation"},
		{2, []string{"kubectl-validate"}, "01-train.json", `"backoffLimitPerIndex"`, `"backoffLimitPerIndexx"`,
			"backoffLimitPerIndexx"},
		{2, []string{"kubectl-validate"}, "01-train.json", `"completions": 4`, `"completions": "four"`, "completions"},
		{2, []string{"kubectl-validate"}, documentMap, `"job.json": "`, `"job.json": 1, "x": "`, "job.json"},
	} {
		t.Run(v.tool[0]+" "+v.to, func(t *testing.T) {
			if _, err := exec.LookPath(v.tool[0]); err != nil {
				if os.Getenv(installed[v.tool[0]]) == "1" {
					t.Fatal(v.tool[0] + " was installed and is not in the path")
				}
				t.Skip(v.tool[0] + " is not installed")
			}
			w := writers[v.writer]
			files, err := w.write(j, p, w.o)
			if err != nil {
				t.Fatal(err)
			}
			dir := written(t, files)
			judge := func() (string, error) {
				said, err := exec.Command(v.tool[0], append(v.tool[1:], filepath.Join(dir, v.file))...).CombinedOutput()
				return string(said), err
			}
			if said, err := judge(); err != nil {
				t.Fatalf("%s refuses %s: %v\n%s", v.tool[0], v.file, err, said)
			}
			name := filepath.Join(dir, v.file)
			data, err := os.ReadFile(name)
			if err != nil || !bytes.Contains(data, []byte(v.from)) {
				t.Fatalf("%s has no %s: %v", v.file, v.from, err)
			}
			if err := os.WriteFile(name, bytes.Replace(data, []byte(v.from), []byte(v.to), 1), 0o666); err != nil {
				t.Fatal(err)
			}
			if said, err := judge(); err == nil || !strings.Contains(said, v.because) {
				t.Errorf("%s takes %s, or says nothing of %s: %v\n%s", v.tool[0], v.to, v.because, err, said)
			}
		})
	}
}

// judged lets OpenCue's or HTCondor's own Python packages judge an export of the mixed job, of which change may spoil a
// file. make python-env installs them.
func judged(t *testing.T, script, packages string, writer int, change func(dir string)) (string, error) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import "+packages).Run() != nil {
		if os.Getenv("VKSPLAT_PACKAGES") == "1" {
			t.Fatalf("%s were installed and cannot be used", packages)
		}
		t.Skipf("no python3 with %s", packages)
	}
	j, p := mixed(t)
	files, err := writers[writer].write(j, p, writers[writer].o)
	if err != nil {
		t.Fatal(err)
	}
	dir := written(t, files)
	change(dir)
	said, err := exec.Command(python, "-B", filepath.Join("testdata", script), dir).CombinedOutput()
	return string(said), err
}

// replaced replaces a text in a file.
func replaced(t *testing.T, name, from, to string) func(dir string) {
	return func(dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte(from)) {
			t.Fatalf("%s has no %s: %v", name, from, err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenCueJudges compares the spec with the one that OpenCue's outline writes for the same layers, and submits it.
func TestOpenCueJudges(t *testing.T) {
	const packages = "outline, opencue, opencue_proto, grpc"
	if said, err := judged(t, "judge_opencue.py", packages, 3, func(string) {}); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	for _, c := range []struct{ from, to, because string }{
		{"<gpu_memory>8000m</gpu_memory>", "", "outline writes another spec"},
		{"<cores>8.0</cores>", "<cores>8</cores>", "outline writes another spec"},
		{"<range>0-3</range>", "<range>1-3</range>", "3 frames for 4 tasks"},
		{"<onlayer>01_train</onlayer>", "<onlayer>01_x</onlayer>", "01_x"},
	} {
		if said, err := judged(t, "judge_opencue.py", packages, 3,
			replaced(t, OpenCueName, c.from, c.to)); err == nil ||
			!strings.Contains(said, c.because) {
			t.Errorf("%s in the place of %s is taken: %v\n%s", c.to, c.from, err, said)
		}
	}
}

// TestHTCondorJudges has HTCondor make the jobs that the submit files describe and say after which exit codes they are
// repeated, and compares the DAG with the one that HTCondor's bindings write.
func TestHTCondorJudges(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("HTCondor's bindings are for Linux")
	}
	const packages = "classad, htcondor.dags"
	said, err := judged(t, "judge_htcondor.py", packages, 4, func(string) {})
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, want := range []string{
		"01-train-18 JobMaxRetries=2 RequestCpus=8 RequestMemory=16384 RequestDisk=20971520 " +
			"RequestGPUs=1 GPUsMinMemory=8000 JobPrio=-10 JobMaxVacateTime=210 ",
		"02-partition-23 JobMaxRetries=2 RequestCpus=8 RequestMemory=16384 RequestDisk=20971520 " +
			"RequestGPUs=None GPUsMinMemory=None JobPrio=-10 ",
		"PeriodicRemove=JobStatus == 2 && time() - EnteredCurrentStatus > 22020 pool=True\n",
		"CATEGORY 09-encode-17 09-encode\n", "MAXJOBS 09-encode 4\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	for _, c := range []struct{ file, from, to, because string }{
		{"01-train.sub", "ExitCode =!= 75", "ExitCode =!= 65", "('01-train-0', 75, 1, "},
		{"01-train.sub", "ExitBySignal =?= false && ", "", "('01-train-0', None, 1, "},
		{"01-train.sub", "kill_sig", "kil_sig", "KillSig"},
		{"01-train.sub", "request_memory = 16GB", "request_memory = 16XB", "16XB"},
		{HTCondorName, "index=\"0\"", "index=\"1\"", "--index 1"},
		{HTCondorName, "CHILD 03-render-3", "CHILD 03-render-33", "03-render-33"},
	} {
		if said, err := judged(t, "judge_htcondor.py", packages, 4, replaced(t, c.file, c.from, c.to)); err == nil ||
			!strings.Contains(said, c.because) {
			t.Errorf("%s with %s is taken: %v\n%s", c.file, c.to, err, said)
		}
	}
}
