package main

import (
	"github.com/spf13/cobra"
)

// farmCommand is the parent of what has to do with the farm.
func (a *app) farmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "farm",
		Short: "Run jobs of many tasks: trainings, renders, videos, tables",
		Long:  "Run jobs of many tasks: trainings, sweeps, blocks, renders, videos, tables. docs/farm.md\nsays what a job is.",
	}
	return parent(cmd, a.farmSubmitCommand(), a.farmLsCommand(), a.farmShowCommand(), a.farmWaitCommand(), a.farmLogsCommand(), a.farmCancelCommand(), a.farmRetryCommand(),
		a.farmPauseCommand(), a.farmResumeCommand(), a.farmArtifactsCommand(), a.farmServeCommand(), a.farmTokenCommand(), a.farmWorkerCommand(), a.farmNodesCommand(),
		a.farmDrainCommand(), a.farmLimitsCommand(), a.farmFsckCommand(), a.farmDeleteCommand(), a.farmGcCommand(), a.farmExportCommand(), a.farmPageCommand(), a.farmRunTaskCommand())
}
