package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
)

// farmPageFile is the page about every command of the farm.
const farmPageFile = "../../docs/farm-commands.md"

// TestFarmPage wants docs/farm-commands.md to say what the commands' help says.
func TestFarmPage(t *testing.T) {
	want := farmPage()
	if *update {
		must.Do(t, os.WriteFile(farmPageFile, []byte(want), 0o666))
	}
	got := must.Get(os.ReadFile(farmPageFile))(t)
	if string(got) != want {
		t.Errorf("%s is not what the commands say; write it anew: make docs", farmPageFile)
	}
}

// farmPage prints the help of all commands of the farm.
func farmPage() string {
	var b strings.Builder
	b.WriteString("# Commands of the farm\n\nYou know which command of the farm you need, and look for its flags. " +
		"[farm.md](farm.md) says when to use which.\n\n    vksplat farm --help            # the commands\n" +
		"    vksplat farm run --help        # one command; where it says so, --help-all lists all its flags\n\n" +
		"This page is made from the program's own help by `make docs`.\n")
	farm, _, err := rootCommand(cli.New(nil, io.Discard, io.Discard)).Find([]string{"farm"})
	if err != nil {
		panic(err) // the command is there
	}
	describeCommands(&b, farm)
	return b.String()
}

// describeCommands prints a command and those below it.
func describeCommands(b *strings.Builder, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.HasSubCommands() {
			describeCommands(b, sub)
			continue
		}
		text := sub.Long
		if text == "" {
			text = sub.Short + "."
		}
		fmt.Fprintf(b, "\n## %s\n\n    %s\n\n%s\n", strings.TrimPrefix(sub.CommandPath(), "vksplat farm "),
			strings.TrimSuffix(sub.UseLine(), " [flags]"), text)
		if sub.Example != "" {
			fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimRight(trimIndent(sub.Example), "\n"))
		}
		var flags optionGroup
		sub.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && f.Name != "help-all" {
				flags.options = append(flags.options, option{name: f.Name, short: f.Shorthand, value: f.Value,
					help: f.Usage, bare: f.NoOptDefVal})
			}
		})
		b.WriteString(flagTables([]optionGroup{flags}, "### "))
	}
}

func trimIndent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
