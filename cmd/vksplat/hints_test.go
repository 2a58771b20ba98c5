package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
)

var (
	flagWord = regexp.MustCompile(`^["'(]*(--?[a-zA-Z][a-zA-Z0-9-]*)`)
	// pause ends what a hint says of another command.
	pause = regexp.MustCompile(`[,;:.?)]$`)
)

// otherPrograms are those that hints show commands of.
var otherPrograms = []string{"colmap", "ffmpeg", "heif-convert", "mkdir", "ssh", "sudo", "apt-get", "pip", "python3",
	"mount"}

// strangeFlags returns the flags that a hint of a command names and the command does not have. A flag behind the name
// of another command or program ("train --eval", "train with --eval") is that one's.
func strangeFlags(root *cobra.Command, args []string, hint string) (strange []string) {
	own, _, err := root.Find(args)
	if err != nil || own == root {
		return nil // the command itself is wrong
	}
	of := own
	words := strings.Fields(hint)
	for i, word := range words {
		bare := strings.Trim(word, `"'(),;:.?`)
		next := strings.TrimPrefix(strings.Join(words[i+1:min(i+3, len(words))], " "), "with ")
		if found, _, err := root.Find([]string{bare}); err == nil && found != root &&
			(i > 0 && words[i-1] == "vksplat" || flagWord.MatchString(next)) {
			of = found
		} else if sub := subcommand(of, bare); sub != nil {
			of = sub
		} else if slices.Contains(otherPrograms, bare) {
			of = nil
		}
		if m := flagWord.FindStringSubmatch(word); m != nil && of != nil && !hasFlag(of, m[1]) {
			strange = append(strange, m[1])
		}
		if pause.MatchString(word) {
			of = own
		}
	}
	return strange
}

// subcommand is that of a command with the name, nil where it has none.
func subcommand(of *cobra.Command, name string) *cobra.Command {
	if of == nil || !of.HasSubCommands() {
		return nil
	}
	for _, c := range of.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// hasFlag says whether a command has "--long" or "-s".
func hasFlag(cmd *cobra.Command, flag string) bool {
	cmd.InitDefaultHelpFlag()
	if name, long := strings.CutPrefix(flag, "--"); long {
		return cmd.Flags().Lookup(name) != nil
	}
	return len(flag) == 2 && cmd.Flags().ShorthandLookup(flag[1:]) != nil
}

func TestStrangeFlags(t *testing.T) {
	root := rootCommand(cli.New(nil, io.Discard, io.Discard))
	for _, c := range []struct{ command, hint, want string }{
		{"view", "move it away, or choose another folder with -m", "-m"},
		{"train", "move it away, or choose another folder with -m", ""},
		{"train", "name the file as in model.ply, or add --to FORMAT; formats: ply", "--to"},
		{"export", "name the file as in model.ply, or add --to FORMAT; formats: ply", ""},
		{"eval", "name the folder that vksplat train -m was given, or give --capture SCENE", ""},
		{"view", "name the folder that vksplat train -m was given, or give --capture SCENE", "--capture"},
		{"render", "photos are held out by train --eval", ""},
		{"eval", "train with --eval, or measure all with --split train", ""},
		{"eval", "train on, with --eval", "--eval"},
		{"view", "leave out --host and use: ssh -L", ""},
		{"inspect", "mkdir -p a && ffmpeg -i b", ""},
		{"info", "see: vksplat info --help", ""},
		{"info", "(--overwrite)", "--overwrite"},
	} {
		if got := strings.Join(strangeFlags(root, []string{c.command}, c.hint), " "); got != c.want {
			t.Errorf("%s: %q: %q, want %q", c.command, c.hint, got, c.want)
		}
	}
}
