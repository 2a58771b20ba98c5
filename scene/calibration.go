package scene

import "fmt"

// LensModel is a way in which a physical camera projects: COLMAP's models under COLMAP's ids, and others from 1000 on.
type LensModel int

// The models without distortion. The others are in the list of colmapModels.
const (
	LensSimplePinhole LensModel = 0 // f, cx, cy
	LensPinhole       LensModel = 1 // fx, fy, cx, cy
)

// Calibration is a physical camera: how it projects into the pixels of the photo as calibrated.
type Calibration struct {
	Model         LensModel
	Width, Height int       // of the photo when it was calibrated
	Params        []float64 // as COLMAP orders them for the model; pixel centres are at +0.5
}

// Lens says where Decode finds the pixels of an undistorted camera in its photo.
type Lens struct {
	Calibration Calibration
}

// Views returns the cameras to train on for one photo of width x height pixels: cam has its name, pose and files already and gets size, intrinsics and
// lens here. Most photos give one camera; panoramas give six. downscale is LoadOptions.Downscale.
func (k Calibration) Views(cam Camera, width, height, downscale int) ([]Camera, error) {
	return nil, fmt.Errorf("scene: make views: %d x %d pixels at 1/%d: lens model %d is not known", width, height, downscale, k.Model)
}
