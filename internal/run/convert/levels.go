package convert

import (
	"errors"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/levels"
	"vksplat/internal/run/output"
	"vksplat/scene/splatfile"
)

// trainedLevels opens the levels of detail that were trained for the model in the folder of a run, if it is converted
// whole: changed says that it is not. They are moved as the model is.
func (o *Options) trainedLevels(console *cli.Console, changed bool, up *splatfile.Similarity,
	moves splatfile.Similarity, degree int) (opened OpenedModels, err error) {
	if len(o.In) != 1 || !output.IsFolder(o.In[0]) {
		return opened, nil
	}
	model, err := splatfile.Find(o.In[0])
	if err != nil {
		return opened, err
	}
	files, other, err := levels.Of(o.In[0], model)
	switch {
	case err != nil:
		return opened, err
	case other:
		console.Note("the trained levels in " + o.In[0] + " are of another model: levels are made by merging; " +
			fault.Command("levels "+cli.Quoted(o.In[0])+" --overwrite") + " trains others")
		return opened, nil
	case len(files) > 0 && (changed || o.Decimate != ""):
		console.Note("the trained levels in " + o.In[0] + " are of the whole model: levels are made by merging what is left")
		return opened, nil
	}
	for _, file := range files {
		level, err := splatfile.Open(file)
		if err != nil {
			return opened, errors.Join(err, opened.Close())
		}
		if up != nil {
			level = splatfile.Move(level, *up, "y")
		}
		opened.Parts = append(opened.Parts, splatfile.WithDegree(splatfile.Move(level, moves, ""), degree))
	}
	if n := len(opened.Parts); n > 0 {
		console.Printf("levels: %s\n", fmt.Sprintf("%d of them trained, in %s", n, o.In[0]))
	}
	return opened, nil
}
