package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestExamples plans the examples of the repository.
func TestExamples(t *testing.T) {
	schema := compiled(t)
	files, err := filepath.Glob("../../examples/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		j, p, err := planOf(string(data))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if err := validate(schema, j); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		checkPlan(t, file, j, p)
	}
}

// TestPage wants docs/farm-jobs.md to name every key, and its examples to be jobs.
func TestPage(t *testing.T) {
	data := must.Get(os.ReadFile("../../docs/farm-jobs.md"))(t)
	page := string(data)
	fields := slices.Clone(commonFields)
	for _, k := range kinds[:len(writtenKinds())] {
		fields = append(fields, k.fields...)
		if !strings.Contains(page, "\n**"+k.Name+"** ") {
			t.Errorf("the page has no section for %s", k.Name)
		}
	}
	for _, f := range append(fields, jobFields...) {
		if (f.Type != typeTable || f.Name == "set") && f.Type != typeTables && !strings.Contains(page, "`"+f.Name+"`") {
			t.Errorf("the page does not name %s", f.Name)
		}
		for _, sub := range f.fields {
			if !sub.Set && !strings.Contains(page, "`"+f.Name+"."+sub.Name+"`") {
				t.Errorf("the page does not name %s.%s", f.Name, sub.Name)
			}
		}
	}
	examples := strings.Split(page, "```toml\n")[1:]
	for _, text := range examples {
		doc, _, _ := strings.Cut(text, "```")
		if _, _, err := planOf(doc); err != nil {
			t.Errorf("%s\n%v", doc, err)
		}
	}
	if len(examples) < len(writtenKinds()) {
		t.Errorf("%d examples", len(examples))
	}
}
