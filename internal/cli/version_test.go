package cli

import (
	"strings"
	"testing"
)

// TestReleased: a version that Go makes of a commit is none, so that models of two commits can have the same bytes.
func TestReleased(t *testing.T) {
	for module, want := range map[string]string{"": devel, "(devel)": devel, "v1.2.3": "v1.2.3", "v1.2.3+dirty": devel,
		"v0.0.0-20261128214128-73f2a2d6abcd": devel, "v1.2.4-0.20261128214128-73f2a2d6abcd+dirty": devel,
		"v2.0.0-rc.1": "v2.0.0-rc.1"} {
		if got := released(module); got != want {
			t.Errorf("%s: %s, want %s", module, got, want)
		}
	}
}

func TestCommitID(t *testing.T) {
	defer func(was string) { revision = was }(revision)
	revision = "73f2a2d6abcd+dirty"
	if text := VersionText(); CommitID() != revision || !strings.HasSuffix(text, ", commit 73f2a2d6abcd+dirty)") {
		t.Errorf("%s, commit %q", text, CommitID())
	}
}
