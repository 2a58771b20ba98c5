package cli

import (
	"fmt"
	"math"
	"strconv"
	"vksplat/internal/wording"
)

// DidYouMean returns a hint for a word that is none of known: the nearest of
// them, if it is near enough to be meant, else otherwise.
func DidYouMean(word string, known []string, otherwise string) string {
	nearest := wording.Nearest(word, known)
	if nearest == "" {
		return otherwise
	}
	return fmt.Sprintf("did you mean %s?", Quoted(nearest)) // to be pasted
}

func Count(n int, thing string) string {
	return wording.Count(int64(n), thing)
}

// Duration prints seconds as 42s, 3m05s or 2h07m.
func Duration(seconds float64) string {
	s := int(math.Round(seconds))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
}

func SharesText(list []int) string {
	text := ""
	for i, n := range list {
		switch {
		case i > 0 && i == len(list)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += strconv.Itoa(n)
	}
	return text
}
