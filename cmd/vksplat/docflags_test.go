package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
)

// inCode finds commands in Markdown: those in a line of code and those between backquotes.
var (
	aFence  = regexp.MustCompile("(?s)```\\w*\n.*?```")
	inBlock = regexp.MustCompile(`(?m)^    (?:\w+\$ )?(vksplat [^#\n]*)`)
	inLine  = regexp.MustCompile("`(vksplat [^`]*)`")
	aFlag   = regexp.MustCompile(`(?:^|\s)(--?[A-Za-z][\w-]*)`)
)

// TestFlagsOfThePages wants the commands in README.md and docs to exist, with their flags.
func TestFlagsOfThePages(t *testing.T) {
	files := must.Get(filepath.Glob("../../docs/*.md"))(t)
	root, found := rootCommand(cli.New(nil, io.Discard, io.Discard)), 0
	for _, file := range append(files, "../../README.md") {
		data := must.Get(os.ReadFile(file))(t)
		page := aFence.ReplaceAllStringFunc(strings.ReplaceAll(string(data), "\\\n", " "), func(block string) string {
			return strings.ReplaceAll(block, "\n", "\n    ")
		})
		joined := strings.ReplaceAll(page, "\n", " ")
		for _, m := range append(inBlock.FindAllStringSubmatch(page, -1), inLine.FindAllStringSubmatch(joined, -1)...) {
			found++
			if why := unknownIn(root, m[1]); why != "" {
				t.Errorf("%s: %s: %s", filepath.Base(file), m[1], why)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found", found)
	}
}

// unknownIn says which flag of a command line is none, or "".
func unknownIn(root *cobra.Command, line string) string {
	words, _, err := translated(strings.Fields(line)[1:])
	if err != nil {
		return err.Error()
	}
	for len(words) > 0 && strings.HasPrefix(words[0], "<") {
		words = words[1:]
	}
	cmd, _, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	cmd.InitDefaultHelpFlag()
	for _, m := range aFlag.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		name, long := strings.CutPrefix(m[1], "--")
		if long && cmd.Flags().Lookup(name) == nil || !long && cmd.Flags().ShorthandLookup(m[1][1:2]) == nil {
			return m[1] + " is not a flag of " + cmd.Name()
		}
	}
	return ""
}
