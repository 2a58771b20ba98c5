package spec

import (
	"fmt"
	"strings"

	"vksplat/internal/wording"
)

// didYouMean returns a hint for a word that is none of known: the nearest of them, else otherwise.
func didYouMean(word string, known []string, otherwise string) string {
	if near := wording.Nearest(strings.ToLower(strings.ReplaceAll(word, "-", "_")), known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return otherwise
}
