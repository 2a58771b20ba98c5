package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/convert"
	"vksplat/scene/splatfile"
)

func convertCommand(console *cli.Console) *cobra.Command {
	o := &convert.Options{Degree: -1, Pad: -1}
	cmd := &cobra.Command{
		Use:     convert.Name + " IN... OUT",
		Aliases: []string{"export"},
		Short:   "Convert a model to another format",
		Long: "Convert a model to another format, and optionally select, move or merge splats. IN is a model,\n" +
			"or the folder of a training run. OUT's name chooses the format:\n" + convert.FormatNames(true) +
			".\n" + "Also read: " + convert.FormatNames(false) + ".\n\n" +
			"Models may be larger than memory. The format of IN is detected from its content. docs/convert.md says\n" +
			"what each format keeps.",
		Example: "  vksplat convert out model.spz\n  vksplat convert model.ply small.ply --max-splats 500000 " +
			"--sh-degree 1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fault.Usagef("as in: vksplat convert model.ply model.spz",
					"convert needs a file to read and one to write, %s", given(len(args)))
			}
			return nil
		},
	}
	return newCommand(console, cmd, convertTable(o), helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		o.In, o.Out = args[:len(args)-1], args[len(args)-1]
		return convert.Run(console, o)
	})
}

func convertTable(o *convert.Options) []optionGroup {
	return []optionGroup{{"", []option{
		text(&o.To, "to", "write `FORMAT` (default: what OUT's name says)").oneOf(convert.FormatWords()...),
		truth(&o.Merge, "merge", "merge all IN into one model; it has the highest SH degree among them"),
		integer(&o.Degree, "sh-degree", "drop spherical harmonics above degree `N` (default: keep all)").within(0, 3),
		integer(&o.Pad, "pad-sh",
			"pad spherical harmonics with zeros to degree `N`; some importers need 3 (default: no padding)").
			within(0, 3),
		text(&o.Box, "crop", "keep splats centred in the `BOX`: MINX,MINY,MINZ,MAXX,MAXY,MAXZ").
			asNumbers(kindFloat, 6, -1e12, 1e12),
		text(&o.Sphere, "sphere", "keep splats centred in the sphere `X,Y,Z,R`").asNumbers(kindFloat, 4, -1e12, 1e12),
		text(&o.Edits, "edits", "replay the edits in `FILE`, which view --edit wrote; they remove splats "+
			"and rotate the model"),
		float(&o.Opacity, "min-opacity", "drop splats with opacity below `X`, 0 to 1").within(0, 1),
		float(&o.Outlier, "prune-outliers",
			"drop isolated splats; those with a spacing `N` robust deviations above the median (4 if N is left "+
				"out), and above their own size").orAlone("4").within(0, 1e9),
		integer(&o.Most, "max-splats",
			"keep the `N` most important splats; by opacity times mean area over squared distance from the middle "+
				"(default: all)").within(1, 1e10),
		text(&o.Decimate, "decimate",
			"merge similar splats until `N`, or P%, are left; for models seen small or from afar").
			asNumbers(kindInt, 0, 1, 1e10),
		text(&o.Orient, "orient",
			"rotate the model so that the cameras' mean `up` becomes -y, the up axis of viewers").oneOf("up"),
		text(&o.Cameras, "cameras",
			"with --orient, cameras of `SCENE|FILE`; a capture, cameras.json or transforms.json (default: "+
				"next to IN)"),
		text(&o.Move, "transform",
			"apply `MOVES` in order, as in \"scale 2 rotate 0,90,0 translate 1,2,3\"; or a matrix of 12 or 16 "+
				"numbers"),
		integer(&o.Write.Version, "spz-version",
			"write version `N` of SPZ; 4 is smaller and newer (default 3)"),
		integer(&o.Write.Iterations, "sog-iterations",
			"run `N` k-means iterations for SOG's palette of spherical harmonics (default 10)").within(1, 1e6),
		integer(&o.Write.Levels, "lod",
			fmt.Sprintf("write `N` levels of detail, each half of the one before; OUT is "+
				"DIR/lod-meta.json (default %d)",
				splatfile.StreamedLevels)).within(1, splatfile.MostStreamedLevels),
		text(&o.Place, "georeference",
			"place 3D Tiles at `PLACE` LAT,LON,HEIGHT[,HEADING]; in degrees and metres, the heading is that of "+
				"the model's z, clockwise from north"),
		truth(&o.Write.PlainTiles, "uncompressed-tiles",
			"write 3D Tiles without SPZ; only CesiumJS draws tiles with SPZ"),
		truth(&o.Strict, "strict", "fail on splats with NaN or infinite numbers"),
		overwriteOption(&o.Replace, "an existing OUT"),
		text(&o.Write.TempDir, "temp-dir", "put temporary files into the folder `DIR` (default: OUT's)").isFolder(),
	}}}
}
