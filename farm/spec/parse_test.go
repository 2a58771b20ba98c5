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
		"a ": false, "a.": false, ".a": false, "-a": false, "a/b": false, "a:b": false, strings.Repeat("大", 64): true,
		strings.Repeat("a", 65): false, "a\tb": false} {
		if isName(name) != ok {
			t.Errorf("name %q is possible: %v", name, !ok)
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
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("no Error: %v", err)
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
