package main

import (
	"vksplat/internal/run/train"
)

// checkpointTable lists the options of checkpoints.
func checkpointTable(o *train.CheckpointOptions) []option {
	return []option{
		other(&o.Every, "checkpoint-every",
			"write a checkpoint every N steps, or `Nm` minutes; 0: only at the end and when stopped"),
		stepList(&o.SaveAt, "save-at",
			"also write model and checkpoint after steps `N,N,...`").
			also("save-steps", "save-iterations", "checkpoint-iterations"),
		other(&o.Keep, "keep-checkpoints", "keep the newest `N` checkpoints (default: 2 while running, 1 at the end)"),
		text(&o.Resume, "resume",
			"continue from OUT's newest checkpoint, or from `FILE`; --resume starts from scratch if OUT has "+
				"none").orAlone(train.ResumeAuto).flagOnly(),
		truth(&o.Accept, "accept-changes",
			"with --resume, accept changed settings or photos, and continue with the new ones").flagOnly(),
		truth(&o.Overwrite, "overwrite",
			"replace an earlier run in OUT and other files in the way; the earlier run is kept until this one has a "+
				"checkpoint").flagOnly(),
	}
}
