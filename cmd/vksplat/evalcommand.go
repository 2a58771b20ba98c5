package main

import (
	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/run/evaluate"
	"vksplat/scene/metric"
)

func evalCommand(console *cli.Console) *cobra.Command {
	o := evaluate.NewOptions()
	cmd := &cobra.Command{
		Use:   "eval OUT|FILE... [--capture SCENE]",
		Short: "Measure models on held-out photos, the way papers do",
		Long: "Render the held-out photos' views of a model and compare them with the photos: PSNR\n" +
			"and SSIM of each view and their means, as a Markdown table. OUT is the folder of a\n" +
			"training run, which knows its capture and what it held out; FILE is a splat file,\n" +
			"which needs --capture. results.json and per_view.json in OUT get the scores. With\n" +
			"--renders and --gt, two folders of pictures are compared, without a model or a\n" +
			"device.",
		Example: "  vksplat eval out\n" +
			"  vksplat eval out --protocol inria\n" +
			"  vksplat eval other.ply --capture my_scene --downscale 2\n" +
			"  vksplat eval out_a out_b --compare\n" +
			"  vksplat eval --renders test/ours_30000/renders --gt test/ours_30000/gt --protocol inria",
	}
	table := []optionGroup{{options: evalTable(o)}, {options: loadTable(&o.Load)},
		{options: lookOptions(&o.Config.Background, &o.Config.Near)}, {options: deviceOptions(&o.Device)}}
	fs := cmd.Flags()
	register(fs, table)
	offerValues(console, cmd, table)
	o.Given = fs.Changed
	cmd.RunE = runs(console, func(args []string) error {
		o.Models = args
		if err := o.Check(); err != nil {
			return err
		}
		return evaluate.Run(console, o)
	})
	return cmd
}

// evalTable lists the options that are eval's own.
func evalTable(o *evaluate.Options) []option {
	return []option{
		text(&o.Capture, "capture", "compare with the photos of `SCENE` (default: where the capture was that OUT was "+
			"trained on)").isFolder(),
		chosen(&o.Split, "split", "photos that are compared: those held out, or those trained on", evaluate.SplitTest,
			evaluate.SplitTrain),
		chosen(&o.Protocol, "protocol", "gsplat: single precision, SSIM inside the photo; inria: 8 bits, SSIM with "+
			"zeros around it", evaluate.ProtocolNames()...),
		chosen(&o.Correct, "color-correct",
			"colour map that is fitted before the cc_ scores are taken; none: no such scores", metric.ColorAffine,
			metric.ColorQuadratic, evaluate.ColorNone),
		integer(&o.Iteration, "iteration", "measure OUT's model of step `N`; 0: the last"),
		integer(&o.TestEvery, "test-every",
			"every `N`th photo is held out, unless the capture says which (default for OUT: as it was trained)"),
		text(&o.TestList, "test-list", "the photos that `FILE` names, one a line, are held out"),
		truth(&o.Exposure, "exposure", "fit each photo's exposure on its left half, measure on the right (default: as "+
			"OUT was trained)"),
		truth(&o.Antialiased, "antialiased", "compensate opacity for the pixel filter (default: as the file says)"),
		other(&o.Origin, "origin", "what was subtracted from the model's coordinates, `X,Y,Z` (default: as the file "+
			"says)"),
		text(&o.Out, "output", "write results.json and per_view.json to the folder `DIR` (default: OUT; none for a "+
			"FILE)").letter("o").isFolder(),
		overwriteOption(&o.Overwrite, "what another program measured"),
		text(&o.Weights, "lpips-weights",
			"measure LPIPS too, with the networks' weights in `FILE`, which tools/lpips_weights.py makes"),
		truth(&o.Compare, "compare", "print one table with the models side by side"),
		text(&o.Renders, "renders", "compare the pictures in `DIR` with those of --gt").isFolder(),
		text(&o.Gt, "gt", "folder of the photos that --renders are compared with, `DIR`; names and sizes agree").
			isFolder(),
	}
}
