package task

import (
	"encoding/json"
	"errors"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/farm/store"
	"vksplat/internal/atomicfile"
)

// place is a folder or file of this machine, and the key below a root of what it is a copy of, or becomes.
type place struct{ local, root, key string }

// named returns what replaces the places of this machine in a text: children know no others, and people and other
// machines do not know these.
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

// inStore is where something is in the store.
func (p place) inStore() string { return p.root + "/" + p.key }

// textResults end the names of results in which children name what they read and wrote.
var textResults = []string{".json", ".html", "cfg_args"}

// placelessName is the folder, in a task's folder, of results that name their inputs by keys until finishedFile is
// there: if a command goes on with what it wrote, it wants that unchanged.
const placelessName = "placeless"

// unplace writes to placelessName those results that name folders of this machine, with keys in their place: results
// have the same bytes wherever they are made, and reveal no machine's folders.
func (c *committer) unplace(dir *os.Root) error {
	if err := os.RemoveAll(c.placeless("")); err != nil { // of an earlier attempt
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
		if err := atomicfile.Write(fresh, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// replaceTexts moves the texts of placelessName to the results.
func (c *committer) replaceTexts(f *finished) error {
	for _, name := range f.names() {
		err := os.Rename(c.placeless(name), filepath.Join(c.out, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it names no folders, or is there
			return err
		}
	}
	return nil
}

// logTime is in front of each line of a log.
const logTime = "2006-01-02 15:04:05Z "
