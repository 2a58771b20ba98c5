package main

import (
	"github.com/spf13/cobra"
)

// farmCommand is the parent of what has to do with the farm.
func (a *app) farmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "farm",
		Short: "Run jobs of many tasks: trainings, renders, videos, tables",
		Long: "Run jobs of many tasks: trainings, sweeps, blocks, renders, videos, tables, on this machine\n" +
			"or by a scheduler of yours. docs/farm.md says what a job is.",
	}
	return parent(cmd, a.farmRunCommand(), a.farmPageCommand(), a.farmArtifactsCommand(), a.farmFsckCommand(), a.farmGcCommand(), a.farmExportCommand(), a.farmRunTaskCommand())
}
