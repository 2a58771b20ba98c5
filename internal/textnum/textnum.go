// Package textnum reads numbers of text files, whichever program wrote them.
package textnum

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// noNumber matches what C libraries print for NaN: "-nan" (glibc), "nan(snan)" and "-nan(ind)" (Microsoft, since 2015),
// "1.#QNAN" and "-1.#IND00" (Microsoft, before), "1.#J" and "1.$" (the same, and infinity, rounded), "NaNQ" (AIX).
var noNumber = regexp.MustCompile(`(?i)^[+-]?([qs]?nan|nan[qs]|nan\(\w*\)|1\.[#$].*)$`)

// Float parses the text of one number, without white space around it. A number that is not finite is a number, in the
// spelling of any C library, and so is one beyond the range of float64, which becomes infinite. Callers judge both.
func Float(text string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil || errors.Is(err, strconv.ErrRange):
		return x, true
	case strings.HasPrefix(strings.ToUpper(strings.TrimLeft(text, "+-")), "1.#INF"):
		return math.Inf(1 - 2*strings.Count(text[:1], "-")), true
	}
	return math.NaN(), noNumber.MatchString(text)
}
