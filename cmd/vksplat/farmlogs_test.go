package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"vksplat/farm/store"
	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
)

// TestLastLog prints the log of the attempt with the highest number, and says which that is.
func TestLastLog(t *testing.T) {
	root := must.Get(store.Open(store.Options{URL: t.TempDir()}))(t)
	for _, name := range []string{"a00002", "a00010", "a00009"} { // the last one was written to last
		must.Do(t, root.Put("film/model/log/"+name+".log", func(w io.Writer) error {
			_, err := io.WriteString(w, "said by "+name+"\n")
			return err
		}))
	}
	var said, notes bytes.Buffer
	console := cli.New(nil, &said, &notes)
	if err := printLog(console, root, "film", "model"); err != nil || said.String() != "said by a00010\n" ||
		!strings.Contains(notes.String(), "film/model/log/a00010.log") {
		t.Errorf("%v, %q, %q", err, said.String(), notes.String())
	}
	if err := printLog(console, root, "film", "render"); err == nil || !strings.Contains(err.Error(), `"render"`) {
		t.Errorf("a task without logs: %v", err)
	}
}
