package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// usageErrorOf turns an error of cobra or pflag, which came while the command
// line was read, into one of kind fault.ErrUsage. Cobra appends its suggestions to the text.
func usageErrorOf(err error, cmd *cobra.Command) error {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) && errors.Is(bad.Unwrap(), fault.ErrUsage) {
		help := "see: " + cmd.CommandPath() + " --help"
		if f := bad.GetFlag(); f.DefValue != "" {
			between := " "
			if f.NoOptDefVal != "" {
				between = "="
			}
			help = fmt.Sprintf("as in --%s%s%s; ", f.Name, between, f.DefValue) + help
		}
		if cmd.Flags().Lookup("help-all") != nil {
			help += "-all" // --help may leave the flag out
		}
		hint := cmp.Or(fault.Hint(bad.Unwrap()), help)
		return fault.Usagef(hint, "%s: %w", fault.Named(bad.GetFlag().Name), bad.Unwrap())
	}
	if errors.Is(err, fault.ErrUsage) {
		return err
	}
	text, suggestions, found := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	help := "see: " + cmd.CommandPath() + " --help"
	if flag := unknownFlag(err); flag != "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if nearest := wording.Nearest(flag, names); nearest != "" {
			help = "did you mean --" + nearest + "? " + help
		}
		if elsewhere := flagElsewhere(cmd.Name(), flag); elsewhere != "" {
			help = elsewhere
		}
	}
	if words := strings.Fields(suggestions); found && len(words) > 0 {
		help = "did you mean " + strings.Join(words, " or ") + "? see: " + cmd.Root().Name() + " --help"
	}
	var word string
	if n, _ := fmt.Sscanf(text, "unknown command %q", &word); n == 1 && programs.MatchString(word) {
		help = "for the command line of another trainer, put " + fault.Command("train") + " before it"
	} else if word == "metrics" {
		help = fault.Command("eval OUT --protocol inria") + " measures as INRIA's metrics.py does"
	}
	return fault.Usagef(help, "%s", text)
}

// unknownFlag returns the name of a flag that a command does not have, "" if err has another cause.
func unknownFlag(err error) string {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		return unknown.GetSpecifiedName()
	}
	return ""
}

// parent makes a command that only has subcommands: alone it prints its help, and refuses names that none of them has.
// Cobra itself would print the help for these, too, and succeed.
func parent(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subs...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, sub := range subs {
			names = append(names, sub.Name())
		}
		help := "see: " + cmd.CommandPath() + " --help"
		return fault.Usagef(cli.DidYouMean(args[0], names, help), "unknown command %q for %q", args[0],
			cmd.CommandPath())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// given says how many arguments there are.
func given(n int) string {
	switch n {
	case 0:
		return "none is given"
	case 1:
		return "1 is given"
	}
	return fmt.Sprintf("%d are given", n)
}

// none is an argument check: the command takes no arguments.
func none(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fault.Usagef("as in: "+cmd.Parent().CommandPath()+" "+cmd.Use, "%s takes no argument, %s",
		cmd.Name(), given(len(args)))
}

// one makes an argument check: exactly one argument, called what.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fault.Usagef("as in: "+cmd.Parent().CommandPath()+" "+cmd.Use, "%s needs one %s, %s",
			cmd.Name(), what, given(len(args)))
	}
}
