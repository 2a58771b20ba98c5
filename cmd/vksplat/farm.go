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
		Long: "Run jobs of many tasks (trainings, sweeps, blocks, renders, videos, tables) on this machine\n" +
			"or through your scheduler. docs/farm.md describes jobs.",
	}
	return parent(cmd, farmRunCommand(console), farmPageCommand(console), farmArtifactsCommand(console),
		farmFsckCommand(console), farmGcCommand(console), farmExportCommand(console), farmRunTaskCommand(console))
}
