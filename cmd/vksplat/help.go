package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/suite"
	"vksplat/internal/run/train"
	"vksplat/internal/wording"
	"vksplat/pipeline"
)

// presetHelp describes the presets, below the flags of train.
func presetHelp(all bool) string {
	var b strings.Builder
	b.WriteString("Presets:\n")
	for _, name := range train.PresetNames() {
		summary := presetSummary(name)
		if end := strings.IndexAny(summary, ".:;"); !all && end >= 0 {
			summary = summary[:end]
		}
		const margin = "           "
		fmt.Fprintf(&b, "  %-7s  %s\n", name, strings.Join(wrapped(summary, helpWidth-len(margin), false), "\n"+margin))
	}
	if all {
		b.WriteString("\n" + reflowed("Without --preset, the preset is default. Defaults above are those of "+
			"--preset 3dgs; other presets change some of them, see: vksplat train --preset NAME --print-config\n\n"+
			"In brackets: the source of a default; see docs/train.md. Underscores stand for dashes, and many "+
			"names of other trainers' flags are understood.") + "\n")
	}
	return b.String()
}

// presetSummary is the first line of a preset's file.
func presetSummary(name string) string {
	data, err := train.Presets.ReadFile("presets/" + name + ".toml")
	if err != nil {
		panic(err) // names come from the folder
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimPrefix(line, "# ")
}

// wordHelp words what cobra says by itself, in all commands.
func wordHelp(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Short = "Print the help of a command"
			c.Long = c.Short + ", as vksplat COMMAND --help does."
			c.Args = knownCommand
		case "devices", "doctor", "info": // which name their flags themselves
			c.DisableFlagsInUseLine = true
		case "version", "completion": // which have none
			c.DisableFlagsInUseLine = true
		}
	}
	wordHelpFlags(root)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), " more information about ", " more about "))
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "print the version"
}

// wordHelpFlags words the flag --help of a command and those below it, and sets what is said about them.
func wordHelpFlags(c *cobra.Command) {
	c.Long = reflowed(c.Long)
	c.InitDefaultHelpFlag()
	c.Flags().Lookup("help").Usage = helpOfHelp
	for _, sub := range c.Commands() {
		wordHelpFlags(sub)
	}
}

// knownCommand refuses words after help that are no command.
func knownCommand(cmd *cobra.Command, words []string) error {
	found, rest, err := cmd.Root().Find(words)
	if len(words) == 0 || err == nil && found != cmd.Root() && len(rest) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Root().Commands() {
		names = append(names, c.Name())
	}
	return fault.Usagef(cli.DidYouMean(words[0], names, "see: vksplat --help"),
		"help: there is no command %q", strings.Join(words, " "))
}

// completeDevices lists the machine's devices, with their names where the shell shows them.
func completeDevices(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	words := []cobra.Completion{cobra.CompletionWithDesc("auto", "the fastest kind there is")}
	list, err := pipeline.ListDevices()
	if err != nil {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
	for _, d := range list {
		if d.Usable {
			words = append(words, cobra.CompletionWithDesc(fmt.Sprint(d.Index), d.Name))
		}
	}
	for _, d := range list {
		if d.Usable {
			words = append(words, cobra.CompletionWithDesc(d.UUID, d.Name))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completionCommand prints what makes a shell complete our command lines.
func completionCommand(console *cli.Console) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: "Print a script that completes commands, flags, devices, presets and files in a shell. To\n" +
			"load it in every new shell:\n\n" +
			"  bash        echo 'source <(vksplat completion bash)' >> ~/.bashrc\n" +
			"  zsh         echo 'source <(vksplat completion zsh)' >> ~/.zshrc\n" +
			"  fish        vksplat completion fish > ~/.config/fish/completions/vksplat.fish\n" +
			"  powershell  Add-Content $PROFILE `\n" +
			"                'vksplat completion powershell | Out-String | Invoke-Expression'\n\n" +
			"bash needs the package bash-completion, zsh a line before: autoload -U compinit; compinit",
		Args:      one("shell"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			console.Started = true
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(console.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(console.Stdout)
			case "fish":
				return root.GenFishCompletion(console.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(console.Stdout)
			}
			return fault.Usagef(cli.DidYouMean(args[0], shells, "give "+wording.Or(shells)),
				"%q is not a supported shell", args[0])
		},
	}
}

// suiteKeys are keys of a suite's file that are looked for as flags.
var suiteKeys = []string{"out", "preset", "data", "source", "only", "seeds", "protocol", "color_correct",
	"lpips_weights"}

// flagElsewhere says where what a flag is looked for in a command that does not have it, "" where nothing is known of
// that.
func flagElsewhere(command, flag string) string {
	if command == "eval" && flag == "size" {
		return "pictures have the size of the photos that they are compared with, which --downscale N reduces"
	}
	if command == "capture" && slices.Contains([]string{"features", "gpu", "loops", "vocab-tree"}, flag) {
		return "leave it out: places that are seen again are found without it, and COLMAP uses a GPU that it can; what " +
			"else COLMAP has is set in COLMAP itself, whose model train reads"
	}
	if command != "suite" {
		return ""
	}
	table := trainTable(newTrainOptions())
	name := canonical(flag, aliasesOf(table))
	key, o := strings.ReplaceAll(name, "-", "_"), find(table, name)
	switch why, decided := suite.LeavesOut[name]; {
	case decided:
		return "write it into FILE.toml: " + why
	case slices.Contains(suiteKeys, key):
		return "write it into FILE.toml, as " + key + " = ...; docs/eval.md shows one"
	case o != nil && !o.flag:
		return "write it into FILE.toml, as settings = { " + key + " = ... } or into a recipe; docs/eval.md shows one"
	}
	return ""
}
