package main

import (
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/mesh"
)

func meshCommand(console *cli.Console) *cobra.Command {
	o := mesh.NewOptions()
	cmd := &cobra.Command{
		Use:   "mesh FILE|OUT MESH",
		Short: "Make a mesh of a model",
		Long: "Make a mesh of a model from depths rendered at the photos' cameras. FILE is a model in any\n" +
			"format that convert reads, OUT the folder of a training run. MESH is a file .ply or .glb.\n" +
			"See docs/mesh.md.",
		Example: "  vksplat mesh out scene.glb\n  vksplat mesh model.ply scene.ply --cameras my_scene --voxel 0.01",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fault.Usagef("as in: vksplat mesh OUT scene.glb", "mesh needs a model and a file to write, %s",
					given(len(args)))
			}
			return nil
		},
	}
	first := []string{"cameras", "voxel", "triangles", "max-depth", "min-views", "clusters", "overwrite", "device",
		"max-vram", "max-ram"}
	layout := helpLayout{first: first}
	return newCommand(console, cmd, meshTable(o), layout, func(f *pflag.FlagSet, args []string) error {
		o.Draw.File, o.Out, o.Draw.Given = args[0], args[1], f.Changed
		o.Draw.CamerasOfRun()
		return mesh.Run(console, o)
	})
}

// meshTable lists the options of mesh by chapter.
func meshTable(o *mesh.Options) []optionGroup {
	cameras := pickOptions(renderTable(o.Draw), "cameras")[0].options
	return []optionGroup{
		{"Mesh", append(cameras,
			float(&o.Voxel, "voxel",
				"edge of a voxel, in the `UNITS` of the capture; 0 is two pixels at the median depth").
				within(0, 1e9),
			text(&o.Triangles, "triangles",
				"reduce to `N` triangles, or per cent as in 25% (default: no reduction)"),
			float(&o.MaxDepth, "max-depth",
				"ignore depths beyond `UNITS`; 0 is three times the median depth").within(0, 1e9),
			integer(&o.MinViews, "min-views", "drop surfaces seen by fewer than `N` views").within(1, math.MaxUint16),
			integer(&o.Clusters, "clusters", "keep the `N` largest connected parts of at least 50 triangles").
				within(1, 1e9),
			overwriteOption(&o.Replace, "an existing MESH"),
		)},
		{"Capture", renderCaptureOptions(o.Draw)},
		{"Look", append(lookOptions(&o.Draw.Config.Background, &o.Draw.Config.Near),
			truth(&o.Draw.Antialiased, "antialiased",
				"compensate opacity for the pixel filter (default: as the file says)"))},
		{"Device", deviceOptions(&o.Draw.Device)},
	}
}
