package main

import (
	"vksplat/internal/run/train"
)

// checkpointTable lists the options of checkpoints.
func checkpointTable(o *train.CheckpointOptions) []option {
	return []option{
		other(&o.Every, "checkpoint-every", "write a checkpoint every `N|Nm` steps or minutes; 0: only at the end and when stopped").essential(),
		stepList(&o.SaveAt, "save-at", "write model and checkpoint after the steps `N,N,...` too").essential().also("save-steps", "save-iterations", "checkpoint-iterations"),
		other(&o.Keep, "keep-checkpoints", "keep the newest `N` checkpoints (default: 2 while running, 1 at the end)"),
		text(&o.Resume, "resume", "go on with a checkpoint, `auto|FILE`: --resume alone takes the newest one of OUT, or starts without one; --resume=FILE that file").orAlone(train.ResumeAuto).essential().flagOnly(),
		truth(&o.Accept, "accept-changes", "with --resume, go on although settings or photos changed, with the new ones").essential().flagOnly(),
		truth(&o.Overwrite, "overwrite", "replace a run in OUT, which stays aside until this one has a checkpoint, and other files in the way").essential().flagOnly(),
	}
}
