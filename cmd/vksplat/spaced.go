package main

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// refuseSpaced lets the arguments of all commands be checked for values of flags that need none: behind a space they
// are taken for files.
func refuseSpaced(console *cli.Console, root *cobra.Command) {
	for _, c := range root.Commands() {
		check := c.Args
		if check == nil {
			continue
		}
		c.Args = func(cmd *cobra.Command, args []string) error {
			wrong := check(cmd, args)
			if err := spacedError(console, cmd, args, wrong != nil); err != nil {
				return err
			}
			return wrong
		}
	}
}

// spacedError is the error of a value behind a space that its flag would take behind =. A number or a truth value is
// surely one, unless it is a file's name; other words are where the arguments are wrong with them.
func spacedError(console *cli.Console, cmd *cobra.Command, args []string, wrong bool) error {
	for i, word := range console.Args[:max(len(console.Args)-1, 0)] {
		if word == "--" {
			return nil
		}
		name, isFlag := strings.CutPrefix(word, "--")
		f, value := cmd.Flags().Lookup(name), console.Args[i+1]
		if !isFlag || f == nil || f.NoOptDefVal == "" || !slices.Contains(args, value) {
			continue
		}
		if fits, sure := suits(f.Value, value); fits && (wrong || sure) {
			return fault.Usagef("write --"+f.Name+"="+value, "flag --%s: %s after a space is not its value",
				f.Name, value)
		}
	}
	return nil
}

// suits says whether a word can be a flag's value, and whether it can hardly be anything else.
func suits(v pflag.Value, word string) (fits, sure bool) {
	if own, is := v.(flagValue); is {
		v = own.Value
	}
	switch v.(type) {
	case cli.Value[bool]:
		fits = word == "true" || word == "false"
	case cli.Value[float64]:
		_, err := strconv.ParseFloat(word, 64)
		fits = err == nil
	default:
		return true, false
	}
	_, err := os.Lstat(word)
	return fits, err != nil
}
