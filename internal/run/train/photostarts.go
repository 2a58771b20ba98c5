package train

import (
	"fmt"

	"vksplat/internal/parallel"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// displayGamma is about the power of light that photos' numbers show: twice the light is 2^(1/2.2) times the number.
const displayGamma = 2.2

// photoStarts says how the photos of cams were taken: how much light each got, by EXIF, and by which camera. A photo
// whose EXIF does not tell starts at the mean of the others. Photos of one camera, lens and focal length share their
// vignetting; without EXIF, those of one calibration do. numbers are those of the cameras, by cameraName.
func photoStarts(cams []scene.Camera) (starts []pipeline.PhotoStart, numbers map[string]int) {
	starts = make([]pipeline.PhotoStart, len(cams))
	names := make([]string, len(cams))
	known := make([]bool, len(cams))
	parallel.For(len(cams), func(i int) {
		starts[i].Exposure, known[i] = photo.Stops(cams[i].Path)
		starts[i].Exposure /= displayGamma
		names[i] = cameraName(&cams[i])
	})
	mean, n := 0.0, 0
	for i, s := range starts {
		if known[i] {
			mean += s.Exposure
			n++
		}
	}
	mean /= float64(max(n, 1))
	numbers = map[string]int{}
	for i, name := range names {
		if starts[i].Exposure -= mean; !known[i] {
			starts[i].Exposure = 0
		}
		if _, met := numbers[name]; !met {
			numbers[name] = len(numbers)
		}
		starts[i].Camera = numbers[name]
	}
	return starts, numbers
}

// cameraName tells cameras apart. Photos that are upright are turned against others of the same camera.
func cameraName(c *scene.Camera) string {
	if text := photo.TakenWith(c.Path); text != "" {
		return fmt.Sprint(text, c.Model, c.Width < c.Height)
	}
	return fmt.Sprint(c.Width, c.Height, c.Fx, c.Fy, c.Cx, c.Cy, c.Model)
}
