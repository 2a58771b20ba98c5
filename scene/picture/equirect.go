package picture

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
)

const (
	// panoramaMargin is how far the faces of a panorama that is drawn reach beyond the cube's edges, in tangents. On
	// either side of an edge one face fades into the other, because the same splat has not quite the same shape in
	// both.
	panoramaMargin = 0.25
	// panoramaDetail is the faces' resolution in their middle, relative to the panorama's at its equator; it is lowest
	// there.
	panoramaDetail = 1.1
)

// PanoramaFaces gives the cameras of the faces that a panorama of width pixels around a camera is made of.
func PanoramaFaces(c scene.Camera, width int) []scene.Camera {
	f := panoramaDetail * float64(width) / (2 * math.Pi)
	side := 2 * (int(math.Ceil(f*(1+panoramaMargin))) + 1) // a pixel more, for interpolation
	c.Lens, c.Model, c.Width, c.Height = nil, scene.Pinhole, side, side
	c.Fx, c.Fy, c.Cx, c.Cy = f, f, float64(side)/2, float64(side)/2
	faces := make([]scene.Camera, len(scene.CubeFaces))
	for i, face := range scene.CubeFaces {
		faces[i] = c.Turned(face.R)
	}
	return faces
}

// Panorama fills out, whose size is set and whose memory is used again where it is large enough, with what the faces
// show: the camera looks at the middle, and up is at the top. faces are the pictures of PanoramaFaces, cams these
// cameras. Depths become distances from the camera.
func Panorama(out *Picture, cams []scene.Camera, faces []*Picture) {
	n := out.Width * out.Height
	if cap(out.Color) < 4*n {
		out.Color = make([]float32, 4*n)
	}
	out.Pix, out.Color, out.Depth = nil, out.Color[:4*n], out.Depth[:0]
	if len(faces[0].Depth) > 0 {
		if cap(out.Depth) < n {
			out.Depth = make([]float32, n)
		}
		out.Depth = out.Depth[:n]
	}
	var turns [len(scene.CubeFaces)][9]float64
	for i, face := range scene.CubeFaces {
		turns[i] = geom.Transposed(face.R)
	}
	parallel.For(out.Height, func(y int) {
		for x := range out.Width {
			direction := panoramaDirection(float64(x)+0.5, float64(y)+0.5, out.Width, out.Height)
			panoramaPixel(out, y*out.Width+x, direction, &turns, cams, faces)
		}
	})
}

// panoramaDirection is where a place of a panorama looks, in the camera's axes; pixel centres are at +0.5.
func panoramaDirection(x, y float64, width, height int) [3]float64 {
	sinUp, cosUp := math.Sincos((0.5 - y/float64(height)) * math.Pi)
	sin, cos := math.Sincos((x/float64(width) - 0.5) * 2 * math.Pi)
	return [3]float64{sin * cosUp, -sinUp, cos * cosUp}
}

// panoramaPixel fills pixel i, which lies in a direction.
func panoramaPixel(out *Picture, i int, direction [3]float64, turns *[len(scene.CubeFaces)][9]float64,
	cams []scene.Camera, faces []*Picture) {
	var color [4]float64
	total, depth, depths := 0.0, 0.0, 0.0
	for k := range faces {
		d := geom.Rotate(turns[k], direction)
		if d[2] <= 0 {
			continue
		}
		u, v := d[0]/d[2], d[1]/d[2]
		weight := min((1+panoramaMargin-max(math.Abs(u), math.Abs(v)))/(2*panoramaMargin), 1)
		if weight <= 0 {
			continue
		}
		px, py := u*cams[k].Fx+cams[k].Cx, v*cams[k].Fy+cams[k].Cy
		faces[k].addSample(&color, px, py, weight)
		total += weight
		if len(out.Depth) == 0 {
			continue
		}
		if z := float64(faces[k].Depth[int(py)*faces[k].Width+int(px)]); z > 0 {
			depth, depths = depth+weight*z*math.Sqrt(1+u*u+v*v), depths+weight
		}
	}
	for c := range color {
		out.Color[4*i+c] = float32(color[c] / total)
	}
	if len(out.Depth) > 0 {
		out.Depth[i] = 0
		if depths > 0 {
			out.Depth[i] = float32(depth / depths)
		}
	}
}

// addSample adds the weighted colour at a place inside the picture, in pixels whose centres are at +0.5, interpolated
// between four pixels.
func (p *Picture) addSample(sum *[4]float64, x, y, weight float64) {
	x, y = x-0.5, y-0.5
	x0, y0 := int(x), int(y)
	fx, fy := x-float64(x0), y-float64(y0)
	for _, s := range [4]struct {
		dx, dy int
		w      float64
	}{{0, 0, (1 - fx) * (1 - fy)}, {1, 0, fx * (1 - fy)}, {0, 1, (1 - fx) * fy}, {1, 1, fx * fy}} {
		at := 4 * ((y0+s.dy)*p.Width + x0 + s.dx)
		for c := range sum {
			sum[c] += weight * s.w * float64(p.Color[at+c])
		}
	}
}
