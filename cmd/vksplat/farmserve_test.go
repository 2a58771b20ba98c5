package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWebhookAddress takes the URL, with its secret, from where other users of the machine do not see it.
func TestWebhookAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "webhook")
	if err := os.WriteFile(file, []byte("  https://chat.example.org/secret\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		o        serveOptions
		variable string
		hook     bool
		err      string
	}{
		"nothing":     {},
		"flag":        {serveOptions{webhook: "https://chat.example.org/x"}, "", true, ""},
		"file":        {serveOptions{hookFile: file}, "", true, ""},
		"variable":    {serveOptions{}, "https://chat.example.org/x", true, ""},
		"no variable": {serveOptions{}, "secret", false, "no address"},
		"bad file":    {serveOptions{hookFile: bad}, "", false, "no address"},
		"no file":     {serveOptions{hookFile: bad + "x"}, "", false, "read webhook"},
		"two":         {serveOptions{webhook: "https://chat.example.org/x", hookFile: file}, "", false, "two addresses"},
	} {
		t.Setenv(webhookVariable, c.variable)
		hook, err := c.o.hook()
		if (hook != nil) != c.hook || (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, %v", what, hook != nil, err)
		}
	}
}
