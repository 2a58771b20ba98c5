package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline/recipe"
)

// option is one setting of train: a flag, and a key of the
// configuration file of the same name with underscores for dashes. Those that decide
// the bytes of a model come from recipe.Settings (flags_settings.go), the others from
// tables (flags_train.go); help, configuration files, completion and docs/train.md follow.
type option struct {
	name    string // with dashes
	short   string // one letter, or ""
	value   pflag.Value
	kind    kind
	help    string     // `ARG` in backquotes names the value; --help shows it up to a semicolon
	source  string     // whose default it is, "" for what is this program's own
	flag    bool       // a flag alone: the configuration file does not know it
	steps   *cli.Steps // a list of steps, which --steps-scaler multiplies
	aliases []string
	words   []string // values that completion offers
	folder  bool     // completion offers folders
	bare    string   // what the flag means without a value, "" if it needs one
	job     jobValue
	// reports a value that is out of range, by the name that the user gave; nil where every value is in it
	check func(name string) error
}

// kind is the TOML type of an option's value.
type kind int

const (
	kindText    kind = iota // a string; numbers and lists are taken as well
	kindInt                 // an integer
	kindFloat               // a number
	kindBool                // true or false
	kindNumbers             // a list of integers
)

// jobValue is an option's value where that is a number in a range, or in jobs of the farm a list of these. The zero
// value says that a job gives what the flag takes.
type jobValue struct {
	kind        kind
	least, most float64
	count       int // of a list, 0: it is none
}

// optionGroup is a chapter of the help.
type optionGroup struct {
	title   string
	options []option
}

// The methods below fill in what few options have, so that a table reads as one line each.

func (o option) from(source string) option     { o.source = source; return o }
func (o option) letter(short string) option    { o.short = short; return o }
func (o option) flagOnly() option              { o.flag = true; return o }
func (o option) also(aliases ...string) option { o.aliases = aliases; return o }
func (o option) oneOf(words ...string) option  { o.words = words; return o }
func (o option) isFolder() option              { o.folder = true; return o }

// in says that the option's value, x, must be in a range.
func (o option) in(r recipe.Range, x *float64) option {
	o.check = func(name string) error { return r.Check(name, *x, *x) }
	return o
}

// within bounds the number that the command line, or a job of the farm, may give.
func (o option) within(least, most float64) option {
	o.job = jobValue{kind: o.kind, least: least, most: most}
	return o
}

// asNumbers has jobs of the farm give numbers, where the flag is a text: count in a list, or one where count is 0.
func (o option) asNumbers(k kind, count int, least, most float64) option {
	o.job = jobValue{k, least, most, count}
	return o
}

// orAlone lets the flag stand without a value, and says what that means.
func (o option) orAlone(value string) option { o.bare = value; return o }

// plain makes an option of a plain variable or a colour; other makes one of a type of its own, which a configuration
// file holds as a string.
func plain(p any, name, help string) option {
	o := option{name: name, value: cli.VariableOf(p), help: help}
	switch p.(type) {
	case *int, *uint64:
		o.kind = kindInt
	case *float64:
		o.kind = kindFloat
	case *bool:
		o.kind, o.bare = kindBool, "true"
	case *[3]float32:
		o.words = []string{"black", "white"}
	}
	return o
}

func integer(p *int, name, help string) option   { return plain(p, name, help) }
func float(p *float64, name, help string) option { return plain(p, name, help) }
func truth(p *bool, name, help string) option    { return plain(p, name, help) }
func text(p *string, name, help string) option   { return plain(p, name, help) }

func stepList(p *cli.Steps, name, help string) option {
	return option{name: name, value: p, kind: kindNumbers, steps: p, help: help}
}

func other(v pflag.Value, name, help string) option {
	return option{name: name, value: v, help: help}
}

// register adds the options of a table to fs.
func register(fs *pflag.FlagSet, groups []optionGroup) {
	fs.SortFlags = false
	for _, g := range groups {
		for i := range g.options {
			o := &g.options[i]
			fs.VarPF(flagValue{o.value, o}, o.name, o.short, o.help).NoOptDefVal = o.bare
		}
	}
}

// flagValue is the value of a flag, which knows its option.
type flagValue struct {
	pflag.Value
	option *option
}

// checkRanges refuses numbers on the command line of a command that are out of the range of their option.
func checkRanges(flags *pflag.FlagSet, command string) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		o := f.Value.(flagValue).option
		r := recipe.Range{Least: o.job.least, Most: o.job.most}
		if err != nil || r.Most == 0 || o.job.kind != o.kind {
			return
		}
		x, wrong := strconv.ParseFloat(f.Value.String(), 64)
		if wrong == nil {
			wrong = r.Check(fault.Setting(o.name), f.Value, x)
		}
		if wrong != nil {
			err = fault.Usagef("see: "+command+" --help", "%w", wrong)
		}
	})
	return err
}

// key is the option's name in a configuration file.
func (o *option) key() string { return strings.ReplaceAll(o.name, "-", "_") }

// find returns the option with a name, or nil.
func find(groups []optionGroup, name string) *option {
	return findBy(groups, func(o option) bool { return o.name == name })
}

func findBy(groups []optionGroup, is func(o option) bool) *option {
	for _, g := range groups {
		if i := slices.IndexFunc(g.options, is); i >= 0 {
			return &g.options[i]
		}
	}
	return nil
}

// pickOptions returns those with the given names, for commands that have few of them.
func pickOptions(groups []optionGroup, names ...string) []optionGroup {
	var g optionGroup
	for _, name := range names {
		if o := find(groups, name); o != nil {
			g.options = append(g.options, *o)
		}
	}
	return []optionGroup{g}
}

// dropOptions returns a table without the options of some names, and without groups that this leaves empty.
func dropOptions(groups []optionGroup, names ...string) (list []optionGroup) {
	for _, g := range groups {
		g.options = slices.DeleteFunc(slices.Clone(g.options), func(o option) bool {
			return slices.Contains(names, o.name)
		})
		if len(g.options) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// aliasesOf maps the aliases in a table to the names that they stand for.
func aliasesOf(groups []optionGroup) map[string]string {
	names := map[string]string{}
	for _, g := range groups {
		for _, o := range g.options {
			for _, a := range o.aliases {
				names[a] = o.name
			}
		}
	}
	return names
}

// canonical is the name of an option as it was typed: dashes for underscores,
// and what an alias stands for.
func canonical(name string, aliases map[string]string) string {
	name = strings.ReplaceAll(name, "_", "-")
	if full, found := aliases[name]; found {
		return full
	}
	return name
}

// completes registers what a shell offers as values of the options of cmd.
func completes(cmd *cobra.Command, groups []optionGroup) error {
	for _, g := range groups {
		for _, o := range g.options {
			var err error
			switch {
			case o.folder:
				err = cmd.MarkFlagDirname(o.name)
			case o.words != nil:
				words := cobra.FixedCompletions(o.words, cobra.ShellCompDirectiveNoFileComp)
				err = cmd.RegisterFlagCompletionFunc(o.name, words)
			case o.kind != kindText:
				err = cmd.RegisterFlagCompletionFunc(o.name, cobra.NoFileCompletions)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
