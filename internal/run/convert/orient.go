package convert

import (
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// uprightMove returns what turns the mean up of the cameras to -y.
func uprightMove(console *cli.Console, o *Options) (splatfile.Similarity, error) {
	file := o.Cameras
	if file == "" {
		if file = captured.FindCameras(o.In[0], captured.CamerasBeside, true); file == "" {
			return splatfile.Unmoved(), fault.Usagef("name them: "+fault.Setting("cameras")+" SCENE or "+
				fault.Setting("cameras")+" OUT/cameras.json",
				"%s: no cameras found near %s", fault.Named("orient"), o.In[0])
		}
		console.Note("up follows the cameras in " + file)
	}
	cams, err := captured.ReadCamerasOf(console, file)
	if err != nil {
		return splatfile.Unmoved(), err
	}
	up, err := scene.MeanUp(cams)
	if err != nil {
		return splatfile.Unmoved(),
			&fault.Error{Op: "find up", Path: file, Err: err,
				Hint: "turn the model yourself: " + fault.Setting("transform") + " \"rotate X,Y,Z\""}
	}
	return splatfile.Upright(up)
}
