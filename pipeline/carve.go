package pipeline

import (
	"errors"

	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// carve makes floaters invisible.
func (v *view) carve() {
	for _, c := range v.model.chunks {
		v.r.Dispatch(&shaders.Carve{
			Counters: v.counters, Cameras: v.cameras, Chunk: c.Slice,
			Push: shaders.CarvePush{
				FirstId: uint32(c.first), ChunkSplats: uint32(c.splats), NCameras: uint32(v.cameras.N()),
				FirstMoments: uint32(v.model.first + layout.RowLogitOpacity), SecondMoments: uint32(v.model.second + layout.RowLogitOpacity),
			},
		}, vk.Items(c.splats, 256))
	}
}

// viewBytes is the size of a camera on the device.
const viewBytes = 27 * 4

// loadCameras puts the cameras that are trained on onto the device, each with the depth up to which it sees empty space.
func (e *engine) loadCameras(cams []scene.Camera, empty []float64) (err error) {
	if e.cameras, err = vk.Make[layout.View](e.dev, vk.DeviceLocal, len(cams), "cameras"); err != nil {
		return err
	}
	staging, err := vk.Make[layout.View](e.dev, vk.Upload, len(cams), "cameras staging")
	if err != nil {
		return err
	}
	host := vk.Host(staging)
	for i := range cams {
		host[i] = layout.View{}
		viewParams(&host[i], &cams[i], empty[i], 0, false, [3]float32{})
	}
	r := vk.NewRecorder(e.dev)
	r.Copy(e.cameras.View, staging.View)
	return errors.Join(runOnce(e.dev, r, "load cameras"), e.dev.Free(staging.View))
}
