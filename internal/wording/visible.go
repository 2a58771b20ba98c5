package wording

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// PrintableLines writes what would move a terminal's cursor, hide or turn around what follows, and bytes that are not
// UTF-8, as Go's escapes: names and contents of files are other people's words. Ends of lines and tabs stay.
func PrintableLines(text string) string { return Escaped(text, "\n\t") }

// Printable gives a name for a message, in quotes where it holds what Visible escapes, or an end of line or a tab.
func Printable(name string) string {
	if Escaped(name, "") != name {
		return strconv.Quote(name)
	}
	return name
}

// Escaped writes all runes that cannot be printed as escapes, but those in keep.
func Escaped(text, keep string) string {
	bad := func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) && !strings.ContainsRune(keep, r) }
	if !strings.ContainsFunc(text, bad) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		part := text[:n]
		text = text[n:]
		// n is 1 for a byte that is not UTF-8, and 3 for the sign that stands for one
		if bad(r) && !(r == utf8.RuneError && n > 1) {
			quoted := strconv.Quote(part)
			part = quoted[1 : len(quoted)-1]
		}
		b.WriteString(part)
	}
	return b.String()
}

// place is how ffmpeg names a part of itself: [mov @ 0x55d7b768b840].
var place = regexp.MustCompile(`(\[[^\[\]]+) @ 0x[0-9a-f]+\]`)

// WithoutAddresses leaves addresses of memory out of what ffmpeg says, which mean nothing to anybody.
func WithoutAddresses(text string) string { return place.ReplaceAllString(text, "$1]") }
