package page

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/view"
	"vksplat/view/playtest"
)

// TestInBrowser opens the pages in a browser: they are no wider than a phone, however long the words are, their pictures come, and no policy is violated.
func TestInBrowser(t *testing.T) {
	s, err := view.Listen(view.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Show(s, &fake{}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	name := url.QueryEscape(wild)
	paths := []string{"", "job?name=" + name, "job?name=" + name + "&state=failed", "log?job=" + name + "&task=2", "log?job=" + name + "&task=7"}
	var log struct {
		Console, Errors []string
		Pages           []struct {
			Size, Path  string
			Width, Room int
			Pictures    []int // widths, 0 for one that is broken
			Violations  []string
		}
	}
	playtest.Run(t, filepath.Join("testdata", "pages.py"), map[string]any{"url": s.URL(), "paths": paths}, &log)
	if len(log.Pages) != 2*len(paths) || len(log.Errors) > 0 {
		t.Fatalf("%+v", log)
	}
	for _, p := range log.Pages {
		if p.Width > p.Room {
			t.Errorf("%s on %s is %d pixels wide, there are %d", p.Path, p.Size, p.Width, p.Room)
		}
		// The fake's task 2 has a picture; what is said to be one of the tasks 3 to 6 is none, and stays a broken one.
		want := strings.Contains(p.Path, "task=2") || p.Path == "" || strings.HasSuffix(p.Path, name)
		if got := len(p.Pictures) > 0 && p.Pictures[0] == 64; got != want || len(p.Violations) > 0 {
			t.Errorf("%s on %s has pictures %v, violations %v", p.Path, p.Size, p.Pictures, p.Violations)
		}
		for _, width := range p.Pictures[min(1, len(p.Pictures)):] {
			if width != 0 {
				t.Errorf("%s on %s shows what is no picture: %v", p.Path, p.Size, p.Pictures)
			}
		}
	}
}
