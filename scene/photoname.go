package scene

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// FoldName gives what all spellings of a photo's name have in common: letters with accents are one code point each, or,
// in names from a Mac, several, and some systems do not tell capitals from small letters.
func FoldName(name string) string { return strings.ToLower(norm.NFC.String(name)) }
