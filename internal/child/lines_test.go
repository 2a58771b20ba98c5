package child

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// TestLines writes lines in pieces: one is empty, one too long, one without an end.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", MaxLine+10)
	text := "first\n\n" + long + "\nlast\nbegun"
	for _, piece := range []int{1, 3, MaxLine, len(text)} {
		var lines []string
		l := &Lines{OnLine: func(line []byte) { lines = append(lines, string(line)) }}
		for rest := text; rest != ""; {
			n := min(piece, len(rest))
			if k, err := io.WriteString(l, rest[:n]); k != n || err != nil {
				t.Fatal(k, err)
			}
			rest = rest[n:]
		}
		if !slices.Equal(lines, []string{"first", "", long[:MaxLine], "last"}) {
			t.Errorf("in pieces of %d bytes: %d lines", piece, len(lines))
		}
	}
}
