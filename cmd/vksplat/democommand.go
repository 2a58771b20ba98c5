package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/demo"
	"vksplat/internal/run/render"
)

func demoCommand(console *cli.Console) *cobra.Command {
	o := &demo.Options{Options: *trainingFor(console), Photos: demo.Photos,
		Size: render.PixelsFlag{Width: demo.Width, Height: demo.Height}, Points: demo.Points}
	o.Eval, o.Checkpoints.Demo = true, true
	c := &o.Config
	c.Iterations = demo.Steps
	cmd := &cobra.Command{
		Use:   "demo [-m OUT]",
		Short: "Train a small synthetic scene, no data needed",
		Long: "Render photos of a synthetic scene, train on them, evaluate on held-out ones, and print where\n" +
			"the pictures are. Takes seconds with a GPU, minutes without.",
		Args: none,
	}
	o.Out = "vksplat-demo"
	return newCommand(console, cmd, demoTable(o), helpLayout{}, func(*pflag.FlagSet, []string) error {
		if err := o.Options.Check(); err != nil {
			return err
		}
		if o.Photos < 4 && !o.CaptureOnly {
			return fault.Usagef("give at least 4 to train and evaluate, 3 for a capture alone", "flag --images: %d photos",
				o.Photos)
		}
		if min(o.Size.Width, o.Size.Height) < 16 || max(o.Size.Width, o.Size.Height) > 8192 {
			return fault.Usagef("give sides of 16 to 8192 pixels, as in 256x192", "flag --size: %s", &o.Size)
		}
		if o.CaptureOnly {
			return demo.WriteCapture(console, o)
		}
		return demo.Run(console, o)
	})
}

// demoTable lists the options of demo.
func demoTable(o *demo.Options) []optionGroup {
	own := []option{
		text(&o.Out, "model-path", "write to the folder `OUT`").letter("m").isFolder(),
		overwriteOption(&o.Checkpoints.Overwrite, "an unfinished demo in OUT"),
		integer(&o.Photos, "images", "draw `N` photos").within(3, 10000),
		other(&o.Size, "size", "size of the photos").asNumbers(kindInt, 2, 16, 8192),
		integer(&o.Points, "points", "start training from `N` points").within(4, 10_000_000),
		truth(&o.City, "city", "render a city from the air instead of objects on a table"),
		truth(&o.CaptureOnly, "capture-only", "write the capture to OUT and stop"),
		float(&o.MinPSNR, "min-psnr", "fail if the PSNR of held-out photos is below `DB` decibels").within(0, 1e6),
	}
	of := pickOptions(trainTable(&o.Options), "iterations", "seed", "device", "max-vram", "progress", "tensorboard")
	find(of, "iterations").help = "training steps, one photo each" // which no preset chooses here
	return []optionGroup{{options: append(own, of[0].options...)}}
}
