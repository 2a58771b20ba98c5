package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker for releases: -ldflags "-X vksplat/internal/cli.version=1.2.3".
var version = ""

// revision is the commit, set likewise where Go records none: -ldflags "-X vksplat/internal/cli.revision=$(git describe
// --always --dirty --exclude '*')".
var revision = ""

// Version returns the version that written files carry. It says nothing
// of the commit or the build, so that rebuilding does not change a model's bytes.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// CommitID returns the commit that the program was built from, "" where the
// build did not record it.
func CommitID() string {
	if revision != "" {
		return revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var hash, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			hash = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " with changes"
		}
	}
	if hash == "" {
		return ""
	}
	return hash[:min(12, len(hash))] + dirty
}

// VersionText is what the program says of itself.
func VersionText() string {
	commit := CommitID()
	if commit != "" {
		commit = ", commit " + commit
	}
	return fmt.Sprintf("vksplat %s (%s, %s/%s%s)", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit)
}
