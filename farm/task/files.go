package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/strictjson"
)

// emptied removes what is in a folder.
func emptied(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// copyTree puts the files of a folder into another. Unless they are going to be written to, links do.
func copyTree(from, to string, written bool) error {
	return filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		case strings.HasPrefix(e.Name(), "."):
			return nil // the cache's
		}
		return copyFile(name, filepath.Join(to, rel), written)
	})
}

// copyFile puts a file in place of one that may be there: that may be a link to the cache, which is not to be written
// to.
func copyFile(from, to string, written bool) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !written && os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // only read
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// steps is how far the work came.
func (r *runner) steps() int {
	if n := r.newest(); n > 0 {
		return n
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.now.Step
}

// row is a model in the table of an eval.
type row struct {
	name   string
	scores map[string]float64
}

// readScores reads the means of results.json: one method, its numbers by name.
func readScores(file string) (map[string]float64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var methods map[string]map[string]any
	if err := json.Unmarshal(data, &methods); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, strictjson.JSONError(err))
	}
	scores := map[string]float64{}
	for _, m := range methods {
		for name, v := range m {
			if x, isNumber := v.(float64); isNumber {
				scores[name] = x
			}
		}
	}
	return scores, nil
}

// writeTable writes table.md and scores.json: a line for each model with the scores that one of them has, the tasks
// whose results are missing, then the views of each.
func writeTable(dir *os.Root, rows []row, missing []string, views string) error {
	var b strings.Builder
	columns := slices.DeleteFunc([]string{"PSNR", "SSIM", "LPIPS"}, func(name string) bool {
		return !slices.ContainsFunc(rows, func(m row) bool { _, known := m.scores[name]; return known })
	})
	b.WriteString("| model | " + strings.Join(columns, " | ") + " |\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	all := map[string]map[string]float64{}
	for _, m := range rows {
		fmt.Fprintf(&b, "| %s |", strings.ReplaceAll(m.name, "|", "\\|"))
		for _, name := range columns {
			x, known := m.scores[name]
			switch {
			case !known:
				b.WriteString(" n/a |")
			case name == "PSNR":
				fmt.Fprintf(&b, " %.3f |", x)
			default:
				fmt.Fprintf(&b, " %.4f |", x)
			}
		}
		b.WriteString("\n")
		all[m.name] = m.scores
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nMissing, because these tasks failed: %s\n", strings.Join(missing, ", "))
	}
	b.WriteString(views)
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(dir.WriteFile("table.md", []byte(b.String()), 0o666),
		dir.WriteFile("scores.json", append(data, '\n'), 0o666))
}
