package main

import (
	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/train"
)

// toldFile is there once a user knows that training without a preset is not what it was.
const toldFile = "told-default-recipe"

// tellOfRecipe says once to whoever relies on it that the default recipe is another one. Where that cannot be kept in
// mind it says so again. Programs, which read --progress json, know what they start.
func tellOfRecipe(console *cli.Console, o *train.Options) {
	if !o.ByDefault() || o.Progress == meter.JSON || o.Checkpoints.Resume != "" || cli.ToldBefore(toldFile) {
		return
	}
	console.Tell(cli.Notice{Kind: cli.KindNote, Text: "without --preset, train now chooses its recipe by the capture; " +
		"the published recipe, which it was before, is --preset 3dgs"})
}
