package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// constantDecl is one shared constant; it is untyped in Go so that float64 code gets all its digits.
type constantDecl struct {
	goName, value string
	doc           []string // comment lines above
	comment       string   // comment at the end of the line
	gap           bool     // an empty line sets it off from the one before
}

var constLine = regexp.MustCompile(`^const\s+(uint|int|float)\s+(\w+)\s*=\s*([^;]+?)\s*;$`)

// parseConstants reads const.glsl, which the compiler folds away: hence the strict form, one
// `const uint|int|float NAME = literal;` per line beside comments and preprocessor lines.
func parseConstants(file, text string) ([]constantDecl, error) {
	var out []constantDecl
	var above []string
	seen, gap := map[string]bool{}, false
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		code, comment, _ := strings.Cut(line, "//")
		code, comment = strings.TrimSpace(code), strings.TrimSpace(comment)
		if code == "" || strings.HasPrefix(code, "#") {
			if code == "" && comment != "" {
				above = append(above, comment)
			} else {
				above, gap = nil, true
			}
			continue
		}
		found := constLine.FindStringSubmatch(code)
		if found == nil {
			return nil, fmt.Errorf("%s:%d: not a shared constant: write `const uint|int|float NAME = literal;`, one "+
				"per line, no expression", file, i+1)
		}
		value, err := goLiteral(found[1], found[3])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: constant %s: %w", file, i+1, found[2], err)
		}
		c := constantDecl{goName: camel(found[2]), value: value, doc: above, comment: comment, gap: gap}
		if seen[c.goName] {
			return nil, fmt.Errorf("%s:%d: constant %s: another one also becomes %s in Go: rename one", file, i+1,
				found[2], c.goName)
		}
		seen[c.goName] = true
		out, above, gap = append(out, c), nil, false
	}
	return out, nil
}

// goLiteral checks a GLSL literal and writes it as Go does.
func goLiteral(typ, lit string) (string, error) {
	bad := fmt.Errorf("%q is not a %s literal in range: write a number, no expression", lit, typ)
	switch typ {
	case "uint", "int":
		digits := strings.TrimRight(lit, "uU")
		v, err := strconv.ParseInt(digits, 0, 64)
		lo, hi := int64(0), int64(math.MaxUint32)
		if typ == "int" {
			lo, hi = math.MinInt32, math.MaxInt32
		}
		if err != nil || v < lo || v > hi || strings.Contains(digits, "_") {
			return "", bad
		}
		return digits, nil
	}
	digits := strings.TrimRight(lit, "fF")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.Abs(v) > math.MaxFloat32 || math.IsNaN(v) || strings.ContainsAny(digits, "_xXpP") {
		return "", bad
	}
	if !strings.ContainsAny(digits, ".eE") {
		return "", fmt.Errorf("%q looks like an integer: write %s.0", lit, digits)
	}
	if v != 0 && float32(v) == 0 {
		return "", bad
	}
	return digits, nil
}
