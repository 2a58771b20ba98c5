package spec

import (
	"fmt"
	"slices"
	"strings"
)

// orList prints a, b or c.
func orList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// maxGuess is the longest word that is compared with others, in bytes: the time goes with the product of the lengths.
const maxGuess = 64

// didYouMean returns a hint for a word that is none of known: the nearest of them, where one letter in three may be wrong, else otherwise.
func didYouMean(word string, known []string, otherwise string) string {
	if len(word) > maxGuess {
		return otherwise
	}
	word = strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	nearest, best := "", 1+min(3, (len(word)+1)/3)
	for _, k := range known {
		if d := distance(word, k); d < best {
			nearest, best = k, d
		}
	}
	if at := slices.IndexFunc(known, func(k string) bool { return len(word) >= 4 && strings.HasPrefix(k, word) }); nearest == "" && at >= 0 {
		nearest = known[at]
	}
	if nearest == "" {
		return otherwise
	}
	return fmt.Sprintf("did you mean %s?", nearest)
}

// distance counts the letters to insert, delete or replace to turn a into b (Levenshtein's).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
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
