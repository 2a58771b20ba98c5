package recipe

import "vksplat/shaders/layout"

// Progressive resolution: the first steps train on smaller photos, which takes less time and brings the coarse shape
// before the detail. Level l halves width and height l times. Photos stay as they are, wherever they are kept: the loss
// averages texels while it reads them (shaders/shared/target.glsl), and every other pass sees a camera with fewer
// pixels.

// leastSide is the shorter side in pixels below which no photo is halved: fewer hold no SSIM window and next to no
// detail.
const leastSide = layout.TileSize

// Level returns how many times photos are halved at a step counted from 0. It depends on nothing else, so that a run
// that is resumed continues as it would have.
func (c Config) Level(step int) int {
	if c.NumDownscales == 0 {
		return 0
	}
	return max(0, c.NumDownscales-step/c.ResolutionSchedule)
}

// levelOf returns how many times a photo of width x height is halved at a step counted from 0.
func levelOf(c *Config, step, width, height int) int {
	level := c.Level(step)
	for level > 0 && min(width, height)>>level < leastSide {
		level--
	}
	return level
}

// LevelParams turns the view of a whole photo into that of its step. Sizes are rounded down, so that each pixel has all
// of its texels; the centre of pixel i is at (i + 0.5) 2^level texels, which makes focal length and principal point in
// pixels exact.
func (c *Config) LevelParams(p *layout.StepParams, step int) {
	v := &p.View
	level := levelOf(c, step, int(v.Width), int(v.Height))
	p.Level, p.PhotoWidth, p.PhotoHeight = uint32(level), v.Width, v.Height
	share := 1 / float32(int(1)<<level)
	for i := range v.Focal {
		v.Focal[i] *= share
		v.Center[i] *= share
	}
	v.Width, v.Height = v.Width>>level, v.Height>>level
	v.TileWidth, v.TileHeight = uint32(layout.Tiles(int(v.Width))), uint32(layout.Tiles(int(v.Height)))
}
