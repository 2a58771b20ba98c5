package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// Annotations that the tables of flags leave for manual pages: a flag's chapter, and what stands below all flags.
const (
	chapterNote = "vksplat_chapter"
	belowNote   = "vksplat_below"
)

// manualCommand writes the manual pages that packages install. They hold what --help-all prints.
func manualCommand(console *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "Write a manual page for each command",
		Long:   "Write a manual page for each command to the folder DIR, which exists: vksplat.1, vksplat-train.1, ...",
		Hidden: true, // packages install the pages
		Args:   one("folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			console.Started = true
			if !atomicfile.IsDir(args[0]) {
				return fault.Usagef("name a folder that exists", "manual: %s is not a folder", args[0])
			}
			return writeManual(cmd.Root(), args[0])
		},
	}
}

// writeManual writes the pages of c and of the commands below it.
func writeManual(c *cobra.Command, dir string) error {
	if !c.IsAvailableCommand() && c.HasParent() {
		return nil
	}
	err := atomicfile.Write(filepath.Join(dir, pageName(c)+".1"), func(w io.Writer) error {
		_, err := io.WriteString(w, manualPage(c))
		return err
	})
	for _, sub := range c.Commands() {
		if err != nil {
			return err
		}
		err = writeManual(sub, dir)
	}
	return err
}

// pageName is what man finds the page of a command by: vksplat-farm-run.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manualPage is the page of a command in the macros of man(7).
func manualPage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"vksplat manual\"\n", strings.ToUpper(pageName(c)), "vksplat "+cli.Version())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(c.Short))
	usage := c.UseLine()
	if c.HasAvailableSubCommands() {
		usage = c.CommandPath() + " COMMAND [ARGUMENTS] [FLAGS]"
	}
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(usage))
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n" + roffText(about))
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + roffVerbatim(c.Example))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s; see %s(1)\n", roff(sub.Name()), roff(sub.Short), roff(pageName(sub)))
			}
		}
	}
	b.WriteString(manualFlags(c))
	if below := c.Annotations[belowNote]; below != "" {
		b.WriteString(".SH NOTES\n" + roffVerbatim(strings.TrimSpace(below)))
	}
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(pageName(c.Parent())))
	}
	return b.String()
}

// manualFlags lists the flags of a command by chapter.
func manualFlags(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var chapters []string
	flags := map[string]*strings.Builder{}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		title := strings.Join(f.Annotations[chapterNote], "")
		if !slices.Contains(chapters, title) {
			chapters, flags[title] = append(chapters, title), &strings.Builder{}
		}
		flags[title].WriteString(manualFlag(f))
	})
	var b strings.Builder
	b.WriteString(".SH OPTIONS\n")
	for _, title := range chapters {
		if title != "" {
			fmt.Fprintf(&b, ".SS %s\n", roff(title))
		}
		b.WriteString(flags[title].String())
	}
	return b.String()
}

// manualFlag is a flag with its value and its text.
func manualFlag(f *pflag.Flag) string {
	value, text := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	name = "\\fB" + roff(name) + "\\fR"
	switch {
	case value == "" || f.Value.Type() == "bool":
	case f.NoOptDefVal != "": // its value stands behind an equals sign
		name += "[=\\fI" + roff(value) + "\\fR]"
	default:
		name += " \\fI" + roff(value) + "\\fR"
	}
	if !slices.Contains([]string{"", "0", "-1", "false"}, f.DefValue) && !strings.Contains(text, "(default") {
		text += " (default " + f.DefValue + ")"
	}
	return fmt.Sprintf(".TP\n%s\n%s\n", name, roff(text))
}

// roffText sets paragraphs; what is indented in one keeps its lines.
func roffText(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, "  ") || strings.Contains(paragraph, "\n  ") {
			b.WriteString(roffVerbatim(paragraph))
			continue
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			b.WriteString(roff(line) + "\n")
		}
	}
	return b.String()
}

// roffVerbatim keeps lines as they are.
func roffVerbatim(text string) string {
	var b strings.Builder
	b.WriteString(".nf\n")
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(roff(line) + "\n")
	}
	b.WriteString(".fi\n")
	return b.String()
}

// roff spells a line so that man prints it as it is, with dashes that can be copied.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line // which would be a request
	}
	return line
}
