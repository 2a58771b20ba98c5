// Command vksplat trains 3D Gaussian splats from photographs on any Vulkan GPU,
// and renders them.
//
// This package holds subcommands, flags and exit codes. The work is done by
// packages pipeline (on the device) and scene (files).
package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/child"
)

// processStart is about when the process began, for the seconds of the whole run.
var processStart = time.Now()

func main() {
	child.EndWithParent()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// app is one call of the program: where it prints, and how far it came. Several
// goroutines may print and warn.
type app struct {
	stdout, stderr io.Writer
	args           []string // the command line, without the program
	started        bool     // the arguments were understood and a subcommand runs

	text *sync.Mutex // guards what follows, and whole lines
	told []notice    // so far
	show openLine    // what may have an open line on the terminal

	onAbort func() // what a second Ctrl-C does before the end, or nil; set before interruptible
}

func newApp(args []string, stdout, stderr io.Writer) *app {
	return &app{stdout: stdout, stderr: stderr, args: args, text: &sync.Mutex{}, show: noLine{}}
}

// run carries out one command line and returns the exit code. Errors and their
// hints have been printed to stderr by then.
func run(args []string, stdout, stderr io.Writer) int {
	out := newOutput(stdout)
	a := newApp(args, out, stderr)
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err != nil && !a.started {
		err = usageErrorOf(err, cmd)
	}
	err = out.checked(err)
	if err != nil {
		a.fail(err, hint(err))
	}
	return exitCode(err)
}

// root builds the tree of subcommands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "vksplat",
		Short: "Train and render 3D Gaussian splats on any Vulkan GPU",
		Long: "vksplat trains 3D Gaussian splats from photographs with known cameras, on any\n" +
			"Vulkan GPU or, slowly, on the CPU. Try it without any data: vksplat demo",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetGlobalNormalizationFunc(spelling())
	root.AddCommand(a.trainCommand(), a.partitionCommand(), a.mergeCommand(), a.renderCommand(), a.encodeCommand(), a.evalCommand(), a.suiteCommand(), a.convertCommand(), a.viewCommand(), a.inspectCommand(), a.infoCommand(),
		a.farmCommand(), a.demoCommand(), a.benchCommand(), a.devicesCommand(), a.doctorCommand(),
		a.completionCommand(), a.versionCommand())
	a.refuseSpaced(root)
	root.InitDefaultHelpCmd()
	a.wrapHelp(root)
	return root
}

// spelling makes the underscores and the names of flags that other trainers have
// mean the same as ours. Those are about training: in convert they may mean something else.
func spelling() func(*pflag.FlagSet, string) pflag.NormalizedName {
	aliases := aliasesOf(newTrainOptions().table())
	return func(fs *pflag.FlagSet, name string) pflag.NormalizedName {
		if fs.Name() == convertName {
			return pflag.NormalizedName(canonical(name, nil))
		}
		return pflag.NormalizedName(canonical(name, aliases))
	}
}

// runs makes f the work of a subcommand.
func (a *app) runs(f func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		a.started = true
		return f(args)
	}
}
