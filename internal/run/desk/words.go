package desk

import (
	"regexp"
	"strings"

	"vksplat/internal/cli"
)

// The commands that the page runs speak of flags. A page has controls: what they set is named by their names, and
// advice that only a command line can follow is left out.

// controls replace the flags that the page sets.
var controls = strings.NewReplacer(downscale+" 1 ", "photo size 1/1 ", downscale+" 2", "photo size 1/2",
	downscale+" 4", "photo size 1/4", downscale+" 8", "photo size 1/8", downscale, "photo size",
	cli.Switch("time-limit"), "time limit", cli.Switch("preset"), "recipe", cli.Switch("eval"), "hold out every 8th photo")

var downscale = cli.Switch("downscale")

var (
	ofCommands = regexp.MustCompile(`(^|[\s("])--?[a-z]|vksplat [a-z]`)
	inBrackets = regexp.MustCompile(` \([^()]*\)`)
)

// forPage words a message of a command for a page, "" where nothing but advice for a command line is in it.
func forPage(text string) string {
	text = inBrackets.ReplaceAllStringFunc(controls.Replace(text), func(aside string) string {
		if ofCommands.MatchString(aside) {
			return ""
		}
		return aside
	})
	var kept []string
	for part := range strings.SplitSeq(text, "; ") {
		if !ofCommands.MatchString(part) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "; ")
}

// forPageAtLeast is forPage of what must be said in any case.
func forPageAtLeast(text string) string {
	if short := forPage(text); short != "" {
		return short
	}
	return text
}
