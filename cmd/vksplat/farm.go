package main

import (
	"github.com/spf13/cobra"

	"vksplat/internal/cli"
)

// farmCommand is the parent of what has to do with the farm.
func farmCommand(console *cli.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "farm",
		Short: "Run jobs of many tasks: trainings, renders, videos, tables",
		Long: "Run jobs of many tasks (trainings, sweeps, blocks, renders, videos, tables) on this machine,\n" +
			"on your team's machines, or through your scheduler. docs/farm.md describes jobs.",
	}
	return parent(cmd, farmRunCommand(console), farmPageCommand(console), farmArtifactsCommand(console),
		farmFsckCommand(console), farmGcCommand(console), farmExportCommand(console), farmRunTaskCommand(console),
		farmJoinCommand(console), farmWorkerCommand(console), farmSubmitCommand(console), farmListCommand(console),
		farmShowCommand(console), farmWaitCommand(console), farmLogsCommand(console), farmPauseCommand(console),
		farmResumeCommand(console), farmCancelCommand(console), farmSetCommand(console))
}
