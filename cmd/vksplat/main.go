// Command vksplat trains 3D Gaussian splats from photographs on any Vulkan GPU,
// and renders them.
//
// This package holds subcommands, flags and exit codes. The work is done by
// packages pipeline (on the device) and scene (files).
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// processStart is about when the process began, for the seconds of the whole run.
var processStart = time.Now()

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// app is one call of the program: where it prints, and how far it came.
type app struct {
	stdout, stderr io.Writer
	started        bool // the arguments were understood and a subcommand runs
}

// run carries out one command line and returns the exit code. Errors and their
// hints have been printed to stderr by then.
func run(args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err != nil && !a.started {
		err = usageErrorOf(err, cmd)
	}
	a.report(err)
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
	root.SetGlobalNormalizationFunc(dashes)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.trainCommand(), a.renderCommand(), a.demoCommand(), a.infoCommand(), a.devicesCommand(), a.doctorCommand(), a.versionCommand())
	root.InitDefaultHelpCmd()
	return root
}

// dashes makes the underscore spellings of flags, as other trainers have them,
// mean the same as those with dashes.
func dashes(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}

// runs makes f the work of a subcommand.
func (a *app) runs(f func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		a.started = true
		return f(args)
	}
}

// printf writes to standard output. A closed pipe is no reason to stop training.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.stdout, format, args...) }

// warn writes one warning to standard error.
func (a *app) warn(text string) { _, _ = fmt.Fprintf(a.stderr, "vksplat: warning: %s\n", text) }

// report writes an error, and what can be done about it, to standard error.
func (a *app) report(err error) {
	if err == nil {
		return
	}
	_, _ = fmt.Fprintf(a.stderr, "vksplat: error: %s\n", err)
	if h := hint(err); h != "" {
		_, _ = fmt.Fprintf(a.stderr, "hint: %s\n", hintStyle(h))
	}
}

// hintStyle gives hints of all packages one look: no capital at the start, unless
// the word has more of them, and no full stop.
func hintStyle(h string) string {
	if len(h) > 1 && h[0] >= 'A' && h[0] <= 'Z' && h[1] >= 'a' && h[1] <= 'z' {
		h = strings.ToLower(h[:1]) + h[1:]
	}
	return strings.TrimSuffix(h, ".")
}
