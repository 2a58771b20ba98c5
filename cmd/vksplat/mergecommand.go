package main

import (
	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/merge"
)

// sourceFlags are those of train that read the capture so.
func sourceFlags(rec *captured.Source) []string {
	var load captured.Options
	plain := newTrainOptions().Load
	rec.Options(&load, func(string) bool { return false })
	defaults := map[string]string{}
	for _, opt := range loadTable(&plain) {
		defaults[opt.name] = opt.value.String()
	}
	var list []string
	for _, opt := range loadTable(&load) {
		if text := opt.value.String(); text != defaults[opt.name] {
			list = append(list, "--"+opt.name+"="+text)
		}
	}
	return list
}

func mergeCommand(console *cli.Console) *cobra.Command {
	o := &merge.Options{Check: true}
	cmd := &cobra.Command{
		Use:   "merge PLAN",
		Short: "Join the trained blocks of a plan into one scene",
		Long: "Join the blocks of the plan that vksplat partition wrote to PLAN, once all are trained:\n" +
			"of each, what stands on its core. PLAN/out gets the whole scene in the capture's frame,\n" +
			"for render, eval, view and convert. The held-out photos are measured on it, and those\n" +
			"that came out better in a block are named, as PLAN/merge.json does. Models may be\n" +
			"larger than memory.",
		Example: "  vksplat merge city_plan\n  vksplat merge city_plan -o city.ply -o city.sog\n  vksplat merge " +
			"city_plan --finetune 2000",
		Args: one("PLAN folder"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	table := []optionGroup{{options: append([]option{
		other(&o.Exports, "output", "convert the merged scene to `FILE` too, in the format that its name says; may be "+
			"given again").letter("o"),
		integer(&o.Finetune, "finetune",
			"train the merged scene for `N` more steps on all photos, without new splats, where it fits the device: "+
				"PLAN/finetuned"),
		overwriteOption(&o.Overwrite, "FILE, a run in PLAN/finetuned, and what you changed in PLAN/out,"),
		truth(&o.Check, "check", "measure the held-out photos on the merged scene"),
	}, deviceOptions(&o.Device)...)}}
	register(cmd.Flags(), table)
	offerValues(console, cmd, table)
	cmd.RunE = runs(console, func(args []string) error {
		if o.Finetune < 0 {
			return fault.Usagef("give a number of steps from 1 up", "flag --finetune: %d", o.Finetune)
		}
		o.Plan, o.SourceFlags = args[0], sourceFlags
		for _, opt := range deviceOptions(&o.Device) {
			if text := opt.value.String(); text != "" && text != "auto" {
				o.DeviceFlags = append(o.DeviceFlags, "--"+opt.name+"="+text)
			}
		}
		ctx, stop := console.Interruptible(cli.Always("stopping"))
		defer stop()
		return merge.Run(console, ctx, o)
	})
	return cmd
}
