// Command vksplat trains 3D Gaussian splats from photographs on any Vulkan GPU, and renders, measures, converts and
// shows them. `vksplat help` lists the commands.
//
// This package holds commands, flags, help and exit codes. The packages in internal/run do what the commands promise.
//
// Start at the file of a command: traincommand.go, flags_render.go, evalcommand.go, farmrun.go. options.go and
// flags_*.go hold one table of flags and settings; help, TOML keys, completion and docs/train.md are made from it (make
// docs). Tests run whole commands by the scripts in testdata.
package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/convert"
)

func main() {
	child.Begin()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run carries out one command line and returns the exit code. Errors and their
// hints have been printed to stderr by then.
func run(args []string, stdout, stderr io.Writer) int {
	out := cli.NewStdout(stdout)
	args, notes, err := translated(args)
	console := cli.New(args, out, stderr)
	if err == nil {
		for _, note := range notes {
			console.Note(note)
		}
		err = execute(console)
	}
	err = out.Checked(err)
	if err != nil {
		console.Fail(err)
	}
	return fault.ExitCode(err)
}

// execute carries out the command line of console.
func execute(console *cli.Console) error {
	root := rootCommand(console)
	root.SetArgs(console.Args)
	cmd, err := root.ExecuteC()
	if err != nil && !console.Started {
		err = usageErrorOf(err, cmd)
	}
	return err
}

// rootCommand builds the tree of subcommands.
func rootCommand(console *cli.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "vksplat",
		Short: "Train and render 3D Gaussian splats on any Vulkan GPU",
		Long: "vksplat trains 3D Gaussian splats from photographs with known cameras, on any\n" +
			"Vulkan GPU or, slowly, on the CPU. Try it without any data: vksplat demo",
		Version:       cli.VersionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(console.Stdout)
	root.SetErr(console.Stderr)
	root.SetGlobalNormalizationFunc(spelling())
	cobra.EnableCommandSorting = false // help lists them as they stand here
	addGroup(root, "Getting started", demoCommand(console), openCommand(console), captureCommand(console),
		inspectCommand(console), trainCommand(console), resumeCommand(console), viewCommand(console))
	addGroup(root, "Use a model", renderCommand(console), encodeCommand(console), convertCommand(console),
		meshCommand(console), levelsCommand(console))
	addGroup(root, "Large captures", partitionCommand(console), mergeCommand(console))
	addGroup(root, "Measure", evalCommand(console), suiteCommand(console), infoCommand(console), benchCommand(console))
	addGroup(root, "Farm", farmCommand(console))
	addGroup(root, "This machine", devicesCommand(console), doctorCommand(console), completionCommand(console),
		manualCommand(console), versionCommand(console))
	root.SetHelpCommandGroupID("This machine")
	refuseSpaced(console, root)
	root.InitDefaultHelpCmd()
	wordHelp(root)
	return root
}

// addGroup adds commands that help lists together.
func addGroup(root *cobra.Command, title string, cmds ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, cmd := range cmds {
		cmd.GroupID = title
	}
	root.AddCommand(cmds...)
}

// spelling makes the underscores and the names of flags that other trainers have
// mean the same as ours. Those are about training: in convert they may mean something else.
func spelling() func(*pflag.FlagSet, string) pflag.NormalizedName {
	aliases := aliasesOf(trainTable(newTrainOptions()))
	return func(fs *pflag.FlagSet, name string) pflag.NormalizedName {
		if fs.Name() == convert.Name {
			return pflag.NormalizedName(canonical(name, nil))
		}
		return pflag.NormalizedName(canonical(name, aliases))
	}
}

// runs makes f the work of a subcommand.
func runs(console *cli.Console, f func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		console.Started = true
		return f(args)
	}
}

func versionCommand(console *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  none,
		RunE: runs(console, func([]string) error {
			console.Printf("%s\n", cli.VersionText())
			return nil
		}),
	}
}
