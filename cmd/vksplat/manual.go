package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
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
			return writeManual(console, cmd.Root(), args[0])
		},
	}
}

// writeManual writes the pages of c and of the commands below it.
func writeManual(console *cli.Console, c *cobra.Command, dir string) error {
	if !c.IsAvailableCommand() && c.HasParent() {
		return nil
	}
	page, err := manualPage(console, c)
	if err == nil {
		err = atomicfile.WriteText(filepath.Join(dir, pageName(c)+".1"), page)
	}
	for _, sub := range c.Commands() {
		if err != nil {
			return err
		}
		err = writeManual(console, sub, dir)
	}
	return err
}

// pageName is the name of a command's manual page: vksplat-farm-run.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manualPage is the help of a command, line by line, in the macros of man(7).
func manualPage(console *cli.Console, c *cobra.Command) (string, error) {
	var b, help bytes.Buffer
	stdout := console.Stdout
	defer func() { console.Stdout = stdout }()
	console.Stdout = &help
	c.SetOut(&help)
	if c.Flags().Lookup("help-all") != nil {
		if err := c.Flags().Set("help-all", "true"); err != nil {
			return "", err
		}
	}
	if err := c.Help(); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"vksplat manual\"\n", strings.ToUpper(pageName(c)), "vksplat "+cli.Version())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.in 0\n.nf\n", roff(pageName(c)), roff(c.Short))
	for line := range strings.Lines(help.String()) {
		b.WriteString(roff(line))
	}
	b.WriteString(".fi\n")
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(pageName(c.Parent())))
	}
	return b.String(), nil
}

// roff spells a line so that man prints it as it is, with dashes that can be copied.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line // which would be a request
	}
	return line
}
