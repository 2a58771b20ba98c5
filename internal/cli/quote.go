package cli

import (
	"regexp"
	"runtime"
	"strings"
)

var (
	safeWord    = regexp.MustCompile(`^[\w./:=,%+@-]+$`)
	safeWindows = regexp.MustCompile(`^[\w./:=,+@\\-]+$`) // cmd.exe expands %
)

// Quoted is a word as the shells of a system take it.
func Quoted(w string) string { return quotedFor(runtime.GOOS, w) }

func quotedFor(system, w string) string {
	switch {
	case system == "windows" && !safeWindows.MatchString(w):
		return `"` + strings.ReplaceAll(w, `"`, `\"`) + `"`
	case system != "windows" && !safeWord.MatchString(w):
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return w
}

func QuotedAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Quoted(w)
	}
	return out
}
