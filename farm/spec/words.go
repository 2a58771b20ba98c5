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

// treeName is what a value of a document is called.
func treeName(v any) string {
	switch v.(type) {
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case bool:
		return "true or false"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "a table"
}
