package main

import (
	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/convert"
)

func convertCommand(console *cli.Console) *cobra.Command {
	o := &convert.Options{Degree: -1, Pad: -1}
	cmd := &cobra.Command{
		Use:     convert.Name + " IN... OUT",
		Aliases: []string{"export"},
		Short:   "Convert a model of splats to another format",
		Long: "Convert a model of splats to another format, and choose, move or merge splats on\n" +
			"the way. IN is a file of any format that is known, by its content, or the folder\n" +
			"of a training run, whose latest model is taken. OUT's name says what is written,\n" +
			"or --to does. Formats: " + convert.FormatNames(true) + "; read only: " + convert.FormatNames(false) +
			".\n" +
			"Models may be larger than memory. docs/convert.md says what each format keeps.",
		Example: "  vksplat convert out model.spz\n  vksplat convert model.ply small.ply --max-splats 500000 " +
			"--sh-degree 1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fault.Usagef("as in: vksplat convert model.ply model.spz",
					"convert needs a file to read and one to write, %d are given", len(args))
			}
			return nil
		},
	}
	table := convertTable(o)
	register(cmd.Flags(), table)
	offerValues(console, cmd, table)
	cmd.RunE = runs(console, func(args []string) error {
		o.In, o.Out = args[:len(args)-1], args[len(args)-1]
		return ofCapture(convert.Run(console, o))
	})
	return cmd
}

func convertTable(o *convert.Options) []optionGroup {
	return []optionGroup{{"", []option{
		text(&o.To, "to", "write the format `FORMAT`, whatever OUT's name is").oneOf(convert.FormatWords()...),
		truth(&o.Merge, "merge", "put all of IN together; the highest degree of spherical harmonics is theirs"),
		integer(&o.Degree, "sh-degree", "drop spherical harmonics above degree `N`; -1: none"),
		integer(&o.Pad, "pad-sh", "fill up with zeros to degree `N`, which some importers want to be 3; -1: not"),
		text(&o.Box, "crop", "keep splats whose centres are in the box `MINX,MINY,MINZ,MAXX,MAXY,MAXZ`"),
		text(&o.Sphere, "sphere", "keep splats whose centres are in the sphere `X,Y,Z,R`"),
		float(&o.Opacity, "min-opacity", "drop splats of an opacity below `X`, 0 to 1"),
		float(&o.Outlier, "prune-outliers",
			"drop splats that stand alone: spacing `N` robust deviations above the median (4 if none is given), and "+
				"beyond their own size").orAlone("4"),
		integer(&o.Most, "max-splats", "keep the `N` most important: opacity times mean area over squared distance "+
			"from the middle; 0: all"),
		text(&o.Orient, "orient",
			"`up` turns the scene so that the cameras' mean up is -y, which viewers take for up").oneOf("up"),
		text(&o.Cameras, "cameras", "with --orient, the cameras: a capture's folder, cameras.json or transforms.json, "+
			"`SCENE|FILE` (default: found beside IN)"),
		text(&o.Move, "transform", "`MOVES` one after the other, as in \"scale 2 rotate 0,90,0 translate 1,2,3\", or "+
			"12 or 16 numbers of a matrix"),
		integer(&o.Write.Version, "spz-version", "write version `N` of SPZ; 0: the one that most programs read"),
		integer(&o.Write.Iterations, "sog-iterations",
			"search `N` times for SOG's palette of spherical harmonics; 0: as usual"),
		overwriteOption(&o.Replace, "OUT"),
		text(&o.Write.TempDir, "temp-dir", "put temporary files into the folder `DIR` (default: OUT's)").isFolder(),
	}}}
}
