package cli

import "testing"

func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{"a b": "'a b'", "it's": `'it'\''s'`, "out/x-1.ply": "out/x-1.ply",
		"": "''", "80%": "80%", "$x": "'$x'"} {
		if got := quotedFor("linux", word); got != want {
			t.Errorf("%q quoted is %s, want %s", word, got, want)
		}
	}
	for word, want := range map[string]string{`C:\x\y.toml`: `C:\x\y.toml`, `C:\my scene`: `"C:\my scene"`,
		`C:\my scene\`: `"C:\my scene\\"`, "80%": `"80%"`} {
		if got := quotedFor("windows", word); got != want {
			t.Errorf("%q quoted for Windows is %s, want %s", word, got, want)
		}
	}
}
