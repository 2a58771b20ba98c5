package wording

import (
	"strings"
	"testing"
)

// TestPlainName makes names of what browsers send.
func TestPlainName(t *testing.T) {
	for name, want := range map[string]string{"a b.mp4": "a b.mp4", "../../x.jpg": "x.jpg", `C:\photos\y.png`: "y.png",
		"..": "", ".hidden": "hidden", "-rf": "rf", "a\nb": "a_b", "": "", "/": "_", "ü.heic": "ü.heic", "CON": "_CON",
		"nul.jpg": "_nul.jpg", "com1": "_com1", "icon.png": "icon.png", "trip. .": "trip", "a\xffb": "a_b",
		". . x": "x", "\u200b": "_", "a\u202eb": "a_b", "\u0301": "", "- \u0301": "", "- \u0301a": "a"} {
		got := PlainName(name)
		if got != want && !(name == "/" && strings.Trim(got, "_") == "") {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
		if why, _ := BadName(got); got != "" && why != "" {
			t.Errorf("%q becomes %q: %s", name, got, why)
		}
	}
	for name, want := range map[string]string{"é." + strings.Repeat("a", 200): "é." + strings.Repeat("a", 116),
		strings.Repeat("a", 118) + " b": strings.Repeat("a", 118), "con" + strings.Repeat(" ", 120) + "x.jpg": "_con.jpg",
		"a" + strings.Repeat(".", 119) + "b.jpg": "a.jpg", strings.Repeat("b", 117) + "üü": strings.Repeat("b", 117) + "ü"} {
		got := PlainName(name)
		if why, _ := BadName(got); got != want || why != "" || len(got) > MaxName {
			t.Errorf("%q becomes %q: %s; want %q", name, got, why, want)
		}
	}
	if got := PlainName(strings.Repeat("ü", 200) + ".mp4"); len(got) > MaxName || !strings.HasSuffix(got, ".mp4") {
		t.Errorf("a long name becomes %q", got)
	}
}

// TestBadName says of every name that cannot be what is wrong with it, and what to do.
func TestBadName(t *testing.T) {
	for _, name := range []string{"garden", "a b", "ü 2026-01-01", "con-1", "icon", "e\u0301", "\u2764\ufe0f", "com",
		"com10", "庭", strings.Repeat("x", 200)} {
		if why, _ := BadName(name); why != "" {
			t.Errorf("%q: %s", name, why)
		}
	}
	for name, want := range map[string]string{"": "is empty", "  ": "is empty", "\ufe0f\u0301": "is empty",
		".": "another folder", "..": "another folder", "a/b": "a slash", `a\b`: "a slash", "a\nb": "control character",
		"a\x7f": "control character", "a\x00": "control", "a\u202eb": "control", "\u200b": "not show", "\u3164": "not show",
		"a\u2066": "not show", "\u2800": "not show", "\ufeffa": "not show", "a\xff": "not show", "a:b": "Windows",
		`a"b`: "Windows", "a.": "with a dot", "a ": "with a space", " a": "with a space", ".a": "hidden", "-a": "flag",
		"CON": "device", "nul.txt": "device", "Com3": "device", "lpt0": "device", "aux .x": "device", "com²": "device",
		"CONIN$": "device"} {
		if why, hint := BadName(name); !strings.Contains(why, want) || hint == "" {
			t.Errorf("%q: %q, hint %q, want %q", name, why, hint, want)
		}
	}
}
