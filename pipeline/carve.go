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

// viewBytes is the size of layout.View.
const viewBytes = 27 * 4

// mostVoters is how many cameras judge splats at most: of more, so many at even distances do, which bounds its time.
const mostVoters = 1024

// voters returns the numbers of the n cameras that judge splats.
func voters(n int) (list []int) {
	for i := range min(n, mostVoters) {
		list = append(list, i*n/min(n, mostVoters))
	}
	return list
}

// loadCameras puts the cameras that judge splats onto the device, each with the depth up to which it sees empty space.
func (e *engine) loadCameras(cams []scene.Camera, empty []float64) (err error) {
	list := voters(len(cams))
	if e.cameras, err = vk.Make[layout.View](e.dev, vk.DeviceLocal, len(list), "cameras"); err != nil {
		return err
	}
	staging, err := vk.Make[layout.View](e.dev, vk.Upload, len(list), "cameras staging")
	if err != nil {
		return err
	}
	host := vk.Host(staging)
	for k, i := range list {
		host[k] = layout.View{}
		viewParams(&host[k], &cams[i], empty[i], 0, false, [3]float32{})
	}
	r := vk.NewRecorder(e.dev)
	r.Copy(e.cameras.View, staging.View)
	return errors.Join(runOnce(e.dev, r, "load cameras"), e.dev.Free(staging.View))
}
