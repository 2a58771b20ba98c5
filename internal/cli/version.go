package cli

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
)

// version is set by the linker for releases: -ldflags "-X vksplat/internal/cli.version=1.2.3".
var version = ""

// revision is the commit, set likewise where Go records none: -ldflags "-X vksplat/internal/cli.revision=$(git describe
// --always --dirty=+dirty --exclude '*')".
var revision = ""

// Version returns the version that written files carry. It says nothing
// of the commit or the build, so that rebuilding does not change a model's bytes.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return devel
	}
	return released(info.Main.Version)
}

// devel is the version of a build that is none of a release.
const devel = "devel"

// ofCommit are versions that Go makes up of a commit.
var ofCommit = regexp.MustCompile(`^$|^\(devel\)$|\d{14}-[0-9a-f]{12}|\+dirty$`)

// released is the version of a module, unless Go made it up.
func released(module string) string {
	if ofCommit.MatchString(module) {
		return devel
	}
	return module
}

// CommitID returns the commit that the program was built from, with +dirty where its sources had been changed; "" where
// the build did not record it.
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
			dirty = "+dirty"
		}
	}
	if hash == "" {
		return ""
	}
	return hash[:min(12, len(hash))] + dirty
}

func VersionText() string {
	commit := CommitID()
	if commit != "" {
		commit = ", commit " + commit
	}
	return fmt.Sprintf("vksplat %s (%s, %s/%s%s)", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit)
}
