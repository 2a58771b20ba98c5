package pipeline

import (
	"errors"

	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// carve makes floaters invisible. reach is how many distances to the nearest camera a splat may be large.
func (v *view) carve() {
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.Carve{
			Counters: v.s.counters, Voters: v.s.voters, Chunk: c.Slice,
			Push: shaders.CarvePush{
				FirstId: uint32(c.first), ChunkSplats: uint32(c.splats), NVoters: uint32(v.s.voters.N()),
				FirstMoments:  uint32(v.s.model.First + layout.RowLogitOpacities),
				SecondMoments: uint32(v.s.model.Second + layout.RowLogitOpacities),
				Reach:         v.s.strategy.variants().reach,
			},
		}, vk.Items(c.splats, 256))
	}
}

// voterBytes is the size of layout.Voter.
const voterBytes = 29 * 4

// mostVoters is how many cameras judge splats at most, which bounds the time: of more, some at even distances do.
const mostVoters = 1024

// votersOf returns the numbers of the n cameras that judge splats.
func votersOf(n int) (list []int) {
	for i := range min(n, mostVoters) {
		list = append(list, i*n/min(n, mostVoters))
	}
	return list
}

// loadVoters puts the cameras that judge splats onto the device, each with the depths of its points.
func (s *setup) loadVoters(cams []scene.Camera, depths []scene.Depths) (err error) {
	list := votersOf(len(cams))
	if s.voters, err = vk.Make[layout.Voter](s.dev, vk.DeviceLocal, len(list), "voters"); err != nil {
		return err
	}
	staging, err := vk.Make[layout.Voter](s.dev, vk.Upload, len(list), "voters staging")
	if err != nil {
		return err
	}
	host := vk.Host(staging)
	for k, i := range list {
		host[k] = layout.Voter{Empty: float32(depths[i].Empty), Median: float32(depths[i].Median)}
		c := cams[i].Undistorted()
		viewParams(&host[k].View, &c, 0, 0, false, [3]float32{})
	}
	r := vk.NewRecorder(s.dev)
	r.Copy(s.voters.View, staging.View)
	return errors.Join(s.dev.RunOnce(r, "load voters"), s.dev.Free(staging.View))
}
