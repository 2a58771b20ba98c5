package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/merge"
)

// sourceFlags are those of train that read a capture as recorded in a folder.
func sourceFlags(rec *captured.Source, dir string) []string {
	var load captured.Options
	plain := newTrainOptions().Load
	rec.Options(&load, dir, func(string) bool { return false })
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
		Long: "Join the trained blocks of a plan that vksplat partition wrote into one scene, PLAN/out:\n" +
			"the splats on the core of each block. The held-out photos are measured on it.\n" +
			"\n" +
			"The scene is in the capture's frame, for render, eval, view and convert. Held-out photos\n" +
			"that scored better in a block are listed, also in PLAN/merge.json. Models may be larger than\n" +
			"memory.",
		Example: "  vksplat merge city_plan\n  vksplat merge city_plan -o city.ply -o city.sog\n  vksplat merge " +
			"city_plan --finetune 2000",
		Args:              one("PLAN folder"),
		ValidArgsFunction: folders,
	}
	device := deviceOptions(&o.Device)
	table := []optionGroup{{options: append([]option{
		other(&o.Exports, "output",
			"also write the merged scene to `FILE`; its name chooses the format; may be repeated").letter("o"),
		integer(&o.Finetune, "finetune",
			"train the merged scene for `N` more steps on all photos; adds no splats, must fit the device, writes "+
				"PLAN/finetuned").within(0, 1e9),
		overwriteOption(&o.Overwrite, "FILE, a run in PLAN/finetuned and your changes in PLAN/out"),
		truth(&o.Check, "check", "measure the held-out photos on the merged scene"),
	}, device...)}}
	return newCommand(console, cmd, table, helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		o.Plan, o.SourceFlags, o.DeviceFlags = args[0], sourceFlags, givenFlags(flags, device)
		ctx, stop := console.Interruptible(cli.Always("stopping"))
		defer stop()
		return merge.Run(console, ctx, o)
	})
}
