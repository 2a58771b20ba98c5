package spec

import (
	"errors"
	"strings"
	"testing"
)

func TestKeysAndNames(t *testing.T) {
	for key, ok := range map[string]bool{
		"a": true, "a/b c/Ü大.ply": true, "a..b/c": true, "": false, "/a": false, "a/": false, "a//b": false,
		"..": false, "a/../b": false, "a/.hidden": false, "C:/x": false, "C:": false,
		"a\\b": false, "a\x00b": false, "a\nb": false, "@a": false, "a/@b": true, "~/x": true, "\xff": false,
		strings.Repeat("a", 256): false, strings.Repeat("a", 255): true,
		strings.Repeat("ab/", 400) + "a": false, "a/./b": false, "file:///x": false, "\u0085": false,
	} {
		if err := CheckKey(key); (err == nil) != ok {
			t.Errorf("key %q: %v, want ok %v", key, err, ok)
		}
	}
	for name, ok := range map[string]bool{"a": true, "My scans (2)": true, "大": true, "": false, " a": false,
		"a ": false, "a.": false, ".a": false, "-a": false, "@a": false, "a/b": false, "a:b": false,
		strings.Repeat("大", 64): true, strings.Repeat("a", 65): false, "a\tb": false} {
		if why, hint := badName(name); (why == "") != ok || (hint == "") != ok {
			t.Errorf("name %q: %q, %q", name, why, hint)
		}
	}
	seen := map[string]string{}
	for _, name := range []string{"a b", "a=20b", "a.b", "a_b", "ä", "=C3=A4", "A"} {
		e := Escape(name)
		if other, twice := seen[e]; twice || strings.ContainsAny(e, ". *>/") {
			t.Errorf("%q and %q become %q", name, other, e)
		}
		seen[e] = name
	}
}

func FuzzParse(f *testing.F) {
	for _, test := range good {
		f.Add([]byte(test.doc))
	}
	for _, test := range bad {
		if len(test.doc) < 1000 {
			f.Add([]byte(test.doc))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := Parse("job.toml", data)
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Fatalf("no ErrSpec: %v", err)
			}
			return
		}
		p, err := j.Plan()
		if err == nil && len(p.Tasks) < 1000 {
			checkPlan(t, string(data), j, p)
		}
	})
}

// TestLastComment reads a document that ends with a comment, and no end of its line: whatever dots and brackets are in
// it.
func TestLastComment(t *testing.T) {
	const doc = "version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\n# ............................ " +
		"[[[[[[[[[[[[[[[[[[[["
	if _, _, err := planOf(doc); err != nil {
		t.Error(err)
	}
}

// TestLines finds the line of each key and element, however the document writes them: dotted, in braces, over several
// lines, behind texts that look like keys.
func TestLines(t *testing.T) {
	const doc = `version = 1 # [[task]]
name = """
[[task]]
task.set.seed = 1"""
[retry]
max_attempts = 2
[[task]]
kind = "train" # 8
set.sh_degree = 3
set . "near" = 0.5 # 10
matrix = { seed = [1, 2], source = [ "a=b",
	"c", # 12
	"d"]} # 13
retry.backoff = "1s"
[[task]]
limits = {task_timeout = "1h", stall_timeout = '#"'}
[task.pin]
device = "x" # 18
`
	for line, at := range map[int]path{1: {"version"}, 2: {"name"}, 5: {"retry"}, 6: {"retry", "max_attempts"}, 7: {"task", 0},
		8: {"task", 0, "kind"}, 9: {"task", 0, "set"}, 10: {"task", 0, "set", "near"}, 11: {"task", 0, "matrix", "source", 0},
		12: {"task", 0, "matrix", "source", 1}, 13: {"task", 0, "matrix", "source", 2}, 14: {"task", 0, "retry", "backoff"},
		15: {"task", 1}, 16: {"task", 1, "limits", "stall_timeout"}, 17: {"task", 1, "pin"}, 18: {"task", 1, "pin", "device"}} {
		if got := (&Job{places: scan([]byte(doc)).places, text: []byte(doc)}).line(at); got != line {
			t.Errorf("%v is in line %d, it is in %d", at, got, line)
		}
	}
	for line, doc := range map[int]string{6: "[[task]]\nkind = \"demo\"\nid = \"a\"\nsett.foo = 1",
		5: "[[task]]\nkind = \"train\"\nset = {seed = 1, foo = 2}\nsource = \"a\""} {
		if _, err := Parse("job.toml", []byte(head+doc)); lineIn(err) != line {
			t.Errorf("%v, want line %d", err, line)
		}
	}
}

// TestWrongTask finds the line of a flag that a command refuses, and of an input that is not there.
func TestWrongTask(t *testing.T) {
	j, p, err := planOf(head + "[[task]]\nkind = \"train\"\nid = \"t\"\npreset = \"mcmc\"\nmatrix.source = [\"a\", \"b\"]\n" +
		"matrix.max-steps = [3]\nset.seed = 1\n[[task]]\nkind = \"eval\"\nmodels = [\n \"m\"]\nsource = \"a\"\n")
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	for i, test := range []struct {
		err  error
		line int
	}{
		{j.WrongTask(&p.Tasks[0], "seed", refused), 9},
		{j.WrongTask(&p.Tasks[0], "iterations", refused), 8},
		{j.WrongTask(&p.Tasks[0], "", refused), 3},
		{j.WrongInput(&p.Tasks[1], "b", refused), 7},
		{j.WrongInput(&p.Tasks[2], "m", refused), 12},
		{j.WrongInput(&p.Tasks[2], "a", refused), 14},
	} {
		if lineIn(test.err) != test.line || !errors.Is(test.err, ErrSpec) {
			t.Errorf("case %d: %v, want line %d", i, test.err, test.line)
		}
	}
}
