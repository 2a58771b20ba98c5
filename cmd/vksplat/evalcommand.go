package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/run/evaluate"
	"vksplat/scene/metric"
)

func evalCommand(console *cli.Console) *cobra.Command {
	o := evaluate.NewOptions()
	cmd := &cobra.Command{
		Use:   "eval OUT|FILE... [--capture SCENE]",
		Short: "Measure models on held-out photos",
		Long: "Render a model's held-out views and compare them with the photos: PSNR and SSIM of each\n" +
			"view and their means, as a Markdown table. OUT is the folder of a training run; FILE is a\n" +
			"model, which needs --capture.\n" +
			"\n" +
			"The scores go to results.json and per_view.json in OUT. With --renders and --gt, two\n" +
			"folders of pictures are compared, without a model or a device.",
		Example: "  vksplat eval out\n" +
			"  vksplat eval out --protocol inria\n" +
			"  vksplat eval other.ply --capture my_scene --downscale 2\n" +
			"  vksplat eval out_a out_b --compare\n" +
			"  vksplat eval --renders renders --gt photos --protocol inria",
	}
	first := []string{"capture", "split", "test-every", "protocol", "lpips-weights", "compare", "renders", "gt", "output",
		"overwrite", "iteration", "downscale", "images", "device", "max-vram"}
	layout := helpLayout{first: first}
	return newCommand(console, cmd, evalTable(o), layout, func(f *pflag.FlagSet, args []string) error {
		o.Models, o.Given = args, f.Changed
		if err := o.Check(); err != nil {
			return err
		}
		return evaluate.Run(console, o)
	})
}

// evalTable lists the options of eval.
func evalTable(o *evaluate.Options) []optionGroup {
	return []optionGroup{{options: ownEvalOptions(o)}, {options: loadTable(&o.Load)},
		{options: lookOptions(&o.Config.Background, &o.Config.Near)}, {options: deviceOptions(&o.Device)}}
}

// ownEvalOptions are those that no other command has.
func ownEvalOptions(o *evaluate.Options) []option {
	return []option{
		text(&o.Capture, "capture",
			"compare with the photos of `SCENE` (default: those that OUT was trained on)").isFolder(),
		chosen(&o.Split, "split",
			"photos to compare with: held out (test) or trained on (train)", evaluate.SplitTest,
			evaluate.SplitTrain),
		chosen(&o.Protocol, "protocol",
			"measure by protocol `NAME`: gsplat or inria; gsplat: float32, SSIM inside the photo; inria: 8 bits, SSIM with "+
				"zeros around it", evaluate.ProtocolNames()...),
		chosen(&o.Correct, "color-correct",
			"colour `MAP` to fit for the cc_ scores: affine, quadratic or none", metric.ColorAffine,
			metric.ColorQuadratic, evaluate.ColorNone),
		integer(&o.Iteration, "iteration", "measure OUT's model of step `N` (default: the last)").within(0, 1e9),
		integer(&o.TestEvery, "test-every", "hold out every `N`th photo (default: as trained, else 8)").within(2, 1e6),
		text(&o.TestList, "test-list", "hold out the photos listed in `FILE`, one per line"),
		truth(&o.Antialiased, "antialiased",
			"compensate opacity for the pixel filter (default: as the file says)"),
		truth(&o.AsTaken, "native-lens",
			"compare with the original photos, rendering through their lenses (default: as trained)"),
		other(&o.Origin, "origin",
			"`X,Y,Z` that was subtracted from the model's coordinates (default: as the file says)"),
		text(&o.Out, "output",
			"write results.json and per_view.json to `DIR` (default: OUT; none for a FILE)").letter("o").isFolder(),
		overwriteOption(&o.Overwrite, "scores that another program wrote"),
		text(&o.Weights, "lpips-weights",
			"also measure LPIPS, with the networks' weights in `FILE`; made by tools/lpips_weights.py"),
		truth(&o.Compare, "compare", "print one table with the models side by side"),
		text(&o.Renders, "renders", "compare the pictures in `DIR` with those of --gt").isFolder(),
		text(&o.Gt, "gt", "folder `DIR` of the photos for --renders; names and sizes must agree").
			isFolder(),
	}
}
