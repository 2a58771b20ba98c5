package initial

import (
	"context"
	"math"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/internal/philox"
	"vksplat/scene"
)

const (
	probes        = 4096 // places that are looked at to learn how many cameras see the best one
	viewCameras   = 64   // cameras that are asked, evenly spread
	stopEvery     = 256  // points after which it is seen whether the caller gave up
	maxTries      = 4096 // candidates for one point
	nearestInView = 0.1  // depth from which a camera sees, in units of the box's half edge
)

func cubePoints(ctx context.Context, c *scene.Capture, o Options) []scene.Point {
	box := viewBox{half: SyntheticHalf * c.Frame.Scale}
	for k := range 3 {
		box.center[k] = -c.Frame.Center[k] * c.Frame.Scale
	}
	return fill(ctx, o, box.candidate, func([3]float64) bool { return true })
}

// randomPoints gives random points with random colours, uniform in the part of space that most cameras see: of a cube
// around the place where their view axes meet, what at least half as many cameras see as see the best of 4096 places in
// it. Where the capture's file says between which depths photos show something, the points are there. In the training
// frame.
func randomPoints(ctx context.Context, c *scene.Capture, o Options) []scene.Point {
	if cams := withDepths(c); len(cams) > 0 {
		return pointsBetween(ctx, cams, o)
	}
	cams := c.Cameras
	if n := len(cams); n > viewCameras {
		cams = make([]scene.Camera, viewCameras)
		for i := range cams {
			cams[i] = c.Cameras[i*n/viewCameras]
		}
	}
	box := boxInView(c.Cameras, c.SceneScale)
	// seen counts cameras, up to need; it gives less as soon as need cannot be reached.
	seen := func(p [3]float64, need int) (n int) {
		for i := range cams {
			if n >= need || n+len(cams)-i < need {
				break
			}
			if _, in := cams[i].SeesBetween(p, nearestInView*box.half, math.Inf(1)); in {
				n++
			}
		}
		return n
	}
	best := 0
	for i := range uint32(probes) {
		p, _ := box.candidate(i, 0, philox.Key(o.Seed^math.MaxUint64))
		for seen(p, best+1) > best {
			best++
		}
	}
	need := (best + 1) / 2
	return fill(ctx, o, box.candidate, func(p [3]float64) bool { return seen(p, need) >= need })
}

func withDepths(c *scene.Capture) (cams []scene.Camera) {
	for _, cam := range c.Cameras {
		if cam.Depths[1] > 0 {
			cams = append(cams, cam)
		}
	}
	return cams
}

// pointsBetween gives random points between the depths of cameras, uniform in the pixels of each and in 1 / depth.
func pointsBetween(ctx context.Context, cams []scene.Camera, o Options) []scene.Point {
	candidate := func(id, try uint32, key [2]uint32) (p [3]float64, more uint32) {
		words := philox.Block([4]uint32{id, try, philox.StreamCloud, 0}, key)
		cam, u, v, t := &cams[int(id)%len(cams)], philox.Uniform(words[0]), philox.Uniform(words[1]),
			philox.Uniform(words[2])
		return cam.Place(u*float64(cam.Width), v*float64(cam.Height), 1/((1-t)/cam.Depths[0]+t/cam.Depths[1])), words[3]
	}
	return fill(ctx, o, candidate, func([3]float64) bool { return true })
}

type viewBox struct {
	center [3]float64
	half   float64 // of the edge
}

// boxInView gives the cube around the place that is nearest to all view axes, as wide as the median camera is far from
// it. Cameras that look at no common place, side by side or outwards, get a cube around their mean that is three scene
// scales to each side.
func boxInView(cams []scene.Camera, sceneScale float64) viewBox {
	everywhere := viewBox{half: 3 * sceneScale}
	p, spread := scene.Focus(cams)
	if !(spread > 1e-4) {
		return everywhere // the axes are nearly parallel
	}
	var depths []float64
	behind := 0
	for _, cam := range cams {
		if z := cam.ToCamera(p)[2]; z <= 0 {
			behind++
		}
		depths = append(depths, geom.Length(geom.Sub(p, cam.Center())))
	}
	half := scene.Median(depths)
	if 2*behind > len(cams) || !(half > 0) || !geom.Finite(p[:]...) {
		return everywhere
	}
	return viewBox{p, half}
}

// fill gives the random points of o: for each the first of its candidates that is accepted. It ends early when ctx
// ends.
func fill(ctx context.Context, o Options, candidate func(id, try uint32, key [2]uint32) ([3]float64, uint32),
	accept func(p [3]float64) bool) []scene.Point {
	n := o.randomCount()
	points := make([]scene.Point, n)
	key := philox.Key(o.Seed)
	parallel.For((n+spacingBlock-1)/spacingBlock, func(block int) {
		for i := block * spacingBlock; i < min((block+1)*spacingBlock, n); i++ {
			if i%stopEvery == 0 && ctx.Err() != nil {
				return
			}
			for try := range uint32(maxTries) {
				var color uint32
				points[i].Pos, color = candidate(uint32(i), try, key)
				points[i].Color = [3]uint8{uint8(color), uint8(color >> 8), uint8(color >> 16)}
				if accept(points[i].Pos) {
					break
				}
			}
		}
	})
	return points
}

func (o Options) randomCount() int {
	if o.Points == 0 {
		return DefaultRandomPoints
	}
	return o.Points
}

// candidate gives a uniform place in the cube and 32 random bits more.
func (b viewBox) candidate(id, try uint32, key [2]uint32) (p [3]float64, more uint32) {
	words := philox.Block([4]uint32{id, try, philox.StreamCloud, 0}, key)
	for k := range 3 {
		p[k] = b.center[k] + b.half*(2*philox.Uniform(words[k])-1)
	}
	return p, words[3]
}
