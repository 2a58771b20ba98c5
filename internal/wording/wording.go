// Package wording lists words for people ("a, b or c"), and finds the one that somebody meant who wrote another. Hints
// of errors are made with it.
package wording

import (
	"fmt"
	"slices"
	"strings"
)

// Or prints a, b or c.
func Or(list []string) string {
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " or " + list[n-1]
	}
	return strings.Join(list, "")
}

// Count prints 1 photo, 2 photos or 2 matches.
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "ch") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Clause makes a sentence of another program part of one of ours: without a capital, unless the first word has more of
// them, and without a full stop.
func Clause(text string) string {
	text = strings.TrimSuffix(text, ".")
	if len(text) > 1 && 'A' <= text[0] && text[0] <= 'Z' && 'a' <= text[1] && text[1] <= 'z' {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

// maxWord is the longest word that is compared with others, in bytes: the time goes with the product of the lengths.
const maxWord = 64

// Nearest returns the word of known that is nearest to one which is none of them, if it is near enough to be meant,
// else "".
func Nearest(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, at := 1+min(3, (len(word)+1)/3), -1 // one letter of three may be wrong
	for i, k := range known {
		if d := distance(word, k); d < best || d == best && at < 0 && strings.HasPrefix(k, word) {
			best, at = d, i
		}
	}
	if at < 0 {
		at = slices.IndexFunc(known, func(k string) bool { return len(word) >= 4 && strings.HasPrefix(k, word) })
	}
	if at < 0 {
		return ""
	}
	return known[at]
}

// distance counts the letters to insert, delete, replace or swap with their neighbour to turn a into b (the
// restricted Damerau-Levenshtein distance).
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
