package render

import (
	"fmt"

	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/picture"
)

// panorama is how pictures of 360 degrees are made: the six faces of a cube are drawn, and resampled.
type panorama struct {
	width, height int
	faces         []*picture.Picture
	parts         int // of faces that have been drawn
}

// panoramaSides is how many times a photo's height a panorama is wide, unless a size is given: at a field of view of 60
// degrees it shows as much detail.
const panoramaSides = 6

// newPanorama makes panoramas of a size or, without one, of about the detail that the largest camera's pictures have.
func newPanorama(size PixelsFlag, cams []scene.Camera) *panorama {
	p := &panorama{width: size.Width, height: size.Height}
	if size == (PixelsFlag{}) {
		for _, c := range cams {
			p.height = max(p.height, min(panoramaSides*c.Height, MaxPictureSide)/2)
		}
		p.width = 2 * p.height
	}
	return p
}

func (p *panorama) cameras(cams []scene.Camera) []scene.Camera {
	return picture.PanoramaFaces(cams[0], p.width)
}

func (p *panorama) draw(r *pipeline.Renderer, c scene.Camera, out *picture.Picture) error {
	cams := picture.PanoramaFaces(c, p.width)
	p.parts = 0
	for len(p.faces) < len(cams) {
		p.faces = append(p.faces, &picture.Picture{})
	}
	for i, face := range cams {
		if err := r.Add(face, p.faces[i], func() {}); err != nil {
			return err
		}
	}
	if err := r.Drain(); err != nil {
		return err
	}
	out.Width, out.Height = p.width, p.height
	picture.Panorama(out, cams, p.faces)
	return nil
}

// part counts a part of a face, which has so many, among those of all faces.
func (p *panorama) part(of int) (int, int) {
	p.parts++
	return min(p.parts, len(p.faces)*of), len(p.faces) * of
}

// atOnce is how many panoramas may be in memory at once, where so many pictures of faces may: one takes less than three
// of these, beside the six it is made of.
func (p *panorama) atOnce(faces int) int { return max(1, (faces-6)/3) }

// check refuses panoramas that RAM has no room for: the faces and the panorama in single precision, and what encoding
// takes, with so many bytes a pixel for what is beside them.
func (p *panorama) check(cams []scene.Camera, beside, ram int64) error {
	const perPixel = 4*4 + 4 // colour, coverage and depth
	side := int64(cams[0].Width)
	need := perPixel*6*side*side + (perPixel+12+beside)*int64(p.width)*int64(p.height)
	if need <= ram {
		return nil
	}
	return fault.WithHint(fmt.Errorf("render panorama: %w: %dx%d pixels take %s, there are %s", pipeline.ErrLittleRAM,
		p.width, p.height, pipeline.BytesText(need), pipeline.BytesText(ram)),
		"raise "+fault.Setting("max-ram")+", or make smaller ones with "+fault.Setting("size"))
}
