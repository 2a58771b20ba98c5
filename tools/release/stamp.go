package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

type stamp struct {
	version string    // of the tag vX.Y.Z; without one 0.0.0+DATE.COMMIT, which Debian sorts before every tag
	commit  string    // its first 12 digits, with .dirty if files differ from it
	time    time.Time // of the commit, in UTC: every file's
}

func stampOf(dir string) (stamp, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("run git %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return stamp{}, err
	}
	seconds, err := git("show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return stamp{}, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return stamp{}, fmt.Errorf("read the commit's time: %w", err)
	}
	tags, err := git("tag", "--points-at", "HEAD", "--list", "v[0-9]*", "--sort=-version:refname")
	if err != nil {
		return stamp{}, err
	}
	changes, err := git("status", "--porcelain")
	if err != nil {
		return stamp{}, err
	}
	return newStamp(commit, tags, changes != "", time.Unix(unix, 0).UTC()), nil
}

// newStamp names the version of a commit by its newest tag, if nothing differs from the commit.
func newStamp(commit, tags string, dirty bool, at time.Time) stamp {
	tag, _, _ := strings.Cut(tags, "\n")
	if dirty {
		commit, tag = commit+".dirty", ""
	}
	version := strings.TrimPrefix(tag, "v")
	if version == "" {
		version = "0.0.0+" + at.Format("20060102") + "." + commit
	}
	return stamp{version, commit, at}
}
