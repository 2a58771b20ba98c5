package desk

import (
	"strings"

	"vksplat/internal/cli"
)

// forPage names what the page sets by its controls, where the commands that it runs name flags.
var forPage = strings.NewReplacer(downscale+" 1 ", "photo size 1/1 ", downscale+" 2", "photo size 1/2",
	downscale+" 4", "photo size 1/4", downscale+" 8", "photo size 1/8", downscale, "photo size",
	cli.Switch("time-limit"), "time limit", cli.Switch("preset"), "recipe",
	cli.Switch("eval"), "hold out every 8th photo").Replace

var downscale = cli.Switch("downscale")
