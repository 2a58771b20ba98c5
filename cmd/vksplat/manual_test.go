package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
)

// TestManual wants a page of each command, which man sets without a warning, with every flag.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	helpOf(t, "manual", dir)
	pages := 0
	eachCommand(func(c *cobra.Command, words []string) {
		path := filepath.Join(dir, strings.Join(append([]string{"vksplat"}, words...), "-")+".1")
		data, err := os.ReadFile(path)
		if c.HasParent() && !c.IsAvailableCommand() {
			if err == nil {
				t.Errorf("%q is hidden and has a page", words)
			}
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		text := string(data)
		for _, part := range []string{".SH NAME\n", ".SH DESCRIPTION\n", roff(c.Short)} {
			if !strings.Contains(text, part) {
				t.Errorf("%q: %q is not in the page", words, part)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(text, roff("--"+f.Name)) {
				t.Errorf("%q: --%s is not in the page", words, f.Name)
			}
		})
	})
	if pages < 20 {
		t.Errorf("only %d pages", pages)
	}
	train, err := os.ReadFile(filepath.Join(dir, "vksplat-train.1"))
	if err != nil || !strings.Contains(string(train), "\nPresets:\n") || !strings.Contains(string(train), "\nLoss:\n") {
		t.Errorf("the page of train has no presets or no chapters: %v", err)
	}
	if code := run([]string{"manual", filepath.Join(dir, "none")}, io.Discard, io.Discard); code != 2 {
		t.Errorf("a folder that does not exist: exit code %d", code)
	}
	manReads(t, dir)
}

// manReads has man set all pages.
func manReads(t *testing.T, dir string) {
	if _, err := exec.LookPath("man"); err != nil {
		t.Skip("no man on this machine")
	}
	files := must.Get(filepath.Glob(filepath.Join(dir, "*.1")))(t)
	cmd := exec.Command("man", append([]string{"--warnings", "-l", "-Tutf8"}, files...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=100", "MAN_KEEP_FORMATTING=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Errorf("man: %v: %s", err, errs.String())
	}
	if !strings.Contains(out.String(), "vksplat-farm-run - ") && !strings.Contains(out.String(), "‐farm‐run") {
		t.Errorf("man prints %.500s", out.String())
	}
}

// TestRoff wants what begins a line, and backslashes, not to be taken for requests.
func TestRoff(t *testing.T) {
	for text, want := range map[string]string{".splat": `\&.splat`, `a\b`: `a\eb`, "--x": `\-\-x`, "'q'": `\&'q'`} {
		if got := roff(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	root := rootCommand(cli.New(nil, io.Discard, io.Discard))
	if name := pageName(root.Commands()[0]); !strings.HasPrefix(name, "vksplat-") {
		t.Error(name)
	}
}
