package scene

import "fmt"

// Views returns the cameras to train on for one photo of width x height pixels as stored: cam has its name, pose and files already and gets size,
// intrinsics and lens here. downscale is LoadOptions.Downscale. Errors are of type *Error and kind ErrData.
func (k Calibration) Views(cam Camera, width, height, downscale int) ([]Camera, error) {
	p := k.Params
	switch k.Model {
	case LensSimplePinhole:
		cam.Fx, cam.Fy, cam.Cx, cam.Cy = p[0], p[0], p[1], p[2]
	case LensPinhole:
		cam.Fx, cam.Fy, cam.Cx, cam.Cy = p[0], p[1], p[2], p[3]
	default:
		return nil, &Error{Op: "use calibration", Path: cam.Name, Err: fmt.Errorf("photos of the lens model %v are not read", k.Model)}
	}
	cam.Width, cam.Height = k.Width, k.Height
	return []Camera{cam.Rescaled(trainedSize(width, height, downscale))}, nil
}
