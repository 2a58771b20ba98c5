package pipeline

import (
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// viewParams fills what kernels need to know of a camera. Degree is the SH degree to evaluate.
func viewParams(v *layout.View, c *scene.Camera, near float64, degree int, antialiased bool, background [3]float32) {
	for i, x := range c.R {
		v.Rot[i] = float32(x)
	}
	for i, x := range c.T {
		v.Trans[i] = float32(x)
	}
	v.Focal = [2]float32{float32(c.Fx), float32(c.Fy)}
	v.Center = [2]float32{float32(c.Cx), float32(c.Cy)}
	v.Width, v.Height = uint32(c.Width), uint32(c.Height)
	v.TileWidth, v.TileHeight = uint32(layout.Tiles(c.Width)), uint32(layout.Tiles(c.Height))
	v.CameraModel = layout.CameraPinhole
	if c.Model == scene.Fisheye {
		v.CameraModel = layout.CameraFisheye
	}
	v.Near = float32(near)
	v.ShDegree = uint32(degree)
	v.Antialiased = layout.Bit(antialiased)
	v.Background = background
}

// widen returns by how much the low-pass filter of a picture is wider than that of training, px^2: it keeps its size in
// pixels of training.
// What is but a hundredth is a rounded size.
func (cfg *RenderConfig) widen(c *scene.Camera) float64 {
	scale := max(c.Fx, c.Fy) / cfg.Focal
	if cfg.Focal == 0 || scale < 1.01 {
		return 0
	}
	return layout.Eps2d * (scale*scale - 1)
}
