package fault

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDangling names the link to nothing or in a ring in a path, and takes links to something, and what is not there.
func TestDangling(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Mkdir("dir", 0o777), os.Symlink("dir", "good"), os.Symlink("gone", "bad"),
		os.Symlink("../bad", "dir/chain"), os.Symlink("loop", "loop"),
		os.Symlink("pong", "ping"), os.Symlink("ping", "pong")); err != nil {
		t.Skip(err) // Windows lets few make links
	}
	for path, link := range map[string]string{"": "", ".": "", "new": "", "new/below": "", "dir": "", "good": "",
		"good/new": "", "bad": "bad", "bad/": "bad", "bad/below/x.ply": "bad", "dir/chain": "dir/chain",
		"good/chain/x": "good/chain", "loop": "loop", "loop/below/x.ply": "loop", "ping": "ping"} {
		err := Dangling(path)
		code := ExitTryAgain
		if strings.HasPrefix(path, "loop") || path == "ping" {
			code = ExitUsage
		}
		if link == "" && err != nil || link != "" && (err == nil ||
			!strings.HasPrefix(err.Error(), "write output: "+filepath.FromSlash(link)+": it is a symbolic link to ") ||
			ExitCode(err) != code || Hint(err) == "") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
