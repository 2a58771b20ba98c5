package wording

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1},
		{"same", "same", 0}} {
		if got := distance(tt.a, tt.b); got != tt.want || distance(tt.b, tt.a) != got {
			t.Errorf("%q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestCount(t *testing.T) {
	for want, n := range map[string]int64{"0 matches": 0, "1 match": 1, "2 matches": 2} {
		if got := Count(n, "match"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Count(2, "photo"); got != "2 photos" {
		t.Errorf("%q", got)
	}
}

// TestLongWord compares no word whose comparison would take long.
func TestLongWord(t *testing.T) {
	long := strings.Repeat("x", maxWord)
	if Nearest(long+"x", []string{long}) != "" || Nearest(long[1:], []string{long}) != long {
		t.Error("the bound on words is not kept")
	}
}

func TestWithoutAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"[mov,mp4 @ 0x55d7b768b840] moov atom not found\n[tiff @ 0x1f] bad": "[mov,mp4] moov atom not found\n[tiff] bad",
		"a @ 0x1f [b] @ 0x2]": "a @ 0x1f [b] @ 0x2]"} {
		if got := WithoutAddresses(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestClause(t *testing.T) {
	for text, want := range map[string]string{
		"Key 'a' has already been defined.": "key 'a' has already been defined", "TOML ends here": "TOML ends here",
		"": "", "x.": "x",
	} {
		if got := Clause(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
