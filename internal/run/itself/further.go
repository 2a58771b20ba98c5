package itself

import (
	"fmt"
	"strconv"

	"vksplat/internal/cli"
	"vksplat/pipeline/recipe"
)

// Further trains a model for some more steps, and adds and removes no splat.
type Further struct {
	Scene, Out, Model string // the capture, the new run's folder, the model's PLY file
	Steps, Degree     int
	Background        [3]float32
	Origin            [3]float64 // of the model; 0: none
	TestList          string     // of the photos that are held out; "": none is
}

// Args are the arguments of train for it. The preset is the published one, whatever the model was trained with: it has
// no noise of the means, no penalties, no smaller photos and no number of splats, and the rest goes on as at the end of
// a training.
func (f *Further) Args() []string {
	config, back, at := recipe.Default(), f.Background, f.Origin
	args := []string{"train", f.Scene, "-m", f.Out,
		cli.Flag("preset", recipe.Strategy3DGS), cli.Flag("init", "ply:"+f.Model),
		cli.Flag("iterations", strconv.Itoa(f.Steps)),
		cli.Flag("sh-degree", strconv.Itoa(f.Degree)), cli.Flag("sh-degree-interval", "1"),
		cli.Flag("refine-every", "0"),
		cli.Flag("lr-means", strconv.FormatFloat(config.LRMeans*config.LRMeansFinal, 'g', -1, 64)),
		cli.Flag("lr-means-final", "1"),
		cli.Flag("background", fmt.Sprintf("%g,%g,%g", back[0], back[1], back[2]))}
	if at != [3]float64{} {
		args = append(args, cli.Flag("origin", fmt.Sprintf("%g,%g,%g", at[0], at[1], at[2])))
	}
	if f.TestList != "" {
		args = append(args, cli.Flag("test-list", f.TestList))
	}
	return args
}
