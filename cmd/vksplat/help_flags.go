package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
)

// helpLayout arranges the help of a command.
type helpLayout struct {
	first []string              // flags that --help shows, most used first; none: --help shows all
	after func(all bool) string // what stands below the flags, or nil
}

// commandHelp prints the help of a command. --help shows the flags of the layout with a line for each and the first
// paragraph of the description; --help-all, which a command has where there is more, shows everything.
type commandHelp struct {
	helpLayout
	console *cli.Console
	table   []optionGroup
	all     bool // --help-all was given
}

const (
	helpWidth  = cli.PlainWidth // characters of a line of help, but on a narrower terminal
	helpColumn = 28             // characters of a flag with its value at most, if its text is to stand on the same line
	helpOfHelp = "print this help"
)

// addFlags gives a command the options of a table as flags, with completion and help.
func addFlags(console *cli.Console, cmd *cobra.Command, table []optionGroup, layout helpLayout) {
	h := &commandHelp{helpLayout: layout, console: console, table: table}
	asked := false
	options := []option{truth(&asked, "help", helpOfHelp).letter("h")}
	if h.hasMore(cmd) {
		all := other(allHelp{&asked, &h.all}, "help-all", "print the help of every flag").orAlone("true")
		options = append(options, all)
		h.first = append(slices.Clip(h.shown()), "help-all")
	}
	last := optionGroup{options: options}
	if table[0].title != "" {
		last.title = "Help"
	}
	h.table = append(slices.Clip(table), last)
	register(cmd.Flags(), h.table)
	offerValues(console, cmd, h.table)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		return checkRanges(cmd.Flags(), cmd.CommandPath())
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { h.print(cmd) })
}

// newCommand completes a command by the options of a table and by its work.
func newCommand(console *cli.Console, cmd *cobra.Command, table []optionGroup, layout helpLayout,
	work func(flags *pflag.FlagSet, args []string) error) *cobra.Command {
	addFlags(console, cmd, table, layout)
	cmd.RunE = runs(console, func(args []string) error { return work(cmd.Flags(), args) })
	return cmd
}

// folders completes every argument with folders, oneFolder the first.
var folders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

func oneFolder(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// givenFlags are the words of those options that the command line has, for a process that gets them too.
func givenFlags(flags *pflag.FlagSet, options []option) (words []string) {
	for _, o := range options {
		if f := flags.Lookup(o.name); f.Changed {
			words = append(words, cli.Flag(o.name, f.Value.String()))
		}
	}
	return words
}

// allHelp is the value of --help-all. It asks for help, too: cobra prints that before it checks arguments.
type allHelp struct{ help, all *bool }

func (v allHelp) Type() string   { return "bool" }
func (v allHelp) String() string { return strconv.FormatBool(*v.all) }

// Set parses true or false.
func (v allHelp) Set(s string) error {
	err := cli.Value[bool]{To: v.all}.Set(s)
	*v.help = *v.all
	return err
}

// shown are the names of the flags that --help shows.
func (h *commandHelp) shown() (names []string) {
	if h.first != nil {
		return h.first
	}
	for _, g := range h.table {
		for _, o := range g.options {
			names = append(names, o.name)
		}
	}
	return names
}

// hasMore says whether --help leaves something out.
func (h *commandHelp) hasMore(cmd *cobra.Command) bool {
	return h.first != nil || strings.Contains(cmd.Long, "\n\n") ||
		slices.ContainsFunc(h.table, func(g optionGroup) bool {
			return slices.ContainsFunc(g.options, func(o option) bool { return shortened(o.plain()) != o.plain() })
		})
}

func (h *commandHelp) print(cmd *cobra.Command) {
	about := cmp.Or(cmd.Long, cmd.Short+".")
	if !h.all {
		about, _, _ = strings.Cut(about, "\n\n")
	}
	h.console.Printf("%s\n\nUsage:\n  %s\n", about, cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		h.console.Printf("\nAliases:\n  %s\n", cmd.NameAndAliases())
	}
	if cmd.Example != "" {
		h.console.Printf("\nExamples:\n%s\n", cmd.Example)
	}
	for _, g := range h.chapters() {
		h.console.Printf("\n%s:\n%s", g.title, h.lines(cmd, g))
	}
	if h.after != nil {
		h.console.Printf("\n%s", h.after(h.all))
	}
}

// chapters are the flags that are shown, each chapter with a title.
func (h *commandHelp) chapters() (list []optionGroup) {
	flags := optionGroup{title: "Flags"}
	if !h.all {
		for _, name := range h.shown() {
			flags.options = append(flags.options, *find(h.table, name))
		}
		return []optionGroup{flags}
	}
	for _, g := range h.table {
		if g.title == "" {
			g.title = "Flags"
		}
		if n := len(list); n > 0 && list[n-1].title == g.title {
			list[n-1].options = slices.Concat(list[n-1].options, g.options)
			continue
		}
		list = append(list, g)
	}
	return list
}

// lines prints the flags of a chapter in two columns.
func (h *commandHelp) lines(cmd *cobra.Command, g optionGroup) string {
	column := 0
	for i := range g.options {
		if n := len(g.options[i].flagText()); n <= helpColumn {
			column = max(column, n)
		}
	}
	var b strings.Builder
	for i := range g.options {
		o := &g.options[i]
		text := o.plain()
		if !h.all {
			text = shortened(text)
		}
		standard := cmd.Flags().Lookup(o.name).DefValue // the value itself may have been given
		if !slices.Contains([]string{"", "0", "-1", "false"}, standard) && !atEnd.MatchString(text) {
			text += " (default " + standard + ")"
		}
		if h.all && o.source != "" {
			text += " [" + o.source + "]"
		}
		name := o.flagText()
		for _, line := range wrapped(text, min(helpWidth, h.console.Columns())-column-2, len(name) > column) {
			b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s  %s", column, name, line), " ") + "\n")
			name = ""
		}
	}
	return b.String()
}

// flagText is how an option is given.
func (o *option) flagText() string {
	text := "      --" + o.name
	if o.short != "" {
		text = "  -" + o.short + ", --" + o.name
	}
	switch {
	case o.kind == kindBool || o.argument() == "bool":
		return text
	case o.bare != "": // its value stands behind an equals sign
		return text + "[=" + o.argument() + "]"
	}
	return text + " " + o.argument()
}

// argument is the name of the option's value.
func (o *option) argument() string {
	if _, rest, found := strings.Cut(o.help, "`"); found {
		name, _, _ := strings.Cut(rest, "`")
		return name
	}
	return o.value.Type()
}

// plain is the option's text without the marks of the value.
func (o *option) plain() string { return strings.ReplaceAll(o.help, "`", "") }

// atEnd finds what a text says about the default at its end.
var atEnd = regexp.MustCompile(` \((default|required)[^()]*\)$`)

// shortened is a text up to its first semicolon, with what it says of the default.
func shortened(text string) string {
	standard := atEnd.FindString(text)
	short, _, _ := strings.Cut(strings.TrimSuffix(text, standard), ";")
	return short + standard
}

// wrapped breaks a text into lines of the given width, but not behind "(default". below leaves the first line empty.
func wrapped(text string, width int, below bool) (lines []string) {
	if below {
		lines = append(lines, "")
	}
	line := ""
	for _, word := range strings.Fields(strings.ReplaceAll(text, "(default ", "(default\x00")) {
		word = strings.ReplaceAll(word, "\x00", " ")
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// reflowed sets paragraphs as wide as help is; those with indented lines stay as they are.
func reflowed(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.Contains("\n"+p, "\n  ") {
			paragraphs[i] = strings.Join(wrapped(p, helpWidth, false), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// offerValues makes shells offer values of the options of cmd.
func offerValues(console *cli.Console, cmd *cobra.Command, table []optionGroup) {
	err := completes(cmd, table)
	if err == nil && find(table, "device") != nil {
		err = cmd.RegisterFlagCompletionFunc("device", completeDevices)
	}
	if err == nil && find(table, "config") != nil {
		err = cmd.MarkFlagFilename("config", "toml")
	}
	if err != nil {
		panic(err) // the flags of a table have been registered just before
	}
}
