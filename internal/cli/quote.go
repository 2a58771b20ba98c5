package cli

import (
	"regexp"
	"runtime"
	"strings"
)

var (
	safeWord    = regexp.MustCompile(`^[\w./:=,%+@-]+$`)
	safeWindows = regexp.MustCompile(`^[\w./:=,+@\\-]+$`) // cmd.exe expands %
	lastSlashes = regexp.MustCompile(`\\+$`)              // one before a quote would escape it
)

// Quoted is a word as the shells of a system take it.
func Quoted(w string) string { return quotedFor(runtime.GOOS, w) }

func quotedFor(system, w string) string {
	switch {
	case system == "windows" && !safeWindows.MatchString(w):
		w = lastSlashes.ReplaceAllString(w, "$0$0")
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
