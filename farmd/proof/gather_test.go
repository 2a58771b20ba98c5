package proof

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGather makes a table of the model that there is, though the other one failed, and again once that is there.
func TestGather(t *testing.T) {
	f := newTeam(t)
	f.worker("one", "any")
	anna := f.pass("--role", "submit", "--name", "anna")
	bad := filepath.Join(f.roots["inputs"].URL, "bad")
	if err := os.Mkdir(bad, 0o777); err != nil {
		t.Fatal(err)
	}
	document := f.write("gather", "[[task]]\nkind = \"demo\"\nid = \"made\"\nimages = 6\nsize = [48, 48]\n"+
		"points = 200\n[[task]]\nkind = \"train\"\nid = \"model\"\nset.iterations = 2\nset.eval = true\n"+
		"matrix.source = [\"@made\", \"bad\"]\n[[task]]\nkind = \"eval\"\nid = \"table\"\nmodels = [\"@model\"]\n")
	for n, says := range []string{"3 done, 1 failed", "4 done"} {
		f.must(anna, "farm", "submit", document, "--roots", f.file)
		said, code := f.run(anna, "farm", "wait", "gather")
		table, err := os.ReadFile(filepath.Join(f.outputs(), "gather", "table", "out", "table.md"))
		lacks := strings.Contains(string(table), "these tasks failed: model/source=bad")
		if err != nil || !strings.Contains(said, says) || code != 1-n || lacks != (n == 0) {
			t.Errorf("%v, exit code %d, want %s\n%s\n%s", err, code, says, said, table)
		}
		if n == 0 {
			f.record(anna, "3", "anna/gather", "anna/gather/0")
			if err := os.CopyFS(bad, os.DirFS(filepath.Join(f.outputs(), "gather", "made", "out"))); err != nil {
				t.Fatal(err)
			}
		}
	}
}
