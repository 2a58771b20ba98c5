package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/farm/store"
	"vksplat/internal/atomicfile"
	"vksplat/internal/strictjson"
)

// emptied empties a folder.
func emptied(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// copyTree copies the files of a folder, or links them if they will not be written to.
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

// copyFile copies or links a file. It replaces an existing one, which may be a link into the cache.
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

// row is a model in the table of an eval.
type row struct {
	name   string
	scores map[string]float64
}

// readScores reads the means of results.json by name.
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

// writeTable writes table.md and scores.json: a line of scores for each model, missing tasks, then the views of each.
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

// place is a local folder or file, and the key that it is a copy of or becomes.
type place struct{ local, root, key string }

// named returns a replacer of local places in the texts of children.
func (a *attempt) named(name func(place) string) *strings.Replacer {
	var pairs []string
	for _, p := range append([]place{{a.dir, a.outputs.String(), a.key}}, a.staged...) {
		quoted, _ := json.Marshal(p.local) // a text
		for _, form := range []string{p.local, string(quoted[1 : len(quoted)-1]), html.EscapeString(p.local),
			strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(p.local)} { // the last as in Python
			pairs = append(pairs, form, name(p))
		}
	}
	return strings.NewReplacer(pairs...)
}

// inStore names a place for people.
func (p place) inStore() string { return p.root + "/" + p.key }

// textResults are name suffixes of results that contain local paths.
var textResults = []string{".json", ".html", "cfg_args"}

// placelessName is the folder of results with keys for paths. They replace the originals only once finishedFile exists:
// a resumed command needs its own files unchanged.
const placelessName = "placeless"

// unplace writes results with local paths to placelessName, with keys instead: their bytes depend on no machine.
func (c *committer) unplace(dir *os.Root) error {
	if err := os.RemoveAll(c.placeless("")); err != nil {
		return err
	}
	names, err := store.LocalFiles(dir, c.isScratch)
	if err != nil {
		return err
	}
	keys := c.named(func(p place) string { return p.key })
	for _, name := range names {
		if !slices.ContainsFunc(textResults, func(end string) bool { return strings.HasSuffix(name, end) }) {
			continue
		}
		before, err := dir.ReadFile(name)
		if err != nil {
			return err
		}
		text := keys.Replace(string(before))
		if text == string(before) {
			continue
		}
		fresh := c.placeless(name)
		if err := os.MkdirAll(filepath.Dir(fresh), 0o777); err != nil {
			return err
		}
		if err := atomicfile.WriteText(fresh, text); err != nil {
			return err
		}
	}
	return nil
}

// replaceTexts moves the texts of placelessName to the results.
func (c *committer) replaceTexts(f *finished) error {
	for _, name := range f.names() {
		err := os.Rename(c.placeless(name), filepath.Join(c.out, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// logTime begins each line of a log.
const logTime = "2006-01-02 15:04:05Z "
