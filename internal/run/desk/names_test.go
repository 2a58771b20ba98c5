package desk

import (
	"net/http"
	"strings"
	"testing"

	"vksplat/internal/fault"
)

// TestPlainName makes names of what browsers send.
func TestPlainName(t *testing.T) {
	for name, want := range map[string]string{"a b.mp4": "a b.mp4", "../../x.jpg": "x.jpg", `C:\photos\y.png`: "y.png",
		"..": "", ".hidden": "hidden", "-rf": "rf", "a\nb": "a_b", "": "", "/": "_", "ü.heic": "ü.heic", "CON": "_CON",
		"nul.jpg": "_nul.jpg", "com1": "_com1", "icon.png": "icon.png", "trip. .": "trip", "a\xffb": "a_b",
		". . x": "x"} {
		got := plainName(name)
		if got != want && !(name == "/" && strings.Trim(got, "_") == "") {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
		if err := checkName("file", got); got != "" && err != nil {
			t.Errorf("%q becomes %q: %v", name, got, err)
		}
	}
	if got := plainName(strings.Repeat("ü", 200) + ".mp4"); len(got) > maxName || !strings.HasSuffix(got, ".mp4") {
		t.Errorf("a long name becomes %q", got)
	}
}

// TestCheckName says of every name that cannot be what is wrong with it, and what to do.
func TestCheckName(t *testing.T) {
	for _, name := range []string{"garden", "a b", "ü 2026-01-01", "con-1", "icon", strings.Repeat("x", maxName)} {
		if err := checkName("run", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{"": "is empty", "  ": "is empty", ".": "another folder",
		"..":  "another folder",
		"a/b": "a slash", `a\b`: "a slash", "a\nb": "control character",
		"a\x7f": "control character", "a\x00": "control", "a\u202eb": "control",
		"a:b": "Windows", `a"b`: "Windows", "a.": "with a dot", "a ": "with a space", " a": "with a space", ".a": "hidden",
		"-a": "flag", "CON": "device", "nul.txt": "device", "Com3": "device", "lpt0": "device", "aux .x": "device",
		strings.Repeat("ü", 61): "takes 122 bytes, 120 is the limit"} {
		if err := checkName("run", name); err == nil || !strings.Contains(err.Error(), want) || fault.Hint(err) == "" {
			t.Errorf("%q: %v, hint %q, want %q", name, err, fault.Hint(err), want)
		}
	}
	b := openDesk(t)
	for _, c := range []struct{ name, body, want string }{
		{"train", strings.Replace(train, `"name":""`, `"name":"CON"`, 1), "device on Windows"},
		{"train", strings.Replace(train, `"name":""`, `"name":".."`, 1), "another folder"},
		{"upload?file=a.jpg&folder=", "", "is empty"},
		{"upload?file=a.jpg&folder=a%2Fb", "", "slash"},
		{"upload?file=a.jpg&folder=x.", "", "with a dot"},
	} {
		status, text := b.ask(http.MethodPost, c.name, c.body, nil)
		if status != 400 || !strings.Contains(text, c.want) || strings.Contains(text, `"hint":""`) {
			t.Errorf("%s %s: %d %s", c.name, c.body, status, text)
		}
	}
	for _, path := range []string{"../x", "none", strings.Repeat("x", 300), "/etc", "a%00b"} {
		if status, text := b.ask(http.MethodGet, "folder?path="+path, "", nil); status != 400 ||
			strings.Contains(text, `"hint":""`) {
			t.Errorf("folder %.20s: %d %s", path, status, text)
		}
	}
	id := b.begin("train", strings.Replace(train, `"name":""`, `"name":"My walk"`, 1))
	if j := b.find(id); j.Made != "vksplat/runs/My walk" {
		t.Errorf("the run is %s", j.Made)
	}
}
