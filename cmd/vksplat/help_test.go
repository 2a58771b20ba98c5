package main

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
)

// eachCommand calls f for every command, with the words that call it.
func eachCommand(f func(c *cobra.Command, words []string)) {
	var walk func(c *cobra.Command, words []string)
	walk = func(c *cobra.Command, words []string) {
		f(c, words)
		for _, sub := range c.Commands() {
			walk(sub, append(slices.Clone(words), sub.Name()))
		}
	}
	walk(rootCommand(cli.New(nil, io.Discard, io.Discard)), nil)
}

// helpOf is what a command prints as its help.
func helpOf(t *testing.T, words ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(words, &out, &errs); code != 0 {
		t.Fatalf("%q: exit code %d: %s", words, code, errs.String())
	}
	return out.String()
}

// TestHelpIsShort wants the help of every command to fit a screen and a terminal.
func TestHelpIsShort(t *testing.T) {
	eachCommand(func(_ *cobra.Command, words []string) {
		lines := strings.Split(helpOf(t, append(words, "--help")...), "\n")
		most := 50
		if slices.Equal(words, []string{"train"}) {
			most = 40
		}
		if len(lines) > most {
			t.Errorf("%q: the help has %d lines, the limit is %d", words, len(lines), most)
		}
		if strings.Contains(strings.Join(lines, "\n"), "--help-all") {
			lines = append(lines, strings.Split(helpOf(t, append(words, "--help-all")...), "\n")...)
		}
		for _, line := range lines {
			if n := len(line); n > helpWidth {
				t.Errorf("%q: %d characters, the limit is %d: %s", words, n, helpWidth, line)
			}
		}
	})
}

// TestHelpIsWhole wants every flag in the help of its command, or in what --help-all prints.
func TestHelpIsWhole(t *testing.T) {
	eachCommand(func(c *cobra.Command, words []string) {
		short := helpOf(t, append(words, "--help")...)
		help := short
		if strings.Contains(short, "--help-all") {
			help = helpOf(t, append(words, "--help-all", "--help")...)
			if len(help) <= len(short) {
				t.Errorf("%q: --help-all says no more than --help", words)
			}
			if again := helpOf(t, append(words, "no", "such", "file", "--help-all")...); again != help {
				t.Errorf("%q: --help-all prints something else behind arguments", words)
			}
		}
		c.InitDefaultHelpFlag()
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(help, "--"+f.Name+" ") && !strings.Contains(help, "--"+f.Name+"[") &&
				!strings.Contains(help, "--"+f.Name+"\n") {
				t.Errorf("%q: --%s is not in the help", words, f.Name)
			}
		})
	})
}

// TestDefaultsInWords wants a default that stands in a flag's text to be the flag's, and what it does where that is no
// number that anyone would give.
func TestDefaultsInWords(t *testing.T) {
	eachCommand(func(c *cobra.Command, words []string) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, said, found := strings.Cut(f.Usage, "(default")
			if _, err := strconv.ParseFloat(f.DefValue, 64); !found || err != nil || f.Name == "port" {
				return
			}
			said, _, _ = strings.Cut(said, ")")
			unset := f.DefValue == "0" || f.DefValue == "-1"
			if !unset && strings.HasPrefix(said, " ") && !strings.Contains(said, f.DefValue) ||
				regexp.MustCompile(`^ (0|-1|\d+):`).MatchString(said) && unset {
				t.Errorf("%q: --%s: the text says (default%s), it is %s", words, f.Name, said, f.DefValue)
			}
		})
	})
}

// TestShortened wants the first clause of a text, with its default.
func TestShortened(t *testing.T) {
	for text, want := range map[string]string{
		"random seed":                                 "random seed",
		"random seed; same seed, same bytes":          "random seed",
		"stop at N; mcmc: 5 (default 0: no; never)":   "stop at N (default 0: no; never)",
		"write for X: a or b; b is new (required)":    "write for X: a or b (required)",
		"read (or write); both are slow (by default)": "read (or write)",
	} {
		if got := shortened(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestHelpGroups wants every command in a group, and what newcomers need first.
func TestHelpGroups(t *testing.T) {
	help := helpOf(t, "--help")
	begin, measure := strings.Index(help, "\nGetting started:\n  demo "), strings.Index(help, "\nMeasure:\n  eval ")
	if begin < 0 || measure < begin || strings.Contains(help, "Additional") || strings.Contains(help, "Available") {
		t.Error(help)
	}
}
